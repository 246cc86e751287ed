"""Whatever a model does, the main job keeps every call, names what it could not judge, and ends the same."""

from __future__ import annotations

import pytest

from toolmem.testing.model_script import FAULTS, PASSING, Rule, Script
from toolmem.testing.model_server import ModelServer

pytestmark = pytest.mark.filterwarnings("error")
CALLS = 30


def left_behind(evaluation):
    """What the store holds at the end, but for the times at which it was written."""
    memories = []
    for memory in evaluation.memories:
        dumped = memory.model_dump(mode="json", exclude={"memory_id", "time_created", "time_modified"})
        dumped["metadata"].pop("guidance_created_at")
        for proof in dumped["metadata"]["upkeep"]["history"]["proofs"]:
            proof.pop("since")
        memories.append(dumped)
    return memories


@pytest.fixture(scope="module")
def healthy():
    """Filled by the first test that asks for it: the store that a healthy server leaves."""
    return {}


async def with_server(job, script, *overrides, backend="dashscope"):
    with ModelServer(script) as server:
        app = job.app(server, "llm.default.params.max_retries=12", *overrides, backend=backend)
        return await job.evaluated(app, job.recording(CALLS)), server


@pytest.mark.parametrize("backend", ["dashscope", "openai_compatible"])
async def test_the_main_job_judges_and_summarizes_everything_once(job, backend):
    evaluation, server = await with_server(job, Script(), backend=backend)
    assert not evaluation.failures
    assert not evaluation.unsummarized
    assert {call.evaluation_status for call in evaluation.calls} == {"ok"}
    assert {str(call.judge).partition("@")[0] for call in evaluation.calls} == {f"{backend}/qwen-plus"}
    assert {call.score for call in evaluation.calls} == {0.0, 1.0}
    assert len(job.evaluations(server)) == CALLS
    assert set(job.asked(server).values()) == {1}
    first, idle, last = (run.response.metadata for run in evaluation.summaries)
    assert first["summarized"] == idle["skipped"] == last["summarized"] == ["tool_0", "tool_1"]
    assert all(memory.author == f"{backend}/qwen-plus" for memory in evaluation.memories)


@pytest.mark.parametrize("fault", PASSING)
async def test_the_store_is_the_same_where_every_fifth_request_fails_in_passing(job, healthy, fault):
    if not healthy:
        evaluation, _ = await with_server(job, Script())
        healthy["store"] = left_behind(evaluation)
        (job.folder / "memory.db").rename(job.folder / "healthy.db")
        for rest in job.folder.glob("memory.db-*"):
            rest.unlink()
    timeout = "llm.default.params.timeout=0.7" if fault == "hang" else "llm.default.params.timeout=30"
    evaluation, server = await with_server(job, Script.failing(fault, every=5), timeout)
    assert sum(request.behaviour == fault for request in server.requests) == len(server.requests) // 5 > 5
    assert not evaluation.failures
    assert left_behind(evaluation) == healthy["store"]


@pytest.mark.parametrize("fault", ["server_error", "content_filter", "empty"])
async def test_where_a_third_fails_for_good_all_calls_are_kept_and_named(job, fault):
    with ModelServer(Script.failing(fault, share=0.3)) as server:
        app = job.app(server, "llm.default.params.max_retries=1")
        evaluation = await job.evaluated(app, job.recording(CALLS))
        again = job.app(server, "llm.default.params.max_retries=0")
        async with again:
            kept = await job.kept(again, evaluation.workspace)
        lasting = {r.prompt for r in job.evaluations(server) if r.behaviour == fault}
    failed = [call for call in evaluation.calls if call.evaluation_status == "failed"]
    assert 0 < len(failed) == len(lasting) < CALLS / 2
    assert len(evaluation.failures) == len(failed)
    named = {failure.where for failure in evaluation.failures}
    assert named == {f"row {row}" for row, call in enumerate(evaluation.calls) if call.evaluation_status == "failed"}
    assert all("dashscope/qwen-plus" in failure.error for failure in evaluation.failures)
    assert len(kept) == CALLS
    assert sum("score" not in call for call in kept) == len(failed)
    for memory in evaluation.memories:
        judged = [call for call in memory.tool_call_results if call.score is not None]
        assert memory.score == pytest.approx(sum(call.score for call in judged) / len(judged))


async def test_a_call_that_failed_first_and_was_judged_with_the_newest_ones_has_its_verdict(job):
    early = Script.failing(FAULTS["bad_request"], share=0.4)
    seen = 0

    class Recovers(Script):
        def behaviour(self, kind, prompt):
            nonlocal seen
            seen += '"score"' in prompt
            return early.behaviour(kind, prompt) if seen <= 28 else super().behaviour(kind, prompt)

    evaluation, server = await with_server(job, Recovers(), "llm.default.params.max_concurrency=1")
    assert len(job.evaluations(server)) > CALLS
    assert {call.evaluation_status for call in evaluation.calls} == {"ok"}
    assert not evaluation.failures


async def test_a_wrong_key_costs_one_request_for_the_whole_job_and_every_call_is_kept(job):
    with ModelServer(Script(key="another")) as server:
        evaluation = await job.evaluated(job.app(server), job.recording(CALLS))
        assert len(server.requests) == 1
        offline = job.app(server, "llm.default.backend=offline")
        async with offline:
            assert len(await job.kept(offline, evaluation.workspace)) == CALLS
    assert evaluation.stopped_by == "errors"
    assert len(evaluation.failures) == CALLS
    assert "InvalidApiKey" in evaluation.failures[0].error
    assert "is the key right?" in evaluation.failures[0].error


async def test_a_denial_holds_for_its_run_and_the_next_run_asks_again(job):
    script = Script(key="another")
    with ModelServer(script) as server:
        async with job.app(server) as app:
            await job.add(app, job.records(5, tool_name="search"))
            assert len(server.requests) == 1
            script.key = None
            healed = await job.add(app, [job.record(5, tool_name="search")])
            assert healed.success
            assert healed.metadata["retried"]["evaluated"] == 5
            assert {call["evaluation_status"] for call in await job.kept(app)} == {"ok"}


async def test_a_summary_that_fails_keeps_the_guidance_and_is_named(job):
    with ModelServer() as server:
        async with job.app(server) as app:
            await job.add(app, job.records(6))
            first = await app.run_flow("summary_tool_memory", workspace_id="team", tool_names="tool_0")
            guidance = first.metadata["memory_list"][0]["content"]
            server.script = Script.failing("bad_request")
            await job.add(app, [job.record(40)])
            second = await app.run_flow("summary_tool_memory", workspace_id="team", tool_names="tool_0", force=True)
            assert not second.success
            assert second.metadata["failed"] == ["tool_0"]
            assert "InvalidParameter" in second.metadata["failures"][0]["error"]
            kept = await app.run_flow("retrieve_tool_memory", workspace_id="team", tool_names="tool_0")
            assert kept.metadata["memory_list"][0]["content"] == guidance


async def test_an_evaluation_whose_summaries_fail_says_which_tools_have_none(job):
    no_summaries = Rule(FAULTS["bad_request"], matching="```txt")
    evaluation, _ = await with_server(job, Script([no_summaries]))
    assert not evaluation.failures
    assert evaluation.unsummarized == ["tool_0", "tool_1"]
    assert all("InvalidParameter" in use.reason for use in evaluation.summaries[-1].tools)
    assert evaluation.spent["summary_tool_memory_op"].requests == 6
    assert evaluation.spent["summary_tool_memory_op"].completion_tokens == 0
