"""LlamaIndex: an agent or an AgentWorkflow whose tools are held and kept.

    agent = with_toolmem(FunctionAgent(tools=[...], llm=llm), mem, conversation="c1")

An AgentWorkflow runs the tools of its agents, and each agent asks its own model: give `with_toolmem` both.
"""

from __future__ import annotations

import asyncio
from typing import Any

from toolmem.app import AsyncToolMem, ToolMem
from toolmem.config.extras import need
from toolmem.hosts.adapters.common import AgentConversation, AgentMemory, described

need("toolmem.hosts.adapters.llama_index", "llama-index")

from llama_index.core.base.llms.types import ChatMessage, TextBlock
from llama_index.core.tools import FunctionTool, ToolMetadata, ToolOutput
from pydantic import BaseModel, ConfigDict


def with_toolmem(agent: Any, memory: ToolMem | AsyncToolMem, conversation: str | None = None, **options: Any) -> Any:
    """The same agent: its tools are held and kept, and its system prompt ends with rules and guidance.

    Further arguments as of `AgentMemory`.
    """
    memory_of_agent = AgentMemory(memory, conversation, **options)
    talk = memory_of_agent.of()
    own: Any = type(agent)

    class GuardedWorkflow(own):
        async def _call_tool(self, ctx: Any, tool: Any, tool_input: Any) -> ToolOutput:
            name = tool.metadata.get_name()
            call = await talk.begin(name, dict(tool_input))
            if call.stops:
                told = {"tool_name": name, "raw_input": tool_input, "raw_output": call.reason}
                return ToolOutput(content=call.reason, is_error=True, **told)
            try:
                result = await super()._call_tool(ctx, tool, tool_input)
            except asyncio.CancelledError as error:
                await talk.end(call, error=error)
                raise
            # What else it raises says that the tool waits for an event: it runs again then.
            await talk.end(call, result.content, error=_error(result))
            if call.advice:
                result.blocks = [*result.blocks, TextBlock(text=call.advice)]
            return result

    if hasattr(own, "take_step"):  # an agent, which asks a model

        async def take_step(self: Any, ctx: Any, llm_input: Any, tools: Any, memory: Any) -> Any:
            said = await ctx.store.get("user_msg_str", default="")  # the memory may have a summary in the user's place
            turns = sum(message.role == "user" for message in llm_input)
            section = await talk.prompt(described(tools, _schema), said=said or "", at=turns)
            return await own.take_step(self, ctx, _with(llm_input, section), tools, memory)

        GuardedWorkflow.take_step = take_step
        agent.tools = [*(agent.tools or ()), *(_offered(tool, talk) for tool in memory_of_agent.own_tools)]
    GuardedWorkflow.__name__ = GuardedWorkflow.__qualname__ = own.__name__
    agent.__class__ = GuardedWorkflow
    return agent


def _offered(tool: dict[str, Any], talk: AgentConversation) -> FunctionTool:
    async def answer(**given: Any) -> str:
        return await talk.answer(tool["name"], given)

    class Given(BaseModel):
        model_config = ConfigDict(extra="allow", json_schema_extra=lambda schema: schema.update(tool["inputSchema"]))

    return FunctionTool(async_fn=answer, metadata=ToolMetadata(tool["description"], tool["name"], Given))


def _error(result: Any) -> Any:
    return (getattr(result, "exception", None) or result.content) if result.is_error else None


def _with(messages: Any, section: str) -> list[Any]:
    first = [messages[0].content or ""] if messages and messages[0].role == "system" else []
    text = "\n\n".join(part for part in (*first, section) if part)
    return [ChatMessage(role="system", content=text), *messages[len(first) :]] if section else list(messages)


def _schema(tool: Any) -> dict[str, Any]:
    about = tool.metadata
    return {
        "name": about.get_name(),
        "description": about.description,
        "inputSchema": about.get_parameters_dict(),
    }
