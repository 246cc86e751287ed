"""The tables and columns that an SQL text names, read token by token: no grammar, so that broken text is read too.

Where reading is not sure (a name in odd quotes, a table of another database, a sub-query) it says so, and nothing is
concluded from it. Linear in the length of the text.
"""

from __future__ import annotations

import re

from toolmem.guard.word_lists import words as listed_words
from toolmem.late import late_pattern
from toolmem.late_dataclasses import dataclass, field

_TOKEN = late_pattern(
    r"--[^\n]*|/\*.*?(?:\*/|\Z)|'(?:[^'\\]|\\.|'')*+(?:'|\Z)|\"(?:[^\"\\]|\\.)*+(?:\"|\Z)|`[^`]*`|[A-Za-z_][\w$]*|\d[\w.]*|[(),.;*=<>]",
    re.DOTALL,
)
_ENDS_TABLES = listed_words("sql_ends_tables")
_KEYWORDS = _ENDS_TABLES | listed_words("sql_keywords")


@dataclass(slots=True)
class SqlNames:
    """What one statement names, in small letters."""

    kind: str = ""  # its first word
    tables: dict[str, str] = field(default_factory=dict)  # alias or name -> table
    elsewhere: bool = False  # a table of another database is named
    columns: set[tuple[str | None, str]] = field(default_factory=set)  # (table of the qualifier or None, column)
    selects: int = 0
    sure: bool = True  # no name in quotes that hides odd characters
    schema: bool = False  # it asks the catalogue of the database itself

    @property
    def own(self) -> frozenset[str]:
        return frozenset(self.tables.values())


def read_names(text: str) -> SqlNames:
    """The names of one statement. `text` should be cut to some ten thousand characters."""
    found = SqlNames(schema="information_schema" in text.lower())
    words = [word for word in _TOKEN.findall(text) if not word.startswith(("--", "/*"))]
    words = [_bare(word, found) for word in words]
    if not words:
        return found
    found.kind = words[0] if words[0] != "(" else next((word for word in words if word != "("), "")
    found.selects = words.count("select")
    with_names = _with_names(words)
    taken: set[int] = set()
    at = 0
    while at < len(words):
        if words[at] in {"from", "join"} and not _in_function(words, at):
            at = _tables(words, at + 1, found, taken, lists=words[at] == "from")
        else:
            at += 1
    if found.kind in {"describe", "desc", "show"} and len(words) > 1:
        _described(words, found)
    found.tables = {alias: table for alias, table in found.tables.items() if table not in with_names}
    _columns(words, found, taken, with_names)
    return found


def _bare(word: str, found: SqlNames) -> str:
    if word.startswith("`"):
        if not re.fullmatch(r"`\w*`", word):
            found.sure = False
        return word.strip("`").lower()
    return "?" if word[0] in "'\"" else word.lower()


def _with_names(words: list[str]) -> frozenset[str]:
    """Names of common table expressions: `name AS (SELECT`."""
    return frozenset(words[at] for at in range(len(words) - 3) if words[at + 1 : at + 4] == ["as", "(", "select"])


def _in_function(words: list[str], at: int) -> bool:
    """EXTRACT(YEAR FROM x), TRIM(BOTH ' ' FROM x), SUBSTRING(x FROM 2)."""
    depth = 0
    for back in range(at - 1, max(at - 12, -1), -1):
        if words[back] == ")":
            depth += 1
        elif words[back] == "(":
            if depth == 0:
                return back > 0 and words[back - 1] in {"extract", "trim", "substring", "substr", "position"}
            depth -= 1
        elif words[back] == "select":
            return False
    return False


def _tables(words: list[str], at: int, found: SqlNames, taken: set[int], *, lists: bool) -> int:
    """The tables from `at` on: `a`, `a x`, `a AS x`, `d.a`; and more behind commas where it is a list."""
    while at < len(words):
        if not re.fullmatch(r"\w[\w$]*", words[at]) or words[at] in _KEYWORDS:
            return at  # a sub-query, or something that is not read
        name = words[at]
        taken.add(at)
        at += 1
        while at + 1 < len(words) and words[at] == ".":
            found.elsewhere = True
            taken.add(at + 1)
            name, at = f"!{name}.{words[at + 1]}", at + 2
        alias = name
        if at < len(words) and words[at] == "as":
            at += 1
        if at < len(words) and re.fullmatch(r"[a-z_][\w$]*", words[at]) and words[at] not in _KEYWORDS:
            alias = words[at]
            taken.add(at)
            at += 1
        found.tables[alias] = name
        found.tables.setdefault(name, name)
        if not (lists and at < len(words) and words[at] == ","):
            return at
        at += 1
    return at


def _described(words: list[str], found: SqlNames) -> None:
    """DESCRIBE x, SHOW COLUMNS FROM x."""
    if words[0] in {"describe", "desc"} and re.fullmatch(r"[a-z_][\w$]*", words[1]):
        name = words[3] if words[2:3] == ["."] and len(words) > 3 else words[1]
        found.tables[name] = name


def _columns(words: list[str], found: SqlNames, taken: set[int], with_names: frozenset[str]) -> None:
    named = {words[at + 1] for at in range(len(words) - 1) if words[at] == "as"}
    for at, word in enumerate(words):
        if not re.fullmatch(r"[a-z_][\w$]*", word) or at in taken:
            continue
        before = words[at - 1] if at else ""
        after = words[at + 1] if at + 1 < len(words) else ""
        if before == ".":
            qualifier = words[at - 2] if at >= 2 else ""
            if qualifier in found.tables and after != "(":
                found.columns.add((found.tables[qualifier], word))
        elif after not in {"(", "."} and not (
            word in _KEYWORDS or word in named or word in found.tables or word in with_names
        ):
            found.columns.add((None, word))
