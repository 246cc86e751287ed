"""A team's rules as one YAML file that is reviewed in its repository.

The same rules give the same bytes, and each alternative of a condition is a line, so that git
merges and shows them well. Nothing holds by standing in the file: an import shows the difference
and asks. A rule that the file dropped goes on holding.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any, Literal

import msgspec
import yaml
from msgspec import UNSET, Struct

from toolmem.errors import RequestError
from toolmem.models.calls import Moment
from toolmem.models.rules import Effect, Priority, Said, Speaker, ToolMemoryRule
from toolmem.rules.changes import Actor, loosens
from toolmem.rules.identity import folded_name, same_text
from toolmem.rules.store import RuleInput, ToolMemoryStore
from toolmem.text.patterns import late_pattern

TEAM_FILE = "team-file"  # the tag of rules that came from a team's file
MAX_BYTES = 1_000_000
_CALLS = ("when", "unless", "stops", "passes")  # a line for each
_CONFLICT = late_pattern(r"(?:<{7}|\|{7}|>{7})(?: |$)|={7}$")
_HEAD = """\
# Rules for agents, to be reviewed. They hold once `toolmem rules import FILE` has shown them.
"""

Key = tuple[str, str]  # tool and sentence, whatever their spelling


class TeamRule(Struct, kw_only=True, forbid_unknown_fields=True):
    """A rule of the file."""

    tool: str
    rule: str
    effect: Effect = "remind"
    priority: Priority = "critical"
    when: list[dict[str, Any]] = []
    unless: list[dict[str, Any]] = []
    stops: list[dict[str, Any]] = []
    passes: list[dict[str, Any]] = []
    until: Moment | None = None
    said_by: Speaker = "user"

    def input(self) -> RuleInput:
        """As the store takes it. Raises RequestError."""
        given = {name: getattr(self, name) for name in ("effect", "priority", *_CALLS)}
        until = UNSET if self.until is None else self.until
        return RuleInput(tool_name=self.tool, rule=self.rule, expires_at=until, **given).checked()


class TeamFile(Struct):
    """`problems`: blocks that hold no rule, with their lines."""

    rules: dict[Key, TeamRule]
    problems: list[str]


class TeamChange(Struct):
    """One difference between a file and a store. `narrowed`: the file says less than what holds."""

    kind: Literal["added", "changed", "narrowed", "dropped"]
    rule: TeamRule | None  # None: the file dropped it
    before: ToolMemoryRule | None = None

    @property
    def restricts(self) -> bool:
        """Whether an import makes it; the others go on holding as they are."""
        return self.kind in ("added", "changed")

    @property
    def text(self) -> str:
        """The rule's sentence."""
        return self.rule.rule if self.rule else self.before.rule if self.before else ""


def export(rules: Iterable[ToolMemoryRule], now: datetime) -> str:
    """The file of the rules that hold for good, but for what merely kept failing."""
    kept = [r for r in rules if r.holds_at(now) and not r.session and r.source != "post_turn"]
    first = {_key(r.tool_name, r.rule): r for r in sorted(kept, key=_oldest_last)}
    return "\n".join([_HEAD, *(_block(first[key]) for key in sorted(first))])


def _oldest_last(rule: ToolMemoryRule) -> tuple[float, str]:
    return -rule.created_at.timestamp(), rule.id


def _key(tool_name: str, text: str) -> Key:
    return folded_name(tool_name), same_text(text)


def _block(rule: ToolMemoryRule) -> str:
    told = {
        "tool": rule.tool_name,
        "rule": rule.rule,
        "effect": rule.effect,
        "priority": rule.priority,
    }
    lines = [f"{name}: {_json(value)}" for name, value in told.items()]
    for name in _CALLS:
        if listed := getattr(rule, name):
            lines += [f"{name}:", *(f"  - {_json(each)}" for each in listed)]
    if rule.expires_at is not None:
        lines.append(f"until: {_json(msgspec.to_builtins(rule.expires_at))}")
    lines.append(f"said_by: {rule.said.by}")
    return "- " + "\n  ".join(lines) + "\n"


