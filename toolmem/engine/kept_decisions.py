"""The decisions of a guard on their way into the store's log, and its troubles into that of the process."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Collection, Coroutine
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from toolmem.errors import Refused
from toolmem.late import late_logger
from toolmem.late_dataclasses import replace
from toolmem.readers.weight import alone
from toolmem.store.masked import masked_value
from toolmem.stored import LoggedDecision

if TYPE_CHECKING:
    from datetime import datetime

    from toolmem.guard.decision import CallMark, GuardDecision
    from toolmem.protocols import Clock, MemoryStore

logger = late_logger("toolmem.guard")

T = TypeVar("T")

UNKNOWN_AFTER = timedelta(days=1)  # without an outcome
_TOLD_EVERY = 60.0  # seconds between two of the same complaint
_LONGEST_INPUT = 20_000  # characters of an input in the log
_LONGEST_NAME = 256
_MOST_WAITING = 100  # decisions that wait for a store that takes them; beyond it the oldest go


class StorePatience:
    """Waits for a store as long as an agent can, and tells each complaint once a minute."""

    def __init__(self, clock: Clock, timeout: float) -> None:
        self._clock = clock
        self._timeout = timeout
        self._told: dict[str, float] = {}

    async def within(self, work: Coroutine[Any, Any, T], times: int = 1) -> T:
        """What it answers in as many times the limit. Where no event loop runs, the store has a limit of its own."""
        if alone():
            return await work
        import asyncio

        async with asyncio.timeout(self._timeout * times):
            return await work

    async def attempt(self, what_if_not: str, work: Coroutine[Any, Any, object], times: int = 5) -> bool:
        """Did it work? What it raises is none of the agent's. It reads and writes more than once."""
        try:
            await self.within(work, times)
        except Exception as error:
            self.tell(what_if_not, error)
            return False
        return True

    def tell(self, what: str, error: Exception | None = None) -> None:
        now = self._clock.monotonic()
        if now - self._told.get(what, -_TOLD_EVERY) >= _TOLD_EVERY:
            self._told[what] = now
            logger.warning("%s%s", what, f" ({type(error).__name__}: {error})"[:500] if error else "")


class DecisionLog:
    """The log of one workspace. What a store does not take waits until it does."""

    def __init__(self, store: MemoryStore, workspace: str, clock: Clock, patience: StorePatience) -> None:
        self._store = store
        self._workspace = workspace
        self._clock = clock
        self._patience = patience
        self.with_inputs = True  # False: what calls were given is logged nowhere
        self._waiting: deque[LoggedDecision] = deque(maxlen=_MOST_WAITING)

    async def add(self, decision: GuardDecision, arguments: Any, mark: CallMark, final: Collection[str] = ()) -> None:
        """A decision, to be written. `final`: the actions after which the call is known not to run."""
        self._waiting.append(
            LoggedDecision(
                id=decision.id,
                time=self._clock.now(),
                conversation_id=_storable(mark.conversation_id),
                tool_name=_storable(mark.tool_name)[:_LONGEST_NAME],
                input=await self._input(arguments),
                action=decision.action,
                reason=decision.reason,
                advice=decision.advice,
                mode=decision.mode,
                sources=[each.as_json() for each in decision.sources],
                forced=decision.forced,
                outcome="not_run" if decision.action in final else "",
            )
        )

    async def _input(self, arguments: Any) -> str:
        """As JSON of at most some 20,000 characters; what is cut is without its secrets, as the store has them."""
        if not self.with_inputs:
            return "{}"
        try:
            text = json.dumps(arguments, default=str)
            if len(text) <= _LONGEST_INPUT:
                return text
            hidden = await masked_value(self._store, json.loads(text))
            return json.dumps(json.dumps(hidden)[:_LONGEST_INPUT] + "…")
        except Exception as error:  # nobody knows what a host hands over, and how deep it is
            return json.dumps(f"cannot be shown: {type(error).__name__}")

    async def write(self) -> None:
        """What waits, oldest first, as far as the store takes it: one that takes nothing guards all the same."""
        while self._waiting:
            entry = self._waiting.popleft()
            try:
                await self._patience.within(self._store.log_decision(self._workspace, entry))
            except Refused as error:  # it never takes this one
                self._patience.tell("a decision cannot be logged", error)
            except Exception as error:
                self._patience.tell("decisions cannot be logged, and wait", error)
                self._waiting.appendleft(entry)
                return

    async def entry(self, decision: GuardDecision | str | None) -> LoggedDecision | None:
        """That of a decision; a plain allow has none."""
        if decision is None or not (isinstance(decision, str) or decision.sources):
            return None
        await self.write()
        decision_id = decision if isinstance(decision, str) else decision.id
        found = await self._store.decisions(self._workspace, ids=[decision_id], limit=1)
        return found[0] if found else None

    async def replace(self, entry: LoggedDecision) -> None:
        await self._store.log_decision(self._workspace, entry)

    async def newest(self, conversation: str | None, tool: str | None, limit: int) -> list[LoggedDecision]:
        """As they read now: a day after a decision, what became of its call is `unknown`. Raises StoreError."""
        found = await self._store.decisions(self._workspace, conversation=conversation, tool=tool, limit=limit)
        return [as_of(each, self._clock.now()) for each in found]


def _storable(text: str) -> str:
    """A lone surrogate is in no store."""
    return text.encode("utf-8", "replace").decode()


def as_of(decision: LoggedDecision, now: datetime) -> LoggedDecision:
    """A decision as it reads at this time."""
    late = not decision.outcome and now - decision.time > UNKNOWN_AFTER
    return replace(decision, outcome="unknown") if late else decision
