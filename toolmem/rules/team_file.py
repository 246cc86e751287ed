"""The file of rules that a team keeps in its repository: read, write, and compare with a store.

    rules:
    - {id: no-push, tool: '@shell', rule: Never push, effect: deny, when: [{command: ^git push}]}

A file with an unreadable entry is refused as a whole. Comments at the head and above entries stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from itertools import takewhile
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
import yaml
from msgspec import Meta, Struct
from msgspec.structs import asdict, replace

from toolmem.config.layers import Loader, tokens
from toolmem.errors import RequestError
from toolmem.models.calls import Moment
from toolmem.models.rules import TEAM, TEAM_FILE, Priority, Said, ToolMemoryRule
from toolmem.rules.changes import PROGRAM, Actor, loosens
from toolmem.rules.identity import derived_id, folded_name
from toolmem.rules.store import RuleInput, ToolMemoryStore
from toolmem.text.display import shown, shown_name

MAX_BYTES = 1_000_000
Kind = Literal["new", "stricter", "looser", "missing", "same"]
CHANGES = ("new", "stricter", "looser")
Comments = dict[str, list[str]]  # lines above each entry, by its id; "": at the head of the file
_HEAD = ["# Rules for agents in this repository. A person reviews each change."]
_REMEDY = "write `rules:`, each with id, tool, rule, effect: deny or ask, when; no merge conflict"
_FILE = Actor("agent", words=TEAM_FILE)  # what it asks for is a request
_TAG = f"{TEAM}:"  # the beginning of the tag that holds the id in the file


class Entry(Struct, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One rule of a team's file. The file has the fields in this order."""

    id: Annotated[str, Meta(min_length=1, max_length=90)]
    tool_name: str = msgspec.field(name="tool")
    rule: str
    effect: Literal["deny", "ask"]
    priority: Priority = "critical"
    when: Annotated[list[dict[str, Any]], Meta(min_length=1)]
    unless: list[dict[str, Any]] = []
    expires_at: Moment | None = None

    def __str__(self) -> str:
        fields = msgspec.to_builtins(self)
        text = f"{self.effect}, {fields.pop('tool')}: “{fields.pop('rule')}” "
        rest = {name: fields[name] for name in fields if name not in ("id", "effect")}
        return shown_name(text + msgspec.json.encode(rest).decode(), MAX_BYTES)  # all of it


class _Body(Struct, forbid_unknown_fields=True):
    rules: Annotated[list[Any], Meta(max_length=1_000)] = []


class Compared(NamedTuple):
    """An entry of the file, compared with the rule that the store has for it."""

    kind: Kind  # what the entry is, compared with the rule; missing: the file has no entry
    entry: Entry  # of a rule that the file lacks: the rule as the file would write it
    rule_id: str
    rule: ToolMemoryRule | None = None  # None: the entry is new

    def as_input(self) -> RuleInput:
        """Return the entry as the input of `ToolMemoryStore.put_rule`."""
        given: dict[str, Any] = {**asdict(self.entry), "id": self.rule_id}
        if self.rule is None:
            given |= {"said": Said("program"), "tags": [TEAM, _TAG + self.entry.id]}
        return RuleInput(**given)

    def apply(self, rules: ToolMemoryStore, user: Actor | None) -> ToolMemoryRule:
        """Make the stored rule what the file says. Without a user, loosening is only requested."""
        actor = user or (PROGRAM if self.kind in ("new", "stricter") else _FILE)
        if self.rule and self.rule.request and self.rule.request.words == TEAM_FILE:
            rules.reject(self.rule, PROGRAM)  # an earlier version of the file asked for it
        if self.rule and self.kind in ("same", "missing"):
            return self.rule if self.kind == "same" else rules.delete(self.rule, actor)
        return rules.put_rule(self.as_input(), actor)

    def __str__(self) -> str:
        before = f" (before: {entry_of(self.rule)})" if self.rule and self.kind in CHANGES else ""
        return f"{self.kind}: {self.entry}{before}"


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    yaml_implicit_resolvers = Loader.yaml_implicit_resolvers


class _Dumper(yaml.SafeDumper):
    yaml_implicit_resolvers = Loader.yaml_implicit_resolvers


def digest_of(data: bytes) -> str:
    """Return 24 hex digits, or "" for no data. Stores keep them: the algorithm must not change."""
    return blake2b(data, digest_size=12).hexdigest() if data else ""


def read_bytes(path: Path) -> bytes:
    """Read a file, of a large one only the first MAX_BYTES + 1 bytes. Raises RequestError."""
    try:
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except OSError as error:
        raise RequestError(f"{path}: {error.strerror}; name a file", "file") from error


