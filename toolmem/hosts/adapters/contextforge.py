"""ContextForge (IBM's MCP gateway): a plugin, named in the gateway's `plugins/config.yaml`.

    plugins:
      - name: toolmem
        kind: toolmem.hosts.adapters.contextforge.ToolMemGatewayPlugin
        hooks: [tool_pre_invoke, tool_post_invoke]
        mode: sequential
        config: {store: /home/me/.toolmem/memory.db}

The gateway tells no session, so that a user's calls are one conversation and repeats are only advised against. It asks
nobody: a call that a rule lets run only with the user's consent is not run, and its reason says to ask them.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from cpex.framework import Plugin, PluginResult, PluginViolation

from toolmem.app import AsyncToolMem
from toolmem.hosts.adapters.common import AgentCall, AgentConversation, AgentMemory

log = logging.getLogger("toolmem.hosts")

_MOST_UNDER_WAY = 10_000


class ToolMemGatewayPlugin(Plugin):
    """Holds and keeps the calls that pass a gateway. `config`: `store` (a file, or a configuration), `workspace`."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        told = config.config or {}
        self._memory = AsyncToolMem(told.get("store"), workspace=told.get("workspace", "default"))
        self._agent = AgentMemory(self._memory, capture=False, stops_repeats=False)
        self._under_way: OrderedDict[tuple[str, str], AgentCall] = OrderedDict()

    async def tool_pre_invoke(self, payload: Any, context: Any) -> PluginResult:
        """Before a call."""
        call = await self._talk(context).begin(payload.name, payload.args or {})
        if call.stops:
            why = PluginViolation(reason=call.reason, description=call.reason, code="TOOLMEM_NOT_RUN")
            return PluginResult(continue_processing=False, violation=why)
        self._under_way[_key(payload, context)] = call
        if len(self._under_way) > _MOST_UNDER_WAY:
            self._under_way.popitem(last=False)
        return PluginResult()

    async def tool_post_invoke(self, payload: Any, context: Any) -> PluginResult:
        """After it. A call that broke off in the gateway has no such hook, and is not kept."""
        call = self._under_way.pop(_key(payload, context), None)
        if call is not None:
            result = payload.result if isinstance(payload.result, Mapping) else {"content": payload.result}
            output = _output(result)
            failed = result.get("isError", result.get("is_error")) is True
            await self._talk(context).end(call, output, error=str(output) if failed else None)
        return PluginResult()

    async def shutdown(self) -> None:
        """Write what waits to be written."""
        await self._memory.close()

    def _talk(self, context: Any) -> AgentConversation:
        user = context.global_context.user
        return self._agent.of(user.get("email") if isinstance(user, Mapping) else user)


def _key(payload: Any, context: Any) -> tuple[str, str]:
    return str(context.global_context.request_id), str(payload.name)


def _output(result: Mapping[str, Any]) -> Any:
    content = result.get("content")
    blocks = [each.get("text") for each in content if isinstance(each, Mapping)] if isinstance(content, list) else []
    texts = [each for each in blocks if isinstance(each, str)]
    return "\n".join(texts) if texts else result.get("structuredContent", content)
