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

from toolmem.hosts.events import HookAnswer, HookEvent
from toolmem.hosts.host import HOSTS, Host, host_of
from toolmem.late import before_logging

if TYPE_CHECKING:
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
        return _json(host.write(event, _answer(host, event, options, environment)))
    except BaseException as error:
        log(options.host, error, event)
        return _of_trouble(host, event, raw, options, environment)


def _payload(raw: bytes) -> Mapping[str, Any]:
    if len(raw) > MOST_BYTES:
        raise ValueError(f"a payload of more than {MOST_BYTES:,} bytes")
    payload = json.loads(raw.decode("utf-8-sig", "replace"))
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
        return claimed(host, event, options, environment, receipts)
    finally:
        if receipts.trouble:
            log(options.host, OSError(f"receipts: {receipts.trouble}"), event)


def claimed(
    host: Host, event: HookEvent, options: HookOptions, environment: Mapping[str, str], receipts: Receipts
) -> HookAnswer:
    """The answer of the first that is told of the event. Raises what its work raises, with a receipt of it."""
    from toolmem.hosts.event_stores import store_place

    known = receipts.note_session(
        event.session_id, host=host.name, cwd=event.cwd, project=event.project, transcript=event.transcript
    )
    folder = options.project or event.project or known.project or known.cwd or event.cwd
    place = store_place(folder, options.store)
    key, within = receipt_key(event)
    told = (event.session_id, event.kind)
    if not receipts.begin(host.name, *told, key, within=within, store=place):
        if event.kind == "before_call" and not host.call_ids:
            # Two calls at one moment that are alike have one key: the second is no less guarded than the first.
            return _acted(host, event, options, environment, receipts, folder, place)[0]
        if not receipts.is_of_other_store(*told, key, place):
            return _as_before(event, receipts, key, within)
        key = _key_there(key, place)  # that of an install on another store, whose rules bind as well
        if not receipts.begin(host.name, *told, key, within=within, store=place):
            return _as_before(event, receipts, key, within)
    action, problem, note = "", "", None
    try:
        answer, note = _acted(host, event, options, environment, receipts, folder, place)
        action = answer.action
        if within is not None and event.kind == "before_call":
            note = {**(note or {}), "answer": [answer.action, answer.reason, answer.context]}
        return answer
    except BaseException as error:
        problem = type(error).__name__
        raise
    finally:
        receipts.end(event.session_id, event.kind, key, action=action, error=problem, note=note)


def _as_before(event: HookEvent, receipts: Receipts, key: str, within: float | None) -> HookAnswer:
    """Another install answers. Where calls bear no names, this may as well be the same call again: the same answer."""
    noted = receipts.note_of(event.session_id, event.kind, key) if within is not None else None
    if event.kind == "before_call" and isinstance(noted, Mapping) and "answer" in noted:
        action, reason, context = noted["answer"]
        return HookAnswer(action=action, reason=reason, context=context)
    return HookAnswer()


def _acted(
    host: Host,
    event: HookEvent,
    options: HookOptions,
    environment: Mapping[str, str],
    receipts: Receipts,
    folder: str,
    place: str,
) -> tuple[HookAnswer, Mapping[str, Any] | None]:
    if event.kind == "compaction":
        return HookAnswer(), None
    if event.kind == "session_end":
        from toolmem.hosts.detached import start_catching_up

        receipts.session_ended(event.session_id)
        start_catching_up()
        return HookAnswer(), None
    from toolmem.hosts.acting import Acting
    from toolmem.hosts.event_stores import open_stores

    decided = None
    if event.kind == "after_call":
        decided = _decided(host, event, receipts, place)
    stores = open_stores(folder, options.store)  # not closed: the process ends, and its logs are moved by a later one
    if stores.trouble:
        log(host.name, OSError(stores.trouble), event)
    if stores.main is None:  # what is demanded of this session, and what protects toolmem itself, binds all the same
        from toolmem.engine import StoreFile

        stores = stores._replace(main=StoreFile(":memory:"))
    acting = Acting(host, stores, receipts, on_error=options.on_error, guard_on=_guard_on(environment))
    answer, note = acting.act(event, decided if isinstance(decided, Mapping) else None)
    return answer, note


def receipt_key(event: HookEvent) -> tuple[str, float | None]:
    """What tells the event from all others of its session, and for how long where it is only what it holds."""
    key = event.key or (event.call_id if event.kind in {"before_call", "after_call"} else "")
    if key:
        return key, None
    return _digest(event.origin, event.prompt, event.tool, event.arguments, event.output), SAME_MOMENT


def _key_there(key: str, place: str) -> str:
    return f"{key} in {place}"


def _decided(host: Host, event: HookEvent, receipts: Receipts, place: str) -> Any:
    """What was noted of the call before it ran."""
    if not host.call_ids:
        from toolmem.hosts.payloads import alike

        return receipts.newest_note(event.session_id, "before_call", alike(event.tool, event.arguments))
    key = _decision_key(event)
    elsewhere = receipts.is_of_other_store(event.session_id, "before_call", key, place)
    return receipts.note_of(event.session_id, "before_call", _key_there(key, place) if elsewhere else key)


def _decision_key(event: HookEvent) -> str:
    return event.key or event.call_id or _digest("", "", event.tool, event.arguments, "")


def _digest(*parts: Any) -> str:
    from hashlib import sha256

    return sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


def _guard_on(environment: Mapping[str, str]) -> bool:
    if not environment.get("TOOLMEM_GUARD", "").strip():
        return True
    from toolmem.config.environment import guard_switched_off

    return not guard_switched_off(environment)


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
