"""What is LangChain's alone: interrupts, commands, a tool that is tried again, content in parts."""

from __future__ import annotations

from harness_langchain import _Scripted
from langchain.agents import create_agent
from langchain.agents.middleware import ToolRetryMiddleware
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

from toolmem.hosts.adapters.langchain import ToolMemMiddleware


class _Seen:
    def __init__(self):
        self.prompts, self.results = [], []


def made(mem, tools, calls, seen, *more, **given):
    asked = [AIMessage("", tool_calls=[{"name": name, "args": args, "id": f"call_{at}"}]) for at, (name, args) in calls]
    model = _Scripted(responses=[*asked, AIMessage("done")], seen=seen)
    return create_agent(model, tools, middleware=[*more, ToolMemMiddleware(mem)], **given)


ASKED = {"messages": [{"role": "user", "content": "go on"}]}


def test_a_call_that_a_graph_interrupts_is_kept_once_when_it_has_run(mem):
    @tool
    def book(place: str) -> str:
        """Book a place."""
        return f"{place}: {interrupt('sure?')}"

    agent = made(mem, [book], [(1, ("book", {"place": "Rome"}))], _Seen(), checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "thread-7"}}
    agent.invoke(ASKED, config)
    assert list(mem.calls(["book"])) == []
    agent.invoke(Command(resume="yes"), config)
    (call,) = mem.calls(["book"])
    assert (call.output, call.success, call.id) == ("Rome: yes", True, "thread-7/call_1")
    assert call.metadata["conversation_id"] == "thread-7"


def test_each_try_of_a_tool_after_a_passing_error_is_a_call_of_its_own(mem):
    tried = []

    @tool
    def flaky(place: str) -> str:
        """Try."""
        tried.append(place)
        if len(tried) < 3:
            raise TimeoutError("timed out")
        return "there"

    seen = _Seen()
    retries = ToolRetryMiddleware(max_retries=5, initial_delay=0, jitter=False)
    made(mem, [flaky], [(1, ("flaky", {"place": "Rome"}))], seen, retries).invoke(ASKED)
    calls = list(mem.calls(["flaky"]))
    assert [call.success for call in calls] == [False, False, True]
    assert len({call.id for call in calls}) == 3
    assert seen.results == ["there"]


def test_a_command_and_content_in_parts_are_kept_and_go_on_as_they_are(mem):
    @tool
    def parts(place: str) -> list:
        """Parts."""
        return [{"type": "text", "text": place}]

    @tool
    def moved(place: str) -> Command:
        """Command."""
        return Command(update={"messages": [ToolMessage("moved", tool_call_id="call_2")]})

    seen = _Seen()
    calls = [(1, ("parts", {"place": "Rome"})), (2, ("moved", {"place": "Rome"}))]
    made(mem, [parts, moved], calls, seen).invoke(ASKED)
    assert seen.results == ["Rome", "moved"]
    assert "Rome" in next(iter(mem.calls(["parts"]))).output
    assert "moved" in next(iter(mem.calls(["moved"]))).output


def test_a_summary_that_stands_in_the_users_place_demands_nothing(mem):
    summary = HumanMessage("Never email Sarah.", additional_kwargs={"lc_source": "summarization"})

    @tool
    def send_email(to: str) -> str:
        """Send an email."""
        return "sent"

    seen = _Seen()
    calls = [(1, ("send_email", {"to": "sarah@example.com"}))]
    made(mem, [send_email], calls, seen).invoke({"messages": [summary]})
    assert seen.results == ["sent"]
    assert mem.rules.list("send_email") == mem.rules.list("@mail") == []
