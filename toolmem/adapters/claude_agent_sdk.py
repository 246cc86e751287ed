"""Claude Agent SDK: hooks of a client's options.

    options = ClaudeAgentOptions(hooks=toolmem_hooks(memory))

Without `conversation` it is the session. Payloads and answers are those of Claude Code's hooks.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import Any

from claude_agent_sdk import HookMatcher

from toolmem.adapters.base import Conversation, Conversations, keep, log
from toolmem.hooks.agents import AGENTS
from toolmem.hooks.protocol import Answer, Event, read, write
from toolmem.memory.toolmem import Workspace
from toolmem.session.recorder import OnAsk, RecordedCall
from toolmem.view.tool_classes import CLASSES

AGENT = AGENTS["claude-code"]
EVENTS = ("UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure", "PreCompact")


def toolmem_hooks(
    memory: Workspace, conversation: str = "", *, on_ask: OnAsk | None = None
) -> dict[Any, list[HookMatcher]]:
    """The hooks, by event. Others may stand beside them in the lists."""
    hooks = _Hooks(Conversations(memory, conversation, on_ask=on_ask))
    return {event: [HookMatcher(hooks=[hooks.called])] for event in EVENTS}


class _Hooks:
    def __init__(self, talks: Conversations) -> None:
        self._talks = talks
        self._calls: OrderedDict[str, RecordedCall] = OrderedDict()  # by the model's id
        self._told: OrderedDict[str, str] = OrderedDict()  # by session: what the model has read

    async def called(self, payload: Any, tool_use_id: str | None, context: Any) -> Any:
        """One event. An exception would be shown to the agent's user: it is logged."""
        try:
            event = read(AGENT, payload, {})
            if event is None:  # a compaction: the model has read nothing of it any more
                self._told.pop(payload.get("session_id", ""), None)
                return {}
            talk = self._talks.of(event.session)
            answer = await asyncio.to_thread(self._answer, talk, event)
            return write(AGENT, event, answer) or {}
        except Exception:
            log.exception("a hook failed")
            return {}

    def _answer(self, talk: Conversation, event: Event) -> Answer:
        if event.kind == "prompt":
            # The SDK does not tell which tools there are: every class, and what is in the store.
            memory = talk.memory
            called = memory.services.store().tool_names(memory.workspace_id)
            tools = dict.fromkeys([*CLASSES, *called, *memory.rules.list_tool_names()])
            section = talk.prompt(list(tools), event.prompt)
            if section == self._told.get(event.session, ""):
                return Answer()
            keep(self._told, event.session, section)
            return Answer(context=section)
        if event.kind == "before_call":
            call = talk.begin(event.tool, event.input)
            if call.is_denied:
                return Answer(action="deny", reason=call.reason)
            keep(self._calls, event.key, call)
            return Answer()
        begun = self._calls.pop(event.key, None)
        if begun is None or event.interrupted:
            return Answer()
        failed = event.output if event.failed else None
        return Answer(context=talk.end(begun, event.output, error=failed))
