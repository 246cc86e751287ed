"""Pydantic AI's own agent, with the function model that it ships."""

from __future__ import annotations

import asyncio
import itertools
import json

from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import DeltaToolCall, FunctionModel

from frameworks.harness import Seen
from frameworks.tools_at_hand import TOOLS
from toolmem.adapters.pydantic_ai import ToolMemCapability

ways = ("sync", "async", "stream")
takes_notes = True
tells_error = ""

_ids = itertools.count()


def run(memory, steps, *, say="go on", way="", conversation="c1", **options):
    seen = Seen()
    left = iter(steps)

    def answer(messages, info):
        seen.prompts.append(info.instructions or "")
        parts = [part for message in messages for part in message.parts]
        seen.results = [str(part.content) for part in parts if isinstance(part, ToolReturnPart)]
        calls = [
            ToolCallPart(tool, dict(args), tool_call_id=f"call_{next(_ids)}")
            for tool, args in next(left, [])
        ]
        return ModelResponse(calls or [TextPart("done")])

    async def streamed(messages, info):
        for number, part in enumerate(answer(messages, info).parts):
            if isinstance(part, TextPart):
                yield part.content
            else:
                yield {
                    number: DeltaToolCall(
                        part.tool_name, json.dumps(part.args), tool_call_id=part.tool_call_id
                    )
                }

    model = FunctionModel(answer, stream_function=streamed)
    capability = ToolMemCapability(memory, conversation_id=conversation, **options)
    agent = Agent(
        model, instructions="You are an agent.", tools=list(TOOLS), capabilities=[capability]
    )
    try:
        if way == "stream":
            asyncio.run(_stream(agent, say))
        elif way == "async":
            asyncio.run(agent.run(say))
        else:
            agent.run_sync(say)
    except Exception as error:
        seen.raised = error
    return seen


async def _stream(agent, say):
    async with agent.run_stream(say) as result:
        async for _ in result.stream_text():
            pass
