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
from toolmem.rules.words_after import once_offered

log = logging.getLogger("toolmem.session")

OnAsk = Callable[[GuardDecision], bool | Awaitable[bool]]


@dataclass(frozen=True, slots=True)
class Consent:
    """What becomes of a decision to ask. `on_ask` None: nobody can be asked, and the call is not run.

    `hears_user`: a message of the user can let a call run that was stopped, which the reason says then.
    """

    on_ask: OnAsk | None = None
    hears_user: bool = False

    async def settled(self, decision: GuardDecision) -> GuardDecision:
        """The decision after the user was asked, where that is needed. Never raises for what `on_ask` does."""
        if decision.action != "ask" or self.on_ask is None:
            return self._unasked(decision)
        try:
            answer = self.on_ask(decision)
            return _answered(decision, await answer if inspect.isawaitable(answer) else answer)
        except Exception as error:
            return _unanswered(decision, error)

    def settled_now(self, decision: GuardDecision) -> GuardDecision:
        """The same for a synchronous tool. `on_ask` is called in the tool's thread; what it awaits runs in another."""
        if decision.action != "ask" or self.on_ask is None:
            return self._unasked(decision)
        try:
            answer = self.on_ask(decision)
            return _answered(decision, _waited_for(answer) if inspect.isawaitable(answer) else answer)
        except Exception as error:
            return _unanswered(decision, error)

    def _unasked(self, decision: GuardDecision) -> GuardDecision:
        """Where logging is not set up, the warning goes to standard error."""
        if decision.action == "ask":
            log.warning("nobody can be asked here (no on_ask): %s", decision.reason)
        offered = once_offered(decision) if self.hears_user else ""
        return replace(decision, reason=f"{decision.reason} {offered}") if offered else decision


def _answered(decision: GuardDecision, answer: object) -> GuardDecision:
    """Only True is a consent."""
    if answer is True:
        return replace(decision, action="advise" if decision.advice else "allow", reason="")
    return replace(decision, action="deny", reason=_told(decision, "The user was asked and did not agree."))


def _unanswered(decision: GuardDecision, error: Exception) -> GuardDecision:
    log.error("on_ask failed, so that the call is not run: %s", type(error).__name__)
    return replace(decision, action="deny", reason=_told(decision, "The user could not be asked."))


def _told(decision: GuardDecision, outcome: str) -> str:
    asked = [f"{each.text} {each.remedy}".strip() for each in decision.sources if each.effective == "ask"]
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
