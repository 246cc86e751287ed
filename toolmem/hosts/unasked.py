"""Calls that wait for a word of the user where nobody can be asked: they do not run, and that is said."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolmem.hosts.events import HookAnswer, HookEvent
    from toolmem.hosts.host import Host

_LONGEST = 1000  # characters of a line
# Runs without a terminal, by what their hooks find in their environment: `claude -p`.
_HEADLESS: Mapping[str, tuple[str, str]] = {"claude-code": ("CLAUDE_CODE_ENTRYPOINT", "sdk-cli")}


def asks_a_person(host: Host) -> bool:
    """Does this agent ask its user about a call, and has it a terminal for it?"""
    return host.asks and not is_headless(host)


def is_headless(host: Host) -> bool:
    """Does it run without a terminal, so that no notice reaches its user?"""
    name, headless = _HEADLESS.get(host.name, ("", ""))
    return bool(name) and os.environ.get(name) == headless


def say_where_unasked(host: Host, event: HookEvent, answer: HookAnswer) -> None:
    """On standard error, why a call does not run that a person was to be asked about. Never raises."""
    if answer.action != "ask" or event.kind != "before_call" or asks_a_person(host):
        return
    from toolmem.readers.plain_text import name_shown, plain_line

    with suppress(OSError, ValueError):  # standard error is closed
        told = (
            f"toolmem: nobody can be asked here about {name_shown(event.tool)}: {plain_line(answer.reason, _LONGEST)}"
        )
        print(told, file=sys.stderr, flush=True)
