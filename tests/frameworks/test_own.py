"""What belongs to one framework: a call that is interrupted or waits for approval has not ended."""

import pytest

from toolmem import ToolMem

pytestmark = pytest.mark.frameworks


@pytest.fixture
def memory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with ToolMem(tmp_path / "m.db") as opened:
        yield opened


def test_a_call_that_a_langchain_graph_interrupts_is_kept_once_when_it_has_run(memory):
    from langchain.agents import create_agent
    from langchain_core.messages import AIMessage
    from langchain_core.tools import tool
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.types import Command, interrupt

    from frameworks.harness import Seen
    from frameworks.with_langchain import _Scripted
    from toolmem.adapters.langchain import ToolMemMiddleware

    @tool
    def book(place: str) -> str:
        """Book a place."""
        return f"{place}: {interrupt('sure?')}"

    asked = AIMessage("", tool_calls=[{"name": "book", "args": {"place": "Rome"}, "id": "call_1"}])
    model = _Scripted(responses=[asked, AIMessage("done")], seen=Seen())
    middleware = [ToolMemMiddleware(memory)]
    agent = create_agent(model, [book], middleware=middleware, checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "thread-7"}}
    agent.invoke({"messages": [{"role": "user", "content": "go on"}]}, config)
    assert memory.calls() == []
    agent.invoke(Command(resume="yes"), config)
    [call] = memory.calls()
    assert (call.output, call.success) == ("Rome: yes", True)
    assert call.metadata["conversation_id"] == "thread-7"


def test_a_summary_of_langchain_in_the_users_place_demands_nothing(memory):
    from langchain.agents import create_agent
    from langchain_core.messages import AIMessage, HumanMessage
    from langchain_core.tools import tool

    from frameworks.harness import Seen
    from frameworks.with_langchain import _Scripted
    from toolmem.adapters.langchain import ToolMemMiddleware

    @tool
    def send_email(to: str) -> str:
        """Send an email."""
        return "sent"

    text = "Never email sarah@example.com."
    summary = HumanMessage(text, additional_kwargs={"lc_source": "summarization"})
    model = _Scripted(responses=[AIMessage("done")], seen=Seen())
    agent = create_agent(model, [send_email], middleware=[ToolMemMiddleware(memory)])
    agent.invoke({"messages": [summary]})
    assert memory.rules.all_rules().rules == []


def test_a_call_that_waits_for_approval_in_pydantic_ai_is_kept_once_when_it_has_run(memory):
    from pydantic_ai import (
        Agent,
        ApprovalRequired,
        DeferredToolRequests,
        DeferredToolResults,
        RunContext,
    )
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel

    from toolmem.adapters.pydantic_ai import ToolMemCapability

    def book(ctx: RunContext, place: str) -> str:
        if not ctx.tool_call_approved:
            raise ApprovalRequired()
        return "booked"

    turns = iter([ToolCallPart("book", {"place": "Rome"})])

    def answer(messages, info):
        return ModelResponse([next(turns, TextPart("done"))])

    agent = Agent(
        FunctionModel(answer),
        tools=[book],
        capabilities=[ToolMemCapability(memory, "c1")],
        output_type=[str, DeferredToolRequests],
    )
    first = agent.run_sync("go")
    assert memory.calls() == []
    (asked,) = first.output.approvals
    results = DeferredToolResults(approvals={asked.tool_call_id: True})
    agent.run_sync(message_history=first.all_messages(), deferred_tool_results=results)
    [call] = memory.calls()
    assert (call.output, call.success) == ("booked", True)
