"""Rules in the forms of other guards: Claude Code's permissions, hookify, Cedar. What does not fit is named.

A rule fits where the other form says the same or less, never more. Of a rule that names several things ("Sarah at
sarah@example.com") what fits is exported, and the rest is named. Read from the documentation of Claude Code
(settings, permissions), of its plugin hookify, and of the Cedar policy language 4, in November 2026.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

from toolmem.errors import RequestError
from toolmem.guard.condition_shapes import CommandShape, Every, Joined, ListShape, Shape, TextShape, read_condition
from toolmem.guard.condition_words import shape_in_words
from toolmem.guard.tool_classes import is_scope
from toolmem.light_models import ToolMemoryRule
from toolmem.rules.identity import UNSCOPED

ExportFormat = Literal["claude-code", "hookify", "cedar"]
FORMATS: tuple[ExportFormat, ...] = get_args(ExportFormat)

_OF_CLASS = {"@shell": "Bash", "@read": "Read", "@write": "Edit", "@fetch": "WebFetch", "@web": "WebSearch"}
_SHELLS = frozenset(("bash", "@shell", "shell", "terminal", "sh", "run_command", "execute_command"))
_FETCHERS = frozenset(("webfetch", "@fetch", "fetch", "web_fetch", "fetch_page", "browser"))
_READERS = frozenset(("read", "@read", "read_file"))
_WRITERS = frozenset(("edit", "@write", "write", "write_file", "edit_file"))


@dataclass(frozen=True, slots=True)
class LeftOutRule:
    """A rule, or a part of one, that the other form cannot say."""

    rule: ToolMemoryRule
    why: str


@dataclass(slots=True)
class Export:
    """`files`: by name, what is to be written; hookify has one per rule."""

    files: dict[str, str] = field(default_factory=dict)
    left_out: list[LeftOutRule] = field(default_factory=list)


def export_rules(rules: Iterable[ToolMemoryRule], to: ExportFormat) -> Export:
    """The active rules that stop calls, in another form. Raises RequestError where the form is unknown."""
    if to not in FORMATS:
        raise RequestError(f"to: expected one of {', '.join(FORMATS)}; got {to!r}", field="to")
    writer = {"claude-code": _claude_code, "hookify": _hookify, "cedar": _cedar}[to]
    done = Export()
    checked = []
    for rule in rules:
        if rule.status != "active":
            continue
        if rule.effect == "remind" or rule.when is None:
            done.left_out.append(LeftOutRule(rule, "it only reminds"))
        elif (shape := read_condition(rule.when)) is None:
            done.left_out.append(LeftOutRule(rule, "its condition is of a shape that is not exported"))
        else:
            checked.append((rule, shape))
    writer(checked, done)
    return done


def _parts(shape: Shape) -> Sequence[Shape]:
    """What is forbidden each by itself."""
    return shape.parts if isinstance(shape, Joined) and shape.how == "any" else (shape,)


def _each(
    checked: Iterable[tuple[ToolMemoryRule, Shape]],
    done: Export,
    fits: Callable[[ToolMemoryRule, Shape], list[str]],
) -> Iterable[tuple[ToolMemoryRule, list[str]]]:
    """(rule, what it becomes); what becomes nothing is named."""
    for rule, shape in checked:
        made: list[str] = []
        for part in _parts(shape):
            written = fits(rule, part)
            made += written
            if not written:
                done.left_out.append(LeftOutRule(rule, f"not sayable there: {shape_in_words(part)}"))
        if made:
            yield rule, made


# ---------------------------------------------------------------- Claude Code


def _claude_code(checked: Sequence[tuple[ToolMemoryRule, Shape]], done: Export) -> None:
    permissions: dict[str, list[str]] = {"deny": [], "ask": []}
    for rule, made in _each(checked, done, _permissions):
        permissions[rule.effect] += [each for each in made if each not in permissions[rule.effect]]
    settings = {"permissions": {effect: sorted(each) for effect, each in permissions.items() if each}}
    done.files["settings.json"] = json.dumps(settings, indent=2, ensure_ascii=False) + "\n"


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


# ---------------------------------------------------------------- hookify


def _hookify(checked: Sequence[tuple[ToolMemoryRule, Shape]], done: Export) -> None:
    for rule, made in _each(checked, done, _regex):
        for number, pattern in enumerate(made, 1):
            name = f"toolmem-{rule.id[:8]}-{number}"
            front = {"name": name, "enabled": True, "event": "bash", "pattern": pattern, "action": "block"}
            lines = [f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in front.items()]
            text = "\n".join(["---", *lines, "---", "", f"A rule of the user: {' '.join(rule.rule.split())}", ""])
            done.files[f"hookify.{name}.local.md"] = text


def _regex(rule: ToolMemoryRule, shape: Shape) -> list[str]:
    """A pattern over the command's text; `ask` has no counterpart there."""
    if rule.effect != "deny" or rule.tool_name.lower() not in _SHELLS or not isinstance(shape, CommandShape):
        return []
    words = [_word_pattern(each) for each in shape.words]
    if shape.programs == (">",) or "" in words:
        return []
    first = _any(shape.programs) + (rf"\s+{_any(shape.second)}" if shape.second else "")
    # Each word in the same simple command, in whatever order.
    held = "".join(rf"(?=[^;&|\n]*\s{word}(?=\s|$|[;&|]))" for word in words)
    return [rf"(?:^|[;&|(\n])\s*(?:sudo\s+)?{first}(?=\s|$|[;&|]){held}"]


