"""Learn from errors and listings of a conversation which tables and columns do not exist.

A missing column is kept with the tables that its statement read. A query that works with a name
forgets that it was missing; a change of the schema forgets all. Statements that cannot be read for
sure (subqueries, WITH, tables of another database) teach nothing and are not checked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from toolmem.guard.decision import Finding, Mode, quoted, times
from toolmem.models.decisions import DecisionSource
from toolmem.text.patterns import late_pattern
from toolmem.text.sql import Statement, looks_like_sql, read_statement

MAX_NAMES = 1_000  # of each kind; the oldest are dropped
_MAX_READ = 20_000  # characters of a statement, and of an output
_NO_TABLE = late_pattern(
    r"Table '(?:[^'.\n]*\.)?([^'.\n]{1,128})' doesn't exist|no such table: (?:\w+\.)?(\w{1,128})"
    r'|relation "(?:\w+\.)?(\w{1,128})" does not exist'
)
_NO_COLUMN = late_pattern(
    r"Unknown column '([^'\n]{1,128})' in|no such column: ([\w.]{1,128})"
    r'|column "?([\w.]{1,128})"? does not exist'
)
_LISTS = late_pattern(r"\s*show\s+(?:full\s+)?tables\s*;?\s*$", re.I)
_FIRST_IN_ROW = late_pattern(r"\(\s*'([^'\n]{0,128})'")
_CHANGES = frozenset(("CREATE", "ALTER", "DROP", "TRUNCATE"))
_READS = frozenset(("SELECT", "DESCRIBE"))
_UNSURE = frozenset(("a subquery", "several statements", "INFORMATION_SCHEMA"))
_COMMA_JOIN = late_pattern(r"\bFROM\s+[\w`]+(?:\s+(?:AS\s+)?\w+)?\s*,", re.I)


class KnownNames(Struct, kw_only=True, omit_defaults=True):
    """The tables and columns that a database has, and those it lacks. Names are in lower case."""

    listed: list[str] = []  # the tables of the last complete listing
    seen: dict[str, bool] = {}  # tables that a query read
    no_table: dict[str, int] = {}  # missing tables: how many errors said so
    no_column: dict[str, int] = {}  # "a,b column": the tables that were read, and the column

    def learn(self, statement: str, output: str, *, failed: bool) -> None:
        """Learn from a statement and its output which names exist."""
        read = read_statement(statement[:_MAX_READ])
        if failed:
            self._learn_error(read, statement, output[:_MAX_READ])
        elif read.kind in _CHANGES:
            self.listed = []
            self.no_table.clear()
            self.no_column.clear()
        elif _LISTS.match(statement) and output.rstrip().endswith("]"):
            listed = sorted({name.lower() for name in _FIRST_IN_ROW.findall(output)})
            self.listed = listed if len(listed) <= MAX_NAMES else []
        elif read.kind in _READS:
            self._learn_working(read, statement)
        for names in (self.seen, self.no_table, self.no_column):
            for name in list(names)[: max(0, len(names) - MAX_NAMES)]:
                names.pop(name)

    def _learn_error(self, read: Statement, statement: str, output: str) -> None:
        if found := _NO_TABLE.search(output):
            name = next(filter(None, found.groups())).lower()
            self.no_table[name] = self.no_table.get(name, 0) + 1
        elif (found := _NO_COLUMN.search(output)) and _is_sure(read, statement):
            qualifier, _, column = next(filter(None, found.groups())).lower().rpartition(".")
            tables = {_table_of(qualifier, statement)} if qualifier else set(read.tables)
            if tables and "" not in tables:
                key = _key(tables, column)
                self.no_column[key] = self.no_column.get(key, 0) + 1

    def _learn_working(self, read: Statement, statement: str) -> None:
        """Store the tables of a query that worked; none of its names counts as missing any more."""
        self.seen.update(dict.fromkeys(sorted(read.tables), True))
        for table in read.tables:
            self.no_table.pop(table, None)
        for key in [key for key in self.no_column if _reads_missing(key, read.tables, read.names)]:
            del self.no_column[key]

    def check(self, statement: str, mode: Mode) -> Iterator[Finding]:
        """Find the names of a statement that are known not to exist."""
        read = read_statement(statement[:_MAX_READ])
        if read.kind not in _READS or not _is_sure(read, statement):
            return
        for name in sorted(read.tables - {"dual"}):
            errors = self.no_table.get(name, 0)
            is_unlisted = self.listed and name not in self.listed and name not in self.seen
            if errors or is_unlisted:
                yield _finding("table", name, "", errors, self.listed, mode)
        for key, errors in self.no_column.items():
            if read.kind == "SELECT" and _reads_missing(key, read.tables, read.names, statement):
                tables, _, column = key.rpartition(" ")
                yield _finding("column", column, tables, errors, [], mode)


def statement_in(arguments: object) -> str:
    """Return the SQL text among the arguments of a call; "" if there is none."""
    values = arguments.values() if isinstance(arguments, dict) else [arguments]
    texts = (value for value in values if isinstance(value, str))
    return next((text for text in texts if looks_like_sql(text[:_MAX_READ])), "")


def _is_sure(read: Statement, statement: str) -> bool:
    is_plain = not _UNSURE & read.clauses and not any("." in table for table in read.tables)
    return is_plain and read.kind != "WITH" and not _COMMA_JOIN.search(statement[:_MAX_READ])


def _table_of(alias: str, statement: str) -> str:
    """Return the table that an alias stands for; "" if it is not found."""
    form = rf"\b(?:FROM|JOIN)\s+`?(\w+)`?(?:\s+(?:AS\s+)?{re.escape(alias)})?\b"
    for found in re.finditer(form, statement[:_MAX_READ], re.I):
        if found[0].lower().split()[-1].strip("`") == alias:
            return found[1].lower()
    return ""


def _key(tables: set[str], column: str) -> str:
    return f"{','.join(sorted(tables))} {column}"


def _reads_missing(
    key: str, tables: frozenset[str], names: frozenset[str], statement: str = ""
) -> bool:
    """Whether a statement reads the column of `key` only from tables that lack the column."""
    lacking, _, column = key.rpartition(" ")
    if column not in names or not tables or not tables <= set(lacking.split(",")):
        return False
    return not re.search(rf"\bAS\s+`?{re.escape(column)}\b", statement[:_MAX_READ], re.I)


def _finding(kind: str, name: str, of: str, count: int, listed: list[str], mode: Mode) -> Finding:
    where = f" of {quoted(of)}" if of else ""
    why = f"an error said so {times(count)}" if count else "a complete list does not hold it"
    others = f" There are: {quoted(', '.join(listed))}." if listed else ""
    text = f"There is no {kind} {quoted(name)}{where} here: {why}, and nothing has used it since."
    source = DecisionSource(kind="known_name", k=count, n=count)
    return Finding(source, "deny", text + others, mode=mode)
