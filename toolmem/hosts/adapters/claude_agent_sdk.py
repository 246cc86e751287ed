"""Claude Agent SDK: hooks of a client's options.

    options = ClaudeAgentOptions(hooks=toolmem_hooks(mem, conversation="c1"))

Without `conversation` it is the session. Payloads and answers are those of Claude Code's hooks.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from typing import Any

from toolmem.app import AsyncToolMem, ToolMem
from toolmem.config.extras import need
from toolmem.hosts.adapters.common import AgentCall, AgentConversation, AgentMemory
from toolmem.hosts.claude_code import HOST
from toolmem.hosts.events import SILENT, HookAnswer, HookEvent
from toolmem.hosts.typed_prompts import typed

need("toolmem.hosts.adapters.claude_agent_sdk", "claude-agent-sdk")

from claude_agent_sdk import HookMatcher

log = logging.getLogger("toolmem.hosts")

_EVENTS = ("UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure", "PreCompact")
_MOST = 1000


def toolmem_hooks(
    memory: ToolMem | AsyncToolMem, conversation: str | None = None, **options: Any
) -> dict[Any, list[HookMatcher]]:
    """The hooks, by event, that hold and keep the calls of a client and put rules before the model.

    Further arguments as of `AgentMemory`. Other hooks stand beside them in the lists.
    """
    hooks = _Hooks(AgentMemory(memory, conversation, **options))
    return {event: [HookMatcher(hooks=[hooks.called])] for event in _EVENTS}


class _Hooks:
    def __init__(self, agent: AgentMemory) -> None:
        self._agent = agent
        self._calls: OrderedDict[str, AgentCall] = OrderedDict()  # under way, by the model's id
        self._told: OrderedDict[str, str] = OrderedDict()  # by session: rules and guidance that the model has read
        self._tools: OrderedDict[str, None] = OrderedDict.fromkeys(HOST.tools)  # that are known to be there

    async def called(self, payload: Any, tool_use_id: str | None, context: Any) -> Any:
        """One event. An exception would be shown to the agent's user: it is logged."""
        try:
            event = HOST.read(payload, {})
            if event is None:
                return {}
            answer = await self._answer(self._agent.of(event.session_id), event, payload)
            return dict(HOST.write(event, answer))
        except Exception:
            log.exception("a hook failed")
            return {}

    async def _answer(self, talk: AgentConversation, event: HookEvent, payload: Any) -> HookAnswer:
        if event.kind == "prompt":
            return await self._prompted(talk, event, payload)
        if event.kind == "before_call":
            return await self._before(talk, event, payload)
        if event.kind == "after_call":
            return await self._after(talk, event)
        self._told.pop(event.session_id, None)  # a compaction
        return SILENT

    async def _prompted(self, talk: AgentConversation, event: HookEvent, payload: Any) -> HookAnswer:
        by_user = payload.get("source") in (None, "", "user", "sdk")
        said = typed(str(payload.get("prompt") or "")) if by_user else ""
        section = await talk.prompt(list(self._tools), said=said, at=event.key, all_known=False)
        if section == self._told.get(event.session_id, ""):
            return SILENT
        _keep(self._told, event.session_id, section)
        return HookAnswer(context=section)

    async def _before(self, talk: AgentConversation, event: HookEvent, payload: Any) -> HookAnswer:
        _keep(self._tools, event.tool, None)
        call = await talk.begin(event.tool, event.arguments, event.key)
        if call.stops:
            return HookAnswer(action="deny", reason=call.reason)
        _keep(self._calls, event.key, call)
        return HookAnswer(action="advise", context=call.advice) if call.advice else SILENT

    async def _after(self, talk: AgentConversation, event: HookEvent) -> HookAnswer:
        call = self._calls.pop(event.key, None)
        if call is not None:
            error = KeyboardInterrupt() if event.interrupted else event.output if event.failed else None
            await talk.end(call, event.output, error=error)
        return SILENT


def _keep(known: OrderedDict[str, Any], name: str, value: Any) -> None:
    known[name] = value
    if len(known) > _MOST:
        known.popitem(last=False)
