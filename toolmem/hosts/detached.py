"""Starts the work that an agent need not wait for: it outlives the hook, and holds nothing of the agent's."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence


def start_catching_up(agent: str, arguments: Sequence[str] = ()) -> None:
    """Begin `toolmem.hosts.catching_up` in a session of its own. `arguments`: of the installed line: --store, --config.

    Nothing waits for it: the hook ends at once, and the system takes the process over. Raises OSError where none can
    be started; what was noted stays, and is caught up with later.
    """
    flags = ["-P", *(["-E"] if sys.flags.ignore_environment else [])]
    apart: dict[str, object] = {"start_new_session": True, "cwd": "/"}
    if sys.platform == "win32":
        apart = {"creationflags": subprocess.DETACHED_PROCESS | subprocess.CREATE_NEW_PROCESS_GROUP}
    process = subprocess.Popen(
        [sys.executable, *flags, "-m", "toolmem.hosts.catching_up", agent, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        close_fds=True,
        **apart,  # type: ignore[call-overload]
    )
    process.returncode = 0  # it is not this process's to wait for, and a warning would be said of it
