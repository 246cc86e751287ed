"""What is Google ADK's alone: a tool that answers an error, agents of a runner beside each other."""

from __future__ import annotations

import asyncio

from google.adk.agents import LlmAgent
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.genai import types
from harness_google_adk import _Scripted

from toolmem.hosts.adapters.google_adk import ToolMemPlugin


class _Seen:
    def __init__(self):
        self.prompts, self.results = [], []


def _run(mem, tool, *steps, more=(), **given):
    seen = _Seen()
    agent = LlmAgent(name="x", model=_Scripted(model="s", seen=seen, left=iter(steps)), instruction="", tools=[tool])
    sessions = InMemorySessionService()
    runner = Runner(app_name="a", agent=agent, session_service=sessions, plugins=[ToolMemPlugin(mem), *more])
    asyncio.run(sessions.create_session(app_name="a", user_id="u", session_id="s1"))
    said = types.Content(role="user", parts=[types.Part(text="go")])
    list(runner.run(user_id="u", session_id="s1", new_message=said))
    return seen


def test_an_error_that_a_tool_answers_is_kept_as_its_error(mem):
    def book(place: str) -> dict:
        return {"error": "no such place"}

    _run(mem, book, [("book", {"place": "x"})])
    (call,) = mem.calls(["book"])
    assert (call.success, call.output) == (False, "no such place")
    assert call.metadata["conversation_id"] == "s1"


def test_an_error_that_another_plugin_makes_an_answer_of_is_kept_once(mem):
    class Answers(BasePlugin):
        async def on_tool_error_callback(self, *, tool, tool_args, tool_context, error):
            return {"result": "try later"}

    def book(place: str) -> str:
        raise ValueError("closed")

    seen = _run(mem, book, [("book", {"place": "x"})], more=[Answers("answers")])
    assert "try later" in seen.results[0]
    (call,) = mem.calls(["book"])
    assert (call.success, call.output) == (False, "ValueError: closed")
