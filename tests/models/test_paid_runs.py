"""Nothing is paid twice, and no more than the budget says: killed runs, budgets, retries, other judges."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest

from toolmem.providers.usage_log import read_ledger
from toolmem.testing.model_script import Script
from toolmem.testing.model_server import ModelServer

CALLS = 60
IN_FLIGHT = 8


def start(job, *arguments):
    return subprocess.Popen(
        [sys.executable, "-m", "toolmem", *arguments],
        cwd=job.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "DASHSCOPE_API_KEY": job.key},
    )


def kill_after(process, server, requests):
    """SIGKILL as soon as the server has been asked so often."""
    deadline = time.monotonic() + 300
    while len(server.requests) < requests:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()


def answered(server):
    return {request.prompt for request in server.requests if request.status == 200}


async def test_a_run_that_was_killed_is_taken_up_without_paying_twice(job):
    job.request(CALLS)
    command = ["run", "add_tool_call_result", "--request", "request.json"]
    with ModelServer(Script(latency=0.03)) as server:
        kill_after(start(job, *command, *job.overrides(server)), server, 25)
        before = len(server.requests)
        again = start(job, *command, *job.overrides(server))
        out, err = again.communicate(timeout=300)
        assert again.returncode == 0, err
        # What was answered, but not yet read or written down at the moment of the kill, was in flight.
        assert CALLS <= len(server.requests) <= CALLS + IN_FLIGHT
        assert sum(count - 1 for count in job.asked(server).values()) <= IN_FLIGHT
        evaluation = json.loads(out)["metadata"]["evaluation"]
        assert (evaluation["evaluated"] + evaluation["reused"], evaluation["failed"]) == (CALLS, 0)
        assert evaluation["reused"] >= before - IN_FLIGHT
        async with job.app(server) as app:
            assert len(await job.kept(app)) == CALLS
            booked = await read_ledger(await app.services.store_named(), "team")
        assert len(server.requests) - 25 - IN_FLIGHT <= len(booked) <= len(server.requests)


@pytest.mark.slow
async def test_an_evaluation_that_was_killed_is_taken_up_in_its_folder(job):
    job.recording(40)
    with ModelServer(Script(latency=0.03)) as server:
        overrides = [o for o in job.overrides(server) if not o.startswith("vector_store")]
        command = ["evaluate", "--input", "calls.jsonl", "--reports", "reports", "--json", *overrides]
        kill_after(start(job, *command), server, 20)
        paid = answered(server)
        again = start(job, *command)
        out, err = again.communicate(timeout=300)
        assert again.returncode == 0, err
        assert len(job.evaluations(server)) <= 40 + IN_FLIGHT
        assert len(paid) >= 12
        assert json.loads(out)["calls"]["scored"] == 40
        shown = start(
            job,
            *("ledger", "--json", "--reports", "reports"),
            "vector_store.default.params.path=report/memory.db",
        )
        ledger = json.loads(shown.communicate(timeout=300)[0])
        assert ledger["saved"] == [
            {
                "op": "summary_tool_memory_op",
                "runs": 1,
                "saved_requests": 2,
                "saved_tokens": ledger["saved"][0]["saved_tokens"],
            }
        ]
        assert ledger["saved"][0]["saved_tokens"] > 500
        # Bookings are written a fraction of a second later: a kill may lose those of this time, never a verdict.
        booked = ledger["total"][0]["requests"]
        assert len(server.requests) - 20 - IN_FLIGHT <= booked <= len(server.requests)


# ---------------------------------------------------------------- budgets


async def spent_by_each(job, count):
    """(prompt tokens, completion tokens) of each evaluation, in the order in which one at a time asks them."""
    with ModelServer() as server:
        async with job.app(server, "llm.default.params.max_concurrency=1", store="measured.db") as app:
            await job.add(app, job.records(count))
        return [(request.prompt_tokens, request.completion_tokens) for request in server.requests]


async def test_a_budget_of_tokens_stops_before_the_request_that_would_exceed_it(job):
    each = await spent_by_each(job, 10)
    # Before the last request all others are paid, and its prompt must still fit.
    just_enough = sum(map(sum, each)) - each[-1][1]
    for limit, judged in ((just_enough, 10), (just_enough - 1, 9), (each[0][0], 1), (each[0][0] - 1, 0), (0, 0)):
        with ModelServer() as server:
            one_by_one = "llm.default.params.max_concurrency=1"
            async with job.app(server, one_by_one, f"budget.max_tokens={limit}", store=f"{limit}.db") as app:
                response = await job.add(app, job.records(10))
                assert len(server.requests) == judged, limit
                assert response.metadata["evaluation"]["evaluated"] == judged
                assert response.success == (judged == 10)
                if judged < 10:
                    assert response.metadata["stopped_by"] == "budget"
                    assert "budget.max_tokens" in response.metadata["stopped"]
                kept = await job.kept(app)
                assert len(kept) == 10
                assert sum(call["evaluation_status"] == "ok" for call in kept) == judged


async def test_many_in_flight_keep_the_budget_but_for_replies_under_way(job):
    each = await spent_by_each(job, 40)
    limit = sum(map(sum, each)) // 2
    with ModelServer(Script(latency=0.02)) as server:
        async with job.app(server, f"budget.max_tokens={limit}") as app:
            response = await job.add(app, job.records(40))
    paid = sum(request.prompt_tokens + request.completion_tokens for request in server.requests)
    longest_reply = max(completion for _, completion in each)
    assert limit * 0.9 < paid <= limit + IN_FLIGHT * longest_reply
    assert response.metadata["usage"]["prompt_tokens"] == sum(request.prompt_tokens for request in server.requests)


async def test_a_budget_in_money_exits_3_keeps_what_was_done_and_is_taken_up_later(job):
    job.request(20)
    with ModelServer() as server:
        # 20 evaluations of about 330 tokens cost about 0.006 CNY by the price table
        stopped = start(
            job,
            *("run", "add_tool_call_result", "--request", "request.json", "--reports", "reports"),
            *(*job.overrides(server), "budget.max_cost=0.003"),
        )
        out, err = stopped.communicate(timeout=300)
        assert stopped.returncode == 3, err
        response = json.loads(out)
        assert response["metadata"]["stopped_by"] == "budget"
        assert "budget.max_cost: 0.003 CNY" in response["metadata"]["stopped"]
        judged = len(server.requests)
        assert 5 < judged < 20
        usage = response["metadata"]["usage"]
        assert usage["cost"] > 0.0025
        assert usage["cost"] - usage["completion_tokens"] * 0.002 / 1000 <= 0.003  # beyond it only replies under way
        report = json.loads(next((job.folder / "reports").glob("*.json")).read_text())
        assert len(report["entries"]) == judged
        async with job.app(server) as app:
            assert len(await job.kept(app)) == 20
            again = await app.run_flow("retry_evaluations", workspace_id="team")
            assert again.metadata["evaluation"]["evaluated"] == 20 - judged
            assert all(call["evaluation_status"] == "ok" for call in await job.kept(app))
        assert set(job.asked(server).values()) == {1}


def test_a_model_without_a_price_is_refused_under_a_budget_in_money(job, command):
    job.request(1)
    with ModelServer() as server:
        overrides = [*job.overrides(server), "budget.max_cost=1", "llm.default.model_name=qwen-homemade"]
        refused = command("run", "add_tool_call_result", "--request", "request.json", *overrides)
    assert (refused.code, refused.out) == (2, "")
    assert "qwen-homemade" in refused.err
    assert not server.requests


async def test_the_budget_covers_the_whole_evaluation_and_is_told(job):
    with ModelServer() as server:
        evaluation = await job.evaluated(job.app(server, "budget.max_tokens=4000"), job.recording(30))
    assert evaluation.stopped_by == "budget"
    assert sum(request.prompt_tokens for request in server.requests) <= 4000
    judged = [call for call in evaluation.calls if call.evaluation_status == "ok"]
    assert 0 < len(judged) == len(server.requests) < 30
    assert len(evaluation.failures) == 30 - len(judged)
    assert evaluation.unsummarized == ["tool_0", "tool_1"]
    assert any("budget.max_tokens" in note for note in evaluation.notes)


# ---------------------------------------------------------------- asked again


async def test_retry_evaluations_pays_for_the_failed_ones_alone_in_one_batch(job):
    with ModelServer(Script.failing("bad_request", share=0.5)) as server:
        async with job.app(server) as app:
            await job.add(app, [job.record(n, tool_name=f"tool_{n % 10}") for n in range(60)])
            failed = {r.prompt for r in server.requests if r.status == 400}
            assert 20 < len(failed) < 40
            before = len(server.requests)
            server.script = Script()
            notices = []
            app.listeners.append(lambda event: notices.append(event.message) if event.kind == "notice" else None)
            again = await app.run_flow("retry_evaluations", workspace_id="team")
            assert again.success
            assert {r.prompt for r in server.requests[before:]} == failed
            assert len(server.requests) - before == len(failed)
            # Ten tools with a few calls each are one long run, and it is announced as one.
            assert [notice.split(";")[0] for notice in notices] == [f"{len(failed)} evaluations by dashscope/qwen-plus"]
            nothing = await app.run_flow("retry_evaluations", workspace_id="team")
            assert nothing.metadata["evaluation"]["requested"] == 0


async def test_a_retry_over_many_tools_stops_at_max_errors(job):
    with ModelServer(Script.failing("bad_request")) as server:
        async with job.app(server, "max_errors=3", "llm.default.params.max_concurrency=1") as app:
            await job.add(app, [job.record(n, tool_name=f"tool_{n}") for n in range(12)])
            assert len(server.requests) == 4
            again = await app.run_flow("retry_evaluations", workspace_id="team")
            assert len(server.requests) == 8
            assert "max_errors=3" in again.metadata["stopped"]


async def test_rejudge_asks_another_model_once_and_force_asks_again(job):
    with ModelServer() as server:
        async with job.app(server) as app:
            await job.add(app, job.records(12))
        async with job.app(server, "llm.default.model_name=qwen-max") as app:
            for force, paid in ((False, 12), (False, 0), (True, 12)):
                before = len(server.requests)
                response = await app.run_flow("rejudge", workspace_id="team", force=force)
                assert response.success
                assert len(server.requests) - before == paid
            assert {call["judge"]["model"] for call in await job.kept(app)} == {"qwen-max"}
    assert {request.model for request in server.requests[12:]} == {"qwen-max"}


async def test_rules_first_and_a_model_later_never_average_in_silence(job):
    keep = "op.parse_tool_call_result_op.params.max_history_tool_call_cnt=10"
    one_tool = {"tool_name": "search"}
    with ModelServer() as server:
        async with job.app(server, keep, "llm.default.backend=offline") as app:
            await job.add(app, job.records(10, **one_tool))
        async with job.app(server, keep) as app:

            async def memory():
                got = await app.run_flow("retrieve_tool_memory", workspace_id="team", tool_names="search")
                return got.metadata["memory_list"][0]["metadata"]

            before = await memory()
            assert "judges_note" not in {**before, **before["lifetime"]}
            await job.add(app, [job.record(n, **one_tool) for n in range(10, 15)])
            mixed = await memory()
            assert {judge.split("@")[0] for judge in mixed["judges"]} == {
                "dashscope/qwen-plus",
                "offline/rule_based_check",
            }
            assert "mixes 2 judges" in mixed["judges_note"]
            assert "5 calls outside the window" in mixed["lifetime"]["judges_note"]
            await app.run_flow("rejudge", workspace_id="team")
            assert len((await memory())["judges"]) == 1


async def test_a_reply_that_cannot_be_read_is_shown_to_the_model_once_more(job):
    script = Script(
        reply=lambda prompt: (
            "no idea"
            if "You have answered already" not in prompt
            else '{"score": 1.0, "summary": "s", "evaluation": "e"}'
        )
    )
    with ModelServer(script) as server:
        async with job.app(server) as app:
            response = await job.add(app, [job.record(0)])
    assert response.success
    assert len(server.requests) == 2
    assert re.search(r"<reply(\d+)>no idea</reply\1>", server.requests[1].prompt)


async def test_the_ledger_holds_every_attempt_with_the_tokens_that_the_server_counted(job):
    with ModelServer(Script.failing("throttled", every=4)) as server:
        async with job.app(server) as app:
            await job.add(app, job.records(12))
            await app.run_flow("summary_tool_memory", workspace_id="team", tool_names="tool_0,tool_1")
            await app.services.ledger.flush()
            booked = await read_ledger(await app.services.store_named(), "team")
    assert len(booked) == len(server.requests) > 14
    assert sum(entry.prompt_tokens for entry in booked) == sum(r.prompt_tokens for r in server.requests)
    assert sum(entry.completion_tokens for entry in booked) == sum(r.completion_tokens for r in server.requests)
    assert sum(entry.outcome == "error: ModelOverloaded" for entry in booked) == len(server.requests) // 4
    assert {entry.op for entry in booked} == {"parse_tool_call_result_op", "summary_tool_memory_op"}
