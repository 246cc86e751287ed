"""AgentScope's own agent, with a model that follows a script."""

from __future__ import annotations

import asyncio
import itertools
import json

from agentscope.agent import Agent
from agentscope.formatter import OpenAIChatFormatter
from agentscope.message import TextBlock, ToolCallBlock, ToolResultBlock, UserMsg
from agentscope.model import ChatModelBase, ChatResponse
from agentscope.permission import PermissionBehavior, PermissionDecision
from agentscope.tool import FunctionTool, Toolkit

from frameworks.harness import Seen
from frameworks.tools_at_hand import TOOLS
from toolmem.adapters.agentscope import ToolMemAgentScope

ways = ("async", "stream")
takes_notes = True
tells_error = "no such file: gone.txt"

_ids = itertools.count()


class _Scripted(ChatModelBase):
    def __init__(self, seen, steps, stream):
        super().__init__(None, "scripted", ChatModelBase.Parameters(), stream=stream, max_retries=0)
        self.seen, self.left, self.formatter = seen, iter(steps), OpenAIChatFormatter()

    async def _call_api(self, model_name, messages, tools=None, tool_choice=None, **_):
        self.seen.prompts.append(
            "\n".join(_text(message.content) for message in messages if message.role == "system")
        )
        told = [
            block
            for message in messages
            for block in message.content
            if isinstance(block, ToolResultBlock)
        ]
        self.seen.results = [
            each.output if isinstance(each.output, str) else _text(each.output)
            for each in sorted(told, key=lambda each: each.id)
        ]
        asked = [
            ToolCallBlock(id=f"call_{next(_ids):05}", name=tool, input=json.dumps(args))
            for tool, args in next(self.left, [])
        ]
        answer = ChatResponse(content=asked or [TextBlock(text="done")], is_last=True)
        return _once(answer) if self.stream else answer


def run(memory, steps, *, say="go on", way="", conversation="c1", **options):
    seen = Seen()
    allowed = PermissionDecision(PermissionBehavior.ALLOW, "in this test")
    agent = Agent(
        name="helper",
        system_prompt="You are an agent.",
        model=_Scripted(seen, steps, way == "stream"),
        toolkit=Toolkit(tools=[FunctionTool(tool, permission=allowed) for tool in TOOLS]),
        middlewares=[ToolMemAgentScope(memory, conversation_id=conversation, **options)],
    )
    try:
        asyncio.run(_stream(agent, say) if way == "stream" else agent.reply(_said(say)))
    except Exception as error:
        seen.raised = error
    return seen


async def _stream(agent, say):
    async for _ in agent.reply_stream(_said(say)):
        pass


async def _once(answer):
    yield answer


def _said(say):
    return UserMsg(name="user", content=say)


def _text(blocks):
    return "\n".join(block.text for block in blocks if isinstance(block, TextBlock))
