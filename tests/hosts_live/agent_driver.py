"""One agent as its user runs it: in a fresh home, against a scripted model on loopback, without anybody at the keys."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from toolmem.testing.agent_server import AgentRequest, AgentServer, AskedCall

ROOT = Path(__file__).resolve().parents[2]
PINNED = ROOT / ".hosts" / "node_modules" / ".bin"  # the programs at the versions of package.json
PATH = "/usr/local/bin:/usr/bin:/bin"
WAIT = 1200.0  # seconds for one run of a program: 200 calls on a busy machine


class AgentDriver(ABC):
    """`folder`: gets the home and the project. `programs`: where the program lies.

    Nothing of this machine's own environment reaches it.
    """

    host: ClassVar[str]  # as `toolmem hook install` calls it
    title: ClassVar[str]
    package: ClassVar[str]  # on npm
    program: ClassVar[str]  # what it installs
    recorded: ClassVar[bool] = True  # `doctor` reads its recordings of sessions
    # Step of the scenario (see STEPS there) -> why it cannot be done without a person at the keys, and what was tried.
    cannot: ClassVar[dict[str, str]] = {}

    def __init__(self, server: AgentServer, folder: Path, programs: Path = PINNED) -> None:
        self.server = server
        self.executable = str(programs / self.program)
        self.home = folder / "home"
        self.project = folder / "project"
        for each in (self.home, self.project):
            each.mkdir(parents=True, exist_ok=True)

    # -- what each agent says of itself

    @abstractmethod
    def prepare(self) -> None:
        """Write the configuration that makes the agent talk to `server`, before hooks are installed."""

    @abstractmethod
    def own_environment(self) -> dict[str, str]:
        """Beside HOME and PATH: dummy keys, loopback addresses, switches against telemetry and updates."""

    @abstractmethod
    def prompt(self, text: str, *, session: str = "") -> str:
        """Say this in a new session, or in this one again; runs until the agent is done. The session's id."""

    @abstractmethod
    def compact(self, session: str) -> None:
        """Compact this session. It may take a turn of the script."""

    @abstractmethod
    def shell(self, command: str) -> AskedCall:
        """The call by which the model runs a command in the project."""

    @property
    def settings(self) -> Path | None:
        """The file of the user's that `hook install` edits; None where the hooks have files of their own."""
        return None

    def add_server(self, name: str, command: list[str]) -> None:
        """Write an MCP server that speaks over stdio into the agent's configuration."""
        raise NotImplementedError

    def server_call(self, server: str, tool: str, arguments: dict[str, Any]) -> AskedCall:
        """The call by which the model uses a server's tool."""
        return AskedCall(f"mcp__{server}__{tool}", arguments)

    def is_aside(self, request: AgentRequest) -> bool:
        """Is this a request of the agent's own (a title, a summary) that the script has no turn for?"""
        return not request.tools

    def install_arguments(self) -> list[str]:
        """Of `toolmem hook install HOST`, in the project."""
        return []

    def after_install(self) -> None:  # noqa: B027 - most have nothing to do
        """What the user must still do, e.g. trust the hooks."""

    # -- running

    @property
    def environment(self) -> dict[str, str]:
        return {"HOME": str(self.home), "PATH": PATH, "LANG": "C.UTF-8", **self.own_environment()}

    def run(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """The agent's program, in the project."""
        return self._run([self.executable, *arguments], check)

    def toolmem(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """`toolmem` as its user calls it beside the agent: same home, same project."""
        return self._run([sys.executable, "-P", "-m", "toolmem", *arguments], check)

    def git(self, *arguments: str) -> str:
        return self._run(["git", *arguments], True).stdout.strip()

    def version(self) -> str:
        """The number that the program itself says."""
        said = self.run("--version").stdout
        number = re.search(r"\d+(?:\.\d+)+", said)
        return number[0] if number else said.strip()

    def _run(self, command: Sequence[str], check: bool) -> subprocess.CompletedProcess[str]:
        ran = subprocess.run(
            command,
            cwd=self.project,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=WAIT,
            check=False,
        )
        if check and ran.returncode:
            said = f"{ran.stdout[-2000:]}\n{ran.stderr[-2000:]}"
            raise AssertionError(
                f"{os.path.basename(command[0])} {' '.join(command[1:])[:200]}: {ran.returncode}\n{said}"
            )
        return ran
