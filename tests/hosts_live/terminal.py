"""A program in a terminal of its own, with keys typed as its user types them."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

_CONTROL = re.compile(r"\x1b(?:\[[0-9;?<>=]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_78])")
WAIT = 120.0  # seconds for a text to appear


class Terminal:
    """40 lines of 120 characters. `seen`: what was shown so far, without colours and positions."""

    def __init__(self, command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
        self.seen = ""
        self._from = 0  # of `seen`: what was shown since the last key
        self._pid, self._screen = pty.fork()
        if not self._pid:
            os.chdir(folder)
            os.execve(command[0], list(command), {**environment, "TERM": "xterm-256color"})
        fcntl.ioctl(self._screen, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))

    def wait_for(self, text: str, *, within: float = WAIT) -> None:
        """Until this has been shown since the last key. Blanks do not count: a screen is drawn in pieces."""
        wanted, end = _squeezed(text), time.monotonic() + within
        while wanted not in _squeezed(self.seen[self._from :]):
            left = end - time.monotonic()
            if left <= 0 or not self._read(left):
                raise AssertionError(f"{text!r} was not shown, but {self.seen[-1500:]!r}")

    def type(self, keys: str, *, enter: bool = True) -> None:
        """As a person does: what follows at once is taken for a paste."""
        self.settle()
        if enter and keys:
            os.write(self._screen, keys.encode())
            self.settle()
        self._from = len(self.seen)
        os.write(self._screen, b"\r" if enter else keys.encode())

    def settle(self) -> None:
        """Until nothing more is shown for half a second."""
        while self._read(0.5):
            pass

    def _read(self, seconds: float) -> bool:
        if not select.select([self._screen], [], [], seconds)[0]:
            return False
        try:
            read = os.read(self._screen, 1 << 16)
        except OSError:  # it has ended
            return False
        self.seen += _CONTROL.sub(" ", read.decode("utf-8", "replace"))
        return bool(read)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        os.close(self._screen)


def _squeezed(text: str) -> str:
    return re.sub(r"\s+", "", text)
