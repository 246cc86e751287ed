"""The flow summary_tool_memory: what is summarized, what is skipped, what stays when a model fails."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from toolmem.errors import ConfigError, ModelError, RequestError
from toolmem.protocols import EmbedderIdentity
from toolmem.testing.scripted_llm import ScriptedLLM


def record(number: int, tool: str = "search", **more: Any) -> dict[str, Any]:
    failed = number % 3 == 2
    return {
        "tool_name": tool,
        "input": {"query": f"orders of customer {number}"},
        "output": "Error: timeout" if failed else f"[{number}]",
        "success": not failed,
        "create_time": f"2026-03-0{1 + number // 1440}T{number // 60 % 24:02}:{number % 60:02}:00+00:00",
        **more,
    }


async def add(app, first: int, last: int, tool: str = "search"):
    records = [record(n, tool) for n in range(first, last)]
    return await app.run_flow("add_tool_call_result", workspace_id="team", tool_call_results=records)


async def summarize(app, *names: str, **more):
    return await app.run_flow("summary_tool_memory", workspace_id="team", tool_names=list(names) or ["search"], **more)


async def memory(app, tool: str = "search", **more) -> dict[str, Any]:
    got = await app.run_flow("retrieve_tool_memory", workspace_id="team", tool_names=[tool], **more)
    return got.metadata["memory_list"][0]


async def test_the_missions_example_thirty_new_the_same_thirty_then_thirty_old_and_one_new(make_app):
    llm = ScriptedLLM.plausible()
    overrides = "op.summary_tool_memory_op.params.recent_call_count=31"
    async with make_app(overrides, llms={"default": llm}) as app:
        await add(app, 0, 30)
        judged = len(llm.requests)
        first = await summarize(app)
        assert first.answer == "Successfully processed 1 tool memories: 1 summarized, 0 skipped (already up-to-date)"
        second = await summarize(app)
        assert second.answer == "Successfully processed 1 tool memories: 0 summarized, 1 skipped (already up-to-date)"
        assert len(llm.requests) == judged + 1
        await add(app, 30, 31)
        third = await summarize(app)
        assert third.metadata["summarized"] == ["search"]
        assert llm.prompts[-1].count("\n#31 ") == 1, "the window holds 30 old calls and 1 new one"


async def test_with_a_window_of_thirty_the_newest_thirty_are_read(make_app):
    llm = ScriptedLLM.plausible()
    async with make_app(llms={"default": llm}) as app:
        await add(app, 0, 31)
        await summarize(app)
        assert "customer 30" in llm.prompts[-1]
        assert 'customer 0"' not in llm.prompts[-1]


async def test_a_skip_sends_nothing_writes_nothing_and_says_what_it_saved(make_app, tmp_path: Path):
    llm = ScriptedLLM.plausible()
    async with make_app(llms={"default": llm}) as app:
        for tool in ("a", "b", "c"):
            await add(app, 0, 5, tool)
        await summarize(app, "a", "b", "c")
        spent = (await memory(app, "a"))["metadata"]["prompt_tokens"]
        requests = len(llm.requests)
        await app.services.ledger.flush()  # what was asked so far is written at its leisure
        before = {p.name: p.read_bytes() for p in tmp_path.glob("memory.db*") if not p.name.endswith("-shm")}
        response = await summarize(app, "a", "b", "c")
        after = {p.name: p.read_bytes() for p in tmp_path.glob("memory.db*") if not p.name.endswith("-shm")}
        assert response.success
        assert response.metadata["skipped"] == ["a", "b", "c"]
        assert len(llm.requests) == requests
        assert before == after
        usage = response.metadata["usage"]
        assert usage["requests"] == 0
        assert usage["saved_requests"] == 3
        assert usage["saved_prompt_tokens"] >= 3 * min(spent, 1)


async def test_new_calls_outside_the_window_are_named(make_app):
    async with make_app("op.summary_tool_memory_op.params.recent_call_count=10") as app:
        await add(app, 0, 25)
        response = await summarize(app)
        assert response.metadata["not_analyzed"] == {"search": 15}
        again = await summarize(app)
        assert again.metadata["skipped"] == ["search"]
        assert again.metadata["not_analyzed"] == {"search": 15}


async def test_unknown_tools_are_named_and_the_others_are_summarized(make_app):
    async with make_app() as app:
        await add(app, 0, 3)
        response = await summarize(app, "nosuch", "search")
        assert not response.success
        assert response.metadata["partial"]
        assert response.metadata["not_found"] == ["nosuch"]
        assert response.metadata["summarized"] == ["search"]
        assert "1 not found" in response.answer


async def test_a_summary_that_fails_leaves_the_old_guidance_and_marks_nothing(make_app):
    async with make_app(llms={"default": ScriptedLLM.plausible()}) as app:
        await add(app, 0, 5)
        await summarize(app)
        old = await memory(app)
    async with make_app(llms={"default": ScriptedLLM.plausible(fail_every=1)}) as app:
        await add(app, 5, 6)
    async with make_app(llms={"default": ScriptedLLM(["", "```python\nx\n```"] * 9)}) as app:
        response = await summarize(app, force=True)
        assert not response.success
        assert response.metadata["failed"] == ["search"]
        assert response.metadata["failures"][0]["tool_name"] == "search"
        assert response.answer == ("Processed 1 tool memories: 0 summarized, 0 skipped (already up-to-date), 1 failed")
        new = await memory(app, include_calls=True)
        assert new["content"] == old["content"]
        assert [call["is_summarized"] for call in new["tool_call_results"]] == [True] * 5 + [False]


async def test_one_tool_that_fails_never_takes_the_others_with_it(make_app):
    async with make_app() as app:
        for tool in ("a", "b", "c"):
            await add(app, 0, 4, tool)

    llm = ScriptedLLM(lambda prompt: "" if _tool_of(prompt) == "b" else "```txt\nfine\n```")
    async with make_app(llms={"default": llm}) as app:
        response = await summarize(app, "a", "b", "c")
        assert response.metadata["summarized"] == ["a", "c"]
        assert response.metadata["failed"] == ["b"]
        assert response.metadata["partial"]


def _tool_of(prompt: str) -> str:
    found = re.search(r"\b([abc])\b(?=[`\"'.:\s])", prompt.split("#1")[0].split("Tool")[-1])
    return found.group(1) if found else ""


async def test_a_call_that_arrives_during_a_summary_stays_new(make_app):
    arrived = asyncio.Event()
    release = asyncio.Event()

    class Slow(ScriptedLLM):
        async def complete(self, prompt, purpose, *, json_reply=False):
            if not json_reply:
                arrived.set()
                await release.wait()
            return await super().complete(prompt, purpose, json_reply=json_reply)

    llm = Slow.plausible()
    async with make_app(llms={"default": llm}) as app:
        await add(app, 0, 10)
        summary = asyncio.create_task(summarize(app))
        await arrived.wait()
        await add(app, 10, 20)
        release.set()
        response = await summary
        assert response.metadata["summarized"] == ["search"]
        calls = (await memory(app, include_calls=True))["tool_call_results"]
        assert [call["is_summarized"] for call in calls] == [True] * 10 + [False] * 10
        again = await summarize(app)
        assert again.metadata["summarized"] == ["search"]


async def test_two_summaries_at_once_end_in_one_guidance_and_no_error(make_app):
    async with make_app(llms={"default": ScriptedLLM.plausible(delay=0.01)}) as app:
        await add(app, 0, 10)
        responses = await asyncio.gather(*(summarize(app) for _ in range(4)))
        assert all(response.success for response in responses)
        assert (await memory(app))["metadata"]["covered"] == 10


async def test_calls_without_a_verdict_are_not_summarized_and_count_as_new_once_judged(make_app):
    async with make_app(llms={"default": ScriptedLLM.plausible(fail_every=4)}) as app:
        await add(app, 0, 8)
    async with make_app(llms={"default": ScriptedLLM.plausible()}) as app:
        first = await summarize(app)
        assert first.success
        assert (await memory(app))["metadata"]["covered"] == 6
        await app.run_flow("retry_evaluations", workspace_id="team")
        second = await summarize(app)
        assert second.metadata["summarized"] == ["search"]
        assert (await memory(app))["metadata"]["covered"] == 8


async def test_a_tool_without_any_verdict_is_named_as_failed(make_app):
    async with make_app(llms={"default": ScriptedLLM.plausible(fail_every=1)}) as app:
        await add(app, 0, 2)
    async with make_app() as app:
        response = await summarize(app)
        assert response.metadata["failed"] == ["search"]
        assert "verdict" in response.metadata["failures"][0]["error"]


async def test_guidance_of_another_author_is_reported_and_rewritten_only_by_force(make_app):
    async with make_app() as app:
        await add(app, 0, 5)
        await summarize(app)
    llm = ScriptedLLM.plausible()
    async with make_app(llms={"default": llm}) as app:
        response = await summarize(app)
        assert response.metadata["skipped"] == ["search"]
        assert response.metadata["stale_author"] == ["search"]
        assert not llm.requests
        forced = await summarize(app, force=True)
        assert forced.metadata["summarized"] == ["search"]
        assert (await memory(app))["author"] == "scripted/scripted"


async def test_data_from_limits_the_window_to_calls_created_since(make_app):
    llm = ScriptedLLM.plausible()
    async with make_app(llms={"default": llm}) as app:
        await add(app, 0, 20)
        response = await summarize(app, data_from="2026-03-01T00:15:00+00:00")
        assert response.metadata["summarized"] == ["search"]
        assert "#5" in llm.prompts[-1]
        assert "#6" not in llm.prompts[-1]
        with pytest.raises(RequestError, match="data_from"):
            await summarize(app, data_from="yesterday")


async def test_offline_guidance_names_its_evidence(make_app):
    async with make_app() as app:
        for n in range(30):
            language = "unknown" if n % 4 == 0 else "en"
            await app.run_flow(
                "add_tool_call_result",
                workspace_id="team",
                tool_call_results=[
                    record(
                        n,
                        input={"query": f"text {n}", "language": language},
                        output="Error: unsupported language 'unknown'" if language == "unknown" else f"[{n}]",
                        success=language != "unknown",
                    )
                ],
            )
        await summarize(app)
        got = await memory(app, include_calls=True)
        claims = got["metadata"]["claims"]
        assert any("unknown" in claim["text"] and claim["k"] == 8 for claim in claims), [c["text"] for c in claims]
        known = {call["id"] for call in got["tool_call_results"]}
        assert all(set(claim["call_ids"]) <= known and claim["k"] <= claim["n"] for claim in claims)


@pytest.mark.parametrize("names", ["", " , ", []])
async def test_a_request_that_names_no_tool_is_refused(make_app, names):
    async with make_app() as app:
        with pytest.raises(RequestError, match="tool_names"):
            await app.run_flow("summary_tool_memory", workspace_id="team", tool_names=names)


def test_a_misspelt_param_is_refused_when_the_configuration_is_loaded(make_app):
    with pytest.raises(ConfigError, match=r"recent_cal_count.*did you mean 'recent_call_count'"):
        make_app("op.summary_tool_memory_op.params.recent_cal_count=3")


async def test_names_separated_by_commas_are_trimmed_and_taken_once(make_app):
    async with make_app() as app:
        await add(app, 0, 3, "a")
        await add(app, 0, 3, "b")
        response = await app.run_flow("summary_tool_memory", workspace_id="team", tool_names=" b, a ,b,")
        assert response.metadata["summarized"] == ["b", "a"]


class BrokenEmbedder:
    """An embedding model that is down."""

    identity = EmbedderIdentity("hashing", "char-ngrams-2-4-v1", 384)

    async def embed(self, texts):
        raise ModelError("503: embedding model is down", temporary=True)


async def test_an_embedding_model_that_is_down_costs_the_vector_and_neither_calls_nor_guidance(make_app):
    llm = ScriptedLLM.plausible()
    async with make_app(llms={"default": llm}, embedders={"default": BrokenEmbedder()}) as app:
        await add(app, 0, 5)
        response = await summarize(app)
        assert response.metadata["summarized"] == ["search"]
        assert response.metadata["without_vector"] == ["search"]
        got = await memory(app, include_calls=True)
        assert got["content"]
        assert len(got["tool_call_results"]) == 5
        again = await summarize(app)
        assert again.metadata["skipped"] == ["search"]


async def test_what_is_known_of_skipped_tools_is_answered_as_well_in_the_order_asked(make_app):
    async with make_app(llms={"default": ScriptedLLM.plausible()}) as app:
        await add(app, 0, 3, "search")
        await add(app, 0, 3, "fetch")
        await summarize(app, "search")
        told = await summarize(app, "search", "nothing", "fetch")
        assert (told.metadata["skipped"], told.metadata["summarized"]) == (["search"], ["fetch"])
        assert [each["when_to_use"] for each in told.metadata["memory_list"]] == ["search", "fetch"]
        assert all(each["content"] for each in told.metadata["memory_list"])
        again = await summarize(app, "fetch", "search")
        assert [each["when_to_use"] for each in again.metadata["memory_list"]] == ["fetch", "search"]
