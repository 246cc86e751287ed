"""AsyncAgentSession: an AgentSession whose methods are coroutines. The work is done in threads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec, Self, TypeVar

from toolmem.memory.async_toolmem import AsyncToolMem
from toolmem.memory.toolmem import Workspace
from toolmem.models.decisions import Decision
from toolmem.rules.capture import Captured
from toolmem.session.agent_session import AgentSession
from toolmem.session.messages import Message

P = ParamSpec("P")
R = TypeVar("R")


class AsyncAgentSession:
    """As AgentSession, awaited. `plain` is the session that it wraps."""

    def __init__(self, plain: AgentSession) -> None:
        self.plain = plain

    @classmethod
    async def start(cls, memory: Workspace | AsyncToolMem, **options: Any) -> Self:
        """Takes what AgentSession.start takes."""
        own = memory if isinstance(memory, Workspace) else memory.plain
        return cls(await asyncio.to_thread(AgentSession.start, own, **options))

    @property
    def system_prompt(self) -> str:
        """The frozen prompt."""
        return self.plain.system_prompt

    def tool(self, function: Callable[P, R]) -> Callable[P, R]:
        """Decorate a plain or an async function."""
        return self.plain.tool(function)

    def tools(self, form: Any = "openai") -> list[dict[str, Any]]:
        """`note_demand` and `lift_demand`."""
        return self.plain.tools(form)

    async def messages(self, user_message: str | None = None) -> list[Message]:
        """What to send to the model."""
        return await asyncio.to_thread(self.plain.messages, user_message)

    async def check(
        self, tool_name: str, arguments: Mapping[str, Any] | str, *, force: bool | None = None
    ) -> Decision:
        """What is to become of a call."""
        return await asyncio.to_thread(self.plain.check, tool_name, arguments, force=force)

    async def call_tool(self, name: str, arguments: Mapping[str, Any] | str) -> str:
        """The result of one of `tools`."""
        return await asyncio.to_thread(self.plain.call_tool, name, arguments)

    async def after_turn(self, turn: Sequence[Message] = (), **options: Any) -> Captured:
        """Learn from a turn."""
        return await asyncio.to_thread(self.plain.after_turn, turn, **options)

    async def close(self) -> None:
        """Wait until every call is judged."""
        await asyncio.to_thread(self.plain.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