def _any(texts: Sequence[str]) -> str:
    return f"(?:{'|'.join(map(re.escape, texts))})"


def _word_pattern(text: TextShape) -> str:
    match text.kind:
        case "equals":
            return _any(text.texts)
        case "option":
            return rf"-[A-Za-z]*{text.texts[0]}[A-Za-z]*"
        case "force":
            return r"(?:-[A-Za-z]*f[A-Za-z]*|--force\S*|\+\S+)"
        case "below":
            return rf"{_any(text.texts)}(?:/\S*)?"
        case _:
            return ""


# ---------------------------------------------------------------- Cedar


def _cedar(checked: Sequence[tuple[ToolMemoryRule, Shape]], done: Export) -> None:
    policies = [
        _policy(rule, f"{rule.id[:8]}-{number}", when)
        for rule, made in _each(checked, done, _expression)
        for number, when in enumerate(made, 1)
    ]
    done.files["toolmem.cedar"] = "\n".join([_CEDAR_HEAD, *policies])


_CEDAR_HEAD = """\
// Rules of toolmem. The request: action Action::"call", resource Tool::"<name in lower case>", and as its context
// what toolmem sees of the call: targets, emails, hosts, paths, programs, statements, tables, each a set of texts.
// A tool of a class has the class among its parents: Tool::"@shell" of those that run commands.
// Cedar denies what nothing permits, so that a policy that permits is needed beside these.
"""


def _policy(rule: ToolMemoryRule, name: str, when: str) -> str:
    tool = rule.tool_name.lower()
    is_one = "in" if is_scope(tool) else "=="
    resource = "resource" if rule.tool_name == UNSCOPED else f"resource {is_one} Tool::{_quoted(tool)}"
    head = f'@id("{name}")\n@said({_quoted(" ".join(rule.rule.split()))})\nforbid (principal, action, {resource})'
    return f"{head}{f' when {{ {when} }}' if when != _ALWAYS else ''};\n"


_ALWAYS = "true"


def _expression(rule: ToolMemoryRule, shape: Shape) -> list[str]:
    """Cedar asks sets for texts that are equal, not for patterns, and it cannot ask a user."""
    if rule.effect != "deny":
        return []
    match shape:
        case Every() if rule.tool_name != UNSCOPED:
            return [_ALWAYS]
        case ListShape(name, TextShape("equals", texts, elsewhere=False, unknown=False)):
            return [f"context.{name}.containsAny([{', '.join(map(_quoted, texts))}])"]
        case ListShape("targets", TextShape("channel", texts, elsewhere=False)):
            written = [f"{mark}{text}" for text in texts for mark in ("", "#", "@")]
            return [f"context.targets.containsAny([{', '.join(map(_quoted, written))}])"]
        case CommandShape(programs, (), ()) if programs != (">",):
            return [f"context.programs.containsAny([{', '.join(map(_quoted, programs))}])"]
        case Joined("all", parts):
            made = [_expression(rule, each) for each in parts]
            return [" && ".join(each[0] for each in made)] if all(len(each) == 1 for each in made) else []
        case _:
            return []


def _quoted(text: str) -> str:
    """A string literal: Cedar's escapes are those of Rust."""
    escapes: Mapping[str, str] = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\0": "\\0"}
    return '"' + "".join(escapes.get(each, each) for each in text) + '"'
