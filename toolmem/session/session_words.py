"""The user's few words after a note or a denial, as a session hears them: undo, yes, this once, lift k7qm, ..."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from toolmem.errors import ToolMemError
from toolmem.rules.capture.hook import SessionRule
from toolmem.rules.evidence import typed_here
from toolmem.rules.rule_store import RuleStore
from toolmem.rules.words_after import (
    Before,
    Word,
    act_on,
    code_to_lift,
    has_chinese,
    kept_of,
    lift_by_code,
    shown_call,
    told,
    told_of,
    word_after,
)
from toolmem.session.session_calls import SessionCalls

if TYPE_CHECKING:
    from toolmem.app import ToolMemApp
    from toolmem.light_models import ToolMemoryRule
    from toolmem.protocols import MemoryStore

log = logging.getLogger("toolmem.session")

_SAID = "toolmem, on what the user just said; it binds from now on:"


class SessionWords:
    """Acts on the words of one session's user at once. `told`: what came of the message being answered, in lines."""

    def __init__(
        self, app: ToolMemApp, rules: RuleStore, session_id: str, calls: SessionCalls, *, guest: bool = False
    ) -> None:
        self._app = app
        self._guest = guest  # whose words are on this session alone
        self._rules = rules
        self._session = session_id
        self._calls = calls
        self._now = 0, rules.clock.now()  # the number of the newest message, and when it came
        self._before = self._now  # of the one before it
        self._message = ""
        self._fresh: list[SessionRule] = []  # demands of the session that it made
        self.told: list[str] = []

    def on_message(self, message: str, turn: int, demands: list[SessionRule]) -> list[SessionRule]:
        """The demands of the session that are left. `turn`: of the message, from 1; told twice, it acts once."""
        if (turn, message) == (self._now[0], self._message):
            return demands
        if turn != self._now[0]:
            self._before, self._now = self._now, (turn, self._rules.clock.now())
        self._message, self.told = message, []
        word = word_after(message)
        try:
            if word == "once":
                self._let_through(message)
            elif word:
                return self._act(word, message, demands)
            elif code := code_to_lift(message):
                self._lift(code, message)
        except ToolMemError as error:
            log.error("the user's word was not followed: %s", error)
            self.told = [f"Not done: {error}"]
        return demands

    def answered(self, demands: Sequence[SessionRule], before: Sequence[SessionRule]) -> None:
        """The turn is over: which demands hold in the session now, and which did before it."""
        self._fresh = [each for each in demands if each not in before]

    @property
    def for_model(self) -> str:
        """What it is told; "" for nothing."""
        return "\n".join([_SAID, *(f"- {line}" for line in self.told)]) if self.told else ""

    def _lift(self, code: str, message: str) -> None:
        async def lifted(store: MemoryStore) -> list[ToolMemoryRule]:
            rules = self._rules.over(store).as_told_by(typed_here(message, self._session))
            return await lift_by_code(rules, code, self._session if self._guest else "")

        self.told = told("lifted", self._app.beside.call(lifted), chinese=has_chinese(message))

    def _act(self, word: Word, message: str, demands: list[SessionRule]) -> list[SessionRule]:
        before, chinese = Before(self._session, *self._before), has_chinese(message)
        evidence = typed_here(message, self._session)

        async def acted(store: MemoryStore) -> list[str]:
            rules = self._rules.over(store).as_told_by(evidence)
            return await act_on(word, rules, await kept_of(rules, before), before, chinese=chinese)

        self.told = self._app.beside.call(acted)
        if word == "always":  # what the reader of demands heard for the session, it keeps by itself
            return demands
        here = [each.rule for each in self._fresh if each in demands]
        self.told += told("undo" if word == "undo" else "already", here, chinese=chinese)
        return [each for each in demands if each not in self._fresh] if word == "undo" else demands

    def _let_through(self, message: str) -> None:
        stopped = next((each for each in reversed(self._calls.recorder.decisions) if each.decision.stops), None)
        kinds = {each.kind for each in stopped.decision.sources} if stopped is not None else set()
        if stopped is None or not kinds & {"rule", "self"}:
            return
        shown = shown_call(stopped.tool_name, stopped.input)
        if "self" in kinds:
            self.told = [told_of("own", message, shown)]
            return
        self._calls.checks.once.allow(stopped)
        self.told = [told_of("once", message, shown)]
