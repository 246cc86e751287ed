"""Asking the user about a call that a rule lets run only with their consent."""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from dataclasses import dataclass, replace

from toolmem.guard.decision import STOPPED, GuardDecision

log = logging.getLogger("toolmem.session")

OnAsk = Callable[[GuardDecision], bool | Awaitable[bool]]


@dataclass(frozen=True, slots=True)
class Consent:
    """What becomes of a decision to ask. `on_ask` None: nobody can be asked, and the call is not run."""

    on_ask: OnAsk | None = None

    async def settled(self, decision: GuardDecision) -> GuardDecision:
        """The decision after the user was asked, where that is needed. Never raises for what `on_ask` does."""
        if decision.action != "ask" or self.on_ask is None:
            return decision
        try:
            answer = self.on_ask(decision)
            return _answered(decision, await answer if inspect.isawaitable(answer) else answer)
        except Exception as error:
            return _unanswered(decision, error)

    def settled_now(self, decision: GuardDecision) -> GuardDecision:
        """The same for a synchronous tool. `on_ask` is called in the tool's thread; what it awaits runs in another."""
        if decision.action != "ask" or self.on_ask is None:
            return decision
        try:
            answer = self.on_ask(decision)
            return _answered(decision, _waited_for(answer) if inspect.isawaitable(answer) else answer)
        except Exception as error:
            return _unanswered(decision, error)


def _answered(decision: GuardDecision, answer: object) -> GuardDecision:
    """Only True is a consent."""
    if answer is True:
        return replace(decision, action="advise" if decision.advice else "allow", reason="")
    return replace(decision, action="deny", reason=_told(decision, "The user was asked and did not agree."))


def _unanswered(decision: GuardDecision, error: Exception) -> GuardDecision:
    log.error("on_ask failed, so that the call is not run: %s", type(error).__name__)
    return replace(decision, action="deny", reason=_told(decision, "The user could not be asked."))


def _told(decision: GuardDecision, outcome: str) -> str:
    asked = [each.text for each in decision.sources if each.effective == "ask"]
    return " ".join([f"{STOPPED}. {outcome}", *asked[:1]])


def _waited_for(answer: Awaitable[bool]) -> bool:
    """Run on a loop of its own in a thread of its own: this thread's may be running."""
    done: Future[bool] = Future()

    async def awaited() -> bool:
        return await answer

    def run() -> None:
        try:
            done.set_result(asyncio.run(awaited()))
        except BaseException as error:
            done.set_exception(error)

    threading.Thread(target=run, name="toolmem on_ask", daemon=True).start()
    return done.result()
