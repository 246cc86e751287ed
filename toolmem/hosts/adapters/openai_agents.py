"""OpenAI Agents SDK: an agent whose function tools are held and kept.

    agent = with_toolmem(Agent(name="helper", tools=[...]), mem, conversation="c1")

Tools of MCP servers and tools that OpenAI runs are not seen: `toolmem mcp wrap` holds the former.
"""

from __future__ import annotations

import copy
import inspect
from typing import Any

from toolmem.app import AsyncToolMem, ToolMem
from toolmem.config.extras import need
from toolmem.hosts.adapters.common import AgentConversation, AgentMemory, described

need("toolmem.hosts.adapters.openai_agents", "openai-agents")

from agents import Agent, FunctionTool
from agents.tool import resolve_function_tool_failure_error_function, set_function_tool_failure_error_function


def with_toolmem(
    agent: Agent[Any], memory: ToolMem | AsyncToolMem, conversation: str | None = None, **options: Any
) -> Agent[Any]:
    """A clone of the agent: its calls are held and kept, and its instructions end with rules and guidance.

    Further arguments as of `AgentMemory`. Agents of one conversation, handed to each other, name the same one.
    """
    memory_of_agent = AgentMemory(memory, conversation, **options)
    talk = memory_of_agent.of()
    tools = [_held(tool, talk) if isinstance(tool, FunctionTool) else tool for tool in agent.tools]
    tools += [_offered(tool, talk) for tool in memory_of_agent.own_tools]
    shown = described([tool for tool in tools if isinstance(tool, FunctionTool)], _schema)

    async def instructions(context: Any, _: Any) -> str:
        base = await agent.get_system_prompt(context)
        section = await talk.prompt(shown, **_newest(getattr(context, "turn_input", ())))
        return "\n\n".join(part for part in (base, section) if part)

    return agent.clone(tools=tools, instructions=instructions)


def _offered(tool: dict[str, Any], talk: AgentConversation) -> FunctionTool:
    name = tool["name"]

    async def on_invoke_tool(_: Any, arguments: str) -> str:
        return await talk.answer(name, arguments)

    return FunctionTool(name, tool["description"], tool["inputSchema"], on_invoke_tool, strict_json_schema=False)


def _held(tool: FunctionTool, talk: AgentConversation) -> FunctionTool:
    held = copy.copy(tool)

    async def on_invoke_tool(context: Any, arguments: str) -> Any:
        call = await talk.begin(tool.name, arguments, context.tool_call_id)
        if call.stops:
            return call.reason
        errors: list[BaseException] = []
        try:
            result = await _telling(tool, context, errors).on_invoke_tool(context, arguments)
        except BaseException as error:
            await talk.end(call, error=error)
            raise
        await talk.end(call, result, error=errors[0] if errors else None)
        return call.advised(result) if isinstance(result, str) else result

    held.on_invoke_tool = on_invoke_tool
    return held


def _telling(tool: FunctionTool, context: Any, errors: list[BaseException]) -> FunctionTool:
    """The tool, which notes an error before the framework makes a text of it."""
    telling = copy.copy(tool)
    told = resolve_function_tool_failure_error_function(tool, context)
    if told is None:  # it raises
        return telling

    async def noted(context: Any, error: Exception) -> str:
        errors.append(error)
        text = told(context, error)
        return str(await text if inspect.isawaitable(text) else text)

    set_function_tool_failure_error_function(telling, noted)
    return telling


def _newest(items: Any) -> dict[str, Any]:
    said = [item for item in items if isinstance(item, dict) and item.get("role") == "user"]
    return {"said": said[-1].get("content"), "at": len(said)} if said else {}


def _schema(tool: FunctionTool) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "inputSchema": tool.params_json_schema}
