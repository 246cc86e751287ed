"""Cline, headless (`cline "..."`)."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from tests.hosts_live.agent_driver import AgentDriver
from toolmem.testing.agent_server import AskedCall


class ClineDriver(AgentDriver):
    host = "cline"
    title = "Cline"
    package = "cline"
    program = "cline"
    cannot: ClassVar[dict[str, str]] = {
        "the rule is before the model after a compaction": (
            "Cline resumes no session without a terminal (`--id` asks for one, with `--json` and a prompt too), so "
            "that none grows that could be compacted; tried instead: each prompt in a session of its own"
        ),
    }

    def prepare(self) -> None:
        key = ["-k", "dummy", "-m", "scripted", "-b", f"{self.server.url}/v1"]
        self.run("auth", "-p", "openai-compatible", *key)

    def own_environment(self) -> dict[str, str]:
        # Else a daemon stays behind that all later runs in this home speak to.
        return {"DO_NOT_TRACK": "1", "CLINE_TELEMETRY_DISABLED": "1", "CLINE_SESSION_BACKEND_MODE": "local"}

    def prompt(self, text: str, *, session: str = "") -> str:
        """Without a terminal it resumes no session: each prompt begins one."""
        known = set(self._sessions())
        # One word alone is taken for a command.
        self.run("--auto-approve", "true", text if " " in text else f"{text} Please.")
        return next(each.name for each in self._sessions() if each not in known)

    def _sessions(self) -> list[Path]:
        return sorted((self.home / ".cline" / "data" / "sessions").glob("*"))

    def compact(self, session: str) -> None:
        raise NotImplementedError("no session is resumed, so none can be compacted")

    def shell(self, command: str) -> AskedCall:
        return AskedCall("run_commands", {"commands": [command]})
