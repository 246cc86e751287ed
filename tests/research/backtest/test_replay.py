"""A recording once more under a policy: the real op, a store in memory, prompts counted, and what the agent knew."""

from __future__ import annotations

import pytest

from toolmem import ToolMemApp
from toolmem.errors import ConfigError
from toolmem.judge.rule_based import RuleBasedCheck
from toolmem.models import ToolCallResult
from toolmem.ops import SummaryToolMemoryOp
from toolmem.providers.tokenizer import QwenTokenizer
from toolmem.research.backtest.replay import replay
from toolmem.research.report.charges import cost_report
from toolmem.research.report.single_pass import LineCounter
from toolmem.research.report.staleness import staleness, waiting
from toolmem.sample import load_records


def judged(tool="", limit=40):
    check = RuleBasedCheck()
    records = [record for record in load_records() if not tool or record["tool_name"] == tool][:limit]
    return [call.judged(check.check(call)) for call in map(ToolCallResult.model_validate, records)]


async def test_after_each_call_its_tool_is_summarized_and_the_time_is_that_of_the_calls():
    calls = judged("shell", 6)
    run = await replay(calls, {})
    assert run.requests == len(run.reports) == 6
    assert [report.started for report in run.reports] == [call.create_time for call in calls]
    assert [len(guidance.covered) for guidance in run.in_force] == [1, 2, 3, 4, 5, 6]


async def test_what_a_replay_counts_is_what_the_flow_counts():
    calls = judged("shell", 8)
    run = await replay(calls, {"min_new_calls": 3})
    settings = ["vector_store.default.params.path=':memory:'", "llm.default.backend=dry_run"]
    async with ToolMemApp(overrides=[*settings, "op.summary_tool_memory_op.params.min_new_calls=3"]) as app:
        counted = []
        store = await app.services.store_named()
        for call in calls:
            await store.append_calls("w", call.tool_name, [call], 100)
            flow = await app.run_detailed("summary_tool_memory", workspace_id="w", tool_names=["shell"])
            counted += [entry.prompt_tokens for entry in flow.report.entries]
    assert [entry.prompt_tokens for report in run.reports for entry in report.entries] == counted
    assert len(counted) == 3


async def test_guidance_in_force_is_that_of_before_until_a_summary_is_due():
    run = await replay(judged("shell", 12), {"min_new_calls": 5})
    assert [len(guidance.covered) for guidance in run.in_force] == [1] * 5 + [6] * 5 + [11] * 2
    (fresh,) = staleness(waiting(run.reports))
    assert (fresh.most, fresh.summaries, fresh.skips) == (5, 3, 9)


async def test_guidance_grows_old_by_every_call_whether_the_store_still_keeps_it_or_not():
    calls = judged("shell", 40)
    run = await replay(calls, {"min_new_calls": 30}, keep=10)  # the store never holds thirty new calls
    (fresh,) = staleness(waiting(run.reports))
    assert (fresh.summaries, fresh.read) == (1, 1)
    assert (fresh.most, fresh.now) == (39, 39)


async def test_a_run_after_each_conversation_reads_the_tools_that_it_called():
    calls = judged(limit=30)
    run = await replay(calls, {}, cadence="conversation")
    conversations = {call.metadata["conversation_id"] for call in calls}
    assert len(run.reports) == len(conversations)
    assert run.requests == len({(call.metadata["conversation_id"], call.tool_name) for call in calls})


async def test_a_run_each_day_over_all_known_tools_skips_those_without_a_new_call():
    calls = judged(limit=80)
    run = await replay(calls, {}, cadence="day", of="known")
    assert len(run.reports) == len({call.create_time.date() for call in calls}) >= 2
    skipped = [row for report in run.reports for row in report.ops[0].details if row["action"] == "skipped"]
    assert skipped
    assert {row["reason"] for row in skipped} == {"up_to_date"}
    bill = cost_report([], run.reports)
    assert sum(charge.avoided_requests for charge in bill.charges) == len(skipped)


async def test_a_tool_without_guidance_yet_has_none_in_force_and_no_calls_are_no_error():
    calls = judged(limit=5)
    run = await replay(calls, {}, cadence="day")
    assert run.in_force[0] is None
    empty = await replay([], {})
    assert (empty.calls, empty.reports, empty.requests, empty.prompt_tokens) == ((), (), 0, 0)


async def test_a_param_that_does_not_exist_is_refused():
    with pytest.raises(ConfigError, match="polcy"):
        await replay(judged("shell", 1), {"polcy": "smart_skip"})


def test_the_lines_of_calls_are_counted_once_each_and_without_what_stands_around_them():
    calls = judged("shell", 35)
    counter = LineCounter(QwenTokenizer(), window=SummaryToolMemoryOp.Params().recent_call_count)
    (line,) = counter.of_calls(calls)
    assert (line.counted, line.calls, line.estimated) == (35, 35, False)
    assert line.tokens == counter.tokens("shell", calls[:30]) + counter.tokens("shell", calls[30:])
    assert counter.tokens("shell", []) == 0
    assert counter.of_calls([call.unjudged("no verdict") for call in calls]) == []


async def test_one_summary_over_everything_takes_the_lines_and_the_instructions():
    calls = judged("shell", 20)
    run = await replay(calls, {}, cadence="day")
    last = run.reports[-1].entries[-1].prompt_tokens
    (line,) = LineCounter(QwenTokenizer()).of_calls(calls)
    assert line.tokens < last < line.tokens + 250
