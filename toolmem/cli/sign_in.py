"""Signing in to the console, at the terminal where `toolmem serve` runs."""

from __future__ import annotations

import os
import select
import sys
import threading
from collections.abc import Callable
from time import monotonic

import click

ANSWER_WITHIN = 120.0  # seconds
LOOK_EVERY = 0.2  # seconds, whether the question has ended


class SignInTerminal:
    """Prints links to sign in, and asks whether a browser is let in. One question at a time.

    A thread that waits for the answer looks at the file descriptor: one that is blocked in
    `sys.stdin.readline` could abort the interpreter when it ends.
    """

    def __init__(self) -> None:
        self._address, self._link = "", ""
        self._ended = threading.Event()  # of the question that is open
        self._asks: threading.Thread | None = None

    @staticmethod
    def is_possible() -> bool:
        """Whether this system has terminals whose input can be cleared."""
        return hasattr(os, "tcgetpgrp")

    def open(self, address: str) -> None:
        """Print the link, now that the service listens."""
        self._address = address
        click.echo(self._link.format(address=address), err=True)

    def show_link(self, code: str, told: str = "") -> None:
        """Print the address at which a code signs in. An open question ends."""
        self._ended.set()
        if told:
            click.echo(f"\n{told}", err=True)
        self._link = f"To decide there, sign in: {{address}}/sign-in?code={code}"
        if self._address:
            self.open(self._address)

    def ask(self, words: str, answered: Callable[[bool], None]) -> None:
        """Begin to ask whether the browser that shows these words is let in."""
        self._ended = threading.Event()
        given = (words, answered, self._ended)
        self._asks = threading.Thread(target=self._ask, args=given, daemon=True)
        self._asks.start()

    def close(self) -> None:
        """End an open question, so that the process can end."""
        self._ended.set()
        if self._asks is not None:
            self._asks.join(2.0)

    def _ask(self, words: str, answered: Callable[[bool], None], ended: threading.Event) -> None:
        _forget_typed()
        click.echo(f'Let the browser in that shows "{words}"? y/N ', err=True, nl=False)
        answer = _read_line(ended)
        if ended.is_set():
            return
        if answer is None:
            click.echo("\nNo answer in 2 minutes.", err=True)
        is_yes = (answer or "").strip().lower() in ("y", "yes")
        told = "It may decide until 15 minutes after its last change." if is_yes else "Not let in."
        click.echo(told, err=True)
        answered(is_yes)


def _read_line(ended: threading.Event) -> str | None:
    """What is typed, once this process is in the foreground; None where nothing is in time."""
    typed, until, was_in_front = sys.stdin.fileno(), monotonic() + ANSWER_WITHIN, True
    while not ended.is_set() and monotonic() < until:
        if not _is_in_front():  # who reads from the background is stopped
            was_in_front = ended.wait(LOOK_EVERY)
            continue
        if not was_in_front:
            _forget_typed()
            was_in_front = True
        if select.select([typed], [], [], LOOK_EVERY)[0]:
            return os.read(typed, 1024).decode("utf-8", "replace")
    return None


def _forget_typed() -> None:
    """What was typed before a question does not answer it."""
    import termios

    if _is_in_front():
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


def _is_in_front() -> bool:
    try:
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except OSError:  # the terminal is gone
        return False
