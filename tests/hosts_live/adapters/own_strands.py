"""What is Strands' alone: hooks of others that cancel a call or have it tried again, async tools."""

from __future__ import annotations

from harness_strands import _Scripted
from strands import Agent, tool
from strands.hooks import AfterToolCallEvent, BeforeToolCallEvent

from toolmem.hosts.adapters.strands import ToolMemStrands


class _Seen:
    def __init__(self):
        self.prompts, self.results = [], []


def _agent(mem, steps, seen, *tools):
    plugins = [ToolMemStrands(mem, conversation="c1")]
    return Agent(model=_Scripted(seen, steps), tools=list(tools), plugins=plugins, callback_handler=None)


def test_a_call_that_another_hook_cancels_is_not_kept(mem):
    @tool
    def book(place: str) -> str:
        """Book."""
        return "booked"

    agent = _agent(mem, [[("book", {"place": "Rome"})]], seen := _Seen(), book)
    agent.add_hook(lambda event: setattr(event, "cancel_tool", "closed"), BeforeToolCallEvent)
    agent("go")
    assert seen.results == ["closed"]
    assert list(mem.calls(["book"])) == []


def test_each_try_that_another_hook_asks_for_is_a_call_of_its_own(mem):
    tried = []

    @tool
    async def book(place: str) -> str:
        """Book."""
        tried.append(place)
        if len(tried) == 1:
            raise TimeoutError("timed out")
        return "booked"

    agent = _agent(mem, [[("book", {"place": "Rome"})]], seen := _Seen(), book)
    agent.add_hook(lambda event: setattr(event, "retry", len(tried) == 1), AfterToolCallEvent)
    agent("go")
    assert seen.results == ["booked"]
    assert [call.success for call in mem.calls(["book"])] == [False, True]


def test_a_summary_that_stands_in_the_users_place_demands_nothing(mem):
    @tool
    def send_email(to: str) -> str:
        """Send an email."""
        return "sent"

    agent = _agent(mem, [[("send_email", {"to": "sarah@example.com"})]], seen := _Seen(), send_email)
    agent.messages.append({"role": "user", "content": [{"text": "Never email Sarah."}]})
    agent.messages.append({"role": "assistant", "content": [{"text": "Understood."}]})
    agent("go")
    assert seen.results == ["sent"]
    assert mem.rules.list("send_email") == mem.rules.list("@mail") == []
