"""Strands Agents: a plugin of an agent.

    agent = Agent(model=model, tools=[...], plugins=[ToolMemStrands(mem, conversation="c1")])

Without `conversation` it is the agent's `session_id`.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from toolmem.app import AsyncToolMem, ToolMem
from toolmem.config.extras import need
from toolmem.hosts.adapters.common import AgentCall, AgentConversation, AgentMemory, described

need("toolmem.hosts.adapters.strands", "strands")

from strands.hooks import AfterToolCallEvent, BeforeInvocationEvent, BeforeToolCallEvent
from strands.middleware import InvokeModelStage
from strands.plugins import Plugin
from strands.tools.tools import PythonAgentTool

_MOST_UNDER_WAY = 1000


class ToolMemStrands(Plugin):
    """Holds and keeps the calls of an agent, and puts rules and guidance into its system prompt.

    Arguments as of `AgentMemory`.
    """

    name = "toolmem"

    def __init__(self, memory: ToolMem | AsyncToolMem, conversation: str | None = None, **options: Any) -> None:
        super().__init__()
        self._agent = AgentMemory(memory, conversation, **options)
        self._calls: OrderedDict[str, AgentCall] = OrderedDict()  # under way
        self._said = ("", 0)  # the user's newest message, and its number

    def init_agent(self, agent: Any) -> None:
        """Called by the agent that the plugin is given to."""
        agent.add_hook(self._invoked, BeforeInvocationEvent)
        agent.add_hook(self._before, BeforeToolCallEvent)
        agent.add_hook(self._after, AfterToolCallEvent)
        agent.add_middleware(InvokeModelStage.Input, self._asked)
        for tool in self._agent.own_tools:
            agent.tool_registry.register_tool(self._offered(tool, agent))

    def _offered(self, tool: dict[str, Any], agent: Any) -> PythonAgentTool:
        async def answer(use: Any, **_: Any) -> Any:
            told = await self._talk(agent).answer(use["name"], use["input"])
            return {"toolUseId": use["toolUseId"], "status": "success", "content": [{"text": told}]}

        spec = {**tool, "inputSchema": {"json": tool["inputSchema"]}}
        return PythonAgentTool(tool["name"], spec, answer)

    def _invoked(self, event: Any) -> None:
        """What the agent is asked now: its history may have a summary in the user's place."""
        said = [text for message in event.messages or () if message["role"] == "user" and (text := _words(message))]
        self._said = ("\n".join(said), self._said[1] + 1)

    async def _asked(self, context: Any) -> Any:
        said, number = self._said
        section = await self._talk(context.agent).prompt(described(context.tool_specs, _schema), said=said, at=number)
        if not section:
            return context
        base = context.system_prompt
        if isinstance(base, list):  # content blocks
            return context.replace(system_prompt=[*base, {"text": section}])
        return context.replace(system_prompt="\n\n".join(part for part in (base, section) if part))

    async def _before(self, event: Any) -> None:
        use = event.tool_use
        call = await self._talk(event.agent).begin(use["name"], use["input"], use["toolUseId"])
        if call.stops:
            event.cancel_tool = call.reason
            return
        self._calls[use["toolUseId"]] = call
        if len(self._calls) > _MOST_UNDER_WAY:
            self._calls.popitem(last=False)

    async def _after(self, event: Any) -> None:
        call = self._calls.pop(event.tool_use["toolUseId"], None)
        if call is None or event.cancel_message:  # it did not run
            return
        result = event.result
        texts = [part.get("text", part) for part in result["content"]]
        output = texts[0] if len(texts) == 1 else texts
        failed = result["status"] == "error"
        await self._talk(event.agent).end(call, output, error=(event.exception or str(output)) if failed else None)
        if call.advice:
            event.result = {**result, "content": [*result["content"], {"text": call.advice}]}

    def _talk(self, agent: Any) -> AgentConversation:
        return self._agent.of(getattr(agent, "session_id", ""))


def _words(message: Any) -> str:
    return "\n".join(part["text"] for part in message["content"] if "text" in part)


def _schema(spec: Any) -> dict[str, Any]:
    schema = spec["inputSchema"]
    return {"name": spec["name"], "description": spec["description"], "inputSchema": schema.get("json", schema)}