def read_team_file(data: bytes, name: str) -> tuple[list[Entry], Comments]:
    """Read a file of rules. Raises RequestError, which names the line, the field and a remedy."""
    entries: dict[str, Entry] = {}
    mark: Any = None
    try:
        if len(data) > MAX_BYTES:
            raise ValueError(f"larger than {MAX_BYTES:,} bytes")
        text = data.decode("utf-8-sig")
        for token in tokens(text, _Loader):
            if isinstance(token, yaml.AliasToken | yaml.AnchorToken | yaml.TagToken):
                mark = token.start_mark
                raise ValueError("a text that begins with &, * or ! stands in quotes")
        loader = _Loader(text)
        root = loader.get_single_node()
        given = loader.construct_document(root) if root else {}
        rules = msgspec.convert(given, _Body).rules
        nodes = root.value[-1][1].value if given else []
        for each, node in zip(rules, nodes, strict=True):
            mark = node.start_mark
            entry = msgspec.json.decode(msgspec.json.encode(each), type=Entry)
            if entries.setdefault(entry.id, entry) is not entry:
                raise ValueError(f"id: another entry has {entry.id!r}, too")
            entry.rule = shown(Compared("new", entry, entry.id).as_input().checked().rule)
    except (yaml.YAMLError, RequestError, ValueError, ArithmeticError, RecursionError) as error:
        mark = getattr(error, "problem_mark", mark)
        place = f"{name}, line {mark.line + 1}" if mark else name
        problem = shown_name(getattr(error, "problem", None) or str(error), 300)
        raise RequestError(f"{place}: {problem}; {_REMEDY}", "file") from None
    lines = text.splitlines()
    marks = {name: node.start_mark for name, node in zip(entries, nodes, strict=True)}
    if root:
        marks[""] = root.start_mark
    return [*entries.values()], {name: _comments_above(lines, marks[name]) for name in marks}


def _comments_above(lines: list[str], mark: Any) -> list[str]:
    """Return comments directly above a mark, up to a line indented further, which may be text."""
    above = [(line.strip(), line[: mark.column + 1].lstrip()[:1]) for line in lines[: mark.line]]
    found = takewhile(lambda each: each[0] == "" or each[1] == "#", reversed(above))
    return [text for text, _ in found if text][::-1]


def write_team_file(entries: Iterable[Entry], comments: Comments) -> str:
    """Return the text of a file, sorted by tool and id. Of entries with one id, the last counts."""
    known = {entry.id: entry for entry in entries}
    parts = (comments.get("") or _HEAD) + ["rules:" if known else "rules: []"]
    for entry in sorted(known.values(), key=lambda each: (folded_name(each.tool_name), each.id)):
        fields = [msgspec.to_builtins(entry)]
        text = yaml.dump(fields, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)
        parts += ["", *comments.get(entry.id, []), text.rstrip("\n")]
    return "\n".join([*parts, ""])


def entry_of(rule: ToolMemoryRule) -> Entry:
    """Turn a rule with conditions into an entry, which leaves out who said it, and when."""
    fields = {name: getattr(rule, name) for name in Entry.__struct_fields__}
    named = [tag.removeprefix(_TAG) for tag in rule.tags if tag.startswith(_TAG)]
    name = named[0] if named else rule.id
    return Entry(**{**fields, "id": name, "rule": shown(rule.rule)})


def compare(
    entries: Sequence[Entry], rules: ToolMemoryStore, *, changes_own: bool = True
) -> list[Compared]:
    """Compare entries with the team's stored rules and, if `changes_own`, with all others."""
    now = rules.clock.now()
    secret = rules.store.secret_key().hex()
    known = {}
    for rule in rules.all_rules().rules:
        if rule.is_checked and (changes_own or rule.is_team or entry_of(rule) in entries):
            known[folded_name(rule.tool_name), rule.id] = rule
    found: list[Compared] = []
    for entry in entries:
        tool = folded_name(entry.tool_name)
        rule_id = derived_id(secret, TEAM, tool, entry.id)
        before = known.pop((tool, rule_id), None) or known.pop((tool, entry.id), None)
        kind: Kind = "new"
        if before is not None:
            rule_id = before.id
            after = replace(before, **{**asdict(entry), "id": rule_id, "tool_name": tool})
            kind = "looser" if loosens(before, after, now) else "stricter"
            if entry_of(replace(before, tool_name=tool)) == entry_of(after):
                kind = "same"
        found.append(Compared(kind, entry, rule_id, before))
    missing = (Compared("missing", entry_of(rule), rule.id, rule) for rule in known.values())
    return [*found, *missing]
