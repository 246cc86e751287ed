"""LangChain and LangGraph: a middleware of `create_agent`.

    agent = create_agent(model, tools, middleware=[ToolMemMiddleware(mem, conversation="c1")])

Without `conversation` it is the run's `thread_id`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from toolmem.app import AsyncToolMem, ToolMem
from toolmem.config.extras import need
from toolmem.hosts.adapters.common import AgentCall, AgentMemory, described

need("toolmem.hosts.adapters.langchain", "langchain")

from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import StructuredTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.errors import GraphBubbleUp


class ToolMemMiddleware(AgentMiddleware):
    """Holds and keeps the calls of an agent, and puts rules and guidance into its prompt.

    Arguments as of `AgentMemory`.
    """

    def __init__(self, memory: ToolMem | AsyncToolMem, conversation: str | None = None, **options: Any) -> None:
        super().__init__()
        self._agent = AgentMemory(memory, conversation, **options)
        self.tools = [_offered(each) for each in self._agent.own_tools]

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Before the model is asked."""
        return handler(_with(request, self._agent.of(_thread(request)).prompt_now(**_shown(request))))

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """The same in an async run."""
        return await handler(_with(request, await self._agent.of(_thread(request)).prompt(**_shown(request))))

    def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Around a call."""
        talk = self._agent.of(_thread(request))
        if talk.answers(request.tool_call["name"]):
            return _told(request, talk.answer_now(**_call(request)))
        call = talk.begin_now(**_call(request))
        if call.stops:
            return _told(request, call.reason, status="error")
        try:
            result = handler(request)
        except GraphBubbleUp:  # an interrupt: the graph runs this call again later
            raise
        except BaseException as error:
            talk.end_now(call, error=error)
            raise
        talk.end_now(call, **_outcome(result))
        return _advised(result, call)

    async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """The same in an async run."""
        talk = self._agent.of(_thread(request))
        if talk.answers(request.tool_call["name"]):
            return _told(request, await talk.answer(**_call(request)))
        call = await talk.begin(**_call(request))
        if call.stops:
            return _told(request, call.reason, status="error")
        try:
            result = await handler(request)
        except GraphBubbleUp:
            raise
        except BaseException as error:
            await talk.end(call, error=error)
            raise
        await talk.end(call, **_outcome(result))
        return _advised(result, call)


def _thread(request: Any) -> object:
    config = getattr(request.runtime, "config", None)
    info = getattr(request.runtime, "execution_info", None)
    return getattr(info, "thread_id", "") or ((config or {}).get("configurable") or {}).get("thread_id", "")


def _shown(request: Any) -> dict[str, Any]:
    tools = described(request.tools, lambda tool: tool if isinstance(tool, dict) else convert_to_openai_tool(tool))
    told = [message for message in request.messages if isinstance(message, HumanMessage)]
    said = [message for message in told if "lc_source" not in message.additional_kwargs]  # no summary of LangChain's
    newest = said[-1] if said else None
    at = newest.id or len(said) if newest else ""
    return {"tools": tools, "said": newest.content if newest else "", "at": at}


def _with(request: Any, section: str) -> Any:
    if not section:
        return request
    base = request.system_message.text if request.system_message else ""
    return request.override(system_message=SystemMessage("\n\n".join(part for part in (base, section) if part)))


def _call(request: Any) -> dict[str, Any]:
    call = request.tool_call
    return {"tool_name": call["name"], "arguments": call["args"], "call_id": call["id"]}


def _offered(tool: dict[str, Any]) -> StructuredTool:
    """A tool that the middleware answers itself."""
    return StructuredTool(
        name=tool["name"], description=tool["description"], args_schema=tool["inputSchema"], func=lambda **_: ""
    )


def _told(request: Any, answer: str, **status: Any) -> ToolMessage:
    call = request.tool_call
    return ToolMessage(answer, tool_call_id=call["id"], name=call["name"], **status)


def _outcome(result: Any) -> dict[str, Any]:
    if not isinstance(result, ToolMessage):  # a Command
        return {"output": getattr(result, "update", result)}
    return {"error": result.text} if result.status == "error" else {"output": result.content}


def _advised(result: Any, call: AgentCall) -> Any:
    if not call.advice or not isinstance(result, ToolMessage) or not isinstance(result.content, str):
        return result
    return result.model_copy(update={"content": call.advised(result.content)})
