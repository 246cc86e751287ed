"""Answer one event of an agent; no failure of toolmem stops the agent.

    python -P -m toolmem.hooks AGENT [--store FILE] [--project DIR] [--on-error open|closed]

The exit code is always 0, the output JSON or nothing. An error is logged to `hooks.log`, and denies
a call only if the hook was installed with `--on-error closed`.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from io import BufferedIOBase
from typing import Any

MAX_BYTES = 64 * 1024 * 1024  # of a payload
CHUNK = 65_536  # bytes read at once
_OPTIONS = ("--store", "--project", "--on-error", "--config")
_CLOSED = (
    "toolmem: not run. This call could not be checked, and toolmem is installed to stop what it "
    "cannot check (--on-error closed)."
)


def main() -> None:
    """Answer the event on standard input, and end the process with code 0."""
    try:
        from toolmem.hooks.state import log_to_file

        log_to_file()
        with open(sys.stdin.fileno(), "rb", closefd=False) as stdin:
            answer = answer_event(sys.argv[1:], stdin, os.environ)
        sys.stdout.buffer.write(answer)
        sys.stdout.buffer.flush()
    except BaseException as error:
        _log(error)
    finally:
        os._exit(0)  # no exit handlers: the agent waits for this process


def answer_event(
    arguments: Sequence[str], stdin: BufferedIOBase, environment: Mapping[str, str]
) -> bytes:
    """The bytes for standard output; b"" where there is no answer. Raises nothing."""
    raw, name = b"", ""
    options: dict[str, str] = {}
    try:
        name, options = _read_options(arguments)
        raw = read_payload(stdin)
        return _answer(name, options, raw, environment)
    except BaseException as error:
        _log(error, name)
        return _answer_error(name, options, raw, error)


def read_payload(stdin: BufferedIOBase) -> bytes:
    """Standard input until its JSON is complete, its end, or MAX_BYTES: a pipe may stay open.

    A part that ends in `}` may be the last, so the JSON is tried. Where many parts end so, some
    tries are left out: together they parse at most five times the bytes that were read.
    """
    raw = bytearray()
    parsed = 0
    while len(raw) <= MAX_BYTES and (part := stdin.read1(CHUNK)):
        raw += part
        if part.rstrip().endswith(b"}") and parsed <= 4 * len(raw):
            parsed += len(raw)
            with suppress(ValueError, RecursionError):
                json.loads(raw.decode("utf-8-sig", "replace"))
                break
    return bytes(raw)


def _read_options(arguments: Sequence[str]) -> tuple[str, dict[str, str]]:
    """The agent's name and the options. Unknown ones pass: another version may have set them."""
    name, options = "", {}
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
    from toolmem.guard.stores import open_stores
    from toolmem.hooks.handle import Hook, guard_is_on
    from toolmem.hooks.state import zone_of

    folder = options.get("--project") or event.project or event.cwd
    hook = Hook(
        agent=agent,
        stores=open_stores(folder, options.get("--store", "")),
        on_error="closed" if options.get("--on-error") == "closed" else "open",
        guard_is_on=guard_is_on(environment),
        config=options.get("--config", ""),
    )
    if not hook.stores.untrusted:
        hook.stores.zone = zone_of(hook.config)
    answer = write(agent, event, hook.handle(event))
    return json.dumps(answer).encode() if answer else b""


def _payload(raw: bytes) -> Mapping[str, Any]:
    """Raises ValueError, RecursionError."""
    if len(raw) > MAX_BYTES:
        raise ValueError(f"a payload of more than {MAX_BYTES:,} bytes")
    value = json.loads(raw.decode("utf-8-sig", "replace"))
    # What cannot be stored: half an emoji becomes "?", NaN and 1e999 become null.
    storable = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
    value = json.loads(storable, parse_constant=lambda _: None)
    if not isinstance(value, dict):
        raise ValueError(f"expected an object, got {type(value).__name__}")
    return value


def _answer_error(name: str, options: Mapping[str, str], raw: bytes, error: BaseException) -> bytes:
    """A denial of a call with `--on-error closed`, a notice as a session begins, or nothing."""
    with suppress(BaseException):
        from toolmem.hooks.agents import AGENTS
        from toolmem.hooks.protocol import Answer, read, write

        is_closed = options.get("--on-error") == "closed"
        found = re.search(rb'"(hook_event_name|event)"\s{0,9}:\s{0,9}"([\w.]{1,60})"', raw)
        payload = {found[1].decode(): found[2].decode(), "tool_name": "unknown"} if found else {}
        event, answer = read(AGENTS[name], payload, {}), Answer()
        if event is not None and event.kind == "session_start":
            answer.notice = f"toolmem: no rule binds and nothing is kept: {error}"[:1_000]
        elif event is not None and event.kind == "before_call" and is_closed:
            answer = Answer(action="deny", reason=_CLOSED)
        if event is not None and (written := write(AGENTS[name], event, answer)):
            return json.dumps(written).encode()
    return b""


def _log(error: BaseException, name: str = "") -> None:
    with suppress(BaseException):
        from toolmem.hooks.state import write_line

        write_line(f"{name} {type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
