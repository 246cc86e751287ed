"""LlamaIndex' own function agent, with the mock model that it ships."""

from __future__ import annotations

import asyncio
import itertools

from harness import Seen
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, TextBlock, ToolCallBlock
from llama_index.core.llms.mock import MockFunctionCallingLLM
from tools_at_hand import TOOLS

from toolmem.hosts.adapters.llama_index import with_toolmem

name = "llama_index"
ways = ("async", "stream")
shows_prompt = hears_user = True
takes_notes = True
tells_error = "no such file: gone.txt"

_ids = itertools.count()


def run(memory, steps, *, say="go on", way="", conversation="c1", **options):
    seen = Seen()
    left = iter(steps)

    def answer(messages, **_):
        seen.prompts.append(str(messages[0].content))
        told = [message for message in messages if message.role == "tool"]
        seen.results = [str(each.content) for each in sorted(told, key=_number)]
        asked = [
            ToolCallBlock(tool_call_id=f"call_{next(_ids):05}", tool_name=tool, tool_kwargs=dict(args))
            for tool, args in next(left, [])
        ]
        return ChatMessage(role="assistant", blocks=asked or [TextBlock(text="done")])

    llm = MockFunctionCallingLLM(response_generator=answer)
    agent = FunctionAgent(tools=list(TOOLS), llm=llm, system_prompt="You are an agent.", streaming=way == "stream")
    agent = with_toolmem(agent, memory, conversation=conversation, **options)
    try:
        asyncio.run(_run(agent, say))
    except Exception as error:
        seen.raised = error
    return seen


def _number(message):
    return message.additional_kwargs.get("tool_call_id", "")


async def _run(agent, say):
    handler = agent.run(user_msg=say)
    async for _ in handler.stream_events():
        pass
    await handler
