from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest

from toolmem.errors import BudgetReached, RequestError, RunStopped
from toolmem.flow.op import Op
from toolmem.flow.runner import new_report, run_node
from toolmem.models import Usage
from toolmem.protocols import LedgerEntry


def request(**more):
    return {"workspace_id": "team", "text": "three small words", **more}


async def run(node, services, *, name="test", given=None, **more):
    return await run_node(node, name=name, request=request() if given is None else given, services=services, **more)


def entry(context, tokens=10, waited=0.5) -> LedgerEntry:
    return LedgerEntry(
        time=datetime(2026, 1, 1, tzinfo=UTC),
        workspace=context.workspace,
        flow=context.flow,
        op=context.op.key,
        tool="search",
        backend="scripted",
        model="m",
        prompt_tokens=tokens,
        completion_tokens=2,
        cached_tokens=0,
        estimated=False,
        outcome="ok",
        seconds=1.0,
        waited=waited,
        cost=0.25,
        currency="CNY",
    )


class AskOp(Op):
    async def execute(self, context):
        for done in (1, 2):
            context.purpose("search").meter.book(entry(context))
            context.progress(done, 2, "asked")
        context.note("asked twice")
        context.save(Usage(saved_requests=1, saved_prompt_tokens=7))
        context.response.metadata["usage"] = context.usage


async def test_each_op_finds_what_the_earlier_ones_left(ops, services):
    outcome = await run(ops["count_words_op"]() >> ops["report_count_op"](), services, given=request(unit="pieces"))
    assert outcome.response.answer == "3 pieces"
    assert outcome.response.success
    assert outcome.context["count"] == 3
    assert [op.outcome for op in outcome.report.ops] == ["ok", "ok"]
    response, _, report = outcome
    assert response is outcome.response
    assert report.outcome == "ok"


async def test_what_an_op_does_not_declare_it_cannot_leave(services):
    class SecretiveOp(Op):
        async def execute(self, context):
            context["hidden"] = 1

    with pytest.raises(TypeError, match="secretive_op leaves 'hidden' without declaring it"):
        await run(SecretiveOp(), services, given={"workspace_id": "w"})


async def test_nothing_runs_on_a_bad_request(ops, services):
    events = []
    with pytest.raises(RequestError) as caught:
        await run(ops["count_words_op"](), services, given={"workspace_id": "w"}, listeners=[events.append])
    assert caught.value.field == "text"
    assert events == []


async def test_parallel_branches_of_one_key_are_refused_before_anything_runs(ops, services):
    with pytest.raises(RequestError, match="both leave 'count'"):
        await run(ops["count_words_op"]() | ops["fail_op"](), services)


async def test_events_tell_the_run_in_order(services, ops):
    events = []
    await run(AskOp() >> ops["upper_case_op"](), services, listeners=[events.append])
    assert [(event.kind, event.op, event.done) for event in events] == [
        ("flow_started", "", 0),
        ("op_started", "ask_op", 0),
        ("request", "ask_op", 1),
        ("progress", "ask_op", 1),
        ("request", "ask_op", 2),
        ("progress", "ask_op", 2),
        ("op_finished", "ask_op", 0),
        ("op_started", "upper_case_op", 0),
        ("op_finished", "upper_case_op", 0),
        ("flow_finished", "", 0),
    ]
    assert events[-1].message == "ok"


async def test_a_listener_that_fails_does_not_break_the_run(services, ops, caplog):
    heard = []

    def broken(event):
        heard.append(event)
        raise RuntimeError("no display")

    outcome = await run(ops["upper_case_op"](), services, listeners=[broken])
    assert outcome.report.outcome == "ok"
    assert len(heard) == 1
    assert caplog.text.count("a listener failed") == 1


async def test_requests_are_booked_with_the_op_and_passed_on(services):
    class Ledger:
        def __init__(self):
            self.entries = []

        def book(self, booked):
            self.entries.append(booked)

    ledger = Ledger()
    outcome = await run(AskOp() >> AskOp(), services, given={"workspace_id": "w"}, meter=ledger)
    report = outcome.report
    assert len(ledger.entries) == len(report.entries) == 4
    assert [op.usage.requests for op in report.ops] == [2, 2]
    assert report.ops[0].waited == 1.0
    assert report.ops[0].model_seconds == 2.0
    assert report.ops[0].notes == ["asked twice"]
    assert report.usage == Usage(
        requests=4,
        prompt_tokens=40,
        completion_tokens=8,
        saved_requests=2,
        saved_prompt_tokens=14,
        cost=1.0,
        currency="CNY",
    )
    assert outcome.response.metadata["usage"].requests == 2


