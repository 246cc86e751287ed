"""The file of rules that a team keeps in its repository: read, write, and compare with a store.

    rules:
    - {id: no-push, tool: '@shell', rule: Never push, effect: deny, when: [{command: ^git push}]}

What cannot be read is refused as a whole. Comments stay at the head and above an entry.
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
Comments = dict[str, list[str]]  # above an entry by its id; "": at the head
_HEAD = ["# Rules for agents in this repository. A person reviews each change."]
_REMEDY = "write `rules:`, each with id, tool, rule, effect: deny or ask, when; no merge conflict"
_FILE = Actor("agent", words=TEAM_FILE)  # what it asks for is a request
_TAG = f"{TEAM}:"  # the beginning of the tag that holds the id in the file


class Entry(Struct, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One rule of the file, in the order of its fields there; they are those of a stored rule."""

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
    """What an entry changes of the rules that hold, and the rule that is there for it."""

    kind: Kind
    entry: Entry  # of a missing one: the rule as it would stand in the file
    rule_id: str
    rule: ToolMemoryRule | None = None

    def as_input(self) -> RuleInput:
        """What to put into the store."""
        given: dict[str, Any] = {**asdict(self.entry), "id": self.rule_id}
        if self.rule is None:
            given |= {"said": Said("program"), "tags": [TEAM, _TAG + self.entry.id]}
        return RuleInput(**given)

    def apply(self, rules: ToolMemoryStore, user: Actor | None) -> ToolMemoryRule:
        """Make the change. Without the user's word, what loosens is only requested."""
        actor = user or (PROGRAM if self.kind in ("new", "stricter") else _FILE)
        if self.rule and self.rule.request and self.rule.request.words == TEAM_FILE:
            rules.reject(self.rule, PROGRAM)  # the file does not ask for it any more
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
    """A digest of a file or an entry, "" of nothing. Stored: it stays the same for ever."""
    return blake2b(data, digest_size=12).hexdigest() if data else ""


def read_bytes(path: Path) -> bytes:
    """The bytes of a file, one more than it may have at most. Raises RequestError."""
    try:
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except OSError as error:
        raise RequestError(f"{path}: {error.strerror}; name a file", "file") from error


def read_team_file(data: bytes, name: str) -> tuple[list[Entry], Comments]:
    """Raises RequestError, which names the place, the field and a remedy."""
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
    named = [*zip(entries, nodes, strict=True), *([("", root)] if root else [])]
    return [*entries.values()], {i: _comments_above(lines, node.start_mark) for i, node in named}


def _comments_above(lines: list[str], mark: Any) -> list[str]:
    """Comments directly above a place, no further in than it: there a text may look like one."""
    above = [(line.strip(), line[: mark.column + 1].lstrip()[:1]) for line in lines[: mark.line]]
    found = takewhile(lambda each: each[0] == "" or each[1] == "#", reversed(above))
    return [text for text, _ in found if text][::-1]


def write_team_file(entries: Iterable[Entry], comments: Comments) -> str:
    """The text of a file, sorted by tool and id. Of two entries with one id the later counts."""
    known = {entry.id: entry for entry in entries}
    parts = (comments.get("") or _HEAD) + ["rules:" if known else "rules: []"]
    for entry in sorted(known.values(), key=lambda each: (folded_name(each.tool_name), each.id)):
        fields = [msgspec.to_builtins(entry)]
        text = yaml.dump(fields, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)
        parts += ["", *comments.get(entry.id, []), text.rstrip("\n")]
    return "\n".join([*parts, ""])


def entry_of(rule: ToolMemoryRule) -> Entry:
    """A checked rule as an entry, without who said it, and when."""
    fields = {name: getattr(rule, name) for name in Entry.__struct_fields__}
    named = [tag.removeprefix(_TAG) for tag in rule.tags if tag.startswith(_TAG)]
    return Entry(**{**fields, "id": [*named, rule.id][0], "rule": shown(rule.rule)})


def compare(
    entries: Sequence[Entry], rules: ToolMemoryStore, *, changes_own: bool = True
) -> list[Compared]:
    """What the entries change, also of the user's own rules if so wished, and what they lack."""
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
