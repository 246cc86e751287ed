"""The file of rules that a team keeps in its repository: read, write, and compare with a store.

    # why it is here
    rules:
    - id: no-push
      tool: '@shell'
      rule: Never push to main
      effect: deny
      when:
      - {command: ^git push, word: main}

What cannot be read is refused as a whole. Comments stay at the head and above an entry.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
import yaml
from msgspec import Meta, Struct
from msgspec.structs import asdict, replace

from toolmem.config.layers import Loader
from toolmem.errors import RequestError
from toolmem.models.calls import Moment
from toolmem.models.rules import TEAM, Priority, Said, ToolMemoryRule
from toolmem.rules.changes import loosens
from toolmem.rules.identity import derived_id, folded_name
from toolmem.rules.store import RuleInput, ToolMemoryStore
from toolmem.text.display import shown, shown_name

MAX_BYTES = 1_000_000
MAX_RULES = 1_000
HEAD = ["# Rules for agents in this repository. A person reviews each change."]
_REMEDY = (
    "an entry has id, tool, rule, effect (deny or ask) and when, may have priority, unless and "
    "expires_at (a time with its zone), and texts that look like numbers stand in quotes"
)
_COMMENT = re.compile(r"( *)#")
_TAG = f"{TEAM}:"  # the beginning of the tag that holds the id in the file


class Entry(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One rule of the file, in the order of its fields there."""

    id: Annotated[str, Meta(min_length=1, max_length=90)]
    tool: str
    rule: str
    effect: Literal["deny", "ask"]
    priority: Priority = "critical"
    when: Annotated[list[dict[str, Any]], Meta(min_length=1)]
    unless: list[dict[str, Any]] = []
    expires_at: Moment | None = None

    @property
    def content(self) -> dict[str, Any]:
        """The fields that a stored rule has under the same name, but the id."""
        return {name: value for name, value in asdict(self).items() if name not in ("id", "tool")}

    @property
    def digest(self) -> str:
        return digest_of(str(self).encode())

    def __str__(self) -> str:
        fields = msgspec.to_builtins(self)
        names = ("when", "unless", "priority", "expires_at")
        rest = msgspec.json.encode({name: fields[name] for name in names if name in fields})
        text = f"{self.effect}, {self.tool}: “{self.rule}” {rest.decode()}"
        return shown_name(text, MAX_BYTES)  # whole: a yes is for all that it says


class TeamFile(Struct):
    """The rules of a file, and the comments above them by id; "" is the head."""

    entries: list[Entry] = []
    comments: dict[str, list[str]] = {}


class Compared(NamedTuple):
    """What an entry changes of the rules that hold, and the rule that is there for it."""

    kind: Literal["new", "stricter", "looser", "missing", "same"]
    entry: Entry  # of a missing one: the rule as it would stand in the file
    rule_id: str
    rule: ToolMemoryRule | None

    @property
    def is_change(self) -> bool:
        return self.kind in ("new", "stricter", "looser")

    def as_input(self) -> RuleInput:
        """What to put into the store."""
        tool, more = self.entry.tool, {"id": self.rule_id, **self.entry.content}
        if self.rule is None:
            more |= {"said": Said("program"), "tags": [TEAM, _TAG + self.entry.id]}
        return RuleInput(tool_name=tool, **more)

    def __str__(self) -> str:
        is_changed = self.rule is not None and self.kind in ("stricter", "looser")
        before = f" (before: {entry_of(self.rule)})" if self.rule and is_changed else ""
        return f"{self.kind}: {self.entry}{before}"


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    yaml_implicit_resolvers = Loader.yaml_implicit_resolvers


class _Dumper(yaml.SafeDumper):
    yaml_implicit_resolvers = Loader.yaml_implicit_resolvers


def digest_of(data: bytes) -> str:
    """A digest of a file or an entry; "" without any."""
    return "" if not data else blake2b(data, digest_size=12).hexdigest()


def read_bytes(path: Path) -> bytes:
    """The bytes of a file, as many as may be in one and a byte more. Raises RequestError."""
    try:
        if not path.is_file():
            raise RequestError(f"{path}: expected a file; name one that is there", "file")
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except OSError as error:
        raise RequestError(f"{path}: {error.strerror}; let it be read", "file") from error


