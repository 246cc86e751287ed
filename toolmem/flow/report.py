"""What a run tells while it goes on, and what it leaves behind: time, requests, tokens and outcome of each op."""

from __future__ import annotations

import logging
import os
import re
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, Field, PrivateAttr, ValidationError

from toolmem.config.extras import need_pandas
from toolmem.errors import Refused
from toolmem.models import Usage
from toolmem.protocols import LedgerEntry, Meter

if TYPE_CHECKING:
    import pandas as pd

log = logging.getLogger("toolmem.flow")

NOT_RUN = "not_run"  # an op that the run did not come to
RUNNING = "running"  # an op (or a run) that has not ended


class OpReport(BaseModel):
    """One op of a run."""

    op: str  # its key in the configuration
    seconds: float = 0.0  # wall clock
    waited: float = 0.0  # of all its requests, before they started: for the pacing
    model_seconds: float = 0.0  # of all its requests, side by side ones counted each
    outcome: str = NOT_RUN  # "ok", "failed: <why>", "refused: <why>", "cancelled", "running", "not_run"
    usage: Usage = Field(default_factory=Usage)
    notes: list[str] = Field(default_factory=list)
    details: list[dict[str, Any]] = Field(default_factory=list)  # rows that the op wants kept: JSON, a `kind` in each


class RunReport(BaseModel):
    """One run of a flow. It is the run's meter: `book` sums a request up and keeps its entry."""

    flow: str
    workspace: str
    started: datetime  # aware, UTC
    seconds: float = 0.0  # wall clock
    outcome: str = RUNNING
    ops: list[OpReport] = Field(default_factory=list)  # in reading order of the flow
    entries: list[LedgerEntry] = Field(default_factory=list)

    _further: Meter | None = PrivateAttr(default=None)

    def pass_on_to(self, meter: Meter | None) -> None:
        """Book every further entry with this meter as well (the ledger)."""
        self._further = meter

    def book(self, entry: LedgerEntry) -> None:
        """Book with the op of the entry's name; one that is not in the report is added."""
        found = next((op for op in self.ops if op.op == entry.op), None)
        if found is None:
            found = OpReport(op=entry.op)
            self.ops.append(found)
        self.book_with(found, entry)

    def book_with(self, op: OpReport, entry: LedgerEntry) -> None:
        add(op.usage, entry)
        op.waited += entry.waited
        op.model_seconds += entry.seconds
        self.entries.append(entry)
        if self._further is not None:
            self._further.book(entry)

    @property
    def usage(self) -> Usage:
        """Of all ops together."""
        return total([op.usage for op in self.ops])

    def to_frame(self) -> pd.DataFrame:
        """One row per op, in reading order. Times are in seconds; `cost` is NaN where it is unknown."""
        need_pandas()
        import pandas as pd

        rows: list[dict[str, Any]] = [
            {
                "flow": self.flow,
                "workspace": self.workspace,
                "started": self.started,
                "op": op.op,
                "outcome": op.outcome,
                "seconds": op.seconds,
                "waited": op.waited,
                "model_seconds": op.model_seconds,
                **op.usage.model_dump(),
                "notes": "\n".join(op.notes),
            }
            for op in self.ops
        ]
        columns = [
            *("flow", "workspace", "started", "op", "outcome", "seconds", "waited", "model_seconds"),
            *Usage.model_fields,
            "notes",
        ]
        return pd.DataFrame(rows, columns=columns).astype({"cost": "float64"})

    def save(self, folder: str | Path) -> Path:
        """Write `<time>-<flow>-<random>.json` into the folder (made where it is missing); answers the file."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        stem = f"{self.started:%Y%m%dT%H%M%S}-{re.sub(r'[^A-Za-z0-9._-]', '_', self.flow)[:80]}-"
        # A reader of the folder never sees half a report: written under another suffix, then renamed.
        handle, name = tempfile.mkstemp(prefix=stem, suffix=".part", dir=folder)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(self.model_dump_json(indent=1))
        target = Path(name).with_suffix(".json")
        os.replace(name, target)
        return target

    @classmethod
    def load(cls, path: str | Path) -> RunReport:
        """Read what `save` wrote. Raises Refused where the file is no run report."""
        try:
            return cls.model_validate_json(Path(path).read_text(encoding="utf-8"))
        except (ValidationError, UnicodeDecodeError) as error:
            raise Refused(f"{path}: not a run report of toolmem ({str(error).splitlines()[0]})") from error


def add(usage: Usage, entry: LedgerEntry) -> None:
    """Add one request to a sum."""
    _add_cost(usage, entry.cost, entry.currency)
    usage.requests += 1
    usage.prompt_tokens += entry.prompt_tokens
    usage.completion_tokens += entry.completion_tokens
    usage.cached_tokens += entry.cached_tokens
    usage.estimated = usage.estimated or entry.estimated


def total(parts: list[Usage]) -> Usage:
    """The sum; its cost is unknown where the parts are in two currencies."""
    if len(parts) == 1:
        return parts[0].model_copy()
    whole = Usage()
    for part in parts:
        _add_cost(whole, part.cost, part.currency)
        for name in Usage.model_fields:
            if name not in ("cost", "currency", "estimated"):
                setattr(whole, name, getattr(whole, name) + getattr(part, name))
        whole.estimated = whole.estimated or part.estimated
    return whole


MIXED = "mixed"  # currencies that cannot be added


def _add_cost(usage: Usage, cost: float | None, currency: str) -> None:
    if usage.currency == MIXED or (cost is None and currency != MIXED):
        return
    if cost is None or usage.currency not in ("", currency):
        usage.cost, usage.currency = None, MIXED
        return
    usage.cost = (usage.cost or 0.0) + cost
    usage.currency = currency


class OpMeter:
    """Books with one op of a report, and tells who watches."""

    def __init__(self, report: RunReport, op: OpReport, told: Any = None) -> None:
        self._report = report
        self._op = op
        self._told = told

    def book(self, entry: LedgerEntry) -> None:
        self._report.book_with(self._op, entry)
        if self._told is not None:
            self._told(self._op, entry)


# ---------------------------------------------------------------- what a run tells while it goes on

EventKind = Literal["flow_started", "op_started", "progress", "notice", "request", "op_finished", "flow_finished"]


@dataclass(frozen=True, slots=True)
class Event:
    """One moment of a run. Carries no payload of the request."""

    kind: EventKind
    flow: str
    op: str = ""  # the op's key; "" for the flow itself
    done: int = 0  # progress: of `total`; request: how many the op has made
    total: int = 0
    message: str = ""  # op_finished and flow_finished: the outcome; request: the tool; notice: what to tell the user
    seconds: float = 0.0  # since the op (or the flow) started


Listener = Callable[[Event], None]


class Announcer:
    """Hands events to listeners. A listener that raises is told about once, then left out: it never breaks a run."""

    def __init__(self, listeners: Iterable[Listener] = ()) -> None:
        self._listeners = list(listeners)

    def __call__(self, event: Event) -> None:
        for listener in tuple(self._listeners):
            try:
                listener(event)
            except Exception:
                self._listeners.remove(listener)
                log.warning("a listener failed at %r and gets no further events", event.kind, exc_info=True)
