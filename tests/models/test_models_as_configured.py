"""Pacing, the cap in flight, announcements, estimates, languages and secrets, seen through whole flows."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time

import pytest

from toolmem.flow.runner import SystemClock
from toolmem.testing.model_script import FAULTS, Behaviour, Rule, Script
from toolmem.testing.model_server import ModelServer

INTERVAL = 0.12  # seconds
EVERY = f"op.parse_tool_call_result_op.params.evaluation_sleep_interval={INTERVAL}"


async def test_flows_at_once_share_one_gate_retries_included(job):
    script = Script([Rule(FAULTS["unavailable"], every=4)], latency=0.3)
    with ModelServer(script) as server:
        # two flows of one app, and a third one of another app in the same process
        apps = [job.app(server, EVERY, store=f"{n}.db", clock=SystemClock()) for n in range(2)]
        flows = [(apps[0], "first"), (apps[0], "second"), (apps[1], "third")]
        begun = time.monotonic()
        responses = await asyncio.gather(*(job.add(app, job.records(5), workspace) for app, workspace in flows))
        for app in apps:
            await app.close()
    assert all(response.success for response in responses)
    assert len(server.requests) > 17
    for number, request in enumerate(server.requests):  # none before its turn; late they may be, on a busy machine
        assert request.started - begun > INTERVAL * number - 0.01
    assert server.most_in_flight > 1


async def test_flows_at_once_keep_the_cap_in_flight(job):
    with ModelServer(Script(latency=0.05)) as server:
        async with job.app(server, "llm.default.params.max_concurrency=3") as app:
            await asyncio.gather(*(job.add(app, job.records(12), workspace) for workspace in ("first", "second")))
    assert len(server.requests) == 24
    assert server.most_in_flight == 3


async def test_a_hundred_calls_without_an_interval_take_as_long_as_the_cap_makes_them(job):
    with ModelServer(Script(latency=0.2)) as server:
        async with job.app(server) as app:
            response = await job.add(app, job.records(100))
    taken = max(request.finished for request in server.requests) - server.requests[0].started
    assert response.success
    assert server.most_in_flight == 8
    # the first request goes alone, the others in rounds of eight: on a busy machine too, far from one after the other
    assert (1 + 99 / 8) * 0.2 <= taken < 100 * 0.2


# ---------------------------------------------------------------- announcements and estimates


async def notices_of(job, server, count, *overrides):
    told = []
    async with job.app(server, *overrides) as app:
        app.listeners.append(
            lambda event: told.append((event.message, len(server.requests))) if event.kind == "notice" else None
        )
        await job.add(app, job.records(count))
    return told


async def test_a_run_of_twenty_requests_is_not_announced(job):
    with ModelServer() as server:
        assert await notices_of(job, server, 20) == []
    assert len(server.requests) == 20


async def test_the_announcement_tells_requests_duration_tokens_price_and_what_changes_them(job):
    with ModelServer() as server:
        (told,) = await notices_of(
            job, server, 21, "op.parse_tool_call_result_op.params.evaluation_sleep_interval=0.05"
        )
    notice, asked_before = told
    tokens = sum(request.prompt_tokens for request in server.requests)
    assert asked_before == 0
    assert notice.startswith("21 evaluations by dashscope/qwen-plus; ")
    assert "at least 1 s at one request per 0.05 s" in notice
    assert "(op.parse_tool_call_result_op.params.evaluation_sleep_interval=0 turns it off)" in notice
    assert f"{tokens:,} prompt tokens" in notice
    assert f"{tokens * 0.0008 / 1000:.4g} CNY" in notice
    assert "budget.max_tokens and budget.max_cost limit it" in notice


@pytest.mark.parametrize("language", ["", "zh"])
async def test_a_dry_run_estimates_the_prompt_tokens_of_the_evaluations(job, language):
    path = job.recording(40, context="find the customer's orders; 查找客户的订单")
    with ModelServer() as server:
        dry = job.app(server, f"language={language}", "llm.default.backend=dry_run", store="dry.db")
        async with dry:
            response = await job.add(dry, job.records(40, context="find the customer's orders; 查找客户的订单"))
            estimate = response.metadata["usage"]["prompt_tokens"]
        assert not server.requests
        await job.evaluated(job.app(server, f"language={language}"), path)
        counted = sum(request.prompt_tokens for request in job.evaluations(server))
    assert counted > 6000
    assert abs(estimate - counted) <= 0.02 * counted


# ---------------------------------------------------------------- languages


async def test_chinese_calls_are_judged_by_chinese_prompts_and_kept_as_they_came(job):
    replies = lambda prompt: (  # noqa: E731
        '```json\n{"summary": "查询了天气。", "evaluation": "输出与输入相符。", "score": 1.0}\n```'
        if '"score"' in prompt
        else "```txt\n核心功能：查询天气。\n```"
    )
    with ModelServer(Script(reply=replies)) as server:
        async with job.app(server, "language=zh") as app:
            call = {
                "tool_name": "查询天气",
                "input": {"城市": "北京"},
                "output": "晴，3 到 12 摄氏度 🌤",
                "success": True,
            }
            response = await job.add(app, [{**call, "context": "明天要带伞吗？"}])
            summary = await app.run_flow("summary_tool_memory", workspace_id="team", tool_names="查询天气")
            (kept,) = await job.kept(app)
    assert response.success
    evaluation, guidance = server.requests
    for part in ("评判一次工具调用", "查询天气", "北京", "晴，3 到 12 摄氏度 🌤", "明天要带伞吗？"):
        assert part in evaluation.prompt
    assert "```txt" in guidance.prompt
    assert "输出与输入相符。" in guidance.prompt
    assert (kept["summary"], kept["output"], kept["score"]) == ("查询了天气。", call["output"], 1.0)
    assert "核心功能：查询天气。" in summary.metadata["memory_list"][0]["content"]


# ---------------------------------------------------------------- secrets


@pytest.mark.parametrize("backend", ["dashscope", "openai_compatible"])
async def test_the_key_is_nowhere_in_logs_errors_reports_or_the_store(job, backend, caplog):
    caplog.set_level(logging.DEBUG)
    echo = Behaviour("echo", 400, error=("InvalidParameter", f"your key Bearer {job.key} and {job.key[3:]} are odd"))
    rules = [Rule(echo, every=3), Rule(FAULTS["server_error"], every=4), Rule(FAULTS["cut"], every=5)]
    with ModelServer(Script(rules)) as server:
        app = job.app(server, backend=backend)
        evaluation = await job.evaluated(app, job.recording(24), reports=job.folder / "reports")
        assert len(evaluation.failures) > 3
        reports = [json.loads(path.read_bytes())["flow"] for path in (job.folder / "reports").glob("*.json")]
        assert sorted(reports) == 2 * ["add_tool_call_result"] + 3 * ["summary_tool_memory"]
        assert job.key not in repr(app.settings) + repr(app.services.__dict__)
    texts = [caplog.text, evaluation.model_dump_json(), *(str(record.__dict__) for record in caplog.records)]
    assert "prompt for parse_tool_call_result_op" in caplog.text
    for text in texts:
        assert job.key not in text
    for path in job.folder.rglob("*"):
        if path.is_file() and path.name != "calls.jsonl":
            assert job.key.encode() not in path.read_bytes(), path.name


async def test_prompts_are_logged_at_debug_alone(job, caplog):
    caplog.set_level(logging.INFO)
    with ModelServer(Script.failing("bad_request", every=2)) as server:
        async with job.app(server) as app:
            await job.add(app, job.records(6))
    assert "orders of customer" not in caplog.text


def test_config_show_and_refusals_do_not_show_the_key(job, command):
    with ModelServer() as server:
        for asked in (["config", "show"], ["config", "show", "--json"], ["config", "check", "llm.default.modelname=x"]):
            ran = command(*asked, *job.overrides(server))
            assert job.key not in ran.out + ran.err
            assert ran.code == (2 if "check" in asked else 0), ran.err


def test_without_a_key_nothing_is_read_and_the_variable_is_named(job, command):
    ran = command("evaluate", "llm.default.backend=dashscope")
    assert ran.code == 2
    assert "DASHSCOPE_API_KEY" in ran.err
    assert not (job.folder / "report").exists()


def test_the_announcement_reaches_the_terminals_stderr(job, command):
    job.request(25)
    with ModelServer() as server:
        ran = command("run", "add_tool_call_result", "--request", "request.json", *job.overrides(server))
    assert ran.code == 0
    assert re.search(r"^25 evaluations by dashscope/qwen-plus; [\d,]+ prompt tokens, ", ran.err, re.MULTILINE)
    assert json.loads(ran.out)["success"]
