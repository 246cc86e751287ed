"""OpenAI Agents SDK: an agent whose function tools are held and kept.

    agent = with_toolmem(Agent(name="helper", tools=[...]), memory)

Tools of MCP servers and tools that OpenAI runs are not seen; `toolmem mcp wrap` holds the former.
"""

from __future__ import annotations

import asyncio
import copy
import inspect
from typing import Any

from agents import Agent, FunctionTool
from agents.tool import (
    resolve_function_tool_failure_error_function,
    set_function_tool_failure_error_function,
)

from toolmem.adapters.base import Conversation, Conversations, beside, schema_of
from toolmem.memory.toolmem import Workspace
from toolmem.session import AgentSession
from toolmem.session.recorder import OnAsk


def with_toolmem(
    agent: Agent[Any], memory: Workspace, conversation: str = "", *, on_ask: OnAsk | None = None
) -> Agent[Any]:
    """A clone whose calls are held and kept, with rules and guidance behind its instructions.

    Agents that hand a conversation to each other name the same one.
    """
    talk = Conversations(memory, conversation, on_ask=on_ask).of()
    tools = [_held(each, talk) if isinstance(each, FunctionTool) else each for each in agent.tools]
    tools += [_offered(each, talk) for each in AgentSession.tools("mcp")]
    own = [each for each in tools if isinstance(each, FunctionTool)]
    known = [schema_of(each, each.params_json_schema) for each in own]

    async def instructions(context: Any, _: Any) -> str:
        base = await agent.get_system_prompt(context)
        items = [each for each in getattr(context, "turn_input", ()) if isinstance(each, dict)]
        said = [each.get("content") for each in items if each.get("role") == "user"]
        newest = said[-1] if said and isinstance(said[-1], str) else ""
        return beside(base or "", await asyncio.to_thread(talk.prompt, known, newest))

    return agent.clone(tools=tools, instructions=instructions)


def _offered(tool: dict[str, Any], talk: Conversation) -> FunctionTool:
    async def note(_: Any, arguments: str) -> str:
        return await asyncio.to_thread(talk.note, tool["name"], arguments)

    return FunctionTool(
        tool["name"], tool["description"], tool["inputSchema"], note, strict_json_schema=False
    )


def _held(tool: FunctionTool, talk: Conversation) -> FunctionTool:
    held = copy.copy(tool)

    async def invoke(context: Any, arguments: str) -> Any:
        call = await asyncio.to_thread(talk.begin, tool.name, arguments)
        if call.is_denied:
            return call.reason
        errors: list[BaseException] = []
        run = _noting(tool, context, errors).on_invoke_tool
        result = await talk.result(call, run, context, arguments)
        told = errors[0] if errors else None
        advice = await asyncio.to_thread(talk.end, call, result, error=told)
        return beside(result, advice) if isinstance(result, str) else result

    held.on_invoke_tool = invoke
    return held


def _noting(tool: FunctionTool, context: Any, errors: list[BaseException]) -> FunctionTool:
    """The tool, which notes an error before the framework makes a text of it."""
    noting = copy.copy(tool)
    told = resolve_function_tool_failure_error_function(tool, context)
    if told is None:  # it raises
        return noting

    async def note(context: Any, error: Exception) -> str:
        errors.append(error)
        text = told(context, error)
        return str(await text if inspect.isawaitable(text) else text)

    set_function_tool_failure_error_function(noting, note)
    return noting
