"""AgentScope: a middleware of an agent.

    agent = Agent(name="helper", system_prompt="...", model=model, middlewares=[ToolMemAgentScope(mem)])

Without `conversation` it is the session of the agent's state.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from toolmem.app import AsyncToolMem, ToolMem
from toolmem.config.extras import need
from toolmem.hosts.adapters.common import AgentCall, AgentConversation, AgentMemory

need("toolmem.hosts.adapters.agentscope", "agentscope")

from agentscope.message import TextBlock, ToolResultState
from agentscope.middleware import MiddlewareBase
from agentscope.permission import PermissionBehavior, PermissionDecision
from agentscope.tool import ToolBase, ToolChunk, ToolResponse

_MOST = 1000


class ToolMemAgentScope(MiddlewareBase):
    """Holds and keeps the calls of an agent, and puts rules and guidance into its system prompt.

    Arguments as of `AgentMemory`.
    """

    def __init__(self, memory: ToolMem | AsyncToolMem, conversation: str | None = None, **options: Any) -> None:
        self._agent = AgentMemory(memory, conversation, **options)
        self._calls: OrderedDict[str, AgentCall] = OrderedDict()  # under way
        self._said: OrderedDict[str, Any] = OrderedDict()  # the user's newest message, by session
        self._offered = [_ScopeDemandTool(tool, self._agent) for tool in self._agent.own_tools]

    async def on_reply(self, agent: Any, input_kwargs: Any, next_handler: Any) -> Any:
        """What the agent is to reply to: its context may have a summary in the user's place."""
        for tool in self._offered:
            if await agent.toolkit.get_tool(tool.name) is None:
                await agent.toolkit.add_tool(tool)
        inputs = input_kwargs.get("inputs")
        given = inputs if isinstance(inputs, list) else [inputs]
        for message in given:
            if getattr(message, "role", "") == "user":
                _keep(self._said, str(agent.state.session_id), message)
        async for item in next_handler(**input_kwargs):
            yield item

    async def on_model_call(self, agent: Any, input_kwargs: Any, next_handler: Any) -> Any:
        """Before the model is asked."""
        messages = list(input_kwargs["messages"])
        said = self._said.get(str(agent.state.session_id))
        newest = {"said": _texts(said), "at": said.id} if said else {}
        section = await self._talk(agent).prompt(input_kwargs.get("tools") or (), **newest)
        if section and messages and messages[0].role == "system":
            content = [*messages[0].content, TextBlock(text=section)]
            messages[0] = messages[0].model_copy(update={"content": content})
        return await next_handler(**{**input_kwargs, "messages": messages})

    async def on_check_permission(self, agent: Any, input_kwargs: Any, next_handler: Any) -> Any:
        """Before a call."""
        asked = input_kwargs["tool_call"]
        call = await self._talk(agent).begin(asked.name, input_kwargs["tool_input"], asked.id)
        if call.stops:
            reason = "toolmem: a rule of the user, or a failure before"
            return PermissionDecision(PermissionBehavior.DENY, call.reason, decision_reason=reason)
        _keep(
            self._calls, asked.id, call
        )  # the user who is asked by AgentScope may still say no: it has not ended then
        return await next_handler(**input_kwargs)

    async def on_acting(self, agent: Any, input_kwargs: Any, next_handler: Any) -> Any:
        """Around a call that is permitted."""
        asked, talk = input_kwargs["tool_call"], self._talk(agent)
        call = self._calls.pop(asked.id, None)
        if call is None:  # the user permitted it to AgentScope since
            call = await talk.begin(asked.name, asked.input, asked.id)
        try:
            async for item in next_handler(**input_kwargs):
                if isinstance(item, ToolResponse):
                    text = "\n".join(block.text for block in item.content if isinstance(block, TextBlock))
                    failed = item.state != ToolResultState.SUCCESS
                    await talk.end(call, text, error=(text or str(item.state)) if failed else None)
                    if call.advice:
                        item.content = [*item.content, TextBlock(text=call.advice)]
                yield item
        except BaseException as error:
            await talk.end(call, error=error)
            raise

    def _talk(self, agent: Any) -> AgentConversation:
        return self._agent.of(agent.state.session_id)


class _ScopeDemandTool(ToolBase):
    is_concurrency_safe = is_read_only = False
    is_state_injected = True

    def __init__(self, tool: dict[str, Any], agent: AgentMemory) -> None:
        super().__init__()
        self.name, self.description, self.input_schema = tool["name"], tool["description"], tool["inputSchema"]
        self._agent = agent

    async def check_permissions(self, *_: Any, **__: Any) -> PermissionDecision:
        return PermissionDecision(PermissionBehavior.ALLOW, "it notes what the user says")

    async def call(self, _agent_state: Any, **given: Any) -> ToolChunk:
        told = await self._agent.of(_agent_state.session_id).answer(self.name, given)
        return ToolChunk(content=[TextBlock(text=told)])


def _keep(known: OrderedDict[str, Any], name: str, value: Any) -> None:
    known[name] = value
    if len(known) > _MOST:
        known.popitem(last=False)


def _texts(message: Any) -> str:
    return "\n".join(block.text for block in message.content if isinstance(block, TextBlock))
