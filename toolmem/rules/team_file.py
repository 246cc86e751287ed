"""A team's rules as one YAML file that is reviewed in a repository: a block for each rule, always in the same order.

The same rules give the same bytes, and each alternative of a condition is a line, so that git merges and shows them
well. Nothing in the file holds by being there. Each block is read by itself: one that is wrong takes no other with it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

from toolmem.config.document import read_text as read_yaml
from toolmem.errors import ConfigError, RequestError
from toolmem.guard.call_conditions import of_alternatives
from toolmem.light_models import Priority, Speaker, ToolMemoryRule
from toolmem.rules.drafts import RuleDraft
from toolmem.rules.identity import folded_name, read_choice, read_time, same_text
from toolmem.rules.loosening import binds
from toolmem.rules.rule_checks import Check, read_check
from toolmem.rules.stored_rules import THIS_SESSION

TEAM_FILE = "team-file"  # the tag of rules that a team's file said
LONGEST = 1_000_000  # bytes of a file
_SAID_BY = "said-by-"  # the tag that tells who said it first, as the file has it
_FIELDS = ("tool", "rule", "effect", "priority", "when", "unless", "stops", "passes", "until", "said_by", "said_at")
_CALLS = ("when", "unless", "stops", "passes")  # of alternatives, a line each
_CONFLICT = re.compile(r"(?:<{7}|\|{7}|>{7})(?: |$)|={7}$")
_LINE = re.compile(r"\bline (\d+)")
_HEAD = """\
# Rules for agents, to be reviewed. They hold once `toolmem rules import FILE` has shown them to you.
"""

Key = tuple[str, str]  # tool and sentence, whatever their spelling


@dataclass(frozen=True, slots=True)
class TeamRule:
    """A rule of the file, checked as one that is put."""

    tool_name: str
    rule: str
    check: Check
    priority: Priority
    expires_at: datetime | None
    said_by: Speaker
    said_at: datetime | None

    @property
    def key(self) -> Key:
        return key_of(self)

    @property
    def tags(self) -> list[str]:
        return [TEAM_FILE, f"{_SAID_BY}{self.said_by}"]

    def as_entry(self) -> dict[str, Any]:
        """As `read_rules` takes it."""
        told = {name: getattr(self.check, name) for name in ("effect", "when", "unchecked")}
        return {"rule": self.rule, "tool_name": self.tool_name, **told}


@dataclass(frozen=True, slots=True)
class TeamFile:
    """`problems`: the blocks that hold no rule, with their lines. `digest`: of the whole file."""

    rules: dict[Key, TeamRule]
    problems: list[str]
    digest: str


def key_of(rule: TeamRule | ToolMemoryRule) -> Key:
    """By what a rule of the file is known again in a store."""
    return folded_name(rule.tool_name), same_text(rule.rule)


# ---------------------------------------------------------------- writing


def as_team_file(rules: Iterable[ToolMemoryRule], now: datetime) -> str:
    """The rules that bind, but for those of one session."""
    listed = [rule for rule in rules if binds(rule, now) and THIS_SESSION not in rule.tags]
    first = {key_of(rule): rule for rule in sorted(listed, key=lambda rule: (rule.created_at, rule.id), reverse=True)}
    return "\n".join([_HEAD, *(_block(first[key]) for key in sorted(first))])


def _block(rule: ToolMemoryRule) -> str:
    said_at = rule.said.time if rule.said is not None and rule.said.time is not None else rule.created_at
    told = {"tool": rule.tool_name, "rule": rule.rule, "effect": rule.effect, "priority": rule.priority}
    lines = [f"{name}: {_json(value)}" for name, value in told.items()]
    if isinstance(rule.when, Mapping) and of_alternatives(rule.when):
        for name in _CALLS:
            if listed := rule.when.get(name):
                lines += [f"{name}:", *(f"  - {_json(each)}" for each in listed)]
    elif rule.when is not None:
        lines.append(f"when: {_json(rule.when)}")
    if rule.expires_at is not None:
        lines.append(f"until: {_json(rule.expires_at.astimezone(UTC).isoformat())}")
    lines += [f"said_by: {_json(_said_by(rule))}", f"said_at: {_json(f'{said_at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}')}"]
    return "- " + "\n  ".join(lines) + "\n"


def _said_by(rule: ToolMemoryRule) -> str:
    told = [tag.removeprefix(_SAID_BY) for tag in rule.tags if tag.startswith(_SAID_BY)]
    return told[0] if told and TEAM_FILE in rule.tags else "user" if rule.is_users else rule.by


def _json(value: Any) -> str:
    """JSON, which is YAML; what cannot be seen is escaped, so that nothing is hidden from who reviews it."""
    text = json.dumps(value, ensure_ascii=False, sort_keys=True)
    return "".join(each if each.isprintable() else f"\\U{ord(each):08x}" for each in text)


# ---------------------------------------------------------------- reading


def team_file_at(path: Path) -> TeamFile:
    """As `read_team_file`; also raises RequestError where there is no such file."""
    try:
        with path.open("rb") as opened:
            given = opened.read(LONGEST + 1)
    except OSError as error:
        raise RequestError(f"{path}: {error.strerror}", field="file") from None
    return read_team_file(given, str(path))


def read_team_file(given: bytes, name: str) -> TeamFile:
    """Raises RequestError where the whole is too long, no text, or holds a conflict of git; with the line."""
    if len(given) > LONGEST:
        raise RequestError(f"{name}: longer than {LONGEST:,} bytes", field="file")
    try:
        lines = given.decode("utf-8-sig").replace("\r\n", "\n").split("\n")
    except UnicodeDecodeError as error:
        raise RequestError(f"{name}: no UTF-8 (byte {error.start})", field="file") from None
    if conflict := next((number for number, line in enumerate(lines, 1) if _CONFLICT.match(line)), 0):
        told = "git left a conflict here: keep one side, take the marks out, and import again"
        raise RequestError(f"{name}, line {conflict}: {told}", field="file")
    rules: dict[Key, TeamRule] = {}
    problems: list[str] = []
    for number, block in _blocks(lines):
        try:
            rule = _rule(_fields(block, name, number))
            if rule.key in rules:
                raise RequestError("this rule stands twice")
            rules[rule.key] = rule
        except ConfigError as error:
            problems.append(str(error))
        except RequestError as error:
            problems.append(f"{name}, line {number}: {error}")
    return TeamFile(rules, problems, hashlib.sha256(given).hexdigest())


def _blocks(lines: list[str]) -> Iterator[tuple[int, list[str]]]:
    """(number of its first line, lines) of each rule; what stands before the first, where it is no comment."""
    starts = [at for at, line in enumerate(lines) if line.startswith("- ") or line == "-"]
    head = lines[: starts[0]] if starts else lines
    if odd := next((at for at, line in enumerate(head, 1) if line.strip() and not line.startswith("#")), 0):
        yield odd, lines[odd - 1 : odd]
    for start, end in pairwise([*starts, len(lines)]):
        yield start + 1, lines[start:end]


def _fields(block: list[str], name: str, number: int) -> dict[str, Any]:
    if not block[0].startswith("-"):
        raise RequestError("expected rules, each a block that begins with `- tool:`")
    try:
        fields = read_yaml("\n".join([f" {block[0][1:]}", *block[1:]]), name).tree
    except ConfigError as error:
        told = _LINE.sub(lambda found: f"line {int(found[1]) + number - 1}", str(error), count=1)
        raise ConfigError(told if _LINE.search(told) else f"{told} (line {number})") from None
    if unknown := [field for field in fields if field not in _FIELDS]:
        raise RequestError(f"{unknown[0][:40]!r} is no field of a rule: there are {', '.join(_FIELDS)}")
    return fields


def _rule(fields: Mapping[str, Any]) -> TeamRule:
    effect, when = read_check(fields.get("effect"), _condition(fields))
    draft = RuleDraft(
        fields.get("tool") or "",
        fields.get("rule") or "",
        priority=fields.get("priority"),
        effect=effect,
        when=when,
        expires_at=read_time(fields.get("until"), "until"),
    ).checked()
    said_by: Speaker = read_choice(fields.get("said_by"), "said_by", get_args(Speaker)) or "user"
    said_at = read_time(fields.get("said_at"), "said_at")
    check, priority = draft.check_over(None), draft.priority or "normal"
    return TeamRule(draft.tool_name, draft.rule, check, priority, draft.expires_at, said_by, said_at)


def _condition(fields: Mapping[str, Any]) -> Any:
    when = fields.get("when")
    more = {name: fields[name] for name in _CALLS[1:] if fields.get(name) is not None}
    if isinstance(when, list):
        return {"when": when, **more}
    if more:
        raise RequestError(f"{next(iter(more))}: belongs to a `when` that is a list of alternatives")
    return when
