"""Each agent as its user runs it: in a fresh home, without anybody at the keys."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import uuid
from pathlib import Path

from hosts_live.model import Asked, Model

PROGRAMS = Path(__file__).parents[2] / ".hosts" / "node_modules"
SECONDS = 300.0  # one run of a program


class Program:
    """`folder` gets the home and the project. Nothing of this machine's environment reaches it."""

    agent = ""
    program = ""

    def __init__(self, model: Model, folder: Path) -> None:
        self.model = model
        self.home, self.project = folder / "home", folder / "project"
        for each in (self.home, self.project):
            each.mkdir(parents=True)
        self.executable = str(PROGRAMS / ".bin" / self.program)
        self.prepare()

    def prepare(self) -> None:
        """Write the configuration that makes the agent talk to the model."""

    def variables(self) -> dict[str, str]:
        return {}

    def say(self, text: str) -> None:
        """In a new session, until the agent is done."""
        raise NotImplementedError

    def shell(self, command: str) -> Asked:
        """The call by which its model runs a command."""
        raise NotImplementedError

    def settings(self) -> Path | None:
        """The file of the user's that the install edits."""
        return None

    def after_install(self) -> None:
        """What its user must still do."""

    def version(self) -> str:
        found = re.search(r"\d+(?:\.\d+)+", self.run("--version"))
        return found[0] if found else "unknown"

    def run(self, *arguments: str) -> str:
        return self.start([self.executable, *arguments])

    def toolmem(self, *arguments: str) -> str:
        """As its user calls it beside the agent."""
        return self.start([sys.executable, "-P", "-m", "toolmem", *arguments])

    def environment(self) -> dict[str, str]:
        path = f"{PROGRAMS / 'node' / 'bin'}:/usr/local/bin:/usr/bin:/bin"
        return {"HOME": str(self.home), "PATH": path, "LANG": "C.UTF-8", **self.variables()}

    def start(self, command: list[str]) -> str:
        ran = subprocess.run(
            command,
            cwd=self.project,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert ran.returncode == 0, f"{command[:4]}: {ran.stdout[-1500:]}\n{ran.stderr[-1500:]}"
        return ran.stdout


class ClaudeCode(Program):
    agent, program = "claude-code", "claude"

    def settings(self) -> Path:
        return self.project / ".claude" / "settings.local.json"

    def prepare(self) -> None:
        self.settings().parent.mkdir()
        self.settings().write_text('{\n    "cleanupPeriodDays" : 30,  "env": {"A": "b"}\n}')

    def variables(self) -> dict[str, str]:
        return {
            "ANTHROPIC_API_KEY": "dummy",
            "ANTHROPIC_BASE_URL": self.model.url,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_TELEMETRY": "1",
            "IS_SANDBOX": "1",
        }

    def say(self, text: str) -> None:
        self.run("-p", text, "--dangerously-skip-permissions", "--output-format", "json")

    def shell(self, command: str) -> Asked:
        return Asked("Bash", {"command": command})


_CODEX = """\
model = "gpt-5"
model_provider = "loop"
approval_policy = "never"
sandbox_mode = "danger-full-access"

[model_providers.loop]
name = "loop"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "LOOP_KEY"

[projects."{project}"]
trust_level = "trusted"
"""


class Codex(Program):
    agent, program = "codex", "codex"

    def settings(self) -> Path:
        return self.project / ".codex" / "hooks.json"

    def prepare(self) -> None:
        for folder in (self.home / ".codex", self.settings().parent):
            folder.mkdir()
        text = _CODEX.format(url=self.model.url, project=self.project)
        (self.home / ".codex" / "config.toml").write_text(text)
        self.settings().write_text('{ "hooks": {} }')

    def variables(self) -> dict[str, str]:
        return {"CODEX_HOME": str(self.home / ".codex"), "LOOP_KEY": "dummy"}

    def after_install(self) -> None:
        """Trust the hooks that it says it found, as its screen /hooks writes it."""
        client = {"name": "t", "title": "t", "version": "1"}
        asked = [
            {"id": 1, "method": "initialize", "params": {"clientInfo": client}},
            {"method": "initialized"},
            {"id": 2, "method": "hooks/list", "params": {"cwds": [str(self.project)]}},
        ]
        server = subprocess.Popen(
            [self.executable, "app-server"],
            cwd=self.project,
            env={**os.environ, "HOME": str(self.home), **self.variables()},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert server.stdin is not None and server.stdout is not None
        with server:
            server.stdin.write("".join(f"{json.dumps(each)}\n" for each in asked))
            server.stdin.flush()
            answers = map(json.loads, server.stdout)
            listed = next(each for each in answers if each.get("id") == 2)["result"]["data"]
            server.terminate()
        with (self.home / ".codex" / "config.toml").open("a") as config:
            for hook in listed[0]["hooks"]:
                key, digest = json.dumps(hook["key"]), json.dumps(hook["currentHash"])
                config.write(f"\n[hooks.state.{key}]\ntrusted_hash = {digest}\n")

    def say(self, text: str) -> None:
        self.run("exec", "--skip-git-repo-check", "--json", text)

    def shell(self, command: str) -> Asked:
        return Asked("exec_command", {"cmd": command})


class Gemini(Program):
    agent, program = "gemini", "gemini"

    def settings(self) -> Path:
        return self.project / ".gemini" / "settings.json"

    def prepare(self) -> None:
        self.settings().parent.mkdir()
        self.settings().write_text('{\n\t// kept\n\t"ui": {"hideTips" : true}\n}')
        users = {
            "security": {"auth": {"selectedType": "gemini-api-key"}},
            "general": {"enableAutoUpdate": False},
            "privacy": {"usageStatisticsEnabled": False},
        }
        (self.home / ".gemini").mkdir()
        (self.home / ".gemini" / "settings.json").write_text(json.dumps(users))

    def variables(self) -> dict[str, str]:
        return {
            "GEMINI_API_KEY": "dummy",
            "GOOGLE_GEMINI_BASE_URL": self.model.url,
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
        }

    def say(self, text: str) -> None:
        options = ["-m", "gemini-2.5-pro", "--approval-mode", "yolo", "--output-format", "json"]
        self.run("-p", text, *options)

    def shell(self, command: str) -> Asked:
        return Asked("run_shell_command", {"command": command})


class OpenCode(Program):
    agent, program = "opencode", "opencode"

    def prepare(self) -> None:
        folder = self.home / ".config" / "opencode"
        folder.mkdir(parents=True)
        limit = {"context": 100_000, "output": 4_000}
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "name": "loop",
            "options": {"baseURL": f"{self.model.url}/v1", "apiKey": "dummy"},
            "models": {"scripted": {"name": "scripted", "tool_call": True, "limit": limit}},
        }
        settings = {"model": "loop/scripted", "small_model": "loop/scripted", "share": "disabled"}
        settings |= {"autoupdate": False, "provider": {"loop": provider}}
        (folder / "opencode.json").write_text(json.dumps(settings))

    def variables(self) -> dict[str, str]:
        names = ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD")
        return {f"OPENCODE_DISABLE_{name}": "1" for name in names}

    def say(self, text: str) -> None:
        self.run("run", "--format", "json", text)

    def shell(self, command: str) -> Asked:
        return Asked("bash", {"command": command, "description": "Run it"})


class Cline(Program):
    agent, program = "cline", "cline"

    def prepare(self) -> None:
        key = ["-k", "dummy", "-m", "scripted", "-b", f"{self.model.url}/v1"]
        self.run("auth", "-p", "openai-compatible", *key)

    def variables(self) -> dict[str, str]:
        quiet = {"DO_NOT_TRACK": "1", "CLINE_TELEMETRY_DISABLED": "1"}
        return {**quiet, "CLINE_SESSION_BACKEND_MODE": "local"}

    def say(self, text: str) -> None:
        self.run("--auto-approve", "true", text if " " in text else f"{text} Please.")

    def shell(self, command: str) -> Asked:
        return Asked("run_commands", {"commands": [command]})


class Copilot(Program):
    agent, program = "copilot", "copilot"

    def variables(self) -> dict[str, str]:
        return {
            "COPILOT_OFFLINE": "true",
            "COPILOT_PROVIDER_TYPE": "anthropic",
            "COPILOT_PROVIDER_BASE_URL": self.model.url,
            "COPILOT_PROVIDER_API_KEY": "dummy",
            "COPILOT_MODEL": "claude-sonnet-4.5",
            "COPILOT_ALLOW_ALL": "true",
        }

    def say(self, text: str) -> None:
        allow = ["--allow-all-tools", "--allow-all-paths", "--no-auto-update"]
        self.run("-p", text, "--session-id", str(uuid.uuid4()), *allow)

    def shell(self, command: str) -> Asked:
        return Asked("bash", {"command": command, "description": "Run it"})


EVERY = (ClaudeCode, Codex, Gemini, OpenCode, Cline, Copilot)
