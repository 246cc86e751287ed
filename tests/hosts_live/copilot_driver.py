"""GitHub Copilot CLI, headless (`copilot -p`), with a model of the user's own: GitHub asks for no login then."""

from __future__ import annotations

import uuid

from tests.hosts_live.agent_driver import AgentDriver
from toolmem.testing.agent_server import AgentRequest, AskedCall


class CopilotDriver(AgentDriver):
    host = "copilot"
    title = "GitHub Copilot CLI"
    package = "@github/copilot"
    program = "copilot"

    def prepare(self) -> None:
        """Nothing: all of it is in the environment."""

    def own_environment(self) -> dict[str, str]:
        return {
            "COPILOT_OFFLINE": "true",
            "COPILOT_PROVIDER_TYPE": "anthropic",
            "COPILOT_PROVIDER_BASE_URL": self.server.url,
            "COPILOT_PROVIDER_API_KEY": "dummy",
            "COPILOT_MODEL": "claude-sonnet-4.5",
            "COPILOT_ALLOW_ALL": "true",  # exactly so it also trusts the folder
        }

    def prompt(self, text: str, *, session: str = "") -> str:
        named = session or str(uuid.uuid4())
        self.run("-p", text, "--session-id", named, "--allow-all-tools", "--allow-all-paths", "--no-auto-update")
        return named

    def compact(self, session: str) -> None:
        self.run("-p", "/compact", "--session-id", session, "--allow-all-tools", "--no-auto-update")

    def shell(self, command: str) -> AskedCall:
        return AskedCall("bash", {"command": command, "description": "Run it"})

    def is_aside(self, request: AgentRequest) -> bool:
        """It offers its tools with the request for a summary too."""
        return not request.tools or any("Tools are unavailable in this step" in text for text in request.texts[-2:])
