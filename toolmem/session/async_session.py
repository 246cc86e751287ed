"""AsyncAgentSession: an AgentSession whose methods are coroutines. The work is done in threads."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from toolmem.memory.toolmem import AsyncToolMem, Workspace
from toolmem.models.decisions import Decision
from toolmem.session.agent_session import AgentSession

P = ParamSpec("P")
R = TypeVar("R")


def _awaited(
    method: Callable[Concatenate[AgentSession, P], R],
) -> Callable[Concatenate[AsyncAgentSession, P], Awaitable[R]]:
    @wraps(method)
    async def run(session: AsyncAgentSession, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await asyncio.to_thread(method, session.plain, *args, **kwargs)

    return run


class AsyncAgentSession:
    """An AgentSession whose methods are coroutines. `plain` is the session that it wraps."""

    def __init__(self, plain: AgentSession) -> None:
        self.plain = plain
        self.system_prompt = plain.system_prompt
        self.conversation_id = plain.conversation_id
        self.tool = plain.tool  # for plain and async functions
        self.tools = plain.tools

    @classmethod
    async def start(cls, memory: Workspace | AsyncToolMem, **options: Any) -> Self:
        """Like `AgentSession.start`, with the same options."""
        plain = memory if isinstance(memory, Workspace) else memory.plain
        return cls(await asyncio.to_thread(AgentSession.start, plain, **options))

    @property
    def errors(self) -> list[str]:
        """Messages of errors that happened while calls were judged."""
        return self.plain.errors

    @property
    def decisions(self) -> list[Decision]:
        """Decisions other than a plain allow, oldest first."""
        return self.plain.decisions

    messages = _awaited(AgentSession.messages)
    check = _awaited(AgentSession.check)
    ended = _awaited(AgentSession.ended)
    call_tool = _awaited(AgentSession.call_tool)
    after_turn = _awaited(AgentSession.after_turn)
    close = _awaited(AgentSession.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
