"""Pydantic AI: a capability of an agent.

    agent = Agent(model, tools=[...], capabilities=[ToolMemCapability(mem, conversation="c1")])

Without `conversation` it is the run's `conversation_id`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from toolmem.app import AsyncToolMem, ToolMem
from toolmem.config.extras import need
from toolmem.hosts.adapters.common import AgentMemory, described

need("toolmem.hosts.adapters.pydantic_ai", "pydantic-ai")

from pydantic_ai import ApprovalRequired, CallDeferred, FunctionToolset, Tool, ToolReturn
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import InstructionPart


class ToolMemCapability(AbstractCapability[Any]):
    """Holds and keeps the calls of an agent, and puts rules and guidance into its instructions.

    Arguments as of `AgentMemory`.
    """

    def __init__(self, memory: ToolMem | AsyncToolMem, conversation: str | None = None, **options: Any) -> None:
        self._agent = AgentMemory(memory, conversation, **options)

    def get_toolset(self) -> FunctionToolset[Any]:
        """What the model is offered beside the agent's tools."""
        return FunctionToolset([self._offered(tool) for tool in self._agent.own_tools])

    def _offered(self, tool: dict[str, Any]) -> Tool[Any]:
        async def answer(ctx: Any, **given: Any) -> str:
            return await self._agent.of(ctx.conversation_id).answer(tool["name"], given)

        return Tool.from_schema(answer, tool["name"], tool["description"], tool["inputSchema"], takes_ctx=True)

    async def before_model_request(self, ctx: Any, request_context: Any) -> Any:
        """Before the model is asked."""
        parameters = request_context.model_request_parameters
        section = await self._agent.of(ctx.conversation_id).prompt(
            described(parameters.function_tools, _schema), said=_words(ctx.prompt), at=ctx.run_id
        )
        if not section:
            return request_context
        parts = [*(parameters.instruction_parts or ()), InstructionPart(section, dynamic=True)]
        return replace(request_context, model_request_parameters=replace(parameters, instruction_parts=parts))

    async def wrap_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: Any, handler: Any) -> Any:
        """Around a call."""
        talk = self._agent.of(ctx.conversation_id)
        held = await talk.begin(call.tool_name, call.args, call.tool_call_id)
        if held.stops:
            raise ToolFailed(held.reason)
        try:
            result = await handler(args)
        except (ApprovalRequired, CallDeferred):  # it runs later, elsewhere
            raise
        except BaseException as error:
            await talk.end(held, error=error)
            raise
        await talk.end(held, result.return_value if isinstance(result, ToolReturn) else result)
        if not held.advice or isinstance(result, ToolReturn):
            return result
        return held.advised(result) if isinstance(result, str) else ToolReturn(result, content=held.advice)


def _schema(tool: Any) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description or "", "inputSchema": tool.parameters_json_schema}


def _words(prompt: Any) -> str:
    """What the user wrote, without what is attached."""
    parts = [prompt] if isinstance(prompt, str) else prompt or ()
    return "\n".join(part for part in parts if isinstance(part, str))
