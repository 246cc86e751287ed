"""OpenCode, headless (`opencode run`)."""

from __future__ import annotations

import json
from typing import ClassVar

from tests.hosts_live.agent_driver import AgentDriver
from toolmem.testing.agent_server import AskedCall, ModelTurn

CONTEXT = 100_000  # tokens


class OpenCodeDriver(AgentDriver):
    host = "opencode"
    title = "OpenCode"
    package = "opencode-ai"
    program = "opencode"
    recorded = False
    cannot: ClassVar[dict[str, str]] = {
        "200 calls: 200 receipts": (
            "OpenCode keeps its sessions in a database, which `doctor` does not read; tried instead: the receipts alone"
        ),
    }

    def prepare(self) -> None:
        folder = self.home / ".config" / "opencode"
        folder.mkdir(parents=True)
        model = {"name": "scripted", "tool_call": True, "limit": {"context": CONTEXT, "output": 4_000}}
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "name": "loop",
            "options": {"baseURL": f"{self.server.url}/v1", "apiKey": "dummy"},
            "models": {"scripted": model},
        }
        settings = {"model": "loop/scripted", "small_model": "loop/scripted", "autoupdate": False, "share": "disabled"}
        (folder / "opencode.json").write_text(json.dumps({**settings, "provider": {"loop": provider}}))

    def own_environment(self) -> dict[str, str]:
        return {
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        }

    def prompt(self, text: str, *, session: str = "") -> str:
        ran = self.run("run", "--format", "json", *(["--session", session] if session else []), text)
        return str(json.loads(ran.stdout.splitlines()[0])["sessionID"])

    def compact(self, session: str) -> None:
        """It compacts by itself where the last prompt is said to have been long."""
        self.server.then(ModelTurn("", (self.shell("true"),), CONTEXT), "It is compacted.")
        self.prompt("Go on.", session=session)

    def shell(self, command: str) -> AskedCall:
        return AskedCall("bash", {"command": command, "description": "Run it"})
