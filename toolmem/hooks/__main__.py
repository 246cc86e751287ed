"""Answer one event of an agent; no failure of toolmem stops the agent.

    python -P -m toolmem.hooks AGENT [--store FILE] [--project DIR] [--on-error open|closed]

The exit code is always 0, the output JSON or nothing. An error is logged to `hooks.log`, and denies
a call only if the hook was installed with `--on-error closed`. If the check of a call takes too
long, the user is asked.
"""

from __future__ import annotations

import json
import os
import re
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from io import BufferedIOBase
from typing import Any

MAX_BYTES = 64 * 1024 * 1024  # of a payload
MAX_SECONDS = 7.0  # for an answer; agents give a hook ten
MAX_DIGITS = 1_000  # of a number
CHUNK = 65_536  # bytes read at once
_OPTIONS = ("--store", "--project", "--on-error", "--config")
_ASKED = (
    "toolmem: not run; ask the user first. Not sure: this call could not be checked in time, or is "
    "too large. Try it again, or write it in a shorter and plainer way."
)
# Errors that come of an odd call, and not of the store or the payload's form.
_CALL_ERRORS = (TimeoutError, RecursionError, LookupError, TypeError, OverflowError)
_DENIED = (
    "toolmem: not run. This call could not be checked, and toolmem is installed to stop what it "
    "cannot check (--on-error closed)."
)


def main() -> None:
    """Answer the event on standard input, and end the process with code 0."""
    raw = bytearray()
    answering = threading.Lock()  # never released: only the first answer is written

    def write(answer: bytes) -> None:
        if answering.acquire(blocking=False):
            sys.stdout.buffer.write(answer)
            sys.stdout.buffer.flush()
        else:
            time.sleep(MAX_SECONDS)  # the thread that writes the answer ends the process

    def answer_late() -> None:
        try:
            error = TimeoutError(f"no answer within {MAX_SECONDS:g} s")
            _log(error)
            write(_answer_error(*_read_options(sys.argv[1:]), bytes(raw), error))
        finally:
            os._exit(0)

    timer = threading.Timer(MAX_SECONDS, answer_late)
    timer.daemon = True
    try:
        timer.start()
        with open(sys.stdin.fileno(), "rb", closefd=False) as stdin:
            read_payload(stdin, raw)  # first, so that a late answer knows what it is about
        from toolmem.hooks.hooks_log import log_to_file

        log_to_file()
        write(answer_event(sys.argv[1:], bytes(raw), os.environ))
    except BaseException as error:
        _log(error)
    finally:
        os._exit(0)  # no exit handlers: the agent waits for this process


def answer_event(arguments: Sequence[str], raw: bytes, environment: Mapping[str, str]) -> bytes:
    """Return the answer to a payload (`raw`) as JSON; b"" for no answer. Raises nothing."""
    name = ""
    options = dict[str, str]()
    try:
        name, options = _read_options(arguments)
        return _answer(name, options, raw, environment)
    except BaseException as error:
        _log(error, name)
        return _answer_error(name, options, raw, error)


def read_payload(stdin: BufferedIOBase, raw: bytearray) -> None:
    """Read standard input into `raw` until its JSON is complete, or it ends, or exceeds MAX_BYTES.

    The input may stay open after the JSON. So all bytes so far are parsed again whenever a part
    ends in `}`, as long as no more than five times the bytes that were read are parsed in all.
    """
    parsed = 0
    while len(raw) <= MAX_BYTES and (part := stdin.read1(CHUNK)):
        raw += part
        if part.rstrip().endswith(b"}") and parsed <= 4 * len(raw):
            parsed += len(raw)
            with suppress(ValueError, RecursionError):
                json.loads(raw.decode("utf-8-sig", "replace"))
                break


