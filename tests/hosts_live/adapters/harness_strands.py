"""Strands' own agent, with a model that follows a script."""

from __future__ import annotations

import asyncio
import itertools
import json

from harness import Seen
from strands import Agent, tool
from strands.models import Model
from tools_at_hand import TOOLS

from toolmem.hosts.adapters.strands import ToolMemStrands

name = "strands"
ways = ("sync", "async", "stream")
shows_prompt = hears_user = True
takes_notes = True
tells_error = "no such file: gone.txt"

_ids = itertools.count()


class _Scripted(Model):
    def __init__(self, seen, steps):
        self.seen, self.left = seen, iter(steps)

    def update_config(self, **_):
        pass

    def get_config(self):
        return {}

    def structured_output(self, *args, **kwargs):
        raise NotImplementedError

    async def stream(self, messages, tool_specs=None, system_prompt=None, **_):
        self.seen.prompts.append(system_prompt or "")
        parts = [part["toolResult"] for message in messages for part in message["content"] if "toolResult" in part]
        self.seen.results = ["\n".join(each.get("text", "") for each in part["content"]) for part in parts]
        step = next(self.left, [])
        yield {"messageStart": {"role": "assistant"}}
        for named, args in step:
            yield {"contentBlockStart": {"start": {"toolUse": {"name": named, "toolUseId": f"call_{next(_ids)}"}}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": json.dumps(args)}}}}
            yield {"contentBlockStop": {}}
        if not step:
            yield {"contentBlockStart": {"start": {}}}
            yield {"contentBlockDelta": {"delta": {"text": "done"}}}
            yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "tool_use" if step else "end_turn"}}


def run(memory, steps, *, say="go on", way="", conversation="c1", **options):
    seen = Seen()
    agent = Agent(
        model=_Scripted(seen, steps),
        system_prompt="You are an agent.",
        tools=[tool(each) for each in TOOLS],
        plugins=[ToolMemStrands(memory, conversation=conversation, **options)],
        callback_handler=None,
    )
    try:
        if way == "stream":
            asyncio.run(_stream(agent, say))
        elif way == "async":
            asyncio.run(agent.invoke_async(say))
        else:
            agent(say)
    except Exception as error:
        seen.raised = error
    return seen


async def _stream(agent, say):
    async for _ in agent.stream_async(say):
        pass
