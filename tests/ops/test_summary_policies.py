"""The policies of summary_tool_memory: when a tool is summarized, what the prompt holds, what a skip says and saves."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from toolmem import ToolMemApp
from toolmem.errors import ConfigError
from toolmem.guidance.shown import without_card
from toolmem.testing.scripted_llm import ScriptedLLM

PARAMS = "op.summary_tool_memory_op.params."
INCREMENTAL = f"{PARAMS}policy=incremental"


def record(number: int, tool: str = "search", *, failed: bool = False, **more: Any) -> dict[str, Any]:
    return {
        "tool_name": tool,
        "input": {"query": f"orders of customer {number}"},
        "output": "Error: timeout" if failed else f"[{number}]",
        "success": not failed,
        "create_time": f"2026-03-0{1 + number // 1440}T{number // 60 % 24:02}:{number % 60:02}:00+00:00",
        **more,
    }


def without_digits(prompt: str) -> str:
    """The prompt with its tags as the prompt file has them."""
    return re.sub(r"(</?[a-z]+)\d+>", r"\1>", prompt)


async def add(app, first: int, last: int, tool: str = "search", **more: Any):
    records = [record(n, tool, **more) for n in range(first, last)]
    return await app.run_flow("add_tool_call_result", workspace_id="team", tool_call_results=records)


async def summarize(app, *names: str, **more):
    return await app.run_flow("summary_tool_memory", workspace_id="team", tool_names=list(names) or ["search"], **more)


async def stored(app, tool: str = "search"):
    store = await app.services.store_named("default")
    (found,) = await store.records("team", [tool])
    return found


def row(response) -> dict[str, Any]:
    (only,) = response.metadata["tools"]
    return only


def editing(*edits: str) -> ScriptedLLM:
    """A model that answers whole prompts with two lines, and incremental ones with `edits`, one after the other."""
    waiting = iter(edits)

    def reply(prompt: str) -> str:
        if "```json" in prompt.split("```txt")[0]:
            return '```json\n{"summary": "s", "evaluation": "e", "score": 1.0}\n```'
        if "<guidance>\n1: " in without_digits(prompt):
            return next(waiting)
        return f"```txt\nSearches orders.\nSeen {prompt.count(chr(10) + '#')} calls.\n```"

    return ScriptedLLM(reply)


def summaries(llm: ScriptedLLM) -> list[str]:
    return [prompt for prompt in llm.prompts if "```json" not in prompt.split("```txt")[0]]


# ---------------------------------------------------------------- params


@pytest.mark.parametrize(
    ("overrides", "told"),
    [
        (["policy=sometimes"], "policy: expected one of 'smart_skip' or 'incremental', got 'sometimes'$"),
        (["policy=smart_skp"], r"policy: expected one of .*, got 'smart_skp' \(did you mean 'smart_skip'\?\)"),
        (["min_new_calls=0"], "min_new_calls: expected at least 1"),
        (["min_new_calls=31"], "min_new_calls: at most recent_call_count .30."),
        (["min_new_calls=11", "recent_call_count=10"], "min_new_calls: at most recent_call_count .10."),
        (["full_every=5"], "full_every: is a param of the policy 'incremental', and the policy is 'smart_skip'"),
        (["policy=incremental", "full_every=0"], "full_every: expected at least 1"),
        (["refresh_after=40"], "refresh_after: unknown"),
    ],
)
def test_wrong_params_are_refused_when_the_configuration_is_loaded(make_app, overrides, told):
    with pytest.raises(ConfigError, match=told):
        make_app(*(PARAMS + override for override in overrides))


def test_a_configuration_that_names_the_policy_that_is_gone_is_told_which_there_are_and_the_nearest(tmp_path):
    (tmp_path / "old.yaml").write_text("op: {summary_tool_memory_op: {params: {policy: on_change}}}\n")
    with pytest.raises(ConfigError) as caught:
        ToolMemApp(tmp_path / "old.yaml")
    (problem,) = caught.value.problems
    assert problem.startswith(f"{PARAMS}policy: 'on_change' is gone, expected one of 'smart_skip' or 'incremental'")
    assert "nearest to it is 'smart_skip' with `min_new_calls`" in problem
    assert problem.endswith("old.yaml:1]")


TUNED = "op: {summary_tool_memory_op: {params: {policy: incremental, full_every: 5}}}\n"


def test_an_override_of_the_policy_names_the_line_of_a_file_that_must_go_with_it(tmp_path):
    (tmp_path / "tuned.yaml").write_text(TUNED)
    with pytest.raises(ConfigError, match=r"policy is 'smart_skip': leave it out \[.*tuned.yaml:1\]"):
        ToolMemApp(tmp_path / "tuned.yaml", [PARAMS + "policy=smart_skip"])


def test_a_param_of_another_policy_is_refused_where_both_stand_in_one_file(tmp_path):
    (tmp_path / "mixed.yaml").write_text(TUNED.replace("incremental", "smart_skip"))
    with pytest.raises(ConfigError, match="full_every: is a param of the policy 'incremental'"):
        ToolMemApp(tmp_path / "mixed.yaml")


# ---------------------------------------------------------------- min_new_calls


async def test_fewer_new_calls_than_asked_for_are_skipped_and_named(make_app):
    llm = editing()
    async with make_app(f"{PARAMS}min_new_calls=5", llms={"default": llm}) as app:
        await add(app, 0, 2)
        assert (await summarize(app)).metadata["summarized"] == ["search"]  # the first guidance does not wait
        await add(app, 2, 6)
        sent = len(llm.requests)
        before = await stored(app)
        response = await summarize(app)
        assert response.success
        assert len(llm.requests) == sent
        assert (await stored(app)).version == before.version
        assert row(response)["reason"] == "too_few_new_calls"
        assert (row(response)["new_calls"], row(response)["detail"]) == (4, "4 of 5 new calls")
        assert response.answer == (
            "Successfully processed 1 tool memories: 0 summarized, 0 skipped (already up-to-date), "
            "1 skipped (too few new calls)"
        )
        assert row(response)["window_prompt_tokens"] == before.guidance.prompt_tokens > 0
        await add(app, 6, 7)
        assert row(await summarize(app))["new_calls"] == 5
        assert (await stored(app)).covered == [(1, 7)]


async def test_force_does_not_wait_for_more_calls(make_app):
    async with make_app(f"{PARAMS}min_new_calls=5") as app:
        await add(app, 0, 2)
        await summarize(app)
        await add(app, 2, 3)
        assert (await summarize(app, force=True)).metadata["summarized"] == ["search"]


# ---------------------------------------------------------------- incremental


async def test_an_incremental_prompt_holds_the_old_guidance_and_the_new_calls_alone(make_app):
    llm = editing("```txt\n2: Seen 12 calls.\n+: Newest: customer 11.\n```")
    async with make_app(INCREMENTAL, llms={"default": llm}) as app:
        await add(app, 0, 10)
        assert "prompt" not in row(await summarize(app))
        await add(app, 10, 12)
        response = await summarize(app)
        assert row(response)["prompt"] == "incremental"
        first, second = summaries(llm)
        assert "<guidance>\n1: Searches orders.\n2: Seen 10 calls.\n</guidance>" in without_digits(second)
        assert [f"customer {n}" in second for n in (0, 9, 10, 11)] == [False, False, True, True]
        assert len(second) < len(first)
        record_ = await stored(app)
        assert without_card(record_.guidance.text, "") == "Searches orders.\nSeen 12 calls.\nNewest: customer 11."
        assert record_.guidance.covered == [11, 12]
        assert record_.covered == [(1, 12)]
        assert record_.guidance.edits == 1
        idle = await summarize(app)
        assert idle.metadata["skipped"] == ["search"]
        # Beside the calls, which would be sent later all the same.
        assert row(idle)["window_prompt_tokens"] == record_.guidance.update_tokens < record_.guidance.prompt_tokens


async def test_every_kth_summary_reads_the_whole_window(make_app):
    llm = editing(*["no change"] * 4)
    async with make_app(INCREMENTAL, f"{PARAMS}full_every=3", llms={"default": llm}) as app:
        for first in range(0, 14, 2):
            await add(app, first, first + 2)
            await summarize(app)
        whole = ["<guidance>" not in without_digits(prompt) for prompt in summaries(llm)]
        assert whole == [True, False, False, True, False, False, True]
        assert (await stored(app)).guidance.edits == 0


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        ("```txt\n9: there is no such line\n```", "there is no line 9"),
        ("```txt\n1: one\n1: other\n```", "contradict"),
        ("```txt\n```", "no edit"),
        ("I changed line 1.", "is no edit"),
        ("```txt\n-1\n-2\n```", "nothing of the guidance would be left"),
        ("```txt\n1: cut off", "has no end"),
    ],
)
async def test_botched_edits_fall_back_to_a_full_summary_that_is_booked_and_told(make_app, reply, why):
    llm = editing(reply)
    async with make_app(INCREMENTAL, llms={"default": llm}) as app:
        await add(app, 0, 4)
        await summarize(app)
        await add(app, 4, 6)
        run = await app.run_detailed("summary_tool_memory", workspace_id="team", tool_names=["search"])
        assert run.response.success
        assert row(run.response)["prompt"] == "fallback"
        assert why in row(run.response)["detail"]
        (op,) = run.report.ops
        assert op.usage.requests == 2
        assert op.usage.prompt_tokens == sum(entry.prompt_tokens for entry in run.report.entries)
        assert any(why in note for note in op.notes)
        now = await stored(app)
        assert without_card(now.guidance.text, "") == "Searches orders.\nSeen 6 calls."
        assert now.covered == [(1, 6)]
        assert now.guidance.edits == 0


async def test_a_model_that_is_down_is_not_asked_a_second_time_in_full(make_app):
    from toolmem.errors import ModelError

    llm = editing()
    async with make_app(INCREMENTAL, llms={"default": llm}) as app:
        await add(app, 0, 4)
        await summarize(app)
        await add(app, 4, 6)
        old = await stored(app)
    down = ScriptedLLM(lambda prompt: ModelError("503", temporary=True))
    async with make_app(INCREMENTAL, llms={"default": down}) as app:
        response = await summarize(app)
        assert response.metadata["failed"] == ["search"]
        assert len(down.requests) == 1
        assert (await stored(app)).guidance == old.guidance


async def test_a_call_that_arrives_during_an_incremental_summary_stays_new(make_app):
    arrived, release = asyncio.Event(), asyncio.Event()

    class Slow(ScriptedLLM):
        async def complete(self, prompt, purpose, *, json_reply=False):
            if "<guidance>" in without_digits(prompt):
                arrived.set()
                await release.wait()
            return await super().complete(prompt, purpose, json_reply=json_reply)

    async with make_app(INCREMENTAL, llms={"default": Slow.plausible()}) as app:
        await add(app, 0, 4)
        await summarize(app)
        await add(app, 4, 6)
        summary = asyncio.create_task(summarize(app))
        await arrived.wait()
        await add(app, 6, 9)
        release.set()
        assert (await summary).metadata["summarized"] == ["search"]
        assert (await stored(app)).covered == [(1, 6)]


async def test_a_history_that_was_trimmed_between_two_summaries_is_edited_all_the_same(make_app):
    llm = editing("```txt\n2: Later.\n```")
    keep = "op.parse_tool_call_result_op.params.max_history_tool_call_cnt=10"
    async with make_app(INCREMENTAL, keep, llms={"default": llm}) as app:
        await add(app, 0, 10)
        await summarize(app)
        await add(app, 10, 25)
        assert (await stored(app)).covered == []  # every call that the guidance knew is gone
        assert row(await summarize(app))["prompt"] == "incremental"
        assert without_card((await stored(app)).guidance.text, "") == "Searches orders.\nLater."
        assert (await stored(app)).covered == [(16, 25)]


async def test_calls_whose_clock_went_back_are_new_like_any_other(make_app):
    llm = editing("no change")
    async with make_app(INCREMENTAL, llms={"default": llm}) as app:
        await add(app, 100, 110)
        await summarize(app)
        await add(app, 0, 3)
        assert row(await summarize(app))["new_calls"] == 3
        assert (await stored(app)).covered == [(1, 13)]


async def test_guidance_of_another_author_is_not_edited(make_app):
    async with make_app() as app:
        await add(app, 0, 4)
        await summarize(app)
        await add(app, 4, 5)
    llm = editing()
    async with make_app(INCREMENTAL, llms={"default": llm}) as app:
        await summarize(app)
        (prompt,) = summaries(llm)
        assert "<guidance>" not in without_digits(prompt)


async def test_a_prompt_file_that_changed_is_reported_and_force_writes_anew(make_app, tmp_path: Path):
    own = tmp_path / "prompts.yaml"
    own.write_text("update_tool_usage_prompt: |\n  Edit {guidance} by {call_summaries}\n")
    async with make_app(INCREMENTAL, llms={"default": editing("no change")}) as app:
        await add(app, 0, 4)
        await summarize(app)
        await add(app, 4, 5)
        await summarize(app)
        assert (await summarize(app)).metadata["stale_author"] == []
    with_own = f"op.summary_tool_memory_op.prompt_path='{own}'"
    async with make_app(INCREMENTAL, with_own, llms={"default": editing()}) as app:
        response = await summarize(app)
        assert (response.metadata["skipped"], response.metadata["stale_author"]) == (["search"], [])
        await add(app, 5, 6)
    # Under the file's own prompt first an edit is made, then the file changes.
    llm = editing("no change", "no change")
    async with make_app(INCREMENTAL, with_own, llms={"default": llm}) as app:
        await summarize(app)
    own.write_text("summarize_tool_usage_prompt: |\n  Sum up {call_summaries}\n")
    async with make_app(INCREMENTAL, with_own, llms={"default": editing()}) as app:
        response = await summarize(app)
        assert response.metadata["stale_author"] == ["search"]
        forced = await summarize(app, force=True)
        assert forced.metadata["summarized"] == ["search"]
        assert (await summarize(app)).metadata["stale_author"] == []


async def test_a_dry_run_counts_the_true_incremental_prompt(make_app):
    async with make_app(INCREMENTAL, "llm.default.backend=dry_run") as app:
        await add(app, 0, 20)
        await summarize(app)
        old = (await stored(app)).guidance
        await add(app, 20, 22)
        run = await app.run_detailed("summary_tool_memory", workspace_id="team", tool_names=["search"])
        (entry,) = run.report.entries
        now = (await stored(app)).guidance
        assert old.update_tokens < entry.prompt_tokens < old.prompt_tokens
        assert entry.outcome == "not_sent"
        assert now.edits == 1
        assert now.history.calls == 22


async def test_the_offline_author_edits_too_and_counts_on(make_app):
    async with make_app(INCREMENTAL, f"{PARAMS}recent_call_count=10") as app:
        await add(app, 0, 10)
        await summarize(app)
        await add(app, 10, 14, failed=True)
        await summarize(app)
        guidance = (await stored(app)).guidance
        assert guidance.history.calls == 14  # the window holds ten
        assert '"timeout" (4 calls)' in guidance.text


# ---------------------------------------------------------------- both


async def test_a_policy_may_be_switched_in_mid_life(make_app):
    llm = editing("no change", "no change")
    async with make_app(llms={"default": llm}) as app:
        await add(app, 0, 30)
        await summarize(app)
    async with make_app(INCREMENTAL, llms={"default": llm}) as app:
        assert row(await summarize(app))["reason"] == "up_to_date"
        await add(app, 30, 32)
        response = await summarize(app)
        assert (row(response)["reason"], row(response)["prompt"]) == ("new_calls", "incremental")
        assert (await stored(app)).covered == [(1, 32)]
        await add(app, 32, 33)
        await summarize(app)
    async with make_app(llms={"default": llm}) as app:
        response = await summarize(app)
        assert (row(response)["reason"], response.metadata["stale_author"]) == ("up_to_date", [])
        assert row(response)["window_prompt_tokens"] == (await stored(app)).guidance.prompt_tokens


async def test_many_tools_with_nothing_new_cost_no_request_and_no_write_under_any_policy(make_app, tmp_path: Path):
    tools = [f"tool_{n:04}" for n in range(600)]
    quick = "vector_store.default.params.synchronous=NORMAL"  # how the store is filled is not what is tested
    async with make_app(quick) as app:
        await app.run_flow(
            "add_tool_call_result", workspace_id="team", tool_call_results=[record(0, tool) for tool in tools]
        )
        assert len((await summarize(app, *tools)).metadata["summarized"]) == len(tools)
    for policy in ("smart_skip", "incremental"):
        llm = editing()
        async with make_app(f"{PARAMS}policy={policy}", llms={"default": llm}) as app:
            await (await app.services.store_named("default")).records("team", ["tool_0000"])
            before = _bytes(tmp_path)
            response = await summarize(app, *tools)
            assert len(response.metadata["skipped"]) == len(tools)
            assert not llm.requests
            assert _bytes(tmp_path) == before


def _bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("memory.db*") if not path.name.endswith("-shm"))
