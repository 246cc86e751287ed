"""Claude Agent SDK: hooks of a client's options.

    options = ClaudeAgentOptions(hooks=toolmem_hooks(memory))

Without `conversation_id` each session is a conversation. Payloads and answers are in Claude Code's
format.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import Any, Unpack

from claude_agent_sdk import HookMatcher

from toolmem.adapters.base import Conversation, Conversations, User, log, remember
from toolmem.hooks.agents import AGENTS
from toolmem.hooks.protocol import Answer, Event, read, write
from toolmem.memory.toolmem import Workspace
from toolmem.session.recorder import RecordedCall
from toolmem.view.tool_classes import CLASSES

AGENT = AGENTS["claude-code"]
EVENTS = ("UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure", "PreCompact")


def toolmem_hooks(
    memory: Workspace, conversation_id: str = "", **user: Unpack[User]
) -> dict[Any, list[HookMatcher]]:
    """Return the hooks for `ClaudeAgentOptions`, by event. You may add hooks to the lists."""
    hooks = _Hooks(Conversations(memory, conversation_id, **user))
    return {event: [HookMatcher(hooks=[hooks.handle])] for event in EVENTS}


class _Hooks:
    def __init__(self, conversations: Conversations) -> None:
        self._conversations = conversations
        self._calls: OrderedDict[str, RecordedCall] = OrderedDict()  # by the model's id
        self._shown: OrderedDict[str, str] = OrderedDict()  # rules and guidance, by session

    async def handle(self, payload: Any, tool_use_id: str | None, context: Any) -> Any:
        """Answer one event. Exceptions are logged: the SDK would show them to the user."""
        try:
            event = read(AGENT, payload, {})
            if event is None:  # a compaction removes what was shown
                self._shown.pop(payload.get("session_id", ""), None)
                return {}
            answer = await asyncio.to_thread(
                self._answer, self._conversations.of(event.session), event
            )
            return write(AGENT, event, answer) or {}
        except Exception:
            log.exception("a hook failed")
            return {}

    def _answer(self, conversation: Conversation, event: Event) -> Answer:
        if event.kind == "prompt":
            # The SDK does not pass the tools: every class, and every tool in the store.
            memory = conversation.memory
            names = memory.services.store().tool_names(memory.workspace_name)
            tools = dict.fromkeys([*CLASSES, *names, *memory.rules.list_tool_names()])
            section = conversation.prompt(list(tools), event.prompt)
            if section == self._shown.get(event.session, ""):
                return Answer()
            remember(self._shown, event.session, section)
            return Answer(context=section)
        if event.kind == "before_call":
            call = conversation.begin(event.tool, event.input)
            if call.is_denied:
                return Answer(action="deny", reason=call.reason)
            remember(self._calls, event.key, call)
            return Answer()
        ended = self._calls.pop(event.key, None)
        if ended is None or event.interrupted:
            return Answer()
        failed = event.output if event.failed else None
        return Answer(context=conversation.end(ended, event.output, error=failed))
