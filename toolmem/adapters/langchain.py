"""LangChain and LangGraph: a middleware of `create_agent`.

    agent = create_agent(model, tools, middleware=[ToolMemMiddleware(memory)])

Without `conversation_id` each `thread_id` is a conversation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Unpack

from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import StructuredTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.errors import GraphBubbleUp

from toolmem.adapters.base import Conversation, Conversations, User, joined, log
from toolmem.formats.records import read_schemas
from toolmem.memory.toolmem import Workspace
from toolmem.session.agent_session import NOTE_TOOLS, AgentSession
from toolmem.session.recorder import RecordedCall


class ToolMemMiddleware(AgentMiddleware):
    """Checks and records an agent's calls; puts rules and guidance into its prompt."""

    def __init__(self, memory: Workspace, conversation_id: str = "", **user: Unpack[User]) -> None:
        super().__init__()
        self._conversations = Conversations(memory, conversation_id, **user)
        self.tools = [
            StructuredTool(
                name=each["name"],
                description=each["description"],
                args_schema=each["inputSchema"],
                func=lambda **_: "",  # wrap_tool_call answers it
            )
            for each in AgentSession.tools("mcp")
        ]

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Add rules and guidance to the prompt before the model is asked."""
        return handler(self._with_prompt(request))

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """`wrap_model_call` of an async run."""
        return await handler(await asyncio.to_thread(self._with_prompt, request))

    def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Check a call before it runs, and record how it ended."""
        conversation = self._conversation(request)
        call = _begin(conversation, request)
        if isinstance(call, ToolMessage):
            return call
        try:
            result = handler(request)
        except GraphBubbleUp:  # an interrupt: the graph runs this call again later
            raise
        except BaseException as error:
            conversation.end(call, error=error)
            raise
        return _end(conversation, call, result)

    async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """`wrap_tool_call` of an async run."""
        conversation = self._conversation(request)
        call = await asyncio.to_thread(_begin, conversation, request)
        if isinstance(call, ToolMessage):
            return call
        result = await conversation.result(call, handler, request, later=(GraphBubbleUp,))
        return await asyncio.to_thread(_end, conversation, call, result)

    def _conversation(self, request: Any) -> Conversation:
        config = getattr(request.runtime, "config", None) or {}
        info = getattr(request.runtime, "execution_info", None)
        thread = getattr(info, "thread_id", "")
        configurable = config.get("configurable") or {}
        return self._conversations.of(thread or configurable.get("thread_id", ""))

    def _with_prompt(self, request: Any) -> Any:
        messages = [
            message.text
            for message in request.messages
            if isinstance(message, HumanMessage) and "lc_source" not in message.additional_kwargs
        ]
        newest = messages[-1] if messages else ""
        section = self._conversation(request).prompt(_schemas(request.tools), newest)
        base = request.system_message.text if request.system_message else ""
        return request.override(system_message=SystemMessage(joined(base, section)))


def _schemas(tools: list[Any]) -> list[Any]:
    found = []
    for tool in tools:
        try:
            described = tool if isinstance(tool, dict) else convert_to_openai_tool(tool)
            read_schemas([described])  # a provider's own tool may have no name
            found.append(described)
        except Exception as error:  # LangChain takes many kinds of objects for tools
            log.warning("a tool of type %s has no schema: %s", type(tool).__name__, error)
    return found


def _begin(conversation: Conversation, request: Any) -> RecordedCall | ToolMessage:
    """Check a call. Returns the call if it may run, else the message that answers it."""
    tool_call = request.tool_call
    if tool_call["name"] in NOTE_TOOLS:
        return _message(tool_call, conversation.note(tool_call["name"], tool_call["args"]))
    call = conversation.begin(tool_call["name"], tool_call["args"])
    return _message(tool_call, call.reason, status="error") if call.is_denied else call


def _message(tool_call: Any, answer: str, **status: Any) -> ToolMessage:
    return ToolMessage(answer, tool_call_id=tool_call["id"], name=tool_call["name"], **status)


def _end(conversation: Conversation, call: RecordedCall, result: Any) -> Any:
    if not isinstance(result, ToolMessage):  # a Command
        conversation.end(call, getattr(result, "update", result))
        return result
    failed = result.text if result.status == "error" else None
    advice = conversation.end(call, result.content, error=failed)
    if not advice or not isinstance(result.content, str):
        return result
    return result.model_copy(update={"content": joined(result.content, advice)})
