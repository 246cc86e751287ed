"""The cost of requests to models. Each has a purpose, and a row in the ledger."""

from __future__ import annotations

import logging
import os
from contextvars import ContextVar

import msgspec
from msgspec import Struct

from toolmem.errors import StoreError
from toolmem.models.calls import Moment
from toolmem.models.protocols import Store

log = logging.getLogger("toolmem.llm")

NAMESPACE = ".ledger"


class LedgerRow(Struct, frozen=True, kw_only=True):
    """What is kept of one request to a model: its purpose, tokens, cost and outcome."""

    time: Moment
    flow: str
    op: str
    tool: str
    backend: str
    model: str
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    estimated: bool  # the tokens are estimated, because the service did not state them
    outcome: str  # "ok", or the kind of error
    seconds: float  # wall clock
    cost: float | None  # None: the model has no price
    currency: str


class Usage(Struct):
    """Number, tokens and cost of requests to models."""

    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    saved_prompt_tokens: int = 0  # of prompts for skipped tools
    costs: dict[str, float] = {}  # by currency, for models with a price

    def plus(self, other: Usage) -> Usage:
        """Return the sums of both usages."""
        currencies = dict.fromkeys([*self.costs, *other.costs])
        return Usage(
            requests=self.requests + other.requests,
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            saved_prompt_tokens=self.saved_prompt_tokens + other.saved_prompt_tokens,
            costs={each: self.costs.get(each, 0) + other.costs.get(each, 0) for each in currencies},
        )


class Purpose(Struct, frozen=True, kw_only=True):
    """What a request is for (flow, op and tool), and the store that records its cost."""

    store: Store
    workspace: str
    flow: str = ""
    op: str = ""
    tool: str = ""
    usage: Usage = msgspec.field(default_factory=Usage)
    max_retries: int | None = None  # None: the model's setting

    def record(self, row: LedgerRow) -> None:
        """Count a request and store its row. A failure of the store is logged and not raised."""
        self.count(row.prompt_tokens, row.completion_tokens, row.cost, row.currency)
        key = f"{row.time:%Y%m%dT%H%M%S.%f}-{os.urandom(6).hex()}"
        try:
            self.store.put(self.workspace, NAMESPACE, key, row)
        except StoreError as error:
            log.error("a request could not be written to the ledger: %s", error)

    def count(
        self, prompt_tokens: int, completion_tokens: int, cost: float | None, currency: str
    ) -> None:
        """Add a request to `usage`. `cost`: None if the model has no price."""
        usage = self.usage
        usage.requests += 1
        usage.prompt_tokens += prompt_tokens
        usage.completion_tokens += completion_tokens
        if cost is not None:
            usage.costs[currency] = usage.costs.get(currency, 0.0) + cost


# Whoever makes a request sets it.
current_purpose: ContextVar[Purpose | None] = ContextVar("purpose", default=None)


def read_ledger(store: Store, workspace: str, newest: int | None = None) -> list[LedgerRow]:
    """Read a workspace's requests to models, oldest first; only the last `newest`, if given."""
    found = store.list_records(workspace, NAMESPACE, newest=newest)
    return [each.read(LedgerRow) for each in found]
