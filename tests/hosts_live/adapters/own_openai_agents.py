"""What the OpenAI Agents SDK has alone: tools that raise out of the run, a timeout, the agent that was cloned."""

from __future__ import annotations

import asyncio
import json

import pytest
from agents import Agent, Runner, function_tool
from agents.testing import ScriptedModel
from harness_openai_agents import _call
from openai.types.responses import ResponseOutputMessage, ResponseOutputText

from toolmem.hosts.adapters.openai_agents import with_toolmem


def _done():
    text = ResponseOutputText(text="done", type="output_text", annotations=[])
    return [ResponseOutputMessage(id="m", type="message", role="assistant", status="completed", content=[text])]


def _crash(path: str) -> str:
    raise FileNotFoundError(path)


def test_a_tool_without_an_error_function_ends_the_run_and_is_kept(mem):
    crash = function_tool(_crash, name_override="crash", failure_error_function=None)
    model = ScriptedModel([[_call("crash", {"path": "a"})], _done()])
    with pytest.raises(Exception, match="a"):
        Runner.run_sync(with_toolmem(Agent(name="x", model=model, tools=[crash]), mem), "go")
    (call,) = mem.calls(["crash"])
    assert (call.success, call.output) == (False, "FileNotFoundError: a")


def test_the_text_of_an_own_error_function_reaches_the_model_and_the_error_is_kept(mem):
    crash = function_tool(_crash, name_override="crash", failure_error_function=lambda context, error: "try b")
    model = ScriptedModel([[_call("crash", {"path": "a"})], _done()])
    Runner.run_sync(with_toolmem(Agent(name="x", model=model, tools=[crash]), mem), "go")
    assert "try b" in json.dumps(model.calls[-1].input)
    (call,) = mem.calls(["crash"])
    assert call.output == "FileNotFoundError: a"


def test_a_tool_that_takes_too_long_is_kept_as_interrupted(mem):
    @function_tool(timeout=0.05)
    async def slow() -> str:
        await asyncio.sleep(5)
        return "late"

    model = ScriptedModel([[_call("slow", {})], _done()])
    Runner.run_sync(with_toolmem(Agent(name="x", model=model, tools=[slow]), mem), "go")
    (call,) = mem.calls(["slow"])
    assert (call.success, call.output) == (False, "CancelledError: the call was interrupted")


def test_the_agent_that_was_given_stays_as_it_was(mem):
    mem.rules.put("crash", "never use crash", priority="critical")
    crash = function_tool(_crash, name_override="crash")
    model = ScriptedModel([[_call("crash", {"path": "a"})], _done()])
    agent = Agent(name="x", model=model, tools=[crash], instructions="Own words.")
    with_toolmem(agent, mem)
    Runner.run_sync(agent, "go")
    assert model.calls[0].system_instructions == "Own words."
    assert list(mem.calls(["crash"])) == []
