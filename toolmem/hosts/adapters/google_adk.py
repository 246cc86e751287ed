"""Google ADK: a plugin of a runner.

    runner = Runner(app_name="app", agent=agent, session_service=sessions, plugins=[ToolMemPlugin(mem)])

Without `conversation` it is the session's id. Calls are those of every agent that the runner runs.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from toolmem.app import AsyncToolMem, ToolMem
from toolmem.config.extras import need
from toolmem.hosts.adapters.common import AgentCall, AgentConversation, AgentMemory, described

need("toolmem.hosts.adapters.google_adk", "google-adk")

from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools.base_tool import BaseTool
from google.genai.types import FunctionDeclaration

_MOST_UNDER_WAY = 1000


class ToolMemPlugin(BasePlugin):
    """Holds and keeps the calls of a runner's agents, and puts rules and guidance into their instructions.

    Arguments as of `AgentMemory`.
    """

    def __init__(self, memory: ToolMem | AsyncToolMem, conversation: str | None = None, **options: Any) -> None:
        super().__init__("toolmem")
        self._agent = AgentMemory(memory, conversation, **options)
        self._calls: OrderedDict[Any, AgentCall] = OrderedDict()  # under way
        self._offered = [_AdkDemandTool(tool, self._agent) for tool in self._agent.own_tools]

    async def before_model_callback(self, *, callback_context: Any, llm_request: Any) -> None:
        """Before the model is asked."""
        llm_request.append_tools(self._offered)
        said = [part.text for part in getattr(callback_context.user_content, "parts", None) or () if part.text]
        tools = described(llm_request.tools_dict.values(), _schema)
        section = await self._talk(callback_context).prompt(
            tools, said="\n".join(said), at=callback_context.invocation_id
        )
        if section:
            llm_request.append_instructions([section])

    async def before_tool_callback(self, *, tool: Any, tool_args: Any, tool_context: Any) -> dict[str, Any] | None:
        """Before a call: a result in its place stops it."""
        call = await self._talk(tool_context).begin(tool.name, dict(tool_args), tool_context.function_call_id)
        if call.stops:
            return {"error": call.reason}
        self._calls[_key(tool_context)] = call
        if len(self._calls) > _MOST_UNDER_WAY:
            self._calls.popitem(last=False)
        return None

    async def after_tool_callback(
        self, *, tool: Any, tool_args: Any, tool_context: Any, result: Any
    ) -> dict[str, Any] | None:
        """After a call; what it returns is read in place of the result."""
        call = self._calls.pop(_key(tool_context), None)
        if call is None:  # it was stopped
            return None
        error = result.get("error") if isinstance(result, dict) else None
        await self._talk(tool_context).end(call, result, error=str(error) if error else None)
        if not call.advice:
            return None
        return {**(result if isinstance(result, dict) else {"result": result}), "toolmem": call.advice}

    async def on_tool_error_callback(self, *, tool: Any, tool_args: Any, tool_context: Any, error: Exception) -> None:
        """A tool raised: the framework goes on as ever."""
        call = self._calls.pop(_key(tool_context), None)
        if call is not None:
            await self._talk(tool_context).end(call, error=error)

    def _talk(self, context: Any) -> AgentConversation:
        return self._agent.of(context.session.id)


class _AdkDemandTool(BaseTool):
    def __init__(self, tool: dict[str, Any], agent: AgentMemory) -> None:
        super().__init__(name=tool["name"], description=tool["description"])
        self._schema = tool["inputSchema"]
        self._agent = agent

    def _get_declaration(self) -> FunctionDeclaration:
        return FunctionDeclaration(name=self.name, description=self.description, parameters_json_schema=self._schema)

    async def run_async(self, *, args: dict[str, Any], tool_context: Any) -> dict[str, Any]:
        return {"result": await self._agent.of(tool_context.session.id).answer(self.name, args)}


def _key(context: Any) -> tuple[str, str]:
    return context.invocation_id, context.function_call_id


def _schema(tool: Any) -> Any:
    declared = tool._get_declaration()
    if declared is None:
        return tool.name
    schema = declared.parameters_json_schema or (
        declared.parameters.model_dump(mode="json", exclude_none=True) if declared.parameters else {}
    )
    return {"name": tool.name, "description": tool.description or "", "inputSchema": schema}
