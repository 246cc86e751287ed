"""The flow add_tool_call_result: what is judged, what is kept, what is named."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from toolmem.app import ToolMemApp
from toolmem.errors import ConfigError, ModelError, RequestError
from toolmem.ops import ParseToolCallResultOp, UpdateVectorStoreOp
from toolmem.testing.scripted_llm import ScriptedLLM


def record(number: int, tool: str = "search", **more: Any) -> dict[str, Any]:
    failed = number % 3 == 2
    return {
        "tool_name": tool,
        "input": {"query": f"orders of customer {number}", "limit": 10},
        "output": "Error: limit must not exceed 5" if failed else f'[{{"order": {number}}}]',
        "success": not failed,
        "create_time": f"2026-03-01T{number // 60 % 24:02}:{number % 60:02}:00+00:00",
        "time_cost": 0.25,
        **more,
    }


async def add(app, records, **more):
    return await app.run_flow("add_tool_call_result", workspace_id="team", tool_call_results=records, **more)


async def calls_of(app, tool: str) -> list[dict[str, Any]]:
    got = await app.run_flow("retrieve_tool_memory", workspace_id="team", tool_names=[tool], include_calls=True)
    return got.metadata["memory_list"][0]["tool_call_results"]


async def test_one_bad_record_is_named_and_the_good_ones_are_stored(make_app):
    async with make_app() as app:
        records = [record(n) for n in range(19)]
        records.insert(7, {"input": {"query": "x"}, "output": "y"})
        response = await add(app, records)
        evaluation = response.metadata["evaluation"]
        assert (evaluation["requested"], evaluation["evaluated"], evaluation["failed"]) == (20, 19, 1)
        assert evaluation["failures"][0]["index"] == 7
        assert "tool_name" in evaluation["failures"][0]["error"]
        assert not response.success
        assert response.metadata["partial"]
        assert len(await calls_of(app, "search")) == 19


async def test_calls_whose_evaluation_fails_are_kept_unscored_named_and_healed_by_a_retry(make_app):
    llm = ScriptedLLM.plausible(fail_every=5)
    async with make_app(llms={"default": llm}) as app:
        response = await add(app, [record(n) for n in range(20)])
        evaluation = response.metadata["evaluation"]
        assert evaluation["failed"] == 4
        assert evaluation["evaluated"] == 16
        assert not response.success
        calls = await calls_of(app, "search")
        assert len(calls) == 20
        failed = [call for call in calls if call["evaluation_status"] == "failed"]
        assert len(failed) == 4
        assert all("score" not in call and "scripted failure" in call["evaluation"] for call in failed)
    healthy = ScriptedLLM.plausible()
    async with make_app(llms={"default": healthy}) as app:
        again = await app.run_flow("retry_evaluations", workspace_id="team")
        assert again.success
        assert again.metadata["evaluation"]["evaluated"] == 4
        assert len(healthy.requests) == 4
        assert all(call["evaluation_status"] == "ok" for call in await calls_of(app, "search"))


async def test_the_next_add_takes_up_evaluations_that_failed_before(make_app):
    async with make_app(llms={"default": ScriptedLLM.plausible(fail_every=2)}) as app:
        await add(app, [record(n) for n in range(4)])
    async with make_app(llms={"default": ScriptedLLM.plausible()}) as app:
        response = await add(app, [record(50)])
        assert response.metadata["retried"]["evaluated"] == 2
        assert [call["evaluation_status"] for call in await calls_of(app, "search")] == ["ok"] * 5


async def test_a_model_that_always_fails_loses_no_call(make_app):
    async with make_app(llms={"default": ScriptedLLM.plausible(fail_every=1)}) as app:
        response = await add(app, [record(n) for n in range(6)])
        assert response.metadata["evaluation"]["failed"] == 6
        assert not response.metadata["partial"]
        assert len(await calls_of(app, "search")) == 6


async def test_more_errors_than_max_errors_stop_the_run_and_keep_the_calls(make_app):
    llm = ScriptedLLM.plausible(fail_every=1)
    async with make_app("max_errors=3", "llm.default.params.max_concurrency=1", llms={"default": llm}) as app:
        response = await add(app, [record(n) for n in range(40)])
        assert "max_errors=3" in response.metadata["stopped"]
        assert len(llm.requests) == 4
        assert len(await calls_of(app, "search")) == 40


async def test_a_fatal_model_error_costs_one_request(make_app):
    llm = ScriptedLLM.plausible(fail_every=1, failure=ModelError("401: wrong key", fatal=True))
    async with make_app("llm.default.params.max_concurrency=1", llms={"default": llm}) as app:
        response = await add(app, [record(n) for n in range(10)])
        assert len(llm.requests) == 1
        assert response.metadata["evaluation"]["failed"] == 10
        assert "wrong key" in response.metadata["stopped"]


async def test_identical_calls_are_judged_once_and_counted_each(make_app):
    llm = ScriptedLLM.plausible()
    async with make_app(llms={"default": llm}) as app:
        first = await add(app, [record(n % 3) for n in range(30)])
        assert len(llm.requests) == 3
        assert first.metadata["evaluation"]["evaluated"] == 3
        assert first.metadata["evaluation"]["reused"] == 27
        second = await add(app, [record(n % 3) for n in range(30)])
        assert len(llm.requests) == 3
        assert second.metadata["evaluation"]["reused"] == 30
        assert len(await calls_of(app, "search")) == 60


async def test_calls_sent_twice_with_ids_are_no_ops(make_app):
    llm = ScriptedLLM.plausible()
    async with make_app(llms={"default": llm}) as app:
        records = [record(n, id=f"call-{n}") for n in range(30)]
        await add(app, records)
        second = await add(app, records)
        assert second.success
        assert second.metadata["evaluation"]["duplicates"] == 30
        assert len(llm.requests) == 30
        assert len(await calls_of(app, "search")) == 30


async def test_an_id_belongs_to_its_tool_and_workspace(make_app):
    async with make_app() as app:
        response = await add(app, [record(1, id="a"), record(1, tool="other", id="a"), record(2, id="a")])
        assert response.metadata["evaluation"]["duplicates"] == 1
        elsewhere = await app.run_flow(
            "add_tool_call_result", workspace_id="elsewhere", tool_call_results=[record(1, id="a")]
        )
        assert elsewhere.metadata["evaluation"]["duplicates"] == 0


async def test_more_calls_than_are_kept_are_all_judged_and_the_rest_is_said_to_be_trimmed(make_app):
    async with make_app("op.parse_tool_call_result_op.params.max_history_tool_call_cnt=10") as app:
        response = await add(app, [record(n) for n in range(25)])
        assert response.metadata["evaluation"]["evaluated"] == 25
        assert response.metadata["trimmed"] == {"search": 15}
        memory = response.metadata["memory_list"][0]
        assert memory["metadata"]["lifetime"]["calls"] == 25
        assert memory["metadata"]["statistics"]["calls"] == 10
        assert [call["input"]["query"] for call in await calls_of(app, "search")][-1] == "orders of customer 24"


async def test_calls_of_one_request_are_kept_in_the_order_of_their_times(make_app):
    async with make_app() as app:
        await add(app, [record(n) for n in (5, 3, 4, 1)])
        kept = [call["input"]["query"][-1] for call in await calls_of(app, "search")]
        assert kept == ["1", "3", "4", "5"]


@pytest.mark.parametrize(
    "name", ["a,b", "with space", "path/like", "搜索", "Search", "search", "ünïcode", "a.b", "quote'\"", "-- DROP"]
)
async def test_any_tool_name_is_an_exact_key(make_app, name):
    async with make_app() as app:
        await add(app, [record(1, tool="search"), record(2, tool="Search"), record(3, tool=name)])
        got = await app.run_flow("retrieve_tool_memory", workspace_id="team", tool_names=[name])
        assert got.success
        assert [memory["when_to_use"] for memory in got.metadata["memory_list"]] == [name]


async def test_eight_concurrent_flows_on_one_tool_lose_nothing(make_app):
    async with make_app("op.parse_tool_call_result_op.params.max_history_tool_call_cnt=500") as app:
        responses = await asyncio.gather(*(add(app, [record(w * 20 + n) for n in range(20)]) for w in range(8)))
        assert all(response.success for response in responses)
        calls = await calls_of(app, "search")
        assert len({call["input"]["query"] for call in calls}) == 160


async def test_a_call_without_parameters_or_output_is_a_valid_call(make_app):
    async with make_app() as app:
        response = await add(app, [{"tool_name": "now"}, {"tool_name": "now", "input": "", "output": ""}])
        assert response.success
        assert len(await calls_of(app, "now")) == 2


async def test_a_megabyte_of_output_is_kept_whole_and_cut_visibly_in_the_prompt(make_app):
    llm = ScriptedLLM.plausible()
    async with make_app(llms={"default": llm}) as app:
        output = "begin " + "x" * 1_000_000 + " end"
        response = await add(app, [record(0, output=output)])
        assert response.success
        assert (await calls_of(app, "search"))[0]["output"] == output
        prompt = llm.prompts[0]
        assert len(prompt) < 40_000
        assert "begin" in prompt
        assert "end" in prompt
        assert "characters cut" in prompt


async def test_times_that_are_no_numbers_refuse_the_record_and_surrogates_are_repaired(make_app, caplog):
    async with make_app() as app:
        response = await add(
            app,
            [
                record(0, time_cost=float("nan")),
                record(1, time_cost=-1.0),
                record(3, output="broken \ud800 text"),
                record(4, time_cost=float("inf")),
            ],
        )
        assert [failure["index"] for failure in response.metadata["evaluation"]["failures"]] == [0, 1, 3]
        assert (await calls_of(app, "search"))[0]["output"] == "broken \ufffd text"
        assert "surrogate" in caplog.text


@pytest.mark.parametrize("workspace", ["../escape", "", "a/b", ".hidden", "x" * 129, "nul\0"])
async def test_a_workspace_id_that_is_no_name_is_refused_before_anything_is_judged(make_app, workspace):
    llm = ScriptedLLM.plausible()
    async with make_app(llms={"default": llm}) as app:
        with pytest.raises(RequestError, match="workspace_id"):
            await app.run_flow("add_tool_call_result", workspace_id=workspace, tool_call_results=[record(0)])
        assert not llm.requests


async def test_an_unknown_key_of_the_request_refuses_it_by_name(make_app):
    async with make_app() as app:
        with pytest.raises(RequestError, match="tool_call_result"):
            await app.run_flow("add_tool_call_result", workspace_id="team", tool_call_result=[record(0)])


async def test_an_unknown_key_of_a_record_is_kept_in_its_metadata(make_app):
    async with make_app() as app:
        await add(app, [record(0, trace="abc", score=1.0)])
        call = (await calls_of(app, "search"))[0]
        assert call["metadata"]["trace"] == "abc"


async def test_scores_given_by_the_caller_are_ignored(make_app):
    async with make_app() as app:
        await add(app, [record(2, score=1.0, is_summarized=True, evaluation="great")])
        call = (await calls_of(app, "search"))[0]
        assert call["score"] == 0.0
        assert not call["is_summarized"]
        assert call["evaluation"] != "great"


async def test_a_cancelled_run_keeps_the_verdicts_that_were_read_and_pays_them_once(make_app):
    llm = ScriptedLLM.plausible(delay=0.01)
    records = [record(n) for n in range(60)]
    async with make_app("llm.default.params.max_concurrency=2", llms={"default": llm}) as app:
        task = asyncio.create_task(add(app, records))
        while len(llm.requests) < 12:
            await asyncio.sleep(0.005)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        started = len(llm.requests)
        await asyncio.sleep(0.05)
        assert len(llm.requests) == started, "no new request starts after a cancellation"
    second = ScriptedLLM.plausible()
    async with make_app(llms={"default": second}) as app:
        response = await add(app, records)
        assert response.success
        assert len(second.requests) <= 60 - (started - 2), "only the two requests in flight are paid again"


async def test_a_tool_schema_reaches_the_judge(make_app):
    llm = ScriptedLLM.plausible()
    schema = {"type": "function", "function": {"name": "search", "parameters": {"required": ["zzz_parameter"]}}}
    async with make_app(llms={"default": llm}) as app:
        await add(app, [record(0, context="find the zebra")], tools=[schema])
        assert "zzz_parameter" in llm.prompts[0]
        assert "find the zebra" in llm.prompts[0]


async def test_a_bad_tool_schema_refuses_the_request(make_app):
    async with make_app() as app:
        with pytest.raises(RequestError, match=r"tools\[0\]"):
            await add(app, [record(0)], tools=[{"description": "no name"}])


async def test_scores_of_two_judges_are_not_averaged_in_silence(make_app):
    async with make_app() as app:
        await add(app, [record(0)])
    async with make_app(llms={"default": ScriptedLLM.plausible()}) as app:
        response = await add(app, [record(1)])
        metadata = response.metadata["memory_list"][0]["metadata"]
        assert len(metadata["judges"]) == 2
        assert "mixes 2 judges" in metadata["judges_note"]


async def test_rejudge_replaces_the_verdicts_and_makes_the_calls_new_again(make_app):
    async with make_app() as app:
        await add(app, [record(n) for n in range(5)])
        await app.run_flow("summary_tool_memory", workspace_id="team", tool_names="search")
    llm = ScriptedLLM.plausible()
    async with make_app(llms={"default": llm}) as app:
        response = await app.run_flow("rejudge", workspace_id="team", tool_names="search")
        assert response.metadata["evaluation"]["evaluated"] == 5
        assert len(llm.requests) == 5
        calls = await calls_of(app, "search")
        assert {call["judge"]["backend"] for call in calls} == {"scripted"}
        assert not any(call["is_summarized"] for call in calls)
        memory = (await app.run_flow("retrieve_tool_memory", workspace_id="team", tool_names="search")).metadata
        assert memory["memory_list"][0]["metadata"]["lifetime"]["judged"] == 5


async def test_a_dry_run_counts_true_prompts_and_sends_nothing(make_app):
    async with make_app("llm.default.backend=dry_run", "prices.qwen-plus.input=0.8") as app:
        response = await add(app, [record(n) for n in range(3)])
        usage = response.metadata["usage"]
        assert usage["prompt_tokens"] > 100
        assert usage["estimated"]
        assert usage["cost"] == pytest.approx(usage["prompt_tokens"] * 0.8 / 1000)
        assert {call["judge"]["backend"] for call in await calls_of(app, "search")} == {"dry_run"}


async def test_a_key_that_is_a_slip_of_a_known_one_is_warned_of_once(caplog, tmp_path):
    records = [{"tool_name": "search", "sucess": True}, {"tool_name": "search", "sucess": False}]
    async with ToolMemApp(overrides=[f"vector_store.default.params.path='{tmp_path}/memory.db'"]) as app:
        with caplog.at_level("WARNING", logger="toolmem"):
            response = await app.run_flow("add_tool_call_result", workspace_id="team", tool_call_results=records)
    assert response.success
    assert [record.getMessage() for record in caplog.records] == [
        "the key 'sucess' is unknown and was kept as metadata; did you mean 'success'?"
    ]


async def test_storing_before_judging_is_refused_before_anything_runs(make_app):
    async with make_app() as app:
        flow = UpdateVectorStoreOp() >> ParseToolCallResultOp()
        with pytest.raises(RequestError, match="put parse_tool_call_result_op before it"):
            await flow.run(app, workspace_id="team", tool_call_results=[record(1)])
    with pytest.raises(ConfigError, match="'judged_calls' and 'keep_calls', but parse_tool_call_result_op") as caught:
        ToolMemApp(
            overrides=["flow.add_tool_call_result.flow_content=update_vector_store_op >> parse_tool_call_result_op"]
        )
    assert len(caught.value.problems) == 1


DENIED = "toolmem: not run. The user said: never search for customers. Leave it out, or ask them to take it back."
WRAPPED = [DENIED, f"Error: {DENIED}", f'[{{"type": "text", "text": "{DENIED}"}}]', f'{{"error": "{DENIED}"}}']


@pytest.mark.parametrize("output", WRAPPED)
async def test_a_denied_call_is_not_judged_not_paid_for_and_counted_nowhere(make_app, output):
    llm = ScriptedLLM.plausible()
    async with make_app(llms={"default": llm}) as app:
        await add(app, [record(n) for n in range(3)])
        before, asked = await figures_of(app), len(llm.requests)
        response = await add(app, [record(7, output=output, success=False, id="denied")])
        assert len(llm.requests) == asked
        assert response.success
        evaluation = response.metadata["evaluation"]
        assert [evaluation[name] for name in ("evaluated", "reused", "failed", "denied")] == [0, 0, 0, 1]
        assert "1 denied before they ran" in response.answer
        await app.run_flow("retry_evaluations", workspace_id="team")
        await app.run_flow("summary_tool_memory", workspace_id="team", tool_names=["search"])
        assert not any("toolmem: not run" in str(request) for request in llm.requests)
        after = await figures_of(app)
        assert {name: after[name] for name in before} == before


async def figures_of(app) -> dict[str, Any]:
    got = await app.run_flow("retrieve_tool_memory", workspace_id="team", tool_names=["search"], include_calls=True)
    metadata = got.metadata["memory_list"][0]["metadata"]
    return {"calls": len(got.metadata["memory_list"][0]["tool_call_results"])} | {
        name: metadata[name] for name in ("statistics", "window", "lifetime", "unjudged")
    }


async def test_a_tool_whose_every_call_was_denied_has_no_memory(make_app):
    async with make_app() as app:
        response = await add(app, [record(1, output=DENIED, success=None)])
        assert response.success
        assert response.metadata["memory_list"] == []


async def test_a_denied_call_does_not_stand_between_a_failure_and_its_repair(make_app):
    def turn(n: int, *, denied: bool) -> list[dict[str, Any]]:
        conversation = {"metadata": {"conversation_id": f"c{n}"}}
        failed = record(3 * n + 2, input={"query": f"q{n}", "limit": 10}, **conversation)
        between = record(3 * n + 2, input={"query": f"q{n}", "limit": 7}, **conversation)
        good = record(3 * n + 3, input={"query": f"q{n}", "limit": 5}, **conversation)
        return [failed, between | {"output": DENIED, "success": False}, good] if denied else [failed, good]

    async def guidance(denied: bool) -> str:
        async with make_app() as app:
            calls = [each for n in range(8) for each in turn(n, denied=denied)]
            here = {"workspace_id": f"denied-{denied}"}
            await app.run_flow("add_tool_call_result", tool_call_results=calls, **here)
            await app.run_flow("summary_tool_memory", tool_names=["search"], **here)
            got = await app.run_flow("retrieve_tool_memory", tool_names=["search"], **here)
            return str(got.metadata["memory_list"][0]["content"])

    without = await guidance(False)
    assert 'then worked: {"limit": 5}' in without
    assert await guidance(True) == without
