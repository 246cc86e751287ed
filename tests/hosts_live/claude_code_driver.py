"""Claude Code, headless (`claude -p`)."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

from tests.hosts_live.agent_driver import AgentDriver
from tests.hosts_live.terminal import Terminal
from toolmem.testing.agent_server import AgentRequest, AskedCall


class ClaudeCodeDriver(AgentDriver):
    host = "claude-code"
    title = "Claude Code"
    package = "@anthropic-ai/claude-code"
    program = "claude"

    @property
    def settings(self) -> Path:
        return self.project / ".claude" / "settings.local.json"

    def prepare(self) -> None:
        self.settings.parent.mkdir(exist_ok=True)
        self.settings.write_text('{\n    "cleanupPeriodDays" : 30,  "env": {"A": "b"}\n}')  # not as we would write it

    def own_environment(self) -> dict[str, str]:
        return {
            "ANTHROPIC_API_KEY": "dummy",
            "ANTHROPIC_BASE_URL": self.server.url,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_TELEMETRY": "1",
            "IS_SANDBOX": "1",  # it refuses to skip permissions as root elsewhere
        }

    def prompt(self, text: str, *, session: str = "") -> str:
        named = ["--resume", session] if session else ["--session-id", str(uuid.uuid4())]
        servers = self.project / ".mcp.json"
        if servers.exists():
            named += ["--mcp-config", str(servers)]
        ran = self.run("-p", text, *named, "--dangerously-skip-permissions", "--output-format", "json")
        return str(json.loads(ran.stdout)["session_id"])

    def terminal(self, *arguments: str) -> Terminal:
        """It, as its user has it before them; first questions (theme, trust, key) were answered before."""
        known = {
            "hasCompletedOnboarding": True,
            "theme": "dark",
            "customApiKeyResponses": {"approved": ["dummy"], "rejected": []},
            "projects": {str(self.project): {"hasTrustDialogAccepted": True}},
        }
        (self.home / ".claude.json").write_text(json.dumps(known))
        shown = Terminal([self.executable, "--allowedTools", "Bash", *arguments], self.project, self.environment)
        shown.wait_for("❯")
        return shown

    def compact(self, session: str) -> None:
        self.run("-p", "/compact", "--resume", session)

    def shell(self, command: str) -> AskedCall:
        return AskedCall("Bash", {"command": command})

    def add_server(self, name: str, command: list[str]) -> None:
        servers = {name: {"command": command[0], "args": command[1:]}}
        (self.project / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))

    def is_aside(self, request: AgentRequest) -> bool:
        """It offers its tools with the request for a summary too."""
        return not request.tools or any("create a detailed summary of" in text for text in request.texts[-4:])