def _read_options(arguments: Sequence[str]) -> tuple[str, dict[str, str]]:
    """Read the agent's name and options, also unknown options, which another version may have."""
    name = ""
    options = {}
    words = iter(arguments)
    for word in words:
        option, equals, value = word.partition("=")
        if option in _OPTIONS:
            options[option] = value if equals else next(words, "")
        elif not word.startswith("-"):
            name = name or word
    return name, options


def _answer(
    name: str, options: Mapping[str, str], raw: bytes, environment: Mapping[str, str]
) -> bytes:
    from toolmem.hooks.agents import AGENTS
    from toolmem.hooks.protocol import read, write

    if name not in AGENTS:
        raise ValueError(f"expected one of {', '.join(AGENTS)}; got {name!r}")
    agent = AGENTS[name]
    event = read(agent, _payload(raw), environment)
    if event is None:
        return b""
    from toolmem.guard.guard import MESSAGE_WAIT
    from toolmem.guard.stores import DECISION_WAIT, LOCK_TIMEOUT, open_stores, project_folder
    from toolmem.hooks.handle import Hook, guard_is_on
    from toolmem.hooks.install_notes import zone_of

    folder = project_folder(options.get("--project", ""), event.project or event.cwd)
    waits = {"before_call": DECISION_WAIT, "prompt": MESSAGE_WAIT}
    hook = Hook(
        agent=agent,
        stores=open_stores(folder, options.get("--store", ""), waits.get(event.kind, LOCK_TIMEOUT)),
        on_error="closed" if options.get("--on-error") == "closed" else "open",
        guard_is_on=guard_is_on(environment),
        config=options.get("--config", ""),
    )
    if not hook.stores.untrusted:
        hook.stores.zone = zone_of(hook.config)
    answer = write(agent, event, hook.handle(event))
    return json.dumps(answer).encode() if answer else b""


def _payload(raw: bytes) -> Mapping[str, Any]:
    """Parse a payload. Raises ValueError, RecursionError, OverflowError."""
    if len(raw) > MAX_BYTES:
        raise OverflowError(f"a payload of more than {MAX_BYTES:,} bytes")
    value = json.loads(raw.decode("utf-8-sig", "replace"), parse_int=_read_integer)
    # What cannot be stored: half an emoji becomes "?", NaN and 1e999 become null.
    storable = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
    value = json.loads(storable, parse_constant=lambda _: None)
    if not isinstance(value, dict):
        raise ValueError(f"expected an object, got {type(value).__name__}")
    return value


def _read_integer(digits: str) -> int | str:
    """Read an integer; its digits as text if Python refuses to read so many."""
    return int(digits) if len(digits) < MAX_DIGITS else digits


def _answer_error(name: str, options: Mapping[str, str], raw: bytes, error: BaseException) -> bytes:
    """The answer after an error: a call is denied or asked about, a session start has a notice."""
    with suppress(BaseException):
        from toolmem.hooks.agents import AGENTS
        from toolmem.hooks.protocol import Answer, read, write

        is_closed = options.get("--on-error") == "closed"
        found = re.search(rb'"(hook_event_name|event)"\s{0,9}:\s{0,9}"([\w.]{1,60})"', raw)
        payload = {found[1].decode(): found[2].decode(), "tool_name": "unknown"} if found else {}
        event = read(AGENTS[name], payload, {})
        answer = Answer()
        if event is not None and event.kind == "session_start":
            answer.notice = f"toolmem: no rule binds and nothing is kept: {error}"[:1_000]
        elif event is not None and event.kind == "before_call":
            if is_closed:
                answer = Answer(action="deny", reason=_DENIED)
            elif isinstance(error, _CALL_ERRORS):
                answer = Answer(action="ask", reason=_ASKED)
        if event is not None and (written := write(AGENTS[name], event, answer)):
            return json.dumps(written).encode()
    return b""


def _log(error: BaseException, name: str = "") -> None:
    with suppress(BaseException):
        from toolmem.hooks.hooks_log import write_line

        write_line(f"{name} {type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
