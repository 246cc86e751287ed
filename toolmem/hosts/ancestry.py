"""Which processes a process was started by: the agent that runs a hook, and whether an agent that hooks hold is above.

What such an agent starts speaks for no user: another agent, to which it says what it likes, or a command at a terminal
that it made. Neither is a wall: who sets out to hide where a process comes from can.
"""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from struct import Struct
from typing import NamedTuple

_MOST = 64  # processes above one another
_LONGEST = 1_000_000  # bytes of an environment
_SECONDS = 2  # for `ps`
_CREDENTIALS = Struct("3i")  # of a socket's other end: process, user, group

# What stands between an agent and the hook that it starts. The nearest that is none of these is the agent.
_WRAPPERS = frozenset(("sh", "bash", "dash", "zsh", "fish", "ksh", "mksh", "ash", "busybox", "tcsh", "csh", "env"))
# What takes over a process whose own parent ended: no agent.
_INITS = frozenset(("init", "systemd", "launchd", "tini", "dumb-init", "docker-init", "catatonit", "s6-svscan"))

# What agents put into the environment of what they start, by agent: as documented, or seen (with the version). Not what
# a person or an installer sets for the agent itself: CODEX_HOME, CODEX_MANAGED_BY_NPM, GEMINI_CLI_NO_RELAUNCH.
# `NAME=a|b`: with one of these values alone.
MARKS: Mapping[str, tuple[str, ...]] = {
    # Seen in 2.1.197, also of hooks. Editors that start it say so in the last ("claude-vscode"); "cli" is inherited.
    "claude-code": ("CLAUDECODE", "CLAUDE_CODE_CHILD_SESSION", "CLAUDE_CODE_ENTRYPOINT=cli|sdk-cli|sdk-py|sdk-ts"),
    "codex": ("CODEX_SANDBOX", "CODEX_SANDBOX_NETWORK_DISABLED", "CODEX_THREAD_ID", "CODEX_CI"),  # its source
    "gemini": ("GEMINI_CLI",),  # documented
    "cursor": ("CURSOR_AGENT",),  # documented
    "cline": ("CLINE_ACTIVE",),  # documented
    "goose": ("GOOSE_TERMINAL", "AGENT=goose|amp|1|true"),  # the second: a proposal that several follow
    "opencode": ("OPENCODE",),  # its source
    "others": ("AI_AGENT", "AUGMENT_AGENT", "VSCODE_AGENT"),
}
# Seen in the hooks of Copilot 1.0.102; it starts itself anew, so its own process may have it from itself.
_OF_COMMANDS = ("COPILOT_CLI",)


class Process(NamedTuple):
    """`began`: with the id it is one process, whatever ids are given anew."""

    pid: int
    began: str
    name: str


class HookAgent(NamedTuple):
    """Who started a hook. `process`: None where that cannot be told."""

    process: Process | None = None
    above: tuple[Process, ...] = ()
    is_orphan: bool = False  # its own parent is gone, so whoever that was does not wait for an answer


def ancestors(pid: int = 0) -> tuple[Process, ...]:
    """The processes above one (0: this one), the nearest first; as many as can be told. Raises nothing."""
    try:
        table = _by_ps() if not os.path.isdir("/proc/self") else None
        return tuple(_above(pid or os.getpid(), _of_proc if table is None else table.get))
    except Exception:  # of a system that tells otherwise
        return ()


def agent_of_hook() -> HookAgent:
    """The agent that started this process as its hook."""
    chain = ancestors()
    at = next((at for at, each in enumerate(chain) if each.name not in _WRAPPERS), len(chain))
    if at == len(chain):
        return HookAgent()
    return HookAgent(chain[at], chain[at + 1 :], chain[at].name in _INITS)


def wrote_input(process: Process) -> bool:
    """Did this process make the pair of sockets whose other end is the standard input here?

    Agents hand an event over so, and what they start for their model cannot. Only Linux tells; else False.
    """
    import socket

    if not hasattr(socket, "SO_PEERCRED"):
        return False
    try:
        if not stat.S_ISSOCK(os.fstat(0).st_mode):
            return False
        with socket.socket(fileno=os.dup(0)) as given:
            told = given.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        return bool(_CREDENTIALS.unpack(told)[0] == process.pid)
    except OSError:
        return False


def is_below(above: Iterable[Process], recorded: Callable[[Process], bool]) -> bool:
    """Is one of these an agent that hooks recorded, or was one of them started by an agent?"""
    return any(recorded(each) or started_by_agent(each) for each in above)


def started_by_agent(process: Process) -> bool:
    """Did it begin with an agent's mark in its environment? False where that cannot be read."""
    return bool(mark_in(_environment_of(process.pid)))


def mark_in(environment: Mapping[str, str], *, of_command: bool = False) -> str:
    """The mark of an agent in an environment; "" where there is none. `of_command`: not that of an agent itself."""
    marks = [each for those in MARKS.values() for each in those] + list(_OF_COMMANDS if of_command else ())
    return next((mark for mark in marks if _is_there(mark, environment)), "")


def _is_there(mark: str, environment: Mapping[str, str]) -> bool:
    name, _, values = mark.partition("=")
    given = environment.get(name, "")
    return given in values.split("|") if values else bool(given)


def _environment_of(pid: int) -> dict[str, str]:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            text = file.read(_LONGEST).decode("utf-8", "surrogateescape")
    except OSError:
        return {}
    return dict(each.partition("=")[::2] for each in text.split("\0"))


# ---------------------------------------------------------------- how a system tells


def _above(pid: int, told: Callable[[int], tuple[int, Process] | None]) -> Iterable[Process]:
    found = told(pid)
    for _ in range(_MOST):
        if found is None or found[0] <= 0:
            return
        found = told(found[0])
        if found is not None:
            yield found[1]


def _of_proc(pid: int) -> tuple[int, Process] | None:
    """(its parent's id, it); None where it is gone, or hidden."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read(4096).decode("utf-8", "replace")
    except OSError:
        return None
    before, _, after = text.rpartition(")")
    fields = after.split()
    return int(fields[1]), Process(pid, f"{_boot()} {fields[19]}", before.partition("(")[2])


def _boot() -> str:
    """Times are counted from it."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read(36)
    except OSError:
        return ""


def _by_ps() -> dict[int, tuple[int, Process]]:
    """Every process, where there is no /proc; {} where nobody tells (Windows)."""
    if sys.platform == "win32":
        return {}
    asked = ["ps", "-A", "-o", "pid=,ppid=,lstart=,comm="]
    told = subprocess.run(asked, capture_output=True, text=True, timeout=_SECONDS, check=False, env={"LC_ALL": "C"})
    rows = (line.split(None, 7) for line in told.stdout.splitlines())
    return {
        int(row[0]): (int(row[1]), Process(int(row[0]), " ".join(row[2:7]), os.path.basename(row[7]).lstrip("-")))
        for row in rows
        if len(row) == 8
    }
