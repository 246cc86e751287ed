"""The usage log, called ledger: every request to a model, kept in the store, and its sums.

Requests are kept in keyed records of the namespace "ledger" of their workspace: one record for all that were booked
within a fraction of a second, so that booking costs no write per request. A record's key is the time of its first
request (UTC, so that keys sort by time) and a random part, its value `{"columns": [...], "rows": [[...], ...]}`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import threading
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import astuple, fields
from datetime import datetime, tzinfo
from typing import Any

from pydantic import BaseModel

from toolmem.errors import RequestError, StoreError
from toolmem.protocols import LedgerEntry, MemoryStore
from toolmem.stored import Record

logger = logging.getLogger("toolmem.llm")

NAMESPACE = "ledger"
NOT_SENT = "not_sent"  # a dry run's outcome: counted, never asked, so not in the ledger
BATCH = 500  # requests per record
DELAY = 0.2  # seconds between a booking and its write; what a killed process loses
COLUMNS = tuple(column.name for column in fields(LedgerEntry))
GROUPS = ("workspace", "flow", "op", "tool", "backend", "model", "day", "outcome")


class Ledger:
    """Implements `protocols.Meter`. `book` may be called from any thread or event loop, and is written soon after.

    `flush` (or `close`) writes what is left; where a process is killed, the last `delay` seconds are lost. A write that
    fails is logged, its requests are kept and written with the next ones; `flush` raises StoreError.
    """

    def __init__(self, store: MemoryStore, *, delay: float = DELAY) -> None:
        self._store = store
        self._delay = delay
        self._waiting: list[LedgerEntry] = []
        self._packed: dict[str, tuple[str, dict[str, Any]]] = {}  # key -> workspace, value; not known to be written
        self._lock = threading.Lock()
        self._writer: asyncio.Task[None] | None = None

    def book(self, entry: LedgerEntry) -> None:
        if entry.outcome == NOT_SENT:
            return
        with self._lock:
            self._waiting.append(entry)
            if self._writer is not None and not self._writer.done() and not self._writer.get_loop().is_closed():
                return
            with contextlib.suppress(RuntimeError):  # no loop is running: the next flush writes it
                self._writer = asyncio.get_running_loop().create_task(self._write_soon())

    async def _write_soon(self) -> None:
        await asyncio.sleep(self._delay)
        with self._lock:
            self._writer = None  # what is booked from now on needs another one
        try:
            await self.flush()
        except StoreError as error:
            logger.error("the ledger could not be written, it is tried again: %s", error)

    async def flush(self) -> None:
        """Write what has been booked so far. Raises StoreError; then nothing is lost, a later flush writes it."""
        self._pack()
        for key, (workspace, value) in list(self._packed.items()):
            # Under its own key a batch may be written twice (a write that was cancelled halfway) and counts once.
            await self._store.put(workspace, NAMESPACE, key, value)
            self._packed.pop(key, None)

    def _pack(self) -> None:
        with self._lock:
            entries, self._waiting = self._waiting, []
            by_workspace: dict[str, list[LedgerEntry]] = defaultdict(list)
            for entry in entries:
                by_workspace[entry.workspace].append(entry)
            for workspace, booked in by_workspace.items():
                for start in range(0, len(booked), BATCH):
                    batch = booked[start : start + BATCH]
                    self._packed[_key(batch)] = (workspace, _value(batch))

    async def close(self) -> None:
        """Write what is left; the store stays open."""
        with self._lock:
            writer, self._writer = self._writer, None
        if writer is not None and writer.get_loop() is asyncio.get_running_loop():
            writer.cancel()
            await asyncio.gather(writer, return_exceptions=True)
        await self.flush()


def _key(batch: Sequence[LedgerEntry]) -> str:
    return f"{min(entry.time for entry in batch):%Y%m%dT%H%M%S.%f}-{secrets.token_hex(6)}"


def _value(batch: Sequence[LedgerEntry]) -> dict[str, Any]:
    rows = [[value.isoformat() if isinstance(value, datetime) else value for value in astuple(e)] for e in batch]
    return {"columns": list(COLUMNS), "rows": rows}


# ---------------------------------------------------------------- reading


async def read_ledger(
    store: MemoryStore, workspace: str, *, since: datetime | None = None, until: datetime | None = None
) -> list[LedgerEntry]:
    """The workspace's requests in the order of their times; `since` (included) and `until` (not) are aware."""
    found = [entry for record in await store.list(workspace, NAMESPACE) for entry in _entries(record)]
    return sorted(
        (e for e in found if (since is None or e.time >= since) and (until is None or e.time < until)),
        key=lambda entry: entry.time,
    )


def _entries(record: Record) -> Iterable[LedgerEntry]:
    try:
        columns = record.value["columns"]
        for row in record.value["rows"]:
            values = {name: value for name, value in zip(columns, row, strict=True) if name in COLUMNS}
            yield LedgerEntry(**{**values, "time": datetime.fromisoformat(values["time"])})
    except (KeyError, TypeError, ValueError) as error:
        logger.warning("ledger record %s is damaged and left out (%s: %s)", record.key, type(error).__name__, error)


class Spent(BaseModel):
    """What the requests of one group add up to."""

    group: dict[str, str]  # the columns that were asked for, and their values
    currency: str  # of `cost`; requests without a price are a group of their own, ""
    requests: int = 0
    failed: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    estimated: int = 0  # requests whose tokens were counted here, not told by the reply
    seconds: float = 0.0  # of the requests
    waited: float = 0.0  # seconds before them
    cost: float | None = None  # None where the model has no price

    def row(self) -> dict[str, Any]:
        """One flat row, for a table or a CSV file."""
        return {**self.group, **self.model_dump(exclude={"group"})}


def sum_up(
    entries: Iterable[LedgerEntry], by: Sequence[str] = ("op", "model"), *, zone: tzinfo | None = None
) -> list[Spent]:
    """One sum per group, sorted by group. `by`: any of GROUPS; days are those of `zone` (default UTC).

    Costs in two currencies are never added: the currency is part of each group. Raises RequestError.
    """
    unknown = [name for name in by if name not in GROUPS]
    if unknown:
        raise RequestError(f"by: no column is called {unknown[0]!r}; there are {', '.join(GROUPS)}", field="by")
    sums: dict[tuple[str, ...], Spent] = {}
    for entry in entries:
        group = {name: _column(entry, name, zone) for name in by}
        found = sums.setdefault((*group.values(), entry.currency), Spent(group=group, currency=entry.currency))
        _add(found, entry)
    return [sums[key] for key in sorted(sums)]


def _column(entry: LedgerEntry, name: str, zone: tzinfo | None) -> str:
    if name == "day":
        return (entry.time if zone is None else entry.time.astimezone(zone)).date().isoformat()
    return str(getattr(entry, name))


def _add(to: Spent, entry: LedgerEntry) -> None:
    to.requests += 1
    to.failed += entry.outcome != "ok"
    for name in ("prompt_tokens", "cached_tokens", "completion_tokens", "estimated", "seconds", "waited"):
        setattr(to, name, getattr(to, name) + getattr(entry, name))
    if entry.cost is not None:
        to.cost = (to.cost or 0.0) + entry.cost
