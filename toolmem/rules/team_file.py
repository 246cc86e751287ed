"""The file of rules that a team keeps in its repository: read, write, and compare with a store.

    # why it is here
    rules:
    - id: no-push
      tool: '@shell'
      rule: Never push to main
      effect: deny
      when:
      - {command: ^git push, word: main}

What cannot be read is refused as a whole, in one sentence with its line. Comments are kept above
the entry that they stand above or in; those above `rules:` stay at the head.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from hashlib import blake2b
from typing import Any, Literal, NamedTuple

import msgspec
import yaml
from msgspec import Struct
from msgspec.structs import asdict

from toolmem.config import layers
from toolmem.errors import RequestError
from toolmem.models.calls import Moment
from toolmem.models.rules import TEAM, Effect, Priority, Said, ToolMemoryRule
from toolmem.rules.changes import loosens
from toolmem.rules.identity import (
    derived_id,
    folded_name,
    read_id,
    read_text,
    read_tool_name,
    text_key,
)
from toolmem.rules.store import RuleInput
from toolmem.text.display import shown, shown_name
from toolmem.view.conditions import Alternative, read_conditions
from toolmem.view.tool_classes import CLASSES

MAX_RULES = 1_000
MAX_DEPTH = 12  # of lists and mappings in each other
HEAD = ["# Rules for agents in this repository. A person reviews each change."]
Kind = Literal["new", "stricter", "looser", "same", "ended"]
_EXPECTED = {  # by field
    "effect": "deny, ask or remind",
    "priority": "critical, high or normal",
    "expires_at": "a time with its zone, such as 2027-01-31T18:00:00Z",
    "when": "a list of alternatives, such as `- {command: ^git push, word: main}`",
    "unless": "a list of alternatives, as in `when`",
}
_CONFLICT = re.compile(r"(?:<{7}|>{7}|\|{7}|={7})(?:\s|$)")
# `^` after, or `$` before, what has to be text: no text has its beginning or end there.
_NEVER = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]|\\.|(?P<dead>[\w/ ]\^|\$[\w/ ])")
_LEFT = "\n\t\u200c\u200d"  # joiners stand in emoji and in some scripts


class Entry(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One rule of the file, in the order of its fields there."""

    id: str
    tool: str
    rule: str
    effect: Effect
    priority: Priority = "critical"
    when: list[dict[str, Any]] = []
    unless: list[dict[str, Any]] = []
    expires_at: Moment | None = None

    @property
    def digest(self) -> str:
        content = msgspec.json.encode(self, order="deterministic")
        return blake2b(content, digest_size=12).hexdigest()

    @property
    def stored_id(self) -> str:
        """The id of its rule in a store."""
        return derived_id(TEAM, folded_name(self.tool), self.id)

    @property
    def is_checked(self) -> bool:
        return self.effect != "remind"

    def content(self) -> dict[str, Any]:
        """The fields that a rule has too."""
        fields = asdict(self)
        del fields["id"], fields["tool"]
        return fields

    def as_input(self, rule: ToolMemoryRule | None = None) -> RuleInput:
        """What to put into a store. `rule`: the one there that it changes."""
        if rule is not None:
            return RuleInput(tool_name=rule.tool_name, id=rule.id, **self.content())
        tags = [TEAM, f"{TEAM}:{self.id}"]
        more = {"said": Said("program"), "tags": tags, **self.content()}
        return RuleInput(tool_name=self.tool, id=self.stored_id, **more)

    def __str__(self) -> str:
        tests = {name: each for name in ("when", "unless") if (each := getattr(self, name))}
        ends = f" until {self.expires_at.isoformat()}" if self.expires_at else ""
        told = f"{self.effect}, {self.priority}, {self.tool}{ends}: “{self.rule}”"
        return f"{told} {msgspec.json.encode(tests).decode()}" if tests else told


class TeamFile(Struct):
    """The rules of a file, and the comments by the id of the entry below; "" is the head."""

    entries: list[Entry] = []
    comments: dict[str, list[str]] = {}


class Compared(NamedTuple):
    """An entry and the rule that is there for it, which it would make looser or stricter."""

    kind: Kind
    entry: Entry
    rule: ToolMemoryRule | None


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    yaml_implicit_resolvers = layers.Loader.yaml_implicit_resolvers


