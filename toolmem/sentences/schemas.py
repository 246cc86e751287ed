"""The pieces that conditions are made of, and those for shells and databases."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from toolmem.guard.shell_commands import UNKNOWN
from toolmem.late import late_pattern
from toolmem.late_dataclasses import replace
from toolmem.sentences.said_literals import Demand, LiteralValue
from toolmem.sentences.said_words import INSTALLERS, PROGRAMS, USES
from toolmem.sentences.split_text import CJK

_LETTERS = r"\w㐀-鿿"
_SHORT = late_pattern(r"-[a-z]{1,8}")
_LONG_OPTIONS = {"r": "recursive", "f": "force", "a": "all", "i": "in-place"}
_COMMITTING = ("add", "commit", "stage", "update-index")
_MOST_SPELLED = 3  # paths of one sentence of which every way to delete them is written out
_DELETES_TOO: tuple[tuple[str, tuple[str, ...], tuple[Mapping[str, Any], ...]], ...] = (
    ("git", ("rm", "clean"), ()),
    ("find", (), ({"const": "-delete"},)),
    ("rsync", (), ({"enum": ["--delete", "--del", "--delete-after", "--delete-before", "--delete-excluded"]},)),
    ("tar", (), ({"const": "--remove-files"},)),
    ("gio", ("trash", "remove"), ()),
)
_EMPTYING = frozenset(("truncate", "clear", "wipe", "purge", "empty", "清空"))
_OF_ROWS = ("delete", "truncate")
_STATEMENTS = {
    ("delete", "table"): ("drop table",),
    ("delete", "database"): ("drop database", "drop schema"),
    ("change", "table"): ("alter table", "drop table", "update", "insert", "replace", "delete", "truncate"),
    ("add", "table"): ("insert", "replace"),
    ("read", "table"): ("select",),
    ("search", "table"): ("select",),
    ("fetch", "table"): ("select",),
    ("create", "table"): ("create table",),
}


def listed(name: str, of: Mapping[str, Any]) -> dict[str, Any]:
    """One of a list of the view is like this."""
    return {"type": "object", "required": [name], "properties": {name: {"type": "array", "contains": dict(of)}}}


def text_like(pattern: str) -> dict[str, Any]:
    return {"type": "string", "pattern": pattern}


def word_pattern(text: str, *, written: bool = False) -> dict[str, Any]:
    """A text as whole words: Sarah is not in Sarahs. What is written in Chinese has no spaces between words."""
    escaped = re.escape(text)
    if not CJK.search(text):
        return text_like(rf"(^|[^\w]){escaped}($|[^\w])")
    # JSON Schema's \w knows ASCII alone.
    return text_like(escaped if written else f"(^|[^{_LETTERS}]){escaped}($|[^{_LETTERS}])")


def forced(name: str) -> dict[str, Any]:
    """The parameter of a call that says that something is forced."""
    given = {"type": "object", "required": [name], "properties": {name: {"enum": [True, "true", "yes", 1]}}}
    return {"type": "object", "required": ["arguments"], "properties": {"arguments": given}}


def path_like(text: str) -> dict[str, Any]:
    """A path and what is below it; a name of a file wherever it is."""
    start = "^" if text.startswith(("/", "~")) else "(^|/)"
    return text_like(rf"{start}{re.escape(text.rstrip('/'))}(/|$)")


def any_of(parts: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | bool:
    if not parts:
        return True
    return parts[0] if len(parts) == 1 else {"anyOf": list(parts)}


def all_of(parts: Sequence[Mapping[str, Any] | bool]) -> Mapping[str, Any] | bool:
    limits = [each for each in parts if each is not True]
    if not limits:
        return True
    return limits[0] if len(limits) == 1 else {"allOf": limits}


def command(programs: Sequence[str], *holding: Mapping[str, Any], second: Sequence[str] = ()) -> dict[str, Any]:
    """A simple command of one of these programs, that holds a word like each of these."""
    first: list[dict[str, Any]] = [{"enum": list(programs)}]
    if second:
        first.append({"enum": list(second)})
    words = {"type": "array", "prefixItems": first, "minItems": len(first)}
    if holding:
        words["allOf"] = [{"type": "array", "contains": dict(each)} for each in holding]
    return listed("commands", words)


def shell_condition(demand: Demand) -> Mapping[str, Any] | bool | None:
    """A demand as a shell could break it; None where what it forbids is no matter of commands that are known."""
    literals, families = demand.literals, demand.families
    committed = "commit" in families and any(each.kind == "path" for each in literals)
    if demand.only or (demand.content and not committed) or demand.bound:
        return None
    if families == {"run"} and demand.things == {"command"} and not literals:
        return True
    if demand.things - {"command", "file", "folder", "branch", "package"}:
        return None
    kinds = {each.kind for each in literals}
    if kinds == {"program"}:
        return any_of([_program(each) for each in literals])
    if "push" in families:
        return _push(demand)
    if "install" in families and not literals:
        return any_of([command(INSTALLERS, second=("install", "add", "i", "get", "upgrade"))])
    if {"commit", "merge", "rebase"} & families and not literals and not demand.things - {"command"}:
        return command(("git",), second=sorted(families & {"commit", "merge", "rebase"}))
    if kinds == {"path"}:
        return _on_paths(demand)
    if kinds == {"host"} and "fetch" in families:
        hosts = [rf"(^|\.){re.escape(each.text.removeprefix('www.'))}$" for each in literals]
        return any_of([{"allOf": [command(PROGRAMS["fetch"]), listed("hosts", text_like(host))]} for host in hosts])
    if "delete" in families and demand.things and demand.things <= {"file", "folder"} and not literals:
        return command(PROGRAMS["delete"])
    return None


def _program(literal: LiteralValue) -> Mapping[str, Any]:
    """A program with the words that were said after it; `-rf` is `-r` and `-f`, however they are written."""
    name, *rest = literal.text.split()
    held = [each for word in rest for each in (map(_option, word[1:]) if _SHORT.fullmatch(word) else [{"const": word}])]
    return command((name.rsplit("/", 1)[-1],), *held)


def _option(letter: str) -> dict[str, Any]:
    long = _LONG_OPTIONS.get(letter)
    return text_like(rf"^(-[a-z]*{letter}[a-z]*{f'|--{long}' if long else ''})$")


def _push(demand: Demand) -> Mapping[str, Any] | None:
    forced = [text_like(r"^(-[a-z]*f[a-z]*|--force.*|\+.+)$")] if demand.force else []
    if any(each.kind not in {"word", "channel", "name"} for each in demand.literals):
        return None
    if not demand.literals:
        return command(("git",), *forced, second=("push",))
    branches = [{"enum": [each.text, UNKNOWN]} for each in demand.literals]
    return any_of([command(("git",), *forced, branch, second=("push",)) for branch in branches])  # type: ignore[return-value]


def _on_paths(demand: Demand) -> Mapping[str, Any] | None:
    paths = [each.text for each in demand.literals]
    if USES & set(demand.verbs):
        return any_of([listed("paths", path_like(each)) for each in paths])  # type: ignore[return-value]
    if demand.families & {"delete"}:
        ways = [way for path in paths for way in _deleting(path)]
        return any_of(
            ways if len(paths) <= _MOST_SPELLED else [command(PROGRAMS["delete"], path_like(each)) for each in paths]
        )  # type: ignore[return-value]
    if demand.families & {"commit"}:
        return any_of([command(("git",), path_like(each), second=_COMMITTING) for each in paths])  # type: ignore[return-value]
    if demand.families & {"write", "change", "create"}:
        programs: Sequence[str] = (">",)
    elif demand.families & {"read", "fetch"}:
        programs = PROGRAMS["read"]
    else:
        return None
    return any_of([command(programs, path_like(each)) for each in paths])  # type: ignore[return-value]


def _deleting(path: str) -> list[dict[str, Any]]:
    """The commands that delete a path, or what it lies in."""
    below = path_like(path)
    ways = [command((program,), below, *words, second=second) for program, second, words in _DELETES_TOO]
    parts = path.rstrip("/").split("/")[:-1] if path.startswith("/") else []
    above = ["/".join(parts[:count]) or "/" for count in range(1, len(parts) + 1)]
    if above:
        ways.append(command(PROGRAMS["delete"], _option("r"), {"enum": above}))
    return [command(PROGRAMS["delete"], below), *ways]


def sql_condition(demand: Demand) -> Mapping[str, Any] | None:
    """A demand as a statement could break it."""
    if demand.only or demand.content or demand.bound:
        return None
    if demand.things - {"table", "database"}:
        return None
    if _EMPTYING & set(demand.verbs):
        demand = replace(demand, rows=True)  # "truncate the table", 清空
    said = [kind for kind in _STATEMENTS if kind[0] in demand.families and kind[1] in demand.things]
    forms = sorted({form for kind in said for form in (_OF_ROWS if demand.rows else _STATEMENTS[kind])})
    if not forms:
        return None
    statement = listed("statements", {"enum": forms})
    if not demand.literals:
        return statement
    tables = [listed("tables", {"const": each.text}) for each in demand.literals]
    return {"allOf": [statement, any_of(tables)]}
