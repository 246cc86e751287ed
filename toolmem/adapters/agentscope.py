"""AgentScope: a middleware of an agent.

    agent = Agent(name="helper", model=model, middlewares=[ToolMemAgentScope(memory)], ...)

Without `conversation` it is the session of the agent's state.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import Any

from agentscope.message import TextBlock, ToolResultState
from agentscope.middleware import MiddlewareBase
from agentscope.permission import PermissionBehavior, PermissionDecision
from agentscope.tool import ToolBase, ToolChunk, ToolResponse

from toolmem.adapters.base import Conversation, Conversations, keep
from toolmem.memory.toolmem import Workspace
from toolmem.session.agent_session import NOTE_TOOLS, AgentSession
from toolmem.session.recorder import OnAsk, RecordedCall


class ToolMemAgentScope(MiddlewareBase):
    """Holds and keeps an agent's calls, and puts rules and guidance into its system prompt."""

    def __init__(
        self, memory: Workspace, conversation: str = "", *, on_ask: OnAsk | None = None
    ) -> None:
        self._talks = Conversations(memory, conversation, on_ask=on_ask)
        self._calls: OrderedDict[str, RecordedCall] = OrderedDict()
        self._said: OrderedDict[str, str] = OrderedDict()  # by session, the user's newest message
        self._offered = [_NoteTool(tool, self._talks) for tool in AgentSession.tools("mcp")]

    async def on_reply(self, agent: Any, input_kwargs: Any, next_handler: Any) -> Any:
        """What the agent is to reply to: its context may have a summary in the user's place."""
        for tool in self._offered:
            if await agent.toolkit.get_tool(tool.name) is None:
                await agent.toolkit.add_tool(tool)
        inputs = input_kwargs.get("inputs")
        for message in inputs if isinstance(inputs, list) else [inputs]:
            if getattr(message, "role", "") == "user":
                keep(self._said, str(agent.state.session_id), _text(message.content))
        async for item in next_handler(**input_kwargs):
            yield item

    async def on_model_call(self, agent: Any, input_kwargs: Any, next_handler: Any) -> Any:
        """Before the model is asked."""
        messages = list(input_kwargs["messages"])
        said = self._said.get(str(agent.state.session_id), "")
        tools = list(input_kwargs.get("tools") or ())
        section = await asyncio.to_thread(self._talk(agent).prompt, tools, said)
        if section and messages and messages[0].role == "system":
            content = [*messages[0].content, TextBlock(text=section)]
            messages[0] = messages[0].model_copy(update={"content": content})
        return await next_handler(**{**input_kwargs, "messages": messages})

    async def on_check_permission(self, agent: Any, input_kwargs: Any, next_handler: Any) -> Any:
        """Before a call."""
        asked, talk = input_kwargs["tool_call"], self._talk(agent)
        if asked.name not in NOTE_TOOLS:
            call = await asyncio.to_thread(talk.begin, asked.name, input_kwargs["tool_input"])
            if call.is_denied:
                denied = PermissionBehavior.DENY
                return PermissionDecision(denied, call.reason, decision_reason="toolmem")
            keep(self._calls, asked.id, call)  # AgentScope's user may still say no
        return await next_handler(**input_kwargs)

    async def on_acting(self, agent: Any, input_kwargs: Any, next_handler: Any) -> Any:
        """Around a call that is permitted."""
        asked, talk = input_kwargs["tool_call"], self._talk(agent)
        call = self._calls.pop(asked.id, None)
        if call is None and asked.name not in NOTE_TOOLS:  # permitted to AgentScope since
            call = await asyncio.to_thread(talk.begin, asked.name, asked.input)
        try:
            async for item in next_handler(**input_kwargs):
                if call is not None and isinstance(item, ToolResponse):
                    await asyncio.to_thread(_ended, talk, call, item)
                yield item
        except BaseException as error:
            if call is not None:
                talk.end(call, error=error)
            raise

    def _talk(self, agent: Any) -> Conversation:
        return self._talks.of(agent.state.session_id)


class _NoteTool(ToolBase):
    is_concurrency_safe = is_read_only = False
    is_state_injected = True

    def __init__(self, tool: dict[str, Any], talks: Conversations) -> None:
        super().__init__()
        self.name, self.description = tool["name"], tool["description"]
        self.input_schema = tool["inputSchema"]
        self._talks = talks

    async def check_permissions(self, *_: Any, **__: Any) -> PermissionDecision:
        return PermissionDecision(PermissionBehavior.ALLOW, "it notes what the user says")

    async def call(self, _agent_state: Any, **given: Any) -> ToolChunk:
        talk = self._talks.of(_agent_state.session_id)
        told = await asyncio.to_thread(talk.note, self.name, given)
        return ToolChunk(content=[TextBlock(text=told)])


def _ended(talk: Conversation, call: RecordedCall, response: Any) -> None:
    text = _text(response.content)
    failed = response.state != ToolResultState.SUCCESS
    advice = talk.end(call, text, error=(text or str(response.state)) if failed else None)
    if advice:
        response.content = [*response.content, TextBlock(text=advice)]


def _text(blocks: Any) -> str:
    return "\n".join(block.text for block in blocks if isinstance(block, TextBlock))
