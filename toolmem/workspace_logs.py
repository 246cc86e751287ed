"""What a store remembers of a workspace in the order in which it came: part of `toolmem.protocols.MemoryStore`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from toolmem.stored import LoggedCall, LoggedDecision


class WorkspaceLogs(Protocol):
    """The log of calls and the log of the guard's decisions."""

    async def call_log(
        self,
        workspace: str,
        *,
        conversation: str | None = None,
        tool: str | None = None,
        after: int = 0,
        limit: int = 1000,
        newest: bool = False,
    ) -> list[LoggedCall]:
        """At most `limit` logged calls whose position is greater than `after`, oldest first.

        `newest`: the last of them instead of the first. `conversation`: those whose `conversation_id` it is. The log
        holds the newest calls of the workspace within the store's `LogLimits`, and beside them each call that a
        window still keeps. A judgement is as it is now. Costs what it answers.
        """

    async def log_decision(self, workspace: str, decision: LoggedDecision) -> None:
        """Insert it, or replace in its place the one with the same id; beyond the limit the oldest go."""

    async def decisions(
        self,
        workspace: str,
        *,
        ids: Sequence[str] | None = None,
        conversation: str | None = None,
        tool: str | None = None,
        limit: int = 100,
    ) -> list[LoggedDecision]:
        """Newest first, in the order in which they were first logged. Only those that fit all that is given."""