class _Dumper(yaml.SafeDumper):
    yaml_implicit_resolvers = layers.Loader.yaml_implicit_resolvers


def read_team_file(data: bytes, name: str) -> TeamFile:
    """Read the bytes of a file. Raises RequestError with the line, the field and a remedy."""
    try:
        text = data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise RequestError(f"{name}, line {line}: not UTF-8; save the file as UTF-8") from None
    lines = text.split("\n")
    for number, each in enumerate(lines, start=1):
        if _CONFLICT.match(each):
            what = "a merge conflict that nobody resolved; choose one side"
            raise RequestError(f"{name}, line {number}: {what}")
        _refuse_hidden(each, f"{name}, line {number}")
    try:
        _refuse_features(text, name)
        root = _Loader(text).get_single_node()
    except yaml.MarkedYAMLError as error:
        at = error.problem_mark.line + 1 if error.problem_mark else 1
        problem = f"not YAML ({error.problem}); mend this line or the one above"
        raise RequestError(f"{name}, line {at}: {problem}") from None
    except yaml.YAMLError as error:
        raise RequestError(f"{name}: not YAML ({error})") from None
    if root is None:
        return TeamFile(comments={"": [each for each in lines if each.startswith("#")]})
    body = _fields(root, name).get("rules") if isinstance(root, yaml.MappingNode) else None
    if body is None or len(root.value) > 1 or not isinstance(body, yaml.SequenceNode):
        raise RequestError(f"{name}, line 1: expected `rules:` with a list, and nothing else")
    if len(body.value) > MAX_RULES:
        raise RequestError(f"{name}: {len(body.value):,} rules; at most {MAX_RULES:,} are read")
    known: dict[str, int] = {}
    file = TeamFile()
    for node in body.value:
        entry, line = _read_entry(node, name), node.start_mark.line + 1
        if entry.id in known:
            problem = f"id: stands in line {known[entry.id]} too; give one of them another id"
            raise RequestError(f"{name}, line {line} (rule {shown_name(entry.id, 60)}): {problem}")
        known[entry.id] = line
        file.entries.append(entry)
    file.comments = _comments(root, body, lines, [entry.id for entry in file.entries])
    return file


def _refuse_hidden(text: str, place: str) -> None:
    for letter in set(text).difference(_LEFT) if not text.isprintable() else ():
        if unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Zl", "Zp"):
            where = shown_name(text.strip(), 80)
            problem = f"the hidden character U+{ord(letter):04X} in `{where}`; take it out"
            raise RequestError(f"{place}: {problem}")


def _refuse_features(text: str, name: str) -> None:
    """Refuse aliases, tags, several documents and deep nesting, before anything is built."""
    depth = documents = 0
    for event in yaml.parse(text, Loader=_Loader):
        problem = ""
        documents += isinstance(event, yaml.DocumentStartEvent)
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            problem = "an anchor or alias (& or *); write the value out, or in quotes"
        elif getattr(event, "tag", None):
            problem = "a tag (!); write the value without it, or in quotes"
        elif depth > MAX_DEPTH:
            problem = f"more than {MAX_DEPTH} lists in each other; a rule needs fewer"
        elif documents > 1:
            problem = "a second document (---); put its rules under the one `rules:`"
        if problem:
            line = getattr(event.start_mark, "line", 0) + 1
            raise RequestError(f"{name}, line {line}: {problem}")


def _fields(node: yaml.MappingNode, name: str) -> dict[str, yaml.Node]:
    fields: dict[str, yaml.Node] = {}
    for key, value in node.value:
        place = f"{name}, line {key.start_mark.line + 1}"
        if not isinstance(key, yaml.ScalarNode):
            raise RequestError(f"{place}: a key that is no word; write `name: value`")
        if key.value in fields:
            problem = "stands twice here; keep one of them"
            raise RequestError(f"{place}: {shown_name(key.value, 60)}: {problem}")
        fields[key.value] = value
    return fields


def _value(node: yaml.Node, name: str) -> Any:
    if isinstance(node, yaml.MappingNode):
        return {key: _value(each, name) for key, each in _fields(node, name).items()}
    if isinstance(node, yaml.SequenceNode):
        return [_value(each, name) for each in node.value]
    place = f"{name}, line {node.start_mark.line + 1}"
    try:
        value = yaml.SafeLoader("").construct_object(node)
    except ValueError:
        raise RequestError(f"{place}: a number that is too long; put it in quotes") from None
    if isinstance(value, str):
        _refuse_hidden(value, place)
    return value


