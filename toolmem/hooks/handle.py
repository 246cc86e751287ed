"""Handle an event of an agent: check a call, record how it ended, answer a prompt or a start."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from itertools import count
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from toolmem.config.sections import WORKSPACE
from toolmem.errors import StoreError, ToolMemError
from toolmem.guard import Guard
from toolmem.guard.conversation import PlannedCall
from toolmem.guard.decision import plain_allow, strictest, without_consent
from toolmem.guard.guard import WRITE_WAIT
from toolmem.guard.repeats import call_digest
from toolmem.guard.rule_copies import pending_file
from toolmem.guard.stores import MAX_OUTPUT, Stores
from toolmem.hooks.agents import Agent
from toolmem.hooks.install_notes import installed
from toolmem.hooks.notes import NoteCommand, answer_note, note_in
from toolmem.hooks.protocol import Answer, Event, joined, notice_of
from toolmem.hooks.session_state import Session, SessionCall, SessionState
from toolmem.models.calls import ToolCallResult, hook_call_id
from toolmem.models.decisions import Decision
from toolmem.store.sqlite import SqliteStore
from toolmem.text.display import bounded
from toolmem.text.forms import OFF_WORDS
from toolmem.view.view import CallView

log = logging.getLogger("toolmem.hooks")
Decided = tuple[Decision, Callable[[], None] | None]  # by one guard, and what writes it


def guard_is_on(environment: Mapping[str, str]) -> bool:
    """Whether calls are checked: TOOLMEM_GUARD=off stops that."""
    return environment.get("TOOLMEM_GUARD", "").strip().lower() not in OFF_WORDS


class Hook(Struct, kw_only=True):
    """Handles the events of one agent."""

    agent: Agent
    stores: Stores
    on_error: Literal["open", "closed"] = "open"
    guard_is_on: bool = True
    config: str = ""  # settings by which ended sessions are judged; "": the defaults

    def handle(self, event: Event) -> Answer:
        """Answer an event, and update the copies of rules. Raises StoreError."""
        reaches_user = event.kind in ("session_start", "prompt")
        state = SessionState(self.stores.main, event.session)
        if os.path.exists(pending_file(self.stores.main.location, event.session)):
            self._use_pending_demands(event, state)
        answer = self._answer(event, state)
        if reaches_user and event.kind in self.agent.notice_at:
            from toolmem.hooks.team_rules import follow_team_file

            # After the prompt was answered: `lift` means the rules that were listed before it.
            found = follow_team_file(self.stores, event)
            answer.notice = joined(answer.notice, found.notice)
            answer.context = joined(answer.context, found.context, by="\n\n")
        self.stores.rules_changed |= event.kind not in ("before_call", "after_call")
        if self.stores.moved and not reaches_user:
            with suppress(StoreError), self.stores.main.transaction(WRITE_WAIT):
                state.notify(self.stores.moved)
        problems = self.stores.keep_copies()
        if reaches_user:
            answer.notice = joined(answer.notice, *problems)
        return answer

    def _use_pending_demands(self, event: Event, state: SessionState) -> None:
        """Check calls also by demands that are not yet stored; after a call, store them."""
        pending = self.stores.pending_demands(event.session)
        if event.kind != "prompt":  # a prompt stores them first
            self.stores.copies[str(pending.file)] = pending.rules.store
        if event.kind == "after_call":
            with suppress(StoreError):
                with self.stores.main.transaction(WRITE_WAIT):
                    state.notify(pending.write_to_store())
                pending.forget_written()

    def _answer(self, event: Event, state: SessionState) -> Answer:
        # Modules that a check of a call does not need are imported where they are used.
        if event.kind == "before_call":
            return self._before(event, state)
        if event.kind == "after_call":
            return self._after(event, state)
        with suppress(StoreError):
            self._close_questions(event, state, state.read()[0])
        if event.kind == "prompt":
            from toolmem.hooks.prompts import answer_prompt

            return answer_prompt(self.agent, self.stores, self.guards(), event, state)
        from toolmem.hooks.sessions import answer_start, start_summary

        if event.kind == "session_end":
            start_summary(self.stores.main.location, self.config)
            return Answer()
        return answer_start(self.agent, self.stores, self.guards(), event)

    def guards(self) -> list[Guard]:
        """Return a guard for each store; none if the guard is switched off."""
        if not self.guard_is_on:
            return []
        settings = [path for install in installed() for path in install.files]
        for folder in (self.stores.project, os.path.expanduser("~")):  # settings switch hooks off
            names = {*self.agent.files, *self.agent.user_files}
            settings += [os.path.join(folder, name) for name in names]
        return self.stores.guards(self.on_error, protected=settings)

    def _before(self, event: Event, state: SessionState) -> Answer:
        session, stamp = self._read_session(state)
        if note := note_in(self.agent, event):
            return self._answer_note(event, note, session)
        digest = call_digest(event.tool, event.input)
        earlier = session.open_call(event.key, digest)
        if earlier and (earlier.key, earlier.digest) != (event.key, digest):
            earlier = None
        if earlier and event.key and earlier.rules_stamp == stamp:  # the event came twice
            return _answer(earlier.decisions)
        asks_user = self._close_questions(event, state, session) and event.asks_user
        decided = self._decide(event, asks_user)
        if sum(not decision.may_run for decision, _ in decided) > 1:
            decided = self._decide(event, asks_user=False)  # one yes would answer several questions
        decisions = [decision for decision, _ in decided]
        answer = _answer(decisions)
        began = time.time()

        def add(session: Session) -> None:
            if earlier is not None:
                session.calls = [c for c in session.calls if c.record_id != earlier.record_id]
            record_id = _record_id(session, event, digest)
            session.calls.append(SessionCall(event.key, digest, record_id, decisions, stamp, began))
            if answer.notice and "before_call" not in self.agent.notice_at:
                session.notices.append(answer.notice)

        has_nothing_to_write = all(remember is None for _, remember in decided)
        if has_nothing_to_write and self.agent.times_calls:
            return answer
        problem = self._write(decided, state, add)
        if answer.action in ("ask", "deny"):
            answer.notice = joined(answer.notice, problem)
        return answer

    def _read_session(self, state: SessionState) -> tuple[Session, str]:
        """Read the session and the stamps of all stores' rules; empty if that fails."""
        session = Session()
        stamp = ""
        try:
            session, stamp = state.read()
            for store in self.stores.further:
                stamp += store.get_many(WORKSPACE, []).rules_stamp
        except StoreError as error:  # each guard decides what follows from that
            log.warning("the session cannot be read: %s", error)
        return session, stamp

    def _answer_note(self, event: Event, note: NoteCommand, session: Session) -> Answer:
        from toolmem.rules.turn import Turn

        self.stores.rules_changed = True
        turn = Turn(conversation_id=event.session, number=session.turn)
        for guard in self.guards()[:1]:
            turn.stopped_by = guard.stopped_before(event.session)
        return answer_note(self.stores.rules(), self.agent, note, session, event, turn)

    def _write(
        self, decided: Sequence[Decided], state: SessionState, add_call: Callable[[Session], None]
    ) -> str:
        """Write the decisions and the call. Returns "", or a message to the user on a failure."""
        main, *further = [remember for _, remember in decided] or [None]
        try:
            with self.stores.main.transaction(WRITE_WAIT):
                if main is not None:
                    main()
                state.change(add_call)
            for remember, store in zip(further, self.stores.further, strict=False):
                if remember is not None:
                    with store.transaction(WRITE_WAIT):
                        remember()
        except StoreError as error:
            log.warning("a decision is not kept: %s", error)
            return f"toolmem: this decision holds, but nothing can be kept of it: {error}"
        return ""

    def _decide(self, event: Event, asks_user: bool) -> list[Decided]:
        """Return the decision of each guard on a call."""
        view = CallView(event.tool, event.input, None, event.cwd)
        asking = self.stores.asking_guards() if self.guard_is_on else []

        def decision_of(guard: Guard) -> Decided:
            call = PlannedCall(view, event.input, event.session, force=None, asks_user=asks_user)
            call.call_id = event.key
            return guard.decide(call)

        return [decision_of(guard) for guard in (*self.guards(), *asking)]

    def _close_questions(self, event: Event, state: SessionState, session: Session) -> bool:
        """Take questions as answered with no if their call did not run. False: a store failed."""
        digest = call_digest(event.tool, event.input)
        calls = [
            c for c in session.calls if c.is_question and (c.key, c.digest) != (event.key, digest)
        ]
        if not calls:
            return True
        ids = {call.record_id for call in calls}

        def close(session: Session) -> None:
            for call in session.calls:
                call.closed |= call.record_id in ids

        try:
            state.change(close)
            for call in calls:
                for guard, decision in zip(self.guards(), call.decisions, strict=False):
                    guard.answered(decision, False)
        except ToolMemError as error:
            log.warning("a question cannot be closed: %s", error)
            if isinstance(self.stores.main, SqliteStore):
                self.stores.main.wait_no_longer()
            return False
        return True

    def _after(self, event: Event, state: SessionState) -> Answer:
        digest = call_digest(event.tool, event.input)

        def end(session: Session) -> SessionCall | None:
            call = session.open_call(event.key, digest, by_input=not self.agent.call_ids)
            ended = ((each.key, each.digest) for each in session.calls if each.ended)
            if call and call.digest != digest and any(not d.may_run for d in call.decisions):
                call = None  # it has not run: this is another call with its id
            if call is None and (event.key, digest) in ended:  # the event came twice
                return None
            if call is None:  # no hook ran before this call
                call = SessionCall(event.key, digest, _record_id(session, event, digest))
                session.calls.append(call)
            before = replace(call)
            call.ended = True
            call.decisions = []
            return before

        call = state.change(end)
        if call is None or event.interrupted:
            return Answer()
        actions = {decision.action for decision in call.decisions}
        if "deny" in actions or ("ask" in actions and not self.agent.asks):
            return Answer()  # the call was stopped
        session, _ = state.read()
        record = self._record(event, call, session)
        guards = self.guards()
        allowed = plain_allow(event.tool, event.session, datetime.now(UTC))
        decisions = call.decisions or [allowed] * len(guards)  # an allowed call is not written
        self.stores.keep_call(record, event.input, guards, decisions)
        messages: list[str] = []
        for guard, decision in zip(guards, call.decisions, strict=False):
            if decision.action == "ask":
                is_persons = event.asks_user and not call.closed
                known = decision if is_persons else without_consent(decision)
                messages += guard.answered(known, True).told
        if messages and "after_call" not in self.agent.notice_at:
            state.notify(messages)
        return Answer(notice=notice_of(messages))

    def _record(self, event: Event, call: SessionCall, session: Session) -> ToolCallResult:
        arguments: Any = event.input if isinstance(event.input, dict | list | str) else {}
        seconds = event.seconds
        if seconds is None and call.began:
            seconds = max(0.0, time.time() - call.began)
        metadata = {"conversation_id": event.session, "agent": self.agent.name}
        metadata |= {"server": event.server} if event.server else {}
        return ToolCallResult(
            tool_name=event.tool,
            create_time=datetime.now(UTC),
            input=arguments,
            output=bounded(event.output, MAX_OUTPUT),
            success=None if event.failed is None else not event.failed,
            time_cost=seconds,
            context=session.prompts[-1] if session.prompts else "",
            id=call.record_id,
            metadata=metadata,
        )


def _answer(decisions: list[Decision]) -> Answer:
    if not decisions:
        return Answer()
    decision = strictest(decisions)
    return Answer(
        action=decision.action,
        reason=decision.reason,
        context=decision.advice,
        notice=decision.notice and f"toolmem: {decision.notice}",
    )


def _record_id(session: Session, event: Event, digest: str) -> str:
    """An id for the stored call. Models use `call_0` again, so a number makes it unique."""
    taken = {call.record_id for call in session.calls}
    ids = (hook_call_id(event.session, event.key or digest, number) for number in count(1))
    return next(each for each in ids if each not in taken)
