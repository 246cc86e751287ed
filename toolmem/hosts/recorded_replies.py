"""What the agent's own recording shows of a session that runs, a file that the agent may write.

What the user typed and no prompt event tells (an answer to the agent's question, words at a call that they rejected):
a demand with such words waits for the user. And which calls the model asked for in one reply.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolmem.hosts.events import HookEvent
    from toolmem.hosts.host import Host

_LOOKED_AT = 8_000_000  # bytes of a recording: its end
_MOST = 200  # replies; the newest


def calls_before(event: HookEvent, host: Host) -> list[tuple[str, str, Any]]:
    """Id, tool and arguments of those that stand before the event's call in one reply of the model. Raises nothing."""
    try:
        return host.reply_before(_lines(event), event.key) if event.transcript and event.key else []
    except (OSError, ValueError, TypeError, AttributeError):  # a recording of another form
        return []


def replies_of(event: HookEvent, host: Host) -> list[str]:
    """Of the session, the oldest first; [] where there is no recording, or it cannot be read. Raises nothing."""
    if not event.transcript:
        return []
    try:
        return list(host.replies_in(_lines(event)))[-_MOST:]
    except (OSError, ValueError, TypeError, AttributeError):  # a recording of another form
        return []


def _lines(event: HookEvent) -> list[str]:
    return _end_of(event.transcript).decode("utf-8", "replace").splitlines()


def _end_of(path: str) -> bytes:
    """Whole lines. Raises OSError."""
    file = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(file, "rb") as opened:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(f"{path} is no file")
        if found.st_size <= _LOOKED_AT:
            return opened.read(_LOOKED_AT)
        opened.seek(found.st_size - _LOOKED_AT)
        return opened.read(_LOOKED_AT).partition(b"\n")[2]
