"""Requests to models, as they are booked."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """One request to a model, as it is booked."""

    time: datetime
    workspace: str
    flow: str
    op: str
    tool: str
    backend: str
    model: str
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    estimated: bool  # counted by the tokenizer, not taken from the reply
    outcome: str  # "ok", "error: <class>", "not_sent" (dry_run)
    seconds: float  # of the request itself
    waited: float = 0.0  # seconds before it, for the pacing gate
    cost: float | None = None
    currency: str = ""


class Meter(Protocol):
    """Books requests: the run's own sums, and the ledger behind it."""

    def book(self, entry: LedgerEntry) -> None: ...


@dataclass(frozen=True, slots=True)
class Purpose:
    """On whose behalf a request to a model is made."""

    workspace: str
    flow: str
    op: str
    tool: str
    meter: Meter