def _read_entry(node: yaml.Node, name: str) -> Entry:
    """Raises RequestError."""
    place = f"{name}, line {node.start_mark.line + 1}"
    if not isinstance(node, yaml.MappingNode):
        raise RequestError(f"{place}: expected a rule with id, tool, rule and effect")
    nodes = _fields(node, name)
    whose = nodes.get("id")
    if isinstance(whose, yaml.ScalarNode):
        place += f" (rule {shown_name(whose.value, 60)})"
    names = Entry.__struct_fields__
    for field in nodes:
        if field not in names:
            problem = f"there is no such field; there are {', '.join(names)}"
            raise RequestError(f"{place}: {shown_name(field, 60)}: {problem}")
    given = {field: _value(each, name) for field, each in nodes.items()}
    try:
        entry = msgspec.convert(given, Entry)
    except msgspec.ValidationError as error:
        problem, _, at = str(error).partition(" - at `$.")
        field = at.rstrip("`")
        expected = _EXPECTED.get(re.split(r"[.\[]", field)[0], "a text, in quotes if need be")
        told = f"{field}: {problem}; expected {expected}" if field else f"{problem}; add it"
        raise RequestError(f"{place}: {told}") from None
    try:
        return _checked(entry)
    except RequestError as error:
        raise RequestError(f"{place}: {error}", error.field) from None


def _checked(entry: Entry) -> Entry:
    """Trim and check an entry. Raises RequestError, which begins with the field."""
    text = " ".join(read_text(entry.rule, "rule").split())
    tool, rule_id = read_tool_name(entry.tool), read_id(read_text(entry.id, "id", 90))
    if tool.startswith("@") and folded_name(tool) not in CLASSES:
        raise RequestError(f"tool: no such class; there are {', '.join(CLASSES)}")
    if entry.when:
        try:
            conditions = read_conditions(entry.when, entry.unless)
        except RequestError as error:
            problem, _, at = str(error).replace(": b'", ": '").partition(" - at `$.")
            told = f"{at.rstrip('`')}: {problem}" if at else problem
            raise RequestError(f"{told}; mend it as `toolmem note --help` says") from None
        for number, each in enumerate(conditions.when):
            if problem := _why_never(each, conditions.unless):
                raise RequestError(f"when[{number}]: no call can meet it, as {problem}")
    elif entry.is_checked:
        needed = "add it, or write `effect: remind`"
        raise RequestError(f"when: a rule to {entry.effect} without it stops nothing; {needed}")
    elif entry.unless:
        raise RequestError("unless: excepts from nothing without `when`; take it out")
    return msgspec.structs.replace(entry, id=rule_id, tool=tool, rule=text)


def _why_never(tests: Alternative, unless: Sequence[Alternative]) -> str:
    """Why no call meets an alternative, as far as that can be told; "" where one may."""
    given = msgspec.to_builtins(tests)
    for each in unless:
        excepted = msgspec.to_builtins(each)
        if excepted == {"always": True} or excepted.items() <= given.items():
            return "`unless` lets all of them through; narrow `unless`"
    for test in tests.arguments:
        bounds = test.over is not None and test.under is not None
        if test.missing and (test.compares or test.matches):
            return f"{test.name!r} cannot be missing and have a value; write two alternatives"
        if bounds and (test.over or 0.0) >= (test.under or 0.0):
            return f"{test.name!r} is not over and under these; write two alternatives"
    patterns = [str(given[name]) for name in given if isinstance(given[name], str)]
    patterns += [test.matches for test in tests.arguments if test.matches]
    for pattern in patterns:
        if any(found["dead"] for found in _NEVER.finditer(pattern)):
            return f"{pattern!r} has `^` or `$` inside a text; write \\^ or \\$"
    return ""


