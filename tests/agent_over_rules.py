"""An agent's tools over a rule store that is open already."""

from __future__ import annotations

from typing import Any

from toolmem.config.settings import Settings
from toolmem.operations.agent_tools import AgentTools


class _Services:
    """What operations on rules and general memory ask for."""

    def __init__(self, rules: Any) -> None:
        self._rules = rules
        self.clock = rules.clock
        self.settings = Settings()

    async def store(self, op: Any) -> Any:
        return self._rules.store

    async def embedder(self, op: Any) -> Any:
        return self._rules.embedder

    def untrusted(self, store: str) -> str:
        return ""


def agent_over(rules: Any) -> AgentTools:
    return AgentTools(_Services(rules), rules.workspace)  # type: ignore[arg-type]
