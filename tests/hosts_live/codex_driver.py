"""Codex, headless (`codex exec`)."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

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
    package = "@openai/codex"
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

    def after_install(self) -> None:
        """Trust the hooks: what its screen `/hooks` writes when a person does, for the hooks that it says it found."""
        asked = [
            {"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "t", "title": "t", "version": "1"}}},
            {"method": "initialized"},
            {"id": 2, "method": "hooks/list", "params": {"cwds": [str(self.project)]}},
        ]
        server = subprocess.Popen(
            [self.executable, "app-server"],
            cwd=self.project,
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert server.stdin is not None
        assert server.stdout is not None
        with server:
            server.stdin.write("".join(f"{json.dumps(each)}\n" for each in asked))
            server.stdin.flush()
            listed = next(each for each in map(json.loads, server.stdout) if each.get("id") == 2)["result"]["data"]
            server.terminate()
        with (self._folder / "config.toml").open("a") as config:
            for hook in listed[0]["hooks"]:
                key, digest = json.dumps(hook["key"]), json.dumps(hook["currentHash"])
                config.write(f"\n[hooks.state.{key}]\ntrusted_hash = {digest}\n")

    def prompt(self, text: str, *, session: str = "") -> str:
        options = ["--skip-git-repo-check", "--json"]
        ran = self.run("exec", *(["resume", *options, session] if session else options), text)
        return session or str(json.loads(ran.stdout.splitlines()[0])["thread_id"])

    def compact(self, session: str) -> None:
        """It has no headless `/compact`: it compacts by itself where the last prompt is said to have been long."""
        self.server.then(ModelTurn("", (self.shell("true"),), FULL), "It is compacted.")
        self.prompt("Go on.", session=session)

    def add_server(self, name: str, command: list[str]) -> None:
        with (self._folder / "config.toml").open("a") as config:
            program, arguments = json.dumps(command[0]), json.dumps(command[1:])
            config.write(f"\n[mcp_servers.{name}]\ncommand = {program}\nargs = {arguments}\nrequired = true\n")

    def server_call(self, server: str, tool: str, arguments: dict[str, Any]) -> AskedCall:
        return AskedCall(tool, arguments, namespace=f"mcp__{server}")

    def shell(self, command: str) -> AskedCall:
        return AskedCall("exec_command", {"cmd": command})