def read_team_file(data: bytes, name: str) -> TeamFile:
    """Raises RequestError, which names the place, the field and a remedy."""
    if len(data) > MAX_BYTES:
        raise RequestError(f"{name}: larger than {MAX_BYTES:,} bytes; take rules out of it", "file")
    line, whose = 0, ""
    file = TeamFile()
    try:
        text = data.decode("utf-8-sig")
        for token in yaml.scan(text, Loader=_Loader):
            line = token.start_mark.line
            if isinstance(token, (yaml.AliasToken, yaml.AnchorToken, yaml.TagToken)):
                raise RequestError("&, * and ! have a meaning in YAML; put the text in quotes")
        line, loader = 0, _Loader(text)
        root = loader.get_single_node()
        nodes = _entry_nodes(root)
        for node in nodes:
            line, whose = node.start_mark.line, ""
            given = loader.construct_object(node, deep=True)
            whose = f" (rule {shown_name(str(given['id']), 60)})" if "id" in given else ""
            file.entries.append(_read_entry(given))
            if any(file.entries[-1].id == each.id for each in file.entries[:-1]):
                raise RequestError("id: another entry has it too; give one of them another id")
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line if mark else line
        problem = getattr(error, "problem", None) or getattr(error, "reason", "too deep")
        told = f"not YAML in UTF-8 ({problem}); mend it, or the merge conflict in it"
        raise RequestError(f"{name}, line {line + 1}: {told}", "file") from None
    except (RequestError, ValueError, ArithmeticError) as error:
        remedy = "" if isinstance(error, RequestError) and "; " in str(error) else f"; {_REMEDY}"
        told = shown_name(str(error), 400)
        raise RequestError(f"{name}, line {line + 1}{whose}: {told}{remedy}", "file") from None
    start = root.start_mark.line if root else text.count("\n") + 1
    lines = text.split("\n")
    file.comments = {"": [each.strip() for each in lines[:start] if _COMMENT.match(each)]}
    for entry, node in zip(file.entries, nodes, strict=True):
        file.comments[entry.id] = _comments_above(node.start_mark, lines, start)
        start = node.start_mark.line
    return file


def _entry_nodes(root: yaml.Node | None) -> list[yaml.Node]:
    if root is None:
        return []
    body = root.value[0] if isinstance(root, yaml.MappingNode) and len(root.value) == 1 else None
    if body is None or body[0].value != "rules" or not isinstance(body[1], yaml.SequenceNode):
        raise RequestError("the file holds something else; write `rules:` and a list below it")
    if len(body[1].value) > MAX_RULES:
        problem = f"{len(body[1].value):,} rules; at most {MAX_RULES:,} are read"
        raise RequestError(f"rules: {problem}")
    nodes: list[yaml.Node] = body[1].value
    return nodes


def _read_entry(given: Any) -> Entry:
    """Raises RequestError and ValueError."""
    entry = msgspec.json.decode(msgspec.json.encode(given), type=Entry)
    Compared("new", entry, entry.id, None).as_input().checked()
    return replace(entry, rule=shown(entry.rule))


def _comments_above(mark: Any, lines: list[str], after: int) -> list[str]:
    """Comments directly above an entry, no further in than it: there a text may look like one."""
    found: list[str] = []
    for line in reversed(lines[after + 1 : mark.line]):
        comment = _COMMENT.match(line)
        if line.strip() and not (comment and len(comment[1]) < mark.column):
            break
        found[:0] = [line.strip()] if comment else []
    return found


def write_team_file(file: TeamFile) -> str:
    """The file as text, sorted by tool and id."""
    parts = (file.comments.get("") or HEAD) + ["rules:" if file.entries else "rules: []"]
    for entry in sorted(file.entries, key=lambda entry: (folded_name(entry.tool), entry.id)):
        fields = [msgspec.to_builtins(entry)]
        text = yaml.dump(fields, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)
        parts += ["", *file.comments.get(entry.id, []), text.rstrip("\n")]
    return "\n".join([*parts, ""])


def exported(rules: Iterable[ToolMemoryRule], file: TeamFile) -> TeamFile:
    """The file with the rules that stop calls for good. What it holds beside them stays in it."""
    new = {each.id: each for rule in rules if rule.is_checked for each in [entry_of(rule)]}
    others = [entry for entry in file.entries if entry.id not in new]
    return TeamFile([*new.values(), *others], file.comments)


def entry_of(rule: ToolMemoryRule) -> Entry:
    """A checked rule as an entry, without who said it, and when."""
    file_id = next((tag.removeprefix(_TAG) for tag in rule.tags if tag.startswith(_TAG)), rule.id)
    names = ("priority", "effect", "when", "unless", "expires_at")
    fields: dict[str, Any] = {name: getattr(rule, name) for name in names}
    return Entry(id=file_id, tool=rule.tool_name, rule=shown(rule.rule), **fields)


def compare(
    entries: list[Entry], rules: ToolMemoryStore, *, changes_own: bool = True
) -> list[Compared]:
    """What the entries change of the rules that hold, and which rules are not among them.

    `changes_own`: also of rules that the user said; else an entry that differs is a new rule.
    """
    now, secret = rules.clock.now(), rules.store.secret_key().hex()
    checked = [rule for rule in rules.all_rules().rules if rule.is_checked]
    known = {
        (folded_name(rule.tool_name), rule.id): rule
        for rule in checked
        if changes_own or rule.is_team or entry_of(rule) in entries
    }
    found: list[Compared] = []
    for entry in entries:
        tool = folded_name(entry.tool)
        rule_id = derived_id(secret, TEAM, tool, entry.id)
        rule = known.pop((tool, rule_id), None) or known.pop((tool, entry.id), None)
        kind: Literal["new", "stricter", "looser", "same"] = "new"
        is_over = entry.expires_at is not None and entry.expires_at <= now
        if rule is None:
            kind = "same" if is_over else "new"
        elif entry_of(rule).content == entry.content:
            kind = "same"
        else:
            after = replace(rule, **entry.content)
            kind = "looser" if loosens(rule, after, now) else "stricter"
        found.append(Compared(kind, entry, rule.id if rule else rule_id, rule))
    missing = (Compared("missing", entry_of(rule), rule.id, rule) for rule in known.values())
    return [*found, *missing]
