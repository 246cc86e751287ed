"""Sign in to the console at the terminal where `toolmem serve` runs."""

from __future__ import annotations

import os
import select
import sys
import threading
from collections.abc import Callable
from time import monotonic

import click

ANSWER_WITHIN = 120.0  # seconds
LOOK_EVERY = 0.2  # seconds between looks whether the question has ended


class SignInTerminal:
    """Prints links to sign in, and asks whether to let a browser in. One question at a time.

    The thread that waits for the answer polls the file descriptor: a thread that is blocked in
    `sys.stdin.readline` could abort the interpreter at its end.
    """

    def __init__(self) -> None:
        self._address = ""
        self._link = ""
        self._ended = threading.Event()  # set when the open question ends
        self._asking: threading.Thread | None = None

    @staticmethod
    def is_possible() -> bool:
        """Whether this system has terminals whose input can be cleared."""
        return hasattr(os, "tcgetpgrp")

    def open(self, address: str) -> None:
        """Print the link to sign in at `address`, where the server listens now."""
        self._address = address
        click.echo(self._link.format(address=address), err=True)

    def show_link(self, code: str, message: str = "") -> None:
        """Make a link with this code; print it once the server listens. Ends an open question."""
        self._ended.set()
        if message:
            click.echo(f"\n{message}", err=True)
        self._link = f"To decide there, sign in: {{address}}/sign-in?code={code}"
        if self._address:
            self.open(self._address)

    def ask(self, words: str, answered: Callable[[bool], None]) -> None:
        """Ask whether to let in the browser that shows `words`. Returns before the answer.

        A thread calls `answered` with the answer, unless the question ends before.
        """
        self._ended = threading.Event()
        given = (words, answered, self._ended)
        self._asking = threading.Thread(target=self._ask, args=given, daemon=True)
        self._asking.start()

    def close(self) -> None:
        """End an open question, so that the process can end."""
        self._ended.set()
        if self._asking is not None:
            self._asking.join(2.0)

    def _ask(self, words: str, answered: Callable[[bool], None], ended: threading.Event) -> None:
        _discard_typed()
        click.echo(f'Let the browser in that shows "{words}"? y/N ', err=True, nl=False)
        answer = _read_line(ended)
        if ended.is_set():
            return
        if answer is None:
            click.echo("\nNo answer in 2 minutes.", err=True)
        is_yes = (answer or "").strip().lower() in ("y", "yes")
        result = "It may decide until 15 minutes after its last change."
        click.echo(result if is_yes else "Not let in.", err=True)
        answered(is_yes)


def _read_line(ended: threading.Event) -> str | None:
    """What is typed while this process is in the foreground; None: nothing was typed in time."""
    stdin = sys.stdin.fileno()
    until = monotonic() + ANSWER_WITHIN
    was_in_foreground = True
    while not ended.is_set() and monotonic() < until:
        if not _is_in_foreground():  # a background process that reads is stopped
            was_in_foreground = False
            ended.wait(LOOK_EVERY)
            continue
        if not was_in_foreground:
            _discard_typed()
            was_in_foreground = True
        if select.select([stdin], [], [], LOOK_EVERY)[0]:
            return os.read(stdin, 1024).decode("utf-8", "replace")
    return None


def _discard_typed() -> None:
    """Discard what was typed before a question, so that it is no answer."""
    import termios

    if _is_in_foreground():
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


def _is_in_foreground() -> bool:
    try:
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except OSError:  # the terminal is gone
        return False