def _json(value: Any) -> str:
    """JSON, which is YAML; what cannot be seen is escaped, so that a review sees everything."""
    text = json.dumps(value, ensure_ascii=False, sort_keys=True)
    return "".join(each if each.isprintable() else f"\\U{ord(each):08x}" for each in text)


# ---------------------------------------------------------------- reading


def read_team_file(given: bytes, name: str) -> TeamFile:
    """Each block by itself. Raises RequestError: too long, no text, or a conflict of git."""
    if len(given) > MAX_BYTES:
        raise RequestError(f"{name}: longer than {MAX_BYTES:,} bytes", "file")
    try:
        lines = given.decode("utf-8-sig").replace("\r\n", "\n").split("\n")
    except UnicodeDecodeError as error:
        raise RequestError(f"{name}: no UTF-8 (byte {error.start})", "file") from None
    conflict = next((n for n, line in enumerate(lines, 1) if _CONFLICT.match(line)), 0)
    if conflict:
        told = "git left a conflict here: keep one side and import again"
        raise RequestError(f"{name}, line {conflict}: {told}", "file")
    file = TeamFile({}, [])
    for number, block in _blocks(lines):
        try:
            rule = _rule(block)
            key = _key(rule.tool, rule.rule)
            if key in file.rules:
                raise RequestError("this rule stands twice")
            file.rules[key] = rule
        except RequestError as error:
            file.problems.append(f"{name}, line {number}: {error}")
    return file


def _blocks(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """(number of its first line, text) of each rule; what stands before the first is no rule."""
    starts = [at for at, line in enumerate(lines) if line.startswith("- ")]
    head = lines[: starts[0]] if starts else lines
    odd = [at for at, line in enumerate(head) if line.strip() and not line.startswith("#")]
    for at in odd[:1]:
        yield at + 1, lines[at]
    for start, end in pairwise([*starts, len(lines)]):
        yield start + 1, "\n".join(lines[start:end])


def _rule(block: str) -> TeamRule:
    try:
        listed = yaml.safe_load(block)
        if not isinstance(listed, list) or len(listed) != 1:
            raise RequestError("expected a block that begins with `- tool:`")
        rule = msgspec.convert(listed[0], TeamRule)
    except yaml.YAMLError as error:
        raise RequestError(f"no YAML: {' '.join(str(error).split())[:200]}") from None
    except msgspec.ValidationError as error:
        raise RequestError(str(error)) from None
    rule.input()
    return rule


# ---------------------------------------------------------------- importing


def differences(file: TeamFile, known: Iterable[ToolMemoryRule], now: datetime) -> list[TeamChange]:
    """`known`: the rules that hold. While a block cannot be read, nothing counts as dropped."""
    binding = {_key(r.tool_name, r.rule): r for r in known if r.holds_at(now) and not r.session}
    found = []
    for key, rule in sorted(file.rules.items()):
        before = binding.get(key)
        if before is None:
            found.append(TeamChange("added", rule))
        elif kind := _kind(before, rule, now):
            found.append(TeamChange(kind, rule, before))
    if not file.problems:
        gone = [
            r for k, r in sorted(binding.items()) if TEAM_FILE in r.tags and k not in file.rules
        ]
        found += [TeamChange("dropped", None, rule) for rule in gone]
    return found


def _kind(
    before: ToolMemoryRule, rule: TeamRule, now: datetime
) -> Literal["", "changed", "narrowed"]:
    fields = {name: getattr(rule, name) for name in ("effect", "priority", *_CALLS)}
    after = msgspec.structs.replace(before, **fields, expires_at=rule.until or before.expires_at)
    if after == before:
        return ""
    return "narrowed" if loosens(before, after, now) else "changed"


def import_changes(rules: ToolMemoryStore, changes: Iterable[TeamChange], actor: Actor) -> int:
    """Make what restricts; how many rules that were. The others go on holding as they are."""
    made = 0
    for change in changes:
        if not change.restricts or change.rule is None:
            continue
        given = change.rule.input()
        if change.before is None:
            given.source, given.tags = "programmatic", [TEAM_FILE]
            given.said = Said(change.rule.said_by)
        rules.put_rule(given, actor)
        made += 1
    return made
