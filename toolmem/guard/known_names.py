"""Names that are known not to exist in a context: a database, a machine, as errors and listings told.

Learned from all conversations of the context. A missing column is held for the set of tables that the statement read,
or for the table of its qualifier. What contradicts it wipes it: a query that works with the name, and any change of
the schema. A listing that was cut tells nothing. `shell_names` does the same for paths and programs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from toolmem.guard.shell_names import ShellNames
from toolmem.guard.sql_names import SqlNames, read_names
from toolmem.guard.word_lists import split
from toolmem.late import late_pattern
from toolmem.late_dataclasses import dataclass, field
from toolmem.readers.sql import looks_like_sql

MOST_NAMES = 1000  # that one context keeps of each kind; the oldest go
_LONGEST_NAME = 128  # characters; a longer one is not kept
_LONGEST = 20_000  # characters of a statement, and of an output
_NO_TABLE = (
    late_pattern(r"Table '(?:[^'.\n]*\.)?([^'.\n]{1,128})' doesn't exist"),
    late_pattern(r"no such table: (?:\w+\.)?(\w{1,128})"),
    late_pattern(r'relation "(?:\w+\.)?(\w{1,128})" does not exist'),
)
_NO_COLUMN = (
    late_pattern(r"Unknown column '([^'\n]{1,128})' in"),
    late_pattern(r"no such column: ([\w.]{1,128})"),
    late_pattern(r'column "?([\w.]{1,128})"? does not exist'),
)
_FIRST_IN_ROW = late_pattern(r"\(\s*'([^'\n]{0,128})'")
_CHANGES = split("create alter drop rename truncate")
_READS = split("select with")


@dataclass(frozen=True, slots=True)
class Missing:
    """A name that is known not to exist."""

    kind: str  # table, column, path, program
    name: str
    tables: tuple[str, ...] = ()  # of a column
    times: int = 1  # how many errors said so; 0: a complete listing does not hold it
    listed: tuple[str, ...] = ()  # what there is instead


@dataclass(slots=True)
class KnownNames:
    """What one database was seen to hold and not to hold: at most 1,000 names of each kind."""

    listed: frozenset[str] = frozenset()  # tables of the last complete listing
    seen: dict[str, None] = field(default_factory=dict)  # tables that a query read
    no_table: Counter[str] = field(default_factory=Counter)
    no_column: Counter[tuple[str | frozenset[str], str]] = field(default_factory=Counter)
    shell: ShellNames = field(default_factory=ShellNames)

    def learn(self, statement: str, output: str, *, failed: bool) -> None:
        """What a statement, or a command line, and its answer tell."""
        if not looks_like_sql(statement[:_LONGEST]):
            self.shell.learn(statement, output, failed=failed)
            return
        names = read_names(statement[:_LONGEST])
        if failed:
            self._learn_error(names, output[:_LONGEST])
        elif names.kind in _CHANGES:
            self.listed = frozenset()
            self.no_table.clear()
            self.no_column.clear()
        elif names.kind == "show" and re.match(r"\s*show\s+(?:full\s+)?tables\s*;?\s*$", statement, re.IGNORECASE):
            if output.rstrip().endswith("]"):
                listed = frozenset(name.lower() for name in _FIRST_IN_ROW.findall(output))
                if listed:
                    self.listed = listed if len(listed) <= MOST_NAMES else frozenset()
        elif names.kind in {"describe", "desc"} or (names.kind == "show" and names.tables):
            self.seen.update(dict.fromkeys(sorted(names.own)))
        elif names.kind in _READS:
            self._learn_working(names)

    def bound(self) -> None:
        """Forget the oldest beyond the most that is kept."""
        self.shell.bound(MOST_NAMES)
        for held in (self.seen, self.no_table, self.no_column):
            for name in list(held)[: max(0, len(held) - MOST_NAMES)]:
                del held[name]  # type: ignore[arg-type]  # its own key

    def as_json(self) -> dict[str, Any]:
        self.bound()
        columns = [
            [of if isinstance(of, str) else sorted(of), column, n]
            for (of, column), n in self.no_column.items()
            if len(column) <= _LONGEST_NAME
        ]
        return {
            "listed": sorted(self.listed),
            "seen": [name for name in self.seen if len(name) <= _LONGEST_NAME],
            "no_table": dict(self.no_table),
            "no_column": columns,
            **self.shell.as_json(),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> KnownNames:
        """Raises KeyError, TypeError or ValueError where it is none."""
        columns: Counter[tuple[str | frozenset[str], str]] = Counter()
        for of, column, n in value["no_column"]:
            columns[(of if isinstance(of, str) else frozenset(map(str, of)), str(column))] = int(n)
        return cls(
            frozenset(map(str, value["listed"])),
            dict.fromkeys(map(str, value["seen"])),
            Counter({str(name): int(n) for name, n in value["no_table"].items()}),
            columns,
            ShellNames.from_json(value),
        )

    def _learn_error(self, names: SqlNames, output: str) -> None:
        for pattern in _NO_TABLE:
            if found := pattern.search(output):
                self.no_table[found[1].lower()] += 1
        for pattern in _NO_COLUMN:
            if found := pattern.search(output):
                *qualified, column = found[1].lower().split(".")
                if qualified and qualified[-1] in names.tables:
                    self.no_column[(names.tables[qualified[-1]], column)] += 1
                elif not qualified and names.selects == 1:
                    self.no_column[(names.own, column)] += 1

    def _learn_working(self, names: SqlNames) -> None:
        """A query that worked contradicts what says that it cannot."""
        self.seen.update(dict.fromkeys(sorted(names.own)))
        for table in names.own:
            self.no_table.pop(table, None)
        wrong = [
            held
            for held in self.no_column
            if held in names.columns
            or (not isinstance(held[0], str) and (None, held[1]) in names.columns and names.own <= held[0])
        ]
        for held in wrong:
            del self.no_column[held]

    def against(self, statement: str) -> list[Missing]:
        """The names of a statement, or a command line, that are known not to exist."""
        if not looks_like_sql(statement[:_LONGEST]):
            return [Missing(kind, name, times=times) for kind, name, times in self.shell.against(statement)]
        names = read_names(statement[:_LONGEST])
        if names.kind not in _READS | {"describe", "desc", "show"} or names.schema:
            return []
        tables = {name for name in names.own if not name.startswith("!")} - {"dual"}
        missing = [
            Missing("table", name, times=self.no_table[name], listed=tuple(sorted(self.listed)))
            for name in sorted(tables)
            if name in self.no_table
        ]
        if self.listed and names.kind in {"select", "describe", "desc"}:
            unlisted = tables - self.listed - self.seen.keys() - {each.name for each in missing}
            missing += [Missing("table", name, times=0, listed=tuple(sorted(self.listed))) for name in sorted(unlisted)]
        if names.kind == "select" and names.sure:
            missing += self._columns_against(names, tables)
        return missing

    def _columns_against(self, names: SqlNames, tables: set[str]) -> list[Missing]:
        found = []
        for table, column in sorted(names.columns, key=str):
            if table is not None:
                if times := self.no_column.get((table, column)):
                    found.append(Missing("column", column, (table,), times))
            elif names.selects == 1 and not names.elsewhere and tables:
                for (held, name), times in self.no_column.items():
                    if name == column and not isinstance(held, str) and tables <= held:
                        found.append(Missing("column", column, tuple(sorted(tables)), times))
                        break
        return found
