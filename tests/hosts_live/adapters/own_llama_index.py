"""What is LlamaIndex' alone: a workflow of several agents."""

from __future__ import annotations

import asyncio
import itertools

import tools_at_hand
from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent, ReActAgent
from llama_index.core.base.llms.types import ChatMessage, TextBlock, ToolCallBlock
from llama_index.core.llms.mock import MockFunctionCallingLLM, MockLLM
from tools_at_hand import send_email

from toolmem.hosts.adapters.llama_index import with_toolmem


def test_the_tools_of_a_workflow_are_held_and_each_agent_reads_the_rules(mem):
    mem.rules.put("send_email", "never email Sarah", priority="critical")
    tools_at_hand.ran.clear()
    ids, prompts, told = itertools.count(), [], []
    asked = iter([{"to": "sarah@example.com"}, {"to": "bob@example.com"}])

    def answer(messages, **_):
        prompts.append(str(messages[0].content))
        told[:] = [str(message.content) for message in messages if message.role == "tool"]
        args = next(asked, None)
        if args is None:
            return ChatMessage(role="assistant", blocks=[TextBlock(text="done")])
        call = ToolCallBlock(tool_call_id=f"call_{next(ids)}", tool_name="send_email", tool_kwargs=args)
        return ChatMessage(role="assistant", blocks=[call])

    llm = MockFunctionCallingLLM(response_generator=answer)
    agent = FunctionAgent(name="writer", description="writes", tools=[send_email], llm=llm, streaming=False)
    agent = with_toolmem(agent, mem, conversation="c1")
    workflow = with_toolmem(AgentWorkflow(agents=[agent], root_agent="writer"), mem, conversation="c1")

    async def run():
        await workflow.run(user_msg="write")

    asyncio.run(run())
    assert tools_at_hand.ran == [("send_email", "bob@example.com")]
    assert "toolmem: not run" in told[0]
    assert "never email Sarah" in prompts[0]
    assert len(list(mem.calls(["send_email"]))) == 1
    assert len(mem.decisions()) == 1


def test_an_agent_of_another_kind_is_held_as_well(mem):
    assert type(with_toolmem(ReActAgent(tools=[send_email], llm=MockLLM()), mem)).__name__ == "ReActAgent"