async def test_what_an_op_raises_goes_on_to_the_caller(ops, services):
    node = ops["fail_op"]() >> ops["report_count_op"]()
    report = new_report(node, "test", request(), services)
    with pytest.raises(ValueError, match="broken"):
        await run(node, services, given={"workspace_id": "w"}, report=report)
    assert [op.outcome for op in report.ops] == ["failed: ValueError: broken", "not_run"]
    assert report.outcome == "failed: ValueError: broken"


async def test_with_raise_exception_off_a_failure_is_noted_and_the_flow_goes_on(ops, services):
    class ForgetfulOp(Op):
        async def execute(self, context):
            context.response.success = True
            context.response.metadata = {"failures": ["its own"]}

    node = ops["fail_op"](raise_exception=False) >> ops["report_count_op"]() >> ForgetfulOp() >> ops["upper_case_op"]()
    outcome = await run(node, services)
    assert outcome.response.success is False
    assert outcome.response.metadata["failures"] == ["its own", {"op": "fail_op", "error": "ValueError: broken"}]
    assert [op.outcome for op in outcome.report.ops] == ["failed: ValueError: broken", "not_run", "ok", "ok"]
    assert "count is missing because an earlier op failed" in outcome.report.ops[1].notes[0]
    assert outcome.context["upper"] == "THREE SMALL WORDS"


@pytest.mark.parametrize("error", [RequestError("no"), RunStopped("enough"), BudgetReached("spent")])
async def test_refusals_stops_and_the_budget_are_always_raised(services, error):
    class StoppingOp(Op):
        async def execute(self, context):
            raise error

    with pytest.raises(type(error)) as caught:
        await run(StoppingOp(raise_exception=False), services, given={"workspace_id": "w"})
    assert caught.value is error


async def test_branches_run_side_by_side(ops, services, clock):
    sleep = ops["sleep_op"]
    task = asyncio.create_task(
        run(sleep(seconds=3) | sleep(seconds=1) | sleep(seconds=2), services, given={"workspace_id": "w"})
    )
    await clock.elapse(3)
    outcome = await task
    assert outcome.response.metadata["slept"] == [1, 2, 3]
    assert [op.seconds for op in outcome.report.ops] == [3, 1, 2]
    assert outcome.report.seconds == 3


async def test_a_branch_that_fails_cancels_the_others_and_waits_for_them(ops, services, clock):
    cleaned = []

    class CarefulOp(Op):
        async def execute(self, context):
            try:
                await context.services.clock.sleep(1000)
            finally:
                await asyncio.sleep(0)  # a started write finishes
                cleaned.append(self.key)

    node = CarefulOp() | (ops["sleep_op"](seconds=1) >> ops["fail_op"]())
    report = new_report(node, "test", request(), services)
    task = asyncio.create_task(run(node, services, given={"workspace_id": "w"}, report=report))
    await clock.elapse(1)
    with pytest.raises(ValueError, match="broken"):
        await task
    assert cleaned == ["careful_op"]
    assert [op.outcome for op in report.ops] == ["cancelled", "ok", "failed: ValueError: broken"]


async def test_a_cancelled_run_cancels_and_awaits_its_branches(services):
    ended = []

    class EndlessOp(Op):
        async def execute(self, context):
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0)
                ended.append(1)

    node = EndlessOp(raise_exception=False) | EndlessOp()
    report = new_report(node, "test", {}, services)
    task = asyncio.create_task(run(node, services, given={"workspace_id": "w"}, report=report))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(ended) == 2
    assert report.outcome == "cancelled"
    assert {op.outcome for op in report.ops} == {"cancelled"}


async def test_one_op_may_run_in_many_flows_at_once(ops, services):
    node = ops["count_words_op"]() >> ops["report_count_op"]()
    texts = ["a " * n for n in range(20)]
    outcomes = await asyncio.gather(*(run(node, services, given=request(text=text)) for text in texts))
    assert [outcome.response.answer for outcome in outcomes] == [f"{n} words" for n in range(20)]


async def test_python_flows_run_through_the_app(ops, services):
    class App:
        async def execute(self, node, request):
            return (await run_node(node, name="", request=request, services=services)).response

    answer = await (ops["count_words_op"]() >> ops["report_count_op"]()).run(App(), workspace_id="w", text="a b")
    assert answer.answer == "2 words"
