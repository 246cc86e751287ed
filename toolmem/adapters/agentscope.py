"""AgentScope: a middleware of an agent.

    agent = Agent(name="helper", model=model, middlewares=[ToolMemAgentScope(memory)], ...)

Without `conversation_id` each session of an agent's state is a conversation.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import Any, Unpack

from agentscope.message import TextBlock, ToolResultState
from agentscope.middleware import MiddlewareBase
from agentscope.permission import PermissionBehavior, PermissionDecision
from agentscope.tool import ToolBase, ToolChunk, ToolResponse

from toolmem.adapters.base import Conversation, Conversations, User, remember
from toolmem.memory.toolmem import Workspace
from toolmem.session.agent_session import NOTE_TOOLS, AgentSession
from toolmem.session.recorder import RecordedCall


class ToolMemAgentScope(MiddlewareBase):
    """Checks and records an agent's calls; puts rules and guidance into its system prompt."""

    def __init__(self, memory: Workspace, conversation_id: str = "", **user: Unpack[User]) -> None:
        self._conversations = Conversations(memory, conversation_id, **user)
        self._calls: OrderedDict[str, RecordedCall] = OrderedDict()  # by the model's id
        self._newest: OrderedDict[str, str] = OrderedDict()  # message of the user, by session
        described = AgentSession.tools("mcp")
        self._note_tools = [_NoteTool(each, self._conversations) for each in described]

    async def on_reply(self, agent: Any, input_kwargs: Any, next_handler: Any) -> Any:
        """Remember the user's message, of which the agent's context may hold only a summary."""
        for tool in self._note_tools:
            if await agent.toolkit.get_tool(tool.name) is None:
                await agent.toolkit.add_tool(tool)
        inputs = input_kwargs.get("inputs")
        for message in inputs if isinstance(inputs, list) else [inputs]:
            if getattr(message, "role", "") == "user":
                remember(self._newest, str(agent.state.session_id), _text(message.content))
        async for item in next_handler(**input_kwargs):
            yield item

    async def on_model_call(self, agent: Any, input_kwargs: Any, next_handler: Any) -> Any:
        """Add rules and guidance to the prompt before the model is asked."""
        messages = list(input_kwargs["messages"])
        message = self._newest.get(str(agent.state.session_id), "")
        tools = list(input_kwargs.get("tools") or ())
        section = await asyncio.to_thread(self._conversation(agent).prompt, tools, message)
        if section and messages and messages[0].role == "system":
            content = [*messages[0].content, TextBlock(text=section)]
            messages[0] = messages[0].model_copy(update={"content": content})
        return await next_handler(**{**input_kwargs, "messages": messages})

    async def on_check_permission(self, agent: Any, input_kwargs: Any, next_handler: Any) -> Any:
        """Check a call before it runs."""
        tool_call = input_kwargs["tool_call"]
        conversation = self._conversation(agent)
        if tool_call.name not in NOTE_TOOLS:
            given = input_kwargs["tool_input"]
            call = await asyncio.to_thread(conversation.begin, tool_call.name, given)
            if call.is_denied:
                action = PermissionBehavior.DENY
                return PermissionDecision(action, call.reason, decision_reason="toolmem")
            remember(self._calls, tool_call.id, call)  # until it ends; the user may still deny it
        return await next_handler(**input_kwargs)

    async def on_acting(self, agent: Any, input_kwargs: Any, next_handler: Any) -> Any:
        """Record how a permitted call ended."""
        tool_call = input_kwargs["tool_call"]
        conversation = self._conversation(agent)
        call = self._calls.pop(tool_call.id, None)
        if call is None and tool_call.name not in NOTE_TOOLS:  # no permission was asked
            call = await asyncio.to_thread(conversation.begin, tool_call.name, tool_call.input)
        try:
            async for item in next_handler(**input_kwargs):
                if call is not None and isinstance(item, ToolResponse):
                    await asyncio.to_thread(_end, conversation, call, item)
                yield item
        except BaseException as error:
            if call is not None:
                conversation.end(call, error=error)
            raise

    def _conversation(self, agent: Any) -> Conversation:
        return self._conversations.of(agent.state.session_id)


class _NoteTool(ToolBase):
    is_concurrency_safe = False
    is_read_only = False
    is_state_injected = True

    def __init__(self, tool: dict[str, Any], conversations: Conversations) -> None:
        super().__init__()
        self.name = tool["name"]
        self.description = tool["description"]
        self.input_schema = tool["inputSchema"]
        self._conversations = conversations

    async def check_permissions(self, *_: Any, **__: Any) -> PermissionDecision:
        return PermissionDecision(PermissionBehavior.ALLOW, "it notes what the user says")

    async def call(self, _agent_state: Any, **given: Any) -> ToolChunk:
        conversation = self._conversations.of(_agent_state.session_id)
        answer = await asyncio.to_thread(conversation.note, self.name, given)
        return ToolChunk(content=[TextBlock(text=answer)])


def _end(conversation: Conversation, call: RecordedCall, response: Any) -> None:
    text = _text(response.content)
    failed = response.state != ToolResultState.SUCCESS
    advice = conversation.end(call, text, error=(text or str(response.state)) if failed else None)
    if advice:
        response.content = [*response.content, TextBlock(text=advice)]


def _text(blocks: Any) -> str:
    return "\n".join(block.text for block in blocks if isinstance(block, TextBlock))
