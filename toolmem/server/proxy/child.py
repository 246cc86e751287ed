"""Connect this process's pipes to a server that it starts as a child process."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import IO

from toolmem.server.proxy.memory import ProxyMemory
from toolmem.server.proxy.relay import Relay, Send

log = logging.getLogger("toolmem.proxy")
GRACE = 5.0  # seconds for a server to end by itself, and again after SIGTERM
MAX_MESSAGE = 64 << 20  # bytes
_NOT_FOUND = 127  # exit code, as of a shell
_NOT_STARTED = 126  # likewise


def run_child(command: Sequence[str], memory: ProxyMemory) -> int:
    """Start a server, and relay until the host or the server ends. Returns its exit code."""
    try:
        server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    except OSError as error:
        log.error("the server cannot be started: %s: %s", command[0], error.strerror or error)
        return _NOT_FOUND if isinstance(error, FileNotFoundError) else _NOT_STARTED
    assert server.stdin is not None and server.stdout is not None
    relay = Relay(memory, line_writer(sys.stdout.buffer), line_writer(server.stdin))
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: server.terminate())

    def requests() -> None:
        relay_lines(sys.stdin.buffer, relay.from_client)
        _end(server)

    take = (server.stdout, relay.from_server)
    answers = threading.Thread(target=relay_lines, args=take, daemon=True)
    answers.start()  # a daemon: a grandchild may hold the pipe open
    threading.Thread(target=requests, daemon=True).start()
    code = server.wait()
    answers.join(GRACE)
    relay.close()
    return code if code >= 0 else 128 - code


def _end(server: subprocess.Popen[bytes]) -> None:
    """End the server: close its stdin, then terminate it, then kill it."""
    assert server.stdin is not None
    for stop in (server.stdin.close, server.terminate, server.kill):
        with suppress(OSError):
            stop()
        with suppress(subprocess.TimeoutExpired):
            server.wait(GRACE)
            return


def line_writer(stream: IO[bytes]) -> Send:
    """Make a function that writes whole lines from any thread. It ignores a broken pipe."""
    lock = threading.Lock()

    def send(message: bytes) -> None:
        with lock, suppress(OSError, ValueError):
            stream.write(message + b"\n")
            stream.flush()

    return send


def relay_lines(stream: IO[bytes], take: Callable[[bytes], None]) -> None:
    """Pass every line to `take`. A line that is too long, or that `take` fails on, is logged."""
    while line := _next_line(stream):
        if len(line) == MAX_MESSAGE and line[-1:] != b"\n":
            log.error("a message of more than %s bytes was left out", f"{MAX_MESSAGE:,}")
            while line and line[-1:] != b"\n":
                line = _next_line(stream)
            continue
        try:
            take(line.rstrip(b"\r\n"))
        except Exception as error:
            log.error("a message was not sent: %s: %s", type(error).__name__, str(error)[:500])


def _next_line(stream: IO[bytes]) -> bytes:
    """The next line; b"" at the end and for a broken pipe."""
    with suppress(OSError, ValueError):
        return stream.readline(MAX_MESSAGE)
    return b""


def leave(code: int) -> None:
    """Exit without waiting for threads, as one may wait for the host's pipes for ever."""
    sys.stdout.flush()
    os._exit(code)
