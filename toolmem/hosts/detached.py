"""Starts the work that an agent need not wait for: it outlives the hook, and holds nothing of the agent's."""

from __future__ import annotations

import subprocess
import sys
import threading
from contextlib import suppress

from toolmem.errors import ToolMemError
from toolmem.hosts.receipts import Receipts


def start_catching_up() -> None:
    """Begin `toolmem.hosts.catching_up` in a session of its own.

    Nothing waits for it: the hook ends at once, and the system takes the process over. Raises OSError where none can
    be started; what was noted stays, and is caught up with later.
    """
    flags = ["-P", *(["-E"] if sys.flags.ignore_environment else [])]
    apart: dict[str, object] = {"start_new_session": True, "cwd": "/"}
    if sys.platform == "win32":
        apart = {"creationflags": subprocess.DETACHED_PROCESS | subprocess.CREATE_NEW_PROCESS_GROUP}
    process = subprocess.Popen(
        [sys.executable, *flags, "-m", "toolmem.hosts.catching_up"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        close_fds=True,
        **apart,  # type: ignore[call-overload]
    )
    threading.Thread(target=process.wait, daemon=True).start()  # of a process that stays: no zombie is left behind


def catch_up_with_what_is_left() -> None:
    """Begin it where a session is left over: its agent was killed, or the machine went down. Raises nothing."""
    with suppress(OSError, ToolMemError):
        from toolmem.hosts.catching_up import left_over

        receipts = Receipts(busy_timeout=0.05)
        try:
            if receipts.path.is_file() and left_over(receipts):
                start_catching_up()
        finally:
            receipts.close()