def _comments(
    root: yaml.Node, body: yaml.Node, lines: Sequence[str], ids: Sequence[str]
) -> dict[str, list[str]]:
    """Comments by the id of the entry below; within an entry they are its own.

    "" is the head, "\n" the end.
    """
    inside: set[int] = set()  # lines within a text of several lines
    ends: dict[int, int] = {}  # where the last text of a line ends

    def last_line(node: yaml.Node) -> int:
        if isinstance(node, yaml.ScalarNode):
            last = node.end_mark.line - (node.end_mark.column == 0)
            inside.update(range(node.start_mark.line + 1, last + (node.style in ("|", ">"))))
            ends[last] = max(ends.get(last, 0), node.end_mark.column)
            return max(last, node.start_mark.line)
        parts = (each for part in node.value for each in (part if type(part) is tuple else [part]))
        return max(map(last_line, parts), default=node.start_mark.line)

    last_line(root.value[0][0])
    places = [(root.value[0][0].start_mark.line, "")]
    places += [(last_line(node), each) for node, each in zip(body.value, ids, strict=True)]
    comments: dict[str, list[str]] = defaultdict(list)
    for number, line in enumerate(lines):
        found = re.search(r"(?:^|\s)(#.*)", line[ends.get(number, 0) :])
        if found and number not in inside:
            below = next((each for last, each in places if number <= last), "\n")
            comments[below].append(found[1].rstrip())
    return dict(comments)


def write_team_file(file: TeamFile) -> str:
    """The file as text, sorted by tool and id."""
    parts = (file.comments.get("") or HEAD) + ["rules:" if file.entries else "rules: []"]
    for entry in sorted(file.entries, key=lambda entry: (folded_name(entry.tool), entry.id)):
        fields = msgspec.to_builtins(entry) | {"priority": entry.priority}
        order = {name: fields[name] for name in Entry.__struct_fields__ if name in fields}
        text = yaml.dump([order], Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)
        parts += ["", *file.comments.get(entry.id, []), text.rstrip("\n")]
    last = file.comments.get("\n", [])
    return "\n".join([*parts, *([""] if last else []), *last, ""])


def exported(rules: Iterable[ToolMemoryRule], file: TeamFile) -> tuple[TeamFile, list[Entry]]:
    """The file with these rules, and its entries that none of the rules is, which stay in it."""
    new = {}
    for rule in rules:
        if not rule.session and (rule.is_pinned or rule.is_checked):
            entry = entry_of(rule)
            new[entry.id] = entry
    others = [entry for entry in file.entries if entry.id not in new]
    return TeamFile([*new.values(), *others], file.comments), others


def entry_of(rule: ToolMemoryRule) -> Entry:
    """A rule as an entry, without who said it, and when."""
    beginning = f"{TEAM}:"
    named = (tag.removeprefix(beginning) for tag in rule.tags if tag.startswith(beginning))
    names = ("effect", "priority", "when", "unless", "expires_at")
    fields = {name: getattr(rule, name) for name in names}
    if not rule.is_checked:
        fields |= {"effect": "remind", "when": [], "unless": []}
    return Entry(id=next(named, rule.id), tool=rule.tool_name, rule=shown(rule.rule), **fields)


def compare(
    entries: Iterable[Entry], rules: Iterable[ToolMemoryRule], now: datetime
) -> list[Compared]:
    """What each entry would change of the rules that hold. A rule is found by its id or content."""
    known: Mapping[str, ToolMemoryRule] = {rule.id: rule for rule in rules}
    same = {_key(entry_of(rule)): rule for rule in known.values()}
    found = []
    for entry in entries:
        rule = known.get(entry.stored_id) or same.get(_key(entry)) or known.get(entry.id)
        if rule is not None and folded_name(rule.tool_name) != folded_name(entry.tool):
            rule = None
        kind: Kind = "new"
        if rule is not None:
            after = msgspec.structs.replace(rule, **entry.content())
            kind = "looser" if loosens(rule, after, now) else "stricter"
            kind = "same" if _key(entry_of(rule)) == _key(entry) else kind
        elif entry.expires_at is not None and entry.expires_at <= now:
            kind = "ended"
        found.append(Compared(kind, entry, rule))
    return found


def _key(entry: Entry) -> str:
    """Equal for entries that say the same of the same tool, whatever their ids are."""
    fields = {**entry.content(), "rule": text_key(entry.rule), "tool": folded_name(entry.tool)}
    return msgspec.json.encode(fields, order="deterministic").decode()
