"""Gemini CLI, headless (`gemini -p`)."""

from __future__ import annotations

import json
from pathlib import Path

from tests.hosts_live.agent_driver import AgentDriver
from toolmem.testing.agent_server import AskedCall


class GeminiDriver(AgentDriver):
    host = "gemini"
    title = "Gemini CLI"
    package = "@google/gemini-cli"
    program = "gemini"

    @property
    def settings(self) -> Path:
        return self.project / ".gemini" / "settings.json"

    def prepare(self) -> None:
        self.settings.parent.mkdir(exist_ok=True)
        self.settings.write_text('{\n\t// not as we would write it\n\t"ui": {"hideTips" : true}\n}')
        users = self.home / ".gemini"
        users.mkdir(exist_ok=True)
        own = {
            "security": {"auth": {"selectedType": "gemini-api-key"}},
            "general": {"enableAutoUpdate": False},
            "privacy": {"usageStatisticsEnabled": False},
        }
        (users / "settings.json").write_text(json.dumps(own))

    def own_environment(self) -> dict[str, str]:
        return {
            "GEMINI_API_KEY": "dummy",
            "GOOGLE_GEMINI_BASE_URL": self.server.url,
            "GEMINI_CLI_TRUST_WORKSPACE": "true",  # a person says so when it starts in a folder first
        }

    def prompt(self, text: str, *, session: str = "") -> str:
        resumed = ["--resume", session] if session else []
        # A model is named, else it asks another one which to take.
        options = ["-m", "gemini-2.5-pro", "--approval-mode", "yolo", "--output-format", "json"]
        ran = self.run("-p", text, *options, *resumed)
        return str(json.loads(ran.stdout[ran.stdout.index("{") :])["session_id"])

    def compact(self, session: str) -> None:
        self.prompt("/compress", session=session)

    def shell(self, command: str) -> AskedCall:
        return AskedCall("run_shell_command", {"command": command})
