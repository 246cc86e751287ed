"""The recipes of docs/how-to/frameworks.md, run as they are printed, with fake models."""

import asyncio
import json
import re
from pathlib import Path

import pytest

from toolmem import AgentSession, ToolMem
from toolmem.adapters import guarded

pytestmark = pytest.mark.frameworks

PAGE = (Path(__file__).parents[2] / "docs/how-to/frameworks.md").read_text(encoding="utf-8")
SARAH = {"to": "sarah@example.com"}
BOB = {"to": "bob@example.com"}
NOT_RUN = "toolmem: not run"


@pytest.fixture
def tried(tmp_path, monkeypatch):
    """Runs recipes, what the tool sent, and the session."""
    monkeypatch.chdir(tmp_path)
    sent = []

    def send_email(to: str) -> str:
        """Send an email.

        Args:
            to: the address.
        """
        sent.append(to)
        return f"sent to {to}"

    with ToolMem(tmp_path / "m.db") as memory:
        memory.capture_rules("never email sarah@example.com", tools=["send_email"])
        session = AgentSession.start(memory, tools=["send_email"])
        tools = guarded([send_email], session)

        def run(framework, model):
            given = {"session": session, "tools": tools, "model": model}
            recipe = re.search(rf"^{framework}.*?:\n\n```python\n(.*?)```", PAGE, re.S | re.M)
            exec(compile(recipe[1], framework, "exec"), given)
            return given

        yield run, sent, session
        assert sent == ["bob@example.com"]
        session.close()
        assert [(call.input, call.success) for call in memory.calls() if call.success] == [
            (BOB, True)
        ]


def test_google_adk(tried):
    from google.adk.models import BaseLlm, LlmResponse
    from google.adk.runners import Runner
    from google.adk.sessions import InMemorySessionService
    from google.genai import types

    run, _, session = tried
    seen = []
    left = iter([SARAH, BOB])

    class Scripted(BaseLlm):
        async def generate_content_async(self, llm_request, stream=False):
            seen.append(llm_request)
            asked = next(left, None)
            part = types.Part(text="done")
            if asked:
                call = types.FunctionCall(id=asked["to"], name="send_email", args=asked)
                part = types.Part(function_call=call)
            yield LlmResponse(content=types.Content(role="model", parts=[part]))

    agent = run("Google ADK", Scripted(model="scripted"))["agent"]
    sessions = InMemorySessionService()
    runner = Runner(app_name="app", agent=agent, session_service=sessions)
    made = asyncio.run(sessions.create_session(app_name="app", user_id="u"))
    message = types.Content(role="user", parts=[types.Part(text="go")])
    list(runner.run(user_id="u", session_id=made.id, new_message=message))
    parts = [part for content in seen[-1].contents for part in content.parts or ()]
    told = [str(part.function_response.response) for part in parts if part.function_response]
    assert NOT_RUN in told[0] and "sent to bob" in told[1]
    assert session.system_prompt in str(seen[0].config.system_instruction)


def test_llama_index(tried):
    from llama_index.core.base.llms.types import ChatMessage, TextBlock, ToolCallBlock
    from llama_index.core.llms.mock import MockFunctionCallingLLM

    run, _, session = tried
    seen = []
    left = iter([SARAH, BOB])

    def answer(messages, **_):
        seen[:] = messages
        asked = next(left, None)
        block = TextBlock(text="done")
        if asked:
            name = "send_email"
            block = ToolCallBlock(tool_call_id=asked["to"], tool_name=name, tool_kwargs=asked)
        return ChatMessage(role="assistant", blocks=[block])

    async def ask(agent):
        return await agent.run(user_msg="go")

    asyncio.run(ask(run("LlamaIndex", MockFunctionCallingLLM(response_generator=answer))["agent"]))
    told = [str(each.content) for each in seen if each.role == "tool"]
    assert NOT_RUN in told[0] and "sent to bob" in told[1]
    assert session.system_prompt in str(seen[0].content)


def test_smolagents(tried):
    from smolagents import ChatMessage, MessageRole, Model
    from smolagents.models import ChatMessageToolCall, ChatMessageToolCallFunction

    run, _, session = tried
    seen = []
    left = iter([("send_email", SARAH), ("send_email", BOB), ("final_answer", {"answer": "done"})])

    class Scripted(Model):
        def generate(self, messages, **_):
            seen[:] = messages
            name, arguments = next(left)
            function = ChatMessageToolCallFunction(name=name, arguments=arguments)
            call = ChatMessageToolCall(id=str(arguments), type="function", function=function)
            return ChatMessage(role=MessageRole.ASSISTANT, content="", tool_calls=[call])

    run("smolagents", Scripted())["agent"].run("go")
    told = str(seen)
    assert NOT_RUN in told and "sent to bob" in told
    assert session.system_prompt.splitlines()[0] in told


def test_strands(tried):
    from strands.models import Model

    run, _, session = tried
    seen, prompts = [], []
    left = iter([SARAH, BOB])

    class Scripted(Model):
        def update_config(self, **_):
            pass

        def get_config(self):
            return {}

        def structured_output(self, *args, **kwargs):
            raise NotImplementedError

        async def stream(self, messages, tool_specs=None, system_prompt=None, **_):
            seen[:] = messages
            prompts.append(system_prompt)
            asked = next(left, None)
            yield {"messageStart": {"role": "assistant"}}
            if asked:
                use = {"name": "send_email", "toolUseId": asked["to"]}
                yield {"contentBlockStart": {"start": {"toolUse": use}}}
                delta = {"toolUse": {"input": json.dumps(asked)}}
            else:
                yield {"contentBlockStart": {"start": {}}}
                delta = {"text": "done"}
            yield {"contentBlockDelta": {"delta": delta}}
            yield {"contentBlockStop": {}}
            yield {"messageStop": {"stopReason": "tool_use" if asked else "end_turn"}}

    run("Strands", Scripted())["agent"]("go")
    assert NOT_RUN in str(seen) and "sent to bob" in str(seen)
    assert prompts[0] == session.system_prompt


def test_fastmcp(tried):
    from fastmcp import Client

    run, _, session = tried
    server = run("FastMCP", None)["server"]

    async def ask():
        async with Client(server) as client:
            for given in (SARAH, BOB):
                yield (await client.call_tool("send_email", given)).content[0].text

    async def both():
        return [text async for text in ask()]

    told = asyncio.run(both())
    assert NOT_RUN in told[0] and "sent to bob" in told[1]
    assert server.instructions == session.system_prompt
