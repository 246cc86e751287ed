"""Real requests over HTTP, in DashScope's protocol by its SDK and in OpenAI's."""

import asyncio
import logging
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import msgspec
import pytest
from model_settings import model_of

from toolmem import ToolMem
from toolmem.errors import ConfigError
from toolmem.llm.client import Endpoint
from toolmem.llm.failures import Answer, error_of
from toolmem.llm.openai import OpenAIService, read_chat
from toolmem.testing.faults import FAULTS, Behaviour, Fault
from toolmem.testing.model_server import ModelServer
from toolmem.testing.scripted import plausible_reply

PASSING = ("server_error", "throttled", "error_in_200", "broken_json", "no_body", "empty", "cut")
LASTING = (*PASSING, "cut_within", "garbage", "wrong_type", "broken_reply", "endless_thought")


def fifth(prompt):
    """The prompts of every fifth call of `records`."""
    return Fault(prompt, matching=r'"q":(4|9|14)\}')


def test_a_model_judges_and_writes_and_each_request_is_in_the_ledger(asking, records):
    with asking() as it:
        assert it.memory.add(records(6)).answer == "Successfully evaluated 6 tool calls"
        call = it.memory.calls()[0]
        assert (call.score, call.summary) == (1.0, "A scripted verdict.")
        assert call.judge.model == "qwen-plus"
        done = it.memory.summarize()
        assert (done.summarized, done.usage.requests) == (["search"], 1)
        text = it.memory.guidance("search").text
        assert "Scripted guidance from 6 calls" in text
        assert "Statistics: 6 calls, 6 worked, avg_score 1" in text
        rows = it.ledger()
        ops = [row.op for row in rows]
        assert ops.count("parse_tool_call_result_op") == 6
        assert ops.count("summary_tool_memory_op") == 1
        assert {(row.tool, row.outcome, row.estimated) for row in rows} == {("search", "ok", False)}
        assert all(row.prompt_tokens > 50 and row.cost > 0 for row in rows)
        assert it.memory.summarize().usage.saved_prompt_tokens > 100
        assert len(it.server.requests) == 7  # a skip asks nothing


def test_whether_a_call_ran_is_said_alike_under_every_judge(asking):
    call = {"tool_name": "t", "output": "Error: no such file", "success": True}
    with asking() as it, ToolMem(":memory:") as offline:
        it.memory.add([call])
        offline.add([call])
        (one,), (other,) = it.memory.calls(), offline.calls()
        assert (one.execution_failed, one.error_class) == (True, "not_found")
        assert (other.execution_failed, other.error_class) == (True, "not_found")
        assert (one.failed, one.failed_silently) == (True, True)


@pytest.mark.parametrize("fault", LASTING)
def test_every_fifth_call_fails_and_every_call_is_kept_and_a_later_run_takes_it_up(
    asking, records, fault
):
    with asking(fifth(fault), more=["llm.default.params.max_retries=1"]) as it:
        done = it.memory.add(records(10))
        assert (done.success, done.partial, done.evaluation.evaluated) == (False, True, 8)
        assert [each.index for each in done.evaluation.failures] == [4, 9]
        assert len(it.memory.calls()) == 10
        assert it.memory.summarize().success
        before = it.memory.guidance("search").text
        it.server.faults.clear()
        again = it.memory.run("retry_evaluations")
        assert again.answer == "Judged 2 of 2 kept calls again"
        assert it.memory.guidance("search").text == before
        assert it.memory.summarize().summarized == ["search"]  # two calls are new


@pytest.mark.parametrize("fault", PASSING)
def test_what_may_pass_is_tried_again(asking, records, fault):
    with asking(Fault(fault, times=2)) as it:
        assert it.memory.add(records(3)).success
        outcomes = [row.outcome for row in it.ledger()]
        assert (outcomes.count("ok"), outcomes.count("PassingError")) == (3, 2)


@pytest.mark.parametrize(
    ("status", "kind"),
    [(408, "PassingError"), (425, "PassingError"), (429, "PassingError"), (400, "ModelError")]
    + [(each, "fatal") for each in (301, 401, 402, 403, 404, 405, 407, 410)],
)
def test_each_status_may_pass_or_not_or_ends_the_run(status, kind):
    error = error_of(Answer(status), "m", secret="", prompt="")
    assert ("fatal" if error.fatal else type(error).__name__) == kind


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after-ms": "250"}, 0.25),
        ({"retry-after": "100000"}, 300.0),
        ({"retry-after": "Wed, 01 Jan 2020 00:00:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({}, None),
    ],
)
def test_retry_after_is_read_in_every_form_and_bounded(headers, seconds):
    error = error_of(Answer(503, headers=headers), "m", secret="", prompt="")
    assert error.retry_after == seconds


@pytest.mark.parametrize(
    ("setting", "sent"),
    [("llm.default.params.max_retries=2", 3), ("op.parse_tool_call_result_op.max_retries=0", 1)],
)
def test_a_request_is_sent_once_more_than_it_or_its_op_may_retry(asking, records, setting, sent):
    with asking(Fault("server_error"), more=[setting]) as it:
        it.memory.add(records(1))
        assert len(it.server.requests) == sent


