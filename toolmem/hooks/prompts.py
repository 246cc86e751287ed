"""Handle what the user types: keep it for quotes, and read demands and replies to the guard."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from json import loads

from msgspec.structs import replace

from toolmem.config.sections import WORKSPACE
from toolmem.errors import StoreError
from toolmem.guard import Guard
from toolmem.guard.guard import MESSAGE_WAIT
from toolmem.guard.pending_demands import PendingDemands
from toolmem.guard.stores import Stores
from toolmem.hooks.agents import Agent
from toolmem.hooks.notes import tools_of
from toolmem.hooks.outputs import last_lines
from toolmem.hooks.protocol import Answer, Event, joined, notice_of
from toolmem.hooks.session_state import Session, SessionState
from toolmem.models.calls import SystemClock
from toolmem.models.protocols import Store
from toolmem.rules.capture import ToolMemoryCaptureHook, ended_since
from toolmem.rules.changes import Actor, request_digest, way_to_agree, what_is_asked
from toolmem.rules.reader.pasted import is_plain, typed
from toolmem.rules.replies import without_ways_out
from toolmem.rules.turn import Captured, Turn, tools_called_here
from toolmem.store.sqlite import SqliteStore
from toolmem.text.display import plain
from toolmem.text.masking import Masker

_SAID = "the user said:\n"


def answer_prompt(
    agent: Agent, stores: Stores, guards: Sequence[Guard], event: Event, state: SessionState
) -> Answer:
    """Store what was typed, and act on it. The user is told what cannot be kept, and why."""
    warnings = stores.warnings
    news = [*stores.moved, *warnings]
    try:
        with stores.main.transaction(MESSAGE_WAIT):
            known = state.read()[0].told
            news = [*stores.moved, *(each for each in warnings if each not in known)]
            if warnings != known:
                state.set_told(warnings)
            pending = stores.pending_demands(event.session)
            answer = _act_on(agent, stores, guards, event, state, pending)
        pending.forget_written()
    except StoreError as error:
        if isinstance(stores.main, SqliteStore):
            stores.main.wait_no_longer()
        turn = Turn(conversation_id=event.session, number=1, tools=tools_of(agent))
        turn.user_message = event.prompt
        answer = Answer(notice=notice_of(stores.pending_demands(event.session).hold(turn, error)))
    if stores.lost and isinstance(stores.main, SqliteStore):
        with suppress(StoreError):
            stores.main.renew_trust_note()  # so that the user is told of its loss once
    notice = joined(answer.notice, notice_of(news))
    is_shown = "prompt" in agent.notice_at  # else the model has to tell the user
    return Answer(context=without_ways_out(notice) if is_shown else notice, notice=notice)


def _act_on(
    agent: Agent,
    stores: Stores,
    guards: Sequence[Guard],
    event: Event,
    state: SessionState,
    pending: PendingDemands,
) -> Answer:
    """Keep the user's message and follow it, once, even if its event comes twice."""
    replies = rejection_replies(agent, event)
    masked = Masker(stores.main.secret_key()).text  # secrets are not stored
    now = SystemClock().now()

    def add(session: Session) -> tuple[Session, list[str]] | None:
        if event.key and event.key in session.events:
            return None
        new = [each for each in replies if masked(each) not in session.rejections]
        session.events += [event.key] if event.key else []
        session.rejections += map(masked, new)
        if event.prompt:
            session.turn += 1
            session.prompts.append(masked(event.prompt))
            session.said_at.append(now)
            for call in session.calls:  # a later call with the same id is another call
                call.rules_stamp = ""
        before = replace(session)
        session.notices = []
        return before, new

    if (added := state.change(add)) is None:
        return Answer()
    session, new_replies = added
    notices = [*session.notices, *pending.write_to_store()]
    stores.mark_guarded(agent.name)
    turn = Turn(conversation_id=event.session, number=session.turn)
    turn.tools = tools_of(agent, tools_called_here(stores.main, WORKSPACE))
    if event.prompt:
        stopped: dict[str, list[str]] = {}  # by the location of a store
        for guard in guards:
            with _failures_told(stores, guard.store, notices):
                is_typed = is_plain(event.prompt.strip("`\"'“” \n"))
                notices.append(guard.user_spoke(event.session, event.prompt, is_typed=is_typed))
                stopped[guard.store.location] = guard.stopped_before(event.session)
        notices += _capture(stores, replace(turn, user_message=event.prompt), stopped)
    for message in new_replies:  # an agent can write to a transcript: its words only restrict
        capture = ToolMemoryCaptureHook(stores.rules(), actor=Actor("program"))
        captured = capture.after_turn(replace(turn, user_message=message), heard=True)
        notices += (f"From the transcript: {line}" for line in captured.told)
    notices += _new_requests(stores, state, session)
    return Answer(notice=notice_of(notices))


