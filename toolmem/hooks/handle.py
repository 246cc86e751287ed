"""What is done for each kind of event, and what it is answered."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from itertools import count
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from toolmem.guard import Guard
from toolmem.guard.decision import strictest
from toolmem.guard.stores import WORKSPACE, Stores
from toolmem.hooks.agents import Agent
from toolmem.hooks.ledger import BegunCall, Ledger, Session, digest_of
from toolmem.hooks.notes import answer_note, note_in
from toolmem.hooks.protocol import Answer, Event
from toolmem.hooks.state import installed
from toolmem.models.calls import ToolCallResult
from toolmem.models.decisions import Decision
from toolmem.text.display import bounded

MAX_OUTPUT = 100_000  # characters of an output that are kept
KEPT_CALLS = 100  # of a tool


class Hook(Struct, kw_only=True):
    """The hook of one agent, at work on one event."""

    agent: Agent
    stores: Stores
    on_error: Literal["open", "closed"] = "open"
    guard_is_on: bool = True
    config: str = ""  # by which a session's calls are judged

    def handle(self, event: Event) -> Answer:
        """Raises StoreError."""
        ledger = Ledger(self.stores.main, event.session)
        match event.kind:
            case "before_call":
                return self._before(event, ledger)
            case "after_call":
                self._after(event, ledger)
            case "prompt":
                from toolmem.hooks.prompts import hear

                return hear(self.agent, self.stores, self.guards(), event, ledger)
            case "session_end":
                from toolmem.hooks.start import start

                start(self.stores.main.location, self.config)
            case _:
                from toolmem.hooks.start import begin

                return begin(self.agent, self.stores, event, ledger)
        return Answer()

    def guards(self) -> list[Guard]:
        """One for each store: the user's own rules bind in every project."""
        if not self.guard_is_on:
            return []
        settings = [path for install in installed() for path in install.files]
        return self.stores.guards(self.on_error, protected=settings)

    # ------------------------------------------------------------ around a call

    def _before(self, event: Event, ledger: Ledger) -> Answer:
        session, stamp = ledger.read()
        if note := note_in(self.agent, event):
            from toolmem.hooks.prompts import said_at_rejected
            from toolmem.rules.turn import Turn

            said = session.prompts + said_at_rejected(self.agent, event)
            turn = Turn(session_id=event.session, number=session.turn)
            return answer_note(self.stores.rules(), self.agent, note, said, turn)
        digest = digest_of(event.tool, event.input)
        stamp += "".join(s.get_many(WORKSPACE, []).rules_stamp for s in self.stores.further)
        known = session.begun(event.key, digest)
        if known and (known.key, known.digest) != (event.key, digest):
            known = None
        if known and known.rules_stamp == stamp:  # told twice
            return _answer(known.decisions)
        decisions = [
            guard.before(event.tool, event.input, conversation=event.session, folder=event.cwd)
            for guard in self.guards()
        ]
        began = time.time()

        def begin(held: Session) -> None:
            if known is not None:
                held.calls = [call for call in held.calls if call.record_id != known.record_id]
            record_id = _record_id(held, event, digest)
            held.calls.append(BegunCall(event.key, digest, record_id, decisions, stamp, began))

        ledger.change(begin)
        return _answer(decisions)

    def _after(self, event: Event, ledger: Ledger) -> None:
        digest = digest_of(event.tool, event.input)

        def end(held: Session) -> BegunCall | None:
            call = held.begun(event.key, digest, by_input=not self.agent.call_ids)
            over = ((each.key, each.digest) for each in held.calls if each.ended)
            if call is None and (event.key, digest) in over:  # told twice
                return None
            if call is None:  # its beginning was not seen
                call = BegunCall(event.key, digest, _record_id(held, event, digest))
                held.calls.append(call)
            known = replace(call)
            call.ended, call.decisions = True, []
            return known

        call = ledger.change(end)
        if call is None or event.interrupted:
            return
        actions = {decision.action for decision in call.decisions}
        if "deny" in actions or ("ask" in actions and not self.agent.asks):
            return  # it has not run; one that the user agreed to has
        session, _ = ledger.read()
        kept = self._call_of(event, call, session)
        self.stores.main.append_calls(WORKSPACE, [kept], KEPT_CALLS)
        for guard, decision in zip(self.guards(), call.decisions, strict=False):
            guard.after(
                decision,
                event.input,
                output=kept.output,
                failed=event.failed,
                call_id=call.record_id,
            )

    def _call_of(self, event: Event, call: BegunCall, session: Session) -> ToolCallResult:
        given: Any = event.input if isinstance(event.input, dict | list | str) else {}
        seconds = event.seconds
        if seconds is None and call.began:
            seconds = max(0.0, time.time() - call.began)
        about = {"conversation_id": event.session, "agent": self.agent.name}
        about |= {"server": event.server} if event.server else {}
        return ToolCallResult(
            tool_name=event.tool,
            create_time=datetime.now(UTC),
            input=given,
            output=bounded(event.output, MAX_OUTPUT),
            success=None if event.failed is None else not event.failed,
            time_cost=seconds,
            context=session.prompts[-1] if session.prompts else "",
            id=call.record_id,
            metadata=about,
        )


def _answer(decisions: list[Decision]) -> Answer:
    if not decisions:
        return Answer()
    decision = strictest(decisions)
    return Answer(action=decision.action, reason=decision.reason, context=decision.advice)


def _record_id(session: Session, event: Event, digest: str) -> str:
    """Models use `call_0` again: another record, under another id."""
    is_unique = event.key.startswith("toolu_")
    base = event.key if is_unique else f"{event.session}/{event.key or digest}"
    taken = {call.record_id for call in session.calls}
    ids = (f"{base}#{number}" if number > 1 else base for number in count(1))
    return next(each for each in ids if each not in taken)
