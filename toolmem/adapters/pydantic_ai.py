"""Pydantic AI: a capability of an agent.

    agent = Agent(model, tools=[...], capabilities=[ToolMemCapability(memory)])

Without `conversation_id` the conversations are those of the framework.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any, Unpack

from pydantic_ai import ApprovalRequired, CallDeferred, FunctionToolset, Tool, ToolReturn
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import InstructionPart

from toolmem.adapters.base import Conversations, User, joined, schema_of
from toolmem.memory.toolmem import Workspace
from toolmem.session.agent_session import NOTE_TOOLS, AgentSession


class ToolMemCapability(AbstractCapability[Any]):
    """Checks and records an agent's calls; puts rules and guidance into its instructions."""

    def __init__(self, memory: Workspace, conversation_id: str = "", **user: Unpack[User]) -> None:
        self._conversations = Conversations(memory, conversation_id, **user)

    def get_toolset(self) -> FunctionToolset[Any]:
        """The tools by which the model notes demands."""
        return FunctionToolset([self._note_tool(tool) for tool in AgentSession.tools("mcp")])

    def _note_tool(self, tool: dict[str, Any]) -> Tool[Any]:
        async def note(ctx: Any, **given: Any) -> str:
            conversation = self._conversations.of(ctx.conversation_id)
            return await asyncio.to_thread(conversation.note, tool["name"], given)

        return Tool.from_schema(
            note, tool["name"], tool["description"], tool["inputSchema"], takes_ctx=True
        )

    async def before_model_request(self, ctx: Any, request_context: Any) -> Any:
        """Add rules and guidance to the instructions before the model is asked."""
        parameters = request_context.model_request_parameters
        offered = [schema_of(t, t.parameters_json_schema) for t in parameters.function_tools]
        parts = [ctx.prompt] if isinstance(ctx.prompt, str) else ctx.prompt or ()
        message = "\n".join(part for part in parts if isinstance(part, str))
        conversation = self._conversations.of(ctx.conversation_id)
        section = await asyncio.to_thread(conversation.prompt, offered, message)
        if not section:
            return request_context
        shown = [*(parameters.instruction_parts or ()), InstructionPart(section, dynamic=True)]
        parameters = replace(parameters, instruction_parts=shown)
        return replace(request_context, model_request_parameters=parameters)

    async def wrap_tool_execute(
        self, ctx: Any, *, call: Any, tool_def: Any, args: Any, handler: Any
    ) -> Any:
        """Check a call before it runs, and record how it ended."""
        conversation = self._conversations.of(ctx.conversation_id)
        if call.tool_name in NOTE_TOOLS:
            return await handler(args)
        checked = await asyncio.to_thread(conversation.begin, call.tool_name, call.args)
        if checked.is_denied:
            raise ToolFailed(checked.reason)
        result = await conversation.result(
            checked, handler, args, later=(ApprovalRequired, CallDeferred)
        )
        output = result.return_value if isinstance(result, ToolReturn) else result
        advice = await asyncio.to_thread(conversation.end, checked, output)
        if not advice or isinstance(result, ToolReturn):
            return result
        if isinstance(result, str):
            return joined(result, advice)
        return ToolReturn(result, content=advice)
