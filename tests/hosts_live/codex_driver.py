"""Codex, headless (`codex exec`)."""

from __future__ import annotations

import json
from pathlib import Path

from tests.hosts_live.agent_driver import AgentDriver
from toolmem.testing.agent_server import AskedCall, ModelTurn

CONFIG = """\
model = "gpt-5"
model_provider = "loop"
approval_policy = "never"
sandbox_mode = "danger-full-access"
model_auto_compact_token_limit = 200000

[model_providers.loop]
name = "loop"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "LOOP_KEY"

[projects."{project}"]
trust_level = "trusted"
"""
FULL = 250_000  # tokens: more than the limit in CONFIG


class CodexDriver(AgentDriver):
    host = "codex"
    title = "Codex"
    program = "codex"

    @property
    def _folder(self) -> Path:
        return self.home / ".codex"

    @property
    def settings(self) -> Path:
        return self.project / ".codex" / "hooks.json"

    def prepare(self) -> None:
        for folder in (self._folder, self.settings.parent):
            folder.mkdir(exist_ok=True)
        (self._folder / "config.toml").write_text(CONFIG.format(url=self.server.url, project=self.project))
        self.settings.write_text('{ "hooks": {} }')

    def own_environment(self) -> dict[str, str]:
        return {"CODEX_HOME": str(self._folder), "LOOP_KEY": "dummy"}

    def prompt(self, text: str, *, session: str = "") -> str:
        # Hooks are trusted in its own screen (`/hooks`), by a person; a run without one must say that they are.
        options = ["--dangerously-bypass-hook-trust", "--skip-git-repo-check", "--json"]
        ran = self.run("exec", *(["resume", *options, session] if session else options), text)
        return session or str(json.loads(ran.stdout.splitlines()[0])["thread_id"])

    def compact(self, session: str) -> None:
        """It has no headless `/compact`: it compacts by itself where the last prompt is said to have been long."""
        self.server.then(ModelTurn("", (self.shell("true"),), FULL), "It is compacted.")
        self.prompt("Go on.", session=session)

    def shell(self, command: str) -> AskedCall:
        return AskedCall("exec_command", {"cmd": command})
