"""Google ADK's own runner, with a model that follows a script."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

from google.adk.agents import LlmAgent, RunConfig
from google.adk.agents.run_config import StreamingMode
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.genai import types
from harness import Seen
from tools_at_hand import TOOLS

from toolmem.hosts.adapters.google_adk import ToolMemPlugin

name = "google_adk"
ways = ("sync", "async", "stream")
shows_prompt = hears_user = True
takes_notes = True
tells_error = ""

_ids = itertools.count()


class _Scripted(BaseLlm):
    seen: Any = None
    left: Any = None

    async def generate_content_async(self, llm_request, stream=False):
        self.seen.prompts.append(str(llm_request.config.system_instruction or ""))
        parts = [part for content in llm_request.contents for part in content.parts or ()]
        told = [part.function_response.response for part in parts if part.function_response]
        self.seen.results = [str(each.get("result", each) if len(each) == 1 else each) for each in told]
        asked = [
            types.Part(function_call=types.FunctionCall(id=f"call_{next(_ids)}", name=tool, args=dict(args)))
            for tool, args in next(self.left, [])
        ]
        yield LlmResponse(content=types.Content(role="model", parts=asked or [types.Part(text="done")]))


def run(memory, steps, *, say="go on", way="", conversation="c1", **options):
    seen = Seen()
    model = _Scripted(model="scripted", seen=seen, left=iter(steps))
    agent = LlmAgent(name="helper", model=model, instruction="You are an agent.", tools=list(TOOLS))
    sessions = InMemorySessionService()
    plugin = ToolMemPlugin(memory, conversation=conversation, **options)
    runner = Runner(app_name="app", agent=agent, session_service=sessions, plugins=[plugin])
    try:
        session = asyncio.run(sessions.create_session(app_name="app", user_id="u"))
        given = {"user_id": "u", "session_id": session.id}
        given["new_message"] = types.Content(role="user", parts=[types.Part(text=say or " ")])
        if way == "stream":
            given["run_config"] = RunConfig(streaming_mode=StreamingMode.SSE)
        if way == "async" or way == "stream":
            asyncio.run(_run(runner, given))
        else:
            list(runner.run(**given))
    except Exception as error:
        seen.raised = error
    return seen


async def _run(runner, given):
    async for _ in runner.run_async(**given):
        pass