def _capture(stores: Stores, turn: Turn, stopped: dict[str, list[str]]) -> list[str]:
    """Make rules of demands, and follow replies such as `undo`. Returns messages for the user."""
    actor = Actor("user", "typed", session=turn.conversation_id)
    is_typed = is_plain(turn.user_message)
    captured = Captured()
    for store in stores.all:
        capture = ToolMemoryCaptureHook(stores.rules(store), actor=actor, may_lift=is_typed)
        turn.stopped_by = stopped.get(store.location, [])
        with _failures_told(stores, store, captured.told):
            is_main = store is stores.main
            captured.add(capture.after_turn(turn) if is_main else capture.follow(turn))
            captured.told += ended_since(stores.rules(store), turn)
    if stores.foreign is not None and captured.kept:
        line = f"That is in {stores.main.location}, as this folder's store is not trusted: it binds"
        captured.told.append(f"{line} in every project")
    for copy in stores.copies.values():
        follow = ToolMemoryCaptureHook(stores.rules(copy), actor=actor, may_lift=is_typed).follow
        for rule in follow(replace(turn)).lifted:
            sentence = plain(rule.rule, 160)
            captured.told.append(
                f"Not lifted: “{sentence}” binds from a copy; restore the store first"
            )
    return captured.told


@contextmanager
def _failures_told(stores: Stores, store: Store, notices: list[str]) -> Iterator[None]:
    """If a further store fails, add a notice and go on; if the main store fails, raise."""
    try:
        yield
    except StoreError as error:
        if store is stores.main:
            raise
        if isinstance(store, SqliteStore):
            store.wait_no_longer()
        notices.append(f"the rules of {store.location} did not follow this message: {error}")


def _new_requests(stores: Stores, state: SessionState, session: Session) -> list[str]:
    """Messages for the user about requests of agents that they have not seen yet."""
    now = stores.rules().local_time()
    new = [
        rule
        for rule in stores.rules().requests()
        if not (request_digest(rule) in session.shown or rule.question_at(now) or rule.is_team)
    ][:3]  # the others at the next message
    if new:
        state.change(lambda session: session.shown.extend(map(request_digest, new)))
    return [
        f"This waits for you: {what_is_asked(rule)}: “{plain(rule.rule, 160)}”. "
        f"To agree: {way_to_agree(rule)}"
        for rule in new
    ]


def rejection_replies(agent: Agent, event: Event) -> list[str]:
    """What the user typed when they rejected calls, oldest first.

    Only Claude Code's recordings hold it, as the result of the rejected call. Results of MCP tools
    are left out, as any server could answer the same words.
    """
    found: list[str] = []
    names: dict[str, str] = {}  # of tools, by call
    for line in last_lines(event.transcript) if agent.rejected_output else ():
        if "tool_use" not in line and agent.rejected_output not in line:
            continue
        with suppress(ValueError, KeyError, TypeError, AttributeError):
            for block in loads(line)["message"]["content"]:
                if block["type"] == "tool_use":
                    names[block["id"]] = block["name"]
                elif block["type"] == "tool_result" and block.get("is_error") is True:
                    name = names.get(block["tool_use_id"], "mcp__")
                    text = block["content"]
                    if text.startswith(agent.rejected_output) and not name.startswith("mcp__"):
                        found.append(typed(text.partition(_SAID)[2]))
    return [each for each in found if each]
