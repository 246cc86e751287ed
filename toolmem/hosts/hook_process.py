"""One event of an agent, from its standard input to what it is answered. Never in the agent's way.

    python -P -m toolmem.hosts claude-code [--store FILE] [--project DIR] [--on-error open|closed] [--config FILE]

It ends with exit code 0 and says JSON or nothing, whatever happens: trouble of our own is a line in `hooks.log`, and
denies a call only where the hook was installed so (`closed`).
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from toolmem.hosts.call_claims import answered_before, claim, noted_answer, noted_before, with_record_id
from toolmem.hosts.events import HookAnswer, HookEvent
from toolmem.hosts.host import HOSTS, Host, host_of
from toolmem.late import before_logging

if TYPE_CHECKING:
    from toolmem.hosts.acting import Acted, Acting
    from toolmem.hosts.event_stores import EventStores
    from toolmem.hosts.receipts import Receipts

MOST_BYTES = 64 * 1024 * 1024  # of one payload
SAME_MOMENT = 2.0  # seconds in which one event that bears no name of its own is told by two installs
_CLOSED = "toolmem: not run. This call could not be checked, and toolmem is installed to stop what it cannot check"


class HookOptions(NamedTuple):
    """What the installed command line says."""

    host: str
    store: str = ""
    project: str = ""
    on_error: str = "open"
    config: str = ""  # by which a session's calls are judged when it has ended
    unknown: tuple[str, ...] = ()


def options_of(arguments: Sequence[str]) -> HookOptions:
    """Nothing is refused: an agent's settings may be of another version."""
    given = {"--store": "", "--project": "", "--on-error": "open", "--config": ""}
    names: list[str] = []
    unknown: list[str] = []
    words = iter(arguments)
    for word in words:
        name, equals, value = word.partition("=")
        if name in given:
            given[name] = value if equals else next(words, "")
        else:
            (unknown if word.startswith("-") else names).append(word)
    closed = given["--on-error"] == "closed"
    unknown += names[1:]
    return HookOptions(
        names[0] if names else "",
        given["--store"],
        given["--project"],
        "closed" if closed else "open",
        given["--config"],
        tuple(unknown),
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Answer the event on standard input, and end the process with code 0."""
    try:
        given = sys.argv[1:] if arguments is None else arguments
        _log_warnings(options_of(given).host)
        answer = answered(given, sys.stdin.buffer, os.environ)
        sys.stdout.buffer.write(answer)
        sys.stdout.buffer.flush()
    except BaseException as error:
        log("", error)
    finally:
        os._exit(0)  # nothing is left to do that an agent should wait for


def answered(arguments: Sequence[str], stdin: BinaryIO, environment: Mapping[str, str]) -> bytes:
    """What is written to standard output; b"" says nothing. Raises nothing."""
    options = options_of(arguments)
    raw, event, host = b"", None, None
    try:
        if options.unknown:
            log(options.host, ValueError(f"passed over: {' '.join(options.unknown)}"))
        if options.host not in HOSTS:
            raise ValueError(f"expected one of {', '.join(HOSTS)}; got {options.host!r}")
        host = host_of(options.host)
        raw = stdin.read(MOST_BYTES + 1)
        event = host.read(_payload(raw), environment)
        if event is None:
            return b""
        answer = _answer(host, event, options, environment)
        if answer.action == "ask":
            from toolmem.hosts.unasked import say_where_unasked

            say_where_unasked(host, event, answer)
        return _json(host.write(event, answer))
    except BaseException as error:
        log(options.host, error, event)
        return _of_trouble(host, event, raw, options, environment)


def _payload(raw: bytes) -> Mapping[str, Any]:
    if len(raw) > MOST_BYTES:
        raise ValueError(f"a payload of more than {MOST_BYTES:,} bytes")
    from toolmem.hosts.whole_payloads import read_payload

    payload = read_payload(raw.decode("utf-8-sig", "replace"))
    if not isinstance(payload, Mapping):
        raise ValueError(f"expected an object, got {type(payload).__name__}")
    return payload


def _json(answer: Mapping[str, Any]) -> bytes:
    return json.dumps(answer).encode() if answer else b""


def _of_trouble(
    host: Host | None, event: HookEvent | None, raw: bytes, options: HookOptions, environment: Mapping[str, str]
) -> bytes:
    """Nothing, or a denial where the user chose that."""
    if host is None or options.on_error != "closed":
        return b""
    try:
        event = event or _named_event(host, raw, environment)
        if event is None or event.kind != "before_call":
            return b""
        return _json(host.write(event, HookAnswer(action="deny", reason=f"{_CLOSED} (--on-error closed).")))
    except BaseException as error:
        log(options.host, error)
        return b""


def _named_event(host: Host, raw: bytes, environment: Mapping[str, str]) -> HookEvent | None:
    """The event of a payload that cannot be read, by its name alone."""
    import re

    named = re.search(rb'"(hook_event_name|hookName|event)"\s{0,9}:\s{0,9}"([\w.]{1,60})"', raw)
    if named is None:
        return None
    return host.read({named[1].decode(): named[2].decode(), "tool_name": "unknown", "tool": "unknown"}, environment)


# Until the process ends: to close a file of SQLite is to bring its log home and wait for the disk, three times as long
# as all else that is done with it. The log is as durable, and every thousand pages of it are brought home anyway.
_left_open: list[Receipts] = []


def _answer(host: Host, event: HookEvent, options: HookOptions, environment: Mapping[str, str]) -> HookAnswer:
    from toolmem.hosts.receipts import Receipts

    receipts = Receipts()
    _left_open[:] = [receipts]
    try:
        answer = claimed(host, event, options, environment, receipts)
        return _with_trouble(answer, host, event, receipts) if receipts.trouble else answer
    finally:
        if receipts.trouble:
            log(options.host, OSError(f"receipts: {receipts.trouble}"), event)


def _with_trouble(answer: HookAnswer, host: Host, event: HookEvent, receipts: Receipts) -> HookAnswer:
    """The user is told of a state folder that cannot be used, as the log lies in it."""
    from toolmem.hosts.state_trouble import notice_of_trouble

    return _with_notice(answer, notice_of_trouble(host, event, receipts))


def _with_notice(answer: HookAnswer, told: str) -> HookAnswer:
    if not told:
        return answer
    from toolmem.late_dataclasses import replace

    return replace(answer, notice="\n".join(filter(None, (answer.notice, told))))


def claimed(
    host: Host, event: HookEvent, options: HookOptions, environment: Mapping[str, str], receipts: Receipts
) -> HookAnswer:
    """The answer of the first that is told of the event. Raises what its work raises, with a receipt of it."""
    from toolmem.hosts.event_stores import store_place

    known = receipts.note_session(
        event.session_id, host=host.name, cwd=event.cwd, project=event.project, transcript=event.transcript
    )
    _note_agent(event, receipts)
    folder = options.project or event.project or known.project or known.cwd or event.cwd
    place = store_place(folder, options.store)
    key, is_first = claim(host, event, receipts, place, SAME_MOMENT)
    first = None if is_first else answered_before(event, key, receipts)
    if first is not None and event.kind != "before_call":
        return HookAnswer()  # another install answers
    action, problem, note = "", "", None
    try:
        work = _Work(host, options, environment, receipts, folder)
        answer, note = work.done(event, key, noted_answer(first))
        is_note = answer.action in {"deny", "ask"} and note is not None and "noted" in note
        action = "noted" if is_note else answer.action  # no decision on a call
        return answer
    except BaseException as error:
        problem = type(error).__name__
        raise
    finally:
        receipts.end(event.session_id, event.kind, key, action=action, error=problem, note=note)


def _with_cost(
    note: Mapping[str, Any] | None, host: Host, event: HookEvent, answer: HookAnswer
) -> Mapping[str, Any] | None:
    """The note, with how many tokens were put before the model, for `hook status`; calls are not counted."""
    from toolmem.hosts.receipts import COSTS

    if not answer.context or event.kind not in COSTS or event.kind not in host.context_at:
        return note
    from toolmem.providers.tokenizer import estimated_tokens

    return {**(note or {}), "tokens": estimated_tokens(answer.context)}


def _note_agent(event: HookEvent, receipts: Receipts) -> None:
    """The agent's process, so that what is started below it is known for what it is."""
    if event.kind not in {"session_start", "prompt"} and receipts.knows_agent(event.session_id):
        return
    from toolmem.hosts.ancestry import agent_of_hook

    agent = agent_of_hook()
    if agent.process is not None and not agent.is_orphan:
        receipts.note_agent(event.session_id, agent.process.pid, agent.process.began)


class _Work(NamedTuple):
    """What an event is answered with."""

    host: Host
    options: HookOptions
    environment: Mapping[str, str]
    receipts: Receipts
    folder: str

    def done(
        self, event: HookEvent, key: str, first: Mapping[str, Any] | None
    ) -> tuple[HookAnswer, Mapping[str, Any] | None]:
        """The answer, and what is noted of it. `first`: what another process noted of the same event."""
        if event.kind == "compaction":
            return HookAnswer(), None
        if event.kind == "session_end":
            from toolmem.hosts.detached import start_catching_up

            self.receipts.session_ended(event.session_id)
            start_catching_up()
            return HookAnswer(), None
        if event.kind == "turn_end":
            return self._question(event), None
        noted = first
        if event.kind == "after_call":
            noted = noted_before(self.host, event, key, self.receipts)
            event = with_record_id(event, key, self.receipts)
        answer, note = self._acted(event, noted)
        told = _with_switch(answer, self.host, self.environment) if event.kind == "session_start" else answer
        return told, _with_cost(note, self.host, event, told)

    def _question(self, event: HookEvent) -> HookAnswer:
        """What the model is asked at a turn's end."""
        if not _guard_on(self.environment):
            return HookAnswer()
        from toolmem.hosts.turn_end import question

        return question(event, self.receipts, self.folder, self.options.store)

    def _acted(self, event: HookEvent, noted: Mapping[str, Any] | None) -> Acted:
        from toolmem.hosts.event_stores import open_stores, with_kept_rules
        from toolmem.hosts.state_trouble import notice_of_stores

        stores = open_stores(self.folder, self.options.store)  # not closed: the process ends, and a later one moves
        if stores.trouble:  # their logs
            log(self.host.name, OSError(stores.trouble), event)
        acted, used = with_kept_rules(
            stores,
            lambda found: self._acting(found).act(event, noted),
            lambda damage: log(self.host.name, damage, event),
        )
        return acted._replace(answer=_with_notice(acted.answer, notice_of_stores(self.host, event, used)))

    def _acting(self, stores: EventStores) -> Acting:
        from toolmem.hosts.acting import Acting

        if stores.main is None:  # what is demanded of the session, and what protects toolmem itself, binds all the same
            from toolmem.engine import StoreFile

            stores = stores._replace(main=StoreFile(":memory:"))
        guard_on = _guard_on(self.environment)
        return Acting(self.host, stores, self.receipts, on_error=self.options.on_error, guard_on=guard_on)


def _guard_on(environment: Mapping[str, str]) -> bool:
    if not environment.get("TOOLMEM_GUARD", "").strip():
        return True
    from toolmem.config.environment import guard_switched_off

    return not guard_switched_off(environment)


def _with_switch(answer: HookAnswer, host: Host, environment: Mapping[str, str]) -> HookAnswer:
    """A word that is no switch is told when the session begins."""
    if not environment.get("TOOLMEM_GUARD", "").strip():
        return answer
    from toolmem.config.environment import unknown_guard_switch

    told = unknown_guard_switch(environment)
    if not told:
        return answer
    log(host.name, ValueError(told))
    return _with_notice(answer, f"toolmem: {told}")


# ---------------------------------------------------------------- the log


def log(host: str, error: BaseException, event: HookEvent | None = None) -> None:
    """A line in `hooks.log`. Never raises."""
    try:
        from toolmem.hosts.hook_log import write_line

        where = f"{event.name} {event.session_id}" if event is not None else ""
        write_line(f"{host} {where} {type(error).__name__}: {error}")
    except BaseException:
        return


def _log_warnings(host: str) -> None:
    """What toolmem warns of goes into the log and not to standard error, which some agents show."""

    def take() -> None:
        from toolmem.hosts.hook_log import take_warnings

        take_warnings(host)

    before_logging(take)
