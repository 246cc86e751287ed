"""What is Pydantic AI's alone: retries that a tool asks for, approvals, results that are no text."""

from __future__ import annotations

from pydantic_ai import Agent, ApprovalRequired, DeferredToolRequests, DeferredToolResults, ModelRetry, RunContext
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

from toolmem import ToolMem
from toolmem.hosts.adapters.pydantic_ai import ToolMemCapability


def _agent(mem, tool, seen, calls, **given):
    left = iter(calls)

    def answer(messages, info):
        seen[:] = [part for message in messages for part in message.parts]
        args = next(left, None)
        return ModelResponse([TextPart("done") if args is None else ToolCallPart(tool.__name__, args)])

    return Agent(FunctionModel(answer), tools=[tool], capabilities=[ToolMemCapability(mem, "c1")], **given)


def test_a_retry_that_a_tool_asks_for_is_kept_as_its_error(mem):
    def book(place: str) -> str:
        if place != "Rome":
            raise ModelRetry("only Rome")
        return "booked"

    seen = []
    _agent(mem, book, seen, [{"place": "Oslo"}, {"place": "Rome"}]).run_sync("go")
    assert any(getattr(part, "content", "") == "only Rome" for part in seen)
    told = [(call.input["place"], call.success, call.output) for call in mem.calls(["book"])]
    assert ("Rome", True, "booked") in told
    assert [each[:2] for each in told if each[0] == "Oslo"] == [("Oslo", False)]
    assert "only Rome" in next(each[2] for each in told if each[0] == "Oslo")


def test_a_call_that_waits_for_an_approval_is_kept_once_when_it_has_run(mem):
    def book(ctx: RunContext, place: str) -> str:
        if not ctx.tool_call_approved:
            raise ApprovalRequired()
        return "booked"

    agent = _agent(mem, book, [], [{"place": "Rome"}], output_type=[str, DeferredToolRequests])
    first = agent.run_sync("go")
    assert list(mem.calls(["book"])) == []
    (asked,) = first.output.approvals
    results = DeferredToolResults(approvals={asked.tool_call_id: True})
    agent.run_sync(message_history=first.all_messages(), deferred_tool_results=results)
    (call,) = mem.calls(["book"])
    assert (call.output, call.success) == ("booked", True)


def test_advice_on_a_result_that_is_no_text_stands_beside_it(tmp_path):
    with ToolMem(tmp_path / "advised.db", overrides=["guard.rules=advise"]) as mem:
        mem.rules.put("book", "never book Rome", priority="critical")

        def book(place: str) -> dict:
            return {"place": place}

        seen = []
        _agent(mem, book, seen, [{"place": "Rome"}]).run_sync("go")
        assert any(getattr(part, "content", "") == {"place": "Rome"} for part in seen)
        assert any("never book Rome" in str(getattr(part, "content", "")) for part in seen)
