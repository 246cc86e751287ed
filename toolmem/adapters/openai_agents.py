"""OpenAI Agents SDK: an agent whose function tools are checked and recorded.

    agent = with_toolmem(Agent(name="helper", tools=[...]), memory)

Tools that OpenAI runs and tools of MCP servers are not checked; for MCP use `toolmem mcp wrap`.
"""

from __future__ import annotations

import asyncio
import copy
import inspect
from typing import Any, Unpack

from agents import Agent, FunctionTool
from agents.tool import (
    resolve_function_tool_failure_error_function,
    set_function_tool_failure_error_function,
)

from toolmem.adapters.base import Conversation, Conversations, User, joined, schema_of
from toolmem.memory.toolmem import Workspace
from toolmem.session import AgentSession


def with_toolmem(
    agent: Agent[Any], memory: Workspace, conversation_id: str = "", **user: Unpack[User]
) -> Agent[Any]:
    """Clone an agent. The clone checks and records calls; its instructions have rules and guidance.

    Agents that hand a conversation over to each other need the same `conversation_id`.
    """
    conversation = Conversations(memory, conversation_id, **user).of()
    tools = [_checked(t, conversation) if isinstance(t, FunctionTool) else t for t in agent.tools]
    tools += [_note_tool(each, conversation) for each in AgentSession.tools("mcp")]
    own = [each for each in tools if isinstance(each, FunctionTool)]
    known = [schema_of(each, each.params_json_schema) for each in own]

    async def instructions(context: Any, _: Any) -> str:
        base = await agent.get_system_prompt(context)
        items = [each for each in getattr(context, "turn_input", ()) if isinstance(each, dict)]
        messages = [each.get("content") for each in items if each.get("role") == "user"]
        newest = messages[-1] if messages and isinstance(messages[-1], str) else ""
        return joined(base or "", await asyncio.to_thread(conversation.prompt, known, newest))

    return agent.clone(tools=tools, instructions=instructions)


def _note_tool(tool: dict[str, Any], conversation: Conversation) -> FunctionTool:
    async def note(_: Any, arguments: str) -> str:
        return await asyncio.to_thread(conversation.note, tool["name"], arguments)

    return FunctionTool(
        tool["name"], tool["description"], tool["inputSchema"], note, strict_json_schema=False
    )


def _checked(tool: FunctionTool, conversation: Conversation) -> FunctionTool:
    checked = copy.copy(tool)

    async def invoke(context: Any, arguments: str) -> Any:
        call = await asyncio.to_thread(conversation.begin, tool.name, arguments)
        if call.is_denied:
            return call.reason
        errors: list[BaseException] = []
        run = _with_errors(tool, context, errors).on_invoke_tool
        result = await conversation.result(call, run, context, arguments)
        error = errors[0] if errors else None
        advice = await asyncio.to_thread(conversation.end, call, result, error=error)
        return joined(result, advice) if isinstance(result, str) else result

    checked.on_invoke_tool = invoke
    return checked


def _with_errors(tool: FunctionTool, context: Any, errors: list[BaseException]) -> FunctionTool:
    """Copy a tool. The copy adds its errors to `errors`; the framework only passes on text."""
    recording = copy.copy(tool)
    describe = resolve_function_tool_failure_error_function(tool, context)
    if describe is None:  # it raises
        return recording

    async def record(context: Any, error: Exception) -> str:
        errors.append(error)
        text = describe(context, error)
        return str(await text if inspect.isawaitable(text) else text)

    set_function_tool_failure_error_function(recording, record)
    return recording
