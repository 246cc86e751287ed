"""Rules as permissions in Claude Code's settings, which hold where toolmem does not. What does not fit is named.

A rule fits where a permission says the same or less, never more. Of a rule that names several things ("Sarah at
sarah@example.com") what fits is exported, and the rest is named. Read from the documentation of Claude Code
(settings, permissions) in November 2026.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from toolmem.guard.condition_shapes import CommandShape, Every, Joined, ListShape, Shape, TextShape, read_condition
from toolmem.guard.condition_words import shape_in_words
from toolmem.guard.tool_classes import is_scope
from toolmem.light_models import ToolMemoryRule
from toolmem.rules.identity import UNSCOPED

_OF_CLASS = {"@shell": "Bash", "@read": "Read", "@write": "Edit", "@fetch": "WebFetch", "@web": "WebSearch"}
_SHELLS = frozenset(("bash", "@shell", "shell", "terminal", "sh", "run_command", "execute_command"))
_FETCHERS = frozenset(("webfetch", "@fetch", "fetch", "web_fetch", "fetch_page", "browser"))
_READERS = frozenset(("read", "@read", "read_file"))
_WRITERS = frozenset(("edit", "@write", "write", "write_file", "edit_file"))


@dataclass(frozen=True, slots=True)
class LeftOutRule:
    """A rule, or a part of one, that no permission says."""

    rule: ToolMemoryRule
    why: str


@dataclass(slots=True)
class ClaudePermissions:
    """`settings`: the text of a settings.json."""

    settings: str
    left_out: list[LeftOutRule] = field(default_factory=list)


def claude_permissions(rules: Iterable[ToolMemoryRule]) -> ClaudePermissions:
    """The active rules that stop calls."""
    permissions: dict[str, list[str]] = {"deny": [], "ask": []}
    left_out: list[LeftOutRule] = []
    for rule in rules:
        if rule.status != "active":
            continue
        if rule.effect == "remind" or rule.when is None:
            left_out.append(LeftOutRule(rule, "it only reminds"))
        elif (shape := read_condition(rule.when)) is None:
            left_out.append(LeftOutRule(rule, "its condition is of a shape that is not exported"))
        else:
            for part in _parts(shape):
                written = _permissions(rule, part)
                permissions[rule.effect] += written
                if not written:
                    left_out.append(LeftOutRule(rule, f"not sayable there: {shape_in_words(part)}"))
    settings = {"permissions": {effect: sorted(set(each)) for effect, each in permissions.items() if each}}
    return ClaudePermissions(json.dumps(settings, indent=2, ensure_ascii=False) + "\n", left_out)


def _parts(shape: Shape) -> Sequence[Shape]:
    """What is forbidden each by itself."""
    return shape.parts if isinstance(shape, Joined) and shape.how == "any" else (shape,)


def _permissions(rule: ToolMemoryRule, shape: Shape) -> list[str]:
    tool = rule.tool_name.lower()
    match shape:
        case Every() if rule.tool_name != UNSCOPED:
            named = "Bash" if tool in _SHELLS else _OF_CLASS.get(tool, "" if is_scope(tool) else rule.tool_name)
            return [named] if named else []
        case CommandShape(programs, second, ()) if tool in _SHELLS and programs != (">",):
            firsts = [f"{program} {word}".strip() for program in programs for word in second or ("",)]
            return [f"Bash({each}:*)" for each in firsts]
        case ListShape("targets" | "hosts", TextShape("at", hosts, elsewhere=False)) if tool in _FETCHERS:
            return [f"WebFetch(domain:{host})" for host in hosts]
        case ListShape("targets" | "paths", TextShape("below", paths, elsewhere=False)) if tool in _READERS | _WRITERS:
            name = "Read" if tool in _READERS else "Edit"
            return [f"{name}({each})" for path in paths for each in _path_patterns(path)]
        case _:
            return []


def _path_patterns(path: str) -> list[str]:
    """As the settings write it: two slashes before an absolute path; what lies below as well."""
    start = path if path.startswith("~") else f"/{path}" if path.startswith("/") else f"**/{path}"
    return [start, f"{start}/**"]
