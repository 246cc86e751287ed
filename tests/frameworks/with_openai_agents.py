"""The OpenAI Agents SDK's own runner, with the scripted model that it ships."""

from __future__ import annotations

import asyncio
import itertools
import json

from agents import Agent, Runner, function_tool, set_tracing_disabled
from agents.testing import ScriptedModel
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)

from frameworks.harness import Seen
from frameworks.tools_at_hand import TOOLS
from toolmem.adapters.openai_agents import with_toolmem

ways = ("sync", "async", "stream")
takes_notes = True
tells_error = "An error occurred while running the tool"

_ids = itertools.count()
set_tracing_disabled(True)


def run(memory, steps, *, say="go on", way="", conversation="c1", **options):
    seen = Seen()
    done = ResponseOutputText(text="done", type="output_text", annotations=[])
    ended = ResponseOutputMessage(
        id="m", type="message", role="assistant", status="completed", content=[done]
    )
    model = ScriptedModel(
        [*([_call(tool, args) for tool, args in step] for step in steps), [ended]]
    )
    tools = [function_tool(tool) for tool in TOOLS]
    agent = Agent(name="helper", instructions="You are an agent.", model=model, tools=tools)
    agent = with_toolmem(agent, memory, conversation_id=conversation, **options)
    try:
        if way == "stream":
            asyncio.run(_streamed(agent, say))
        elif way == "async":
            asyncio.run(Runner.run(agent, say))
        else:
            Runner.run_sync(agent, say)
    except Exception as error:
        seen.raised = error
    seen.prompts = [call.system_instructions or "" for call in model.calls]
    last = model.calls[-1].input
    seen.results = [
        str(each["output"]) for each in last if each.get("type") == "function_call_output"
    ]
    return seen


async def _streamed(agent, say):
    async for _ in Runner.run_streamed(agent, say).stream_events():
        pass


def _call(tool, args):
    number = f"call_{next(_ids)}"
    return ResponseFunctionToolCall(
        id=number, call_id=number, type="function_call", name=tool, arguments=json.dumps(args)
    )
