"""A program in a terminal of its own, with somebody at the keys."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from typing import Self

ENTER, DOWN, ESCAPE = b"\r", b"\x1b[B", b"\x1b"
_MOVES = re.compile(r"\x1b\[(\d*)C")  # the cursor, in place of spaces
_CONTROLS = re.compile(r"\x1b\[[0-9;?<>=]*[A-Za-z]|\x1b\][^\x07]*\x07|\x1b[()][AB0-2]|\x1b[78=>]")


class Terminal:
    """50 lines of 160 characters. What was drawn is read without its spaces: frames overlap."""

    def __init__(self, command: list[str], folder: str, variables: dict[str, str]) -> None:
        self._screen, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 160, 0, 0))
        self._process = subprocess.Popen(
            command,
            cwd=folder,
            env={**variables, "TERM": "xterm-256color"},
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)
        self._drawn = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait(timeout=60)
        os.close(self._screen)

    def press(self, keys: bytes) -> None:
        time.sleep(1.5)  # a program that has drawn a question may not listen yet
        os.write(self._screen, keys)

    def say(self, text: str) -> None:
        self._drawn = b""
        self.press(text.encode())
        self.press(ENTER)  # later, else it counts as pasted

    def sees(self, text: str, seconds: float = 60.0) -> bool:
        """Wait until a text is drawn since the user spoke; False where it is not."""
        sought, until = "".join(text.split()), time.monotonic() + seconds
        while sought not in "".join(self.drawn.split()):
            if time.monotonic() > until:
                return False
            if select.select([self._screen], [], [], 0.3)[0]:
                self._drawn += os.read(self._screen, 65_536)
        return True

    @property
    def drawn(self) -> str:
        text = _MOVES.sub(" ", self._drawn.decode("utf-8", "replace"))
        return _CONTROLS.sub("", text)
