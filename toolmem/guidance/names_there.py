"""The tables and columns of one database, as the newest calls on it showed them, for a statement that names others.

From working queries, DESCRIBE and SHOW; a statement that worked and changes the schema wipes what was there before.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher

from toolmem.guard.effects import names_text
from toolmem.guard.known_names import Missing
from toolmem.guard.sql_names import SqlNames, read_names
from toolmem.guidance.counted.card_lines import quotable
from toolmem.guidance.counted.shown_values import one_line
from toolmem.guidance.outcomes import went_wrong
from toolmem.guidance.shown import claim_text
from toolmem.models import Claim, Subject, ToolCallResult

MAX_TEXT = 20_000  # characters of a statement, and of an output
MAX_NAMES = 1000
MAX_NEAREST = 5
MAX_TABLES = 6  # with their columns
MAX_IDS = 3
SHOWN = 160  # characters of a list of names
_CHANGES = frozenset({"create", "alter", "drop", "rename", "truncate"})
_FIRST_IN_ROW = re.compile(r"\(\s*'([^'\n]{1,128})'")
_WORD = re.compile(r"[A-Za-z_]\w{0,127}")


@dataclass(slots=True)
class _Table:
    columns: dict[str, int] = field(default_factory=dict)  # with how many queries used each
    uses: int = 0
    ids: list[str] = field(default_factory=list)


class NamesThere:
    """What calls of one context (oldest first) showed to be there."""

    def __init__(self, calls: Iterable[ToolCallResult]) -> None:
        self.tables: dict[str, _Table] = {}
        self._n = 0
        for call in calls:
            if went_wrong(call) is False and (statement := names_text(call.input, call.tool_name)):
                self._n += 1
                self._learn(read_names(statement[:MAX_TEXT]), statement, call)

    def _learn(self, names: SqlNames, statement: str, call: ToolCallResult) -> None:
        own = sorted(name for name in names.own if not name.startswith("!"))
        if names.kind in _CHANGES:
            self.tables.clear()
        elif names.kind == "show" and not own:
            if re.match(r"\s*show\s+(?:full\s+)?tables\b", statement, re.IGNORECASE):
                for name in _FIRST_IN_ROW.findall(call.output[:MAX_TEXT]):
                    self._table(name.lower(), call)
        elif names.kind in {"describe", "desc", "show"} and len(own) == 1:
            table = self._table(own[0], call)
            for name in _FIRST_IN_ROW.findall(call.output[:MAX_TEXT]):
                self._column(table, name.lower(), 0)
        elif names.kind == "select" and not names.schema:
            for name in own:
                self._table(name, call).uses += 1
            for of, column in names.columns if names.sure else ():
                of = own[0] if of is None and len(own) == 1 and names.selects == 1 else of
                if of in self.tables:
                    self._column(self.tables[of], column, 1)

    def _table(self, name: str, call: ToolCallResult) -> _Table:
        table = self.tables.setdefault(name, _Table()) if len(self.tables) < MAX_NAMES else _Table()
        table.ids = [*table.ids, call.id or ""][-MAX_IDS:]
        return table

    def _column(self, table: _Table, name: str, used: int) -> None:
        if name in table.columns or len(table.columns) < MAX_NAMES:
            table.columns[name] = table.columns.get(name, 0) + used

    # -- lines

    def missing(self, found: Sequence[Missing]) -> list[Claim]:
        """A line for each name that does not exist, with the nearest that do."""
        return [self._missing(each) for each in found]

    def _missing(self, one: Missing) -> Claim:
        if one.kind == "column":
            known = [name for table in one.tables if table in self.tables for name in self.tables[table].columns]
        else:
            known = [*self.tables, *one.listed] if one.kind == "table" else []
        near = sorted({*known} - {one.name}, key=lambda name: (-_likeness(name, [one.name]), name))[:MAX_NEAREST]
        of = f" of {_quoted(', '.join(one.tables))}" if one.tables else ""
        said = f"{one.times} {'error' if one.times == 1 else 'errors'} said so"
        told = said if one.times else "a complete list does not hold it"
        text = f"there is no {one.kind} {_quoted(one.name)}{of} here, {told}"
        text += f"; nearest known: {_quoted(', '.join(near))}" if near else ""
        ids = [id_ for name in (*one.tables, *near) if name in self.tables for id_ in self.tables[name].ids]
        return _claim("missing_name", text, one.times, one.times, ids).model_copy(
            update={"counts": {"near": len(near)}}
        )

    def card(self, statement: str) -> list[Claim]:
        """Tables with their columns, those first that are like the names of the statement."""
        words = list(dict.fromkeys(word.lower() for word in _WORD.findall(statement[:MAX_TEXT])))[:50]
        own = read_names(statement[:MAX_TEXT]).own if words else frozenset()
        rank = {name: (name in own, _likeness(name, words), table.uses) for name, table in self.tables.items()}
        told = []
        for name in sorted(self.tables, key=lambda name: rank[name], reverse=True)[:MAX_TABLES]:
            table = self.tables[name]
            order = sorted(table.columns, key=lambda each: (-_likeness(each, words), -table.columns[each], each))
            if order:
                text = f"known here: {_quoted(name)} with {_quoted(', '.join(order))}"
                told.append(_claim("known_names", text, table.uses, self._n, table.ids))
        return told


def _likeness(name: str, words: Sequence[str]) -> float:
    """Of a name to the word that it is most like, 0 to 1."""
    near = (word for word in words if abs(len(word) - len(name)) <= 8)
    return max((1.0 if word == name else SequenceMatcher(None, name, word).ratio() for word in near), default=0.0)


def _quoted(text: str) -> str:
    return f'"{quotable(one_line(text, SHOWN))}"'


def _claim(kind: str, text: str, k: int, n: int, ids: Sequence[str]) -> Claim:
    kept = tuple(dict.fromkeys(each for each in ids if each))[:5]
    return Claim(text=claim_text(text), k=k, n=n, call_ids=kept, kind=kind, subject=Subject(form=kind))