def test_guidance_survives_a_summary_that_fails(asking, records):
    with asking() as it:
        it.memory.add(records(3))
        it.memory.summarize()
        before = it.memory.guidance("search").text
        it.memory.add(records(1, start=3))
        it.server.faults.append(Fault("broken_json"))
        it.server._applied.append(0)
        done = it.memory.summarize()
        assert (done.success, done.failed) == (False, ["search"])
        assert it.memory.guidance("search").text == before
        it.server.faults.clear()
        assert it.memory.summarize().summarized == ["search"]


@pytest.mark.parametrize("fault", ["unauthorized", "arrears", "unknown_model"])
def test_a_denial_stops_the_run_after_one_request_and_a_later_run_asks_again(
    asking, records, fault
):
    with asking(Fault(fault)) as it:
        done = it.memory.add(records(20))
        assert len(it.server.requests) == 1
        assert "HTTP 4" in done.stopped
        assert done.evaluation.failed == 20
        assert [call.score for call in it.memory.calls()] == [None] * 20
        it.server.faults.clear()
        assert it.memory.run("retry_evaluations").metadata["evaluation"]["evaluated"] == 20


def test_the_same_refusal_of_the_first_requests_ends_the_run(asking, records):
    with asking(Fault("bad_request"), more=["llm.default.params.max_concurrency=1"]) as it:
        done = it.memory.add(records(20))
        assert "the same for 3 requests" in done.stopped
        assert len(it.server.requests) <= 5


@pytest.mark.parametrize("fault", ["content_filter", "filtered_reply", "truncated"])
def test_a_prompt_that_is_refused_alone_does_not_end_the_run(asking, records, fault):
    narrow = "llm.default.params.max_concurrency=1"
    with asking(Fault(fault, matching=r'"q":[0123]\}'), more=[narrow]) as it:
        done = it.memory.add(records(8))
        assert (done.evaluation.failed, done.evaluation.evaluated, done.stopped) == (4, 4, "")


def test_an_unreadable_reply_is_shown_to_the_model_once(asking, records):
    with asking(Fault("wrong_type", times=1)) as it:
        assert it.memory.add(records(1)).success
        _, second = it.server.requests
        assert "very good" in second.prompt
        assert "its score is neither 0.0 nor 1.0" in second.prompt


@pytest.mark.parametrize(
    ("fault", "left_out"),
    [("no_temperature", "temperature"), ("no_json_mode", "response_format")],
)
def test_a_parameter_that_the_service_refuses_is_left_out_for_the_run(
    asking, records, caplog, fault, left_out
):
    with asking(Fault(fault), more=["llm.default.params.max_concurrency=1"]) as it:
        assert it.memory.add(records(5)).success
        sent = [left_out in asked.parameters for asked in it.server.requests]
        assert sent == [True] + [False] * 5
        assert [left_out in record.message for record in caplog.records] == [True]


def test_max_tokens_goes_by_its_other_name_where_the_service_asks(asking, records):
    with asking(Fault("no_max_tokens"), more=["llm.default.params.max_tokens=300"]) as it:
        assert it.memory.add(records(3)).success
        assert it.server.requests[-1].parameters["max_completion_tokens"] == 300


def test_temperature_null_is_not_sent(asking, records):
    with asking(more=["llm.default.params.temperature=null"]) as it:
        it.memory.add(records(1))
        assert "temperature" not in it.server.requests[0].parameters


def test_retry_after_holds_everybody_and_retries_take_turns(asking, records, clock):
    width = ["llm.default.params.max_concurrency=2"]
    with asking(Fault("retry_after", times=1), more=width) as it:
        assert it.memory.add(records(6)).success
        assert sum(clock.waits) >= 2.0
        assert it.server.most_under_way <= 2


def test_requests_of_a_model_are_an_interval_apart_and_offline_ones_are_not(asking, records, clock):
    interval = ["op.parse_tool_call_result_op.params.evaluation_sleep_interval=1.5"]
    with asking(Fault("server_error", times=1), more=interval) as it:
        it.memory.add(records(4))
        assert sum(clock.waits) >= 4 * 1.5  # the retry too
    clock.waits.clear()
    with ToolMem(":memory:", clock=clock) as offline:
        offline.add(records(4))
    assert clock.waits == []


