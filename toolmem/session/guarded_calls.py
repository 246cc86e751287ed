"""What holds the calls of a conversation before they run, for tools that an agent's own program runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from toolmem.guard.decision import GuardDecision


class CallChecks(Protocol):
    """Decides on the calls of one conversation, and learns from how they ended. None of its methods raises for a store
    that fails.
    """

    async def before(self, tool_name: str, arguments: Mapping[str, Any]) -> GuardDecision:
        """What is to become of a call."""

    async def after(
        self, decision: GuardDecision | None, record: Mapping[str, Any], arguments: Mapping[str, Any]
    ) -> None:
        """How it ended. `record`: as of `add_tool_call_result`."""

    def before_now(self, tool_name: str, arguments: Mapping[str, Any]) -> GuardDecision:
        """`before`, for a synchronous tool, also in the thread of a running event loop."""

    def after_now(
        self, decision: GuardDecision | None, record: Mapping[str, Any], arguments: Mapping[str, Any]
    ) -> None:
        """`after`, for a synchronous tool."""