def test_neither_the_key_nor_the_prompt_is_told(asking, records, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    calls = [{"tool_name": "search", "input": {"q": "the-quiet-prompt"}, "output": "x"}]
    for fault in ("unauthorized", "server_error", "content_filter", "cut"):
        with asking(Fault(fault), more=["llm.default.params.max_retries=0"]) as it:
            done = it.memory.add(calls)
            told = str(done) + caplog.text + "".join(capfd.readouterr())
            assert "sk-0123456789" not in told
            assert "the-quiet-prompt" not in done.evaluation.failures[0].error


def test_a_reply_that_is_lost_is_booked_with_estimated_tokens(asking, records):
    with asking(Fault("cut_within", times=1), more=["llm.default.params.max_retries=0"]) as it:
        it.memory.add(records(1))
        (row,) = it.ledger()
        assert (row.outcome, row.estimated) == ("PassingError", True)
        assert row.prompt_tokens > 50
    with asking(Fault("unauthorized")) as it:
        it.memory.add(records(1, start=5))
        refused = [row for row in it.ledger() if row.outcome == "ModelError"]
        assert [row.prompt_tokens for row in refused] == [0]  # nothing is paid


def test_a_reply_that_states_its_prompt_tokens_alone_is_booked_as_estimated(
    asking, records, monkeypatch
):
    message = {"role": "assistant", "content": plausible_reply("```json")}
    choices = [{"finish_reason": "stop", "message": message}]
    usage = {"prompt_tokens": 70, "input_tokens": 70}
    body = {"choices": choices, "output": {"choices": choices}, "usage": usage}
    monkeypatch.setitem(FAULTS, "half_usage", Behaviour(body=msgspec.json.encode(body)))
    with asking(Fault("half_usage")) as it:
        it.memory.add(records(1))
        (row,) = it.ledger()
        assert (row.prompt_tokens, row.completion_tokens > 0, row.estimated) == (70, True, True)


def test_a_budget_is_checked_before_a_request(asking, records):
    with asking(more=["budget.max_tokens=500", "llm.default.params.max_concurrency=1"]) as it:
        done = it.memory.add(records(20))
        assert done.budget_reached
        assert "budget.max_tokens=500" in done.stopped
        assert len(it.server.requests) < 6
        assert len(it.memory.calls()) == 20


def test_money_is_only_counted_where_the_model_has_a_price(asking):
    more = ["budget.max_cost=1", "llm.default.model_name=somebodys"]
    with asking(more=more) as it, pytest.raises(ConfigError, match="has no price"):
        it.memory.add([{"tool_name": "t", "output": "x"}])
    assert it.server.requests == []


def test_a_dry_run_counts_prompts_and_sends_nothing(path, records, clock):
    overrides = ["llm.default.backend=dry_run"]
    with ToolMem(path, overrides=overrides, clock=clock) as memory:
        done = memory.add(records(5))
        assert (done.usage.requests, clock.waits) == (5, [])
        assert done.usage.prompt_tokens > 500
        assert memory.calls()[0].judge.backend == "dry_run"
        summary = memory.summarize()
        assert summary.usage.requests == 1
        assert memory.summarize().usage.saved_prompt_tokens == summary.usage.prompt_tokens


def test_a_service_that_only_streams_is_read_from_its_stream(records, path):
    with ModelServer() as server:
        overrides = model_of(server, "llm.default.params.stream=true")
        with ToolMem(path, overrides=overrides) as memory:
            assert memory.add(records(1)).success
        assert server.requests[0].parameters["stream_options"] == {"include_usage": True}


def test_every_fault_can_be_asked_for(asking, records):
    """None of them hangs a run or loses a call."""
    for fault in FAULTS.keys() - {"hang"}:
        more = ["llm.default.params.max_retries=0"]
        with asking(Fault(fault, matching='"q":1'), more=more) as it:
            it.memory.engine.run("vector_store", {"workspace_id": "default", "action": "delete"})
            it.memory.add(records(3), force=True)
            assert len(it.memory.calls()) == 3, fault


def test_what_is_wrong_with_a_model_is_told_before_anything_is_sent(path, monkeypatch):
    for name in ("DASHSCOPE_API_KEY", "OPENAI_API_KEY", "FLOW_LLM_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    for backend, url, told in [
        ("dashscope", "", "set DASHSCOPE_API_KEY"),
        ("openai_compatible", "ftp://x", "http:// or https://"),
        ("openai_compatible", "http://127.0.0.1:1", "model_name: missing"),
        ("openai_compatible", "http://[x", "base_url: expected an address"),
    ]:
        settings = [f"llm.default.backend={backend}"]
        settings += [f"llm.default.params.base_url={url}"] if url else []
        with ToolMem(path, overrides=settings) as memory, pytest.raises(ConfigError, match=told):
            memory.add([{"tool_name": "t", "output": "x"}])


class _OpenStream(BaseHTTPRequestHandler):
    """Streams a reply, and leaves the connection open after it."""

    def do_POST(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        self.wfile.write(b'data: {"choices": [{"delta": {"content": "hi"}}]}\n\ndata: [DONE]\n\n')
        self.rfile.read(int(self.headers["Content-Length"]) + 1)

    def log_message(self, format, *args):
        pass


def test_a_stream_ends_with_done_though_the_server_keeps_the_connection_open():
    with ThreadingHTTPServer(("127.0.0.1", 0), _OpenStream) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        service = OpenAIService(Endpoint("openai_compatible", "m", url, "", 10.0))
        answer = asyncio.run(service.chat("hello", {"stream": True}))
        server.shutdown()
    assert read_chat(answer.body, "m").value == "hi"
