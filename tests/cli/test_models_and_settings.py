"""Flows, settings, models and stores on the command line: processes of their own."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import time

import pytest
from command_line import COMMAND, run
from model_settings import NO_WAIT, model_of

from toolmem import ToolMem
from toolmem.config.sections import OpSection
from toolmem.llm.usage import read_ledger
from toolmem.testing.faults import Fault
from toolmem.testing.model_server import ModelServer

ONCE = [*NO_WAIT, "llm.default.params.max_retries=0"]
CALLS = [{"tool_name": "search", "input": {"q": n}, "output": str(n)} for n in range(3)]


def test_a_flow_is_run_with_its_request_from_stdin_and_its_response_alone_on_stdout(tmp_path):
    request = {"workspace_id": "w", "tool_call_results": CALLS}
    done = run(tmp_path, "run", "add_tool_call_result", "--request", "-", given=request)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["answer"] == "Successfully evaluated 3 tool calls"
    (tmp_path / "r.json").write_text('\ufeff{"tool_names": ["search", "none"]}')
    asked = ["run", "summary_tool_memory", "--request", "r.json", "--workspace", "w"]
    partly = run(tmp_path, *asked)
    assert partly.returncode == 1
    assert json.loads(partly.stdout)["metadata"]["not_found"] == ["none"]


@pytest.mark.parametrize(
    ("arguments", "request_", "told"),
    [
        (["add_tool_call_result"], {"tool_call_results": []}, "workspace: missing"),
        (["add_tool_cal_result"], {}, "did you mean 'add_tool_call_result'"),
        (["rejudge"], [1], "expected a JSON object, got list"),
        (["rejudge"], {"workspace_id": "w", "tool_name": "x"}, "did you mean 'tool_names'"),
        (["rejudge", "--config", "no.yaml"], {}, "no.yaml"),
        (["rejudge", "op.rejudge_op.params.forse=1"], {"workspace_id": "w"}, "params.force'?"),
    ],
)
def test_what_is_refused_does_nothing_and_has_exit_code_2(tmp_path, arguments, request_, told):
    done = run(tmp_path, "run", *arguments, "--request", "-", given=request_)
    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_an_operation_is_run_as_a_flow_is(tmp_path):
    def asked(name, **request):
        return run(tmp_path, "run", name, "--request", "-", given={"workspace_id": "w", **request})

    sudo = {"tool_name": "shell", "rule": "No sudo", "when": [{"command": "^sudo"}]}
    assert asked("tool_rule_put", effect="deny", **sudo).returncode == 0
    listed = json.loads(asked("tool_rule_list", tool_name="shell").stdout)
    assert [rule["rule"] for rule in listed] == ["No sudo"]
    denied = asked("check_tool_call", tool_name="shell", input={"command": "sudo ls"})
    assert denied.returncode == 5
    assert json.loads(denied.stdout)["metadata"]["decision"]["action"] == "deny"
    assert asked("tool_rule_list", tool="shell").returncode == 2
    note = {"quote": "never do it", "effect": "remind", "user_message": "hello"}
    assert asked("note_demand", **note).returncode == 1


def test_every_problem_of_settings_is_a_line_of_stderr(tmp_path):
    wrong = ("op.summary_tool_memory_op.params.recent_cal_count=3", "llm.default.backend=openai")
    done = run(tmp_path, "config", "check", *wrong)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("error: ") == 2
    assert run(tmp_path, "config", "check", "--recent=1", "language=zh").returncode == 2
    assert run(tmp_path, "config", "check", "language=zh").stdout.startswith("no problems; 8 flows")


def test_settings_are_shown_as_json_with_their_origins(tmp_path):
    (tmp_path / "my.yaml").write_text("language: zh\n")
    done = run(tmp_path, "config", "show", "config=my.yaml", "max_errors=3", "--json")
    rows = {row["name"]: row for row in json.loads(done.stdout)}
    assert rows["language"] == {"name": "language", "value": "zh", "origin": "my.yaml:1"}
    assert rows["max_errors"]["origin"] == "override"
    done = run(tmp_path, "config", "show", "op.summary_tool_memory_op.params", "--json")
    ops = {row["name"].split(".")[1] for row in json.loads(done.stdout)}
    assert ops == {"summary_tool_memory_op"}


def test_an_evaluation_by_a_model_keeps_failed_calls_and_asks_nothing_twice(tmp_path):
    (tmp_path / "calls.jsonl").write_text("\n".join(map(json.dumps, CALLS)))
    asked = ["evaluate", "--input", "calls.jsonl"]
    with ModelServer([Fault("server_error", matching=r'"q":1\}')]) as server:
        done = run(tmp_path, *asked, *model_of(server, *ONCE))
        assert done.returncode == 1
        assert "1 evaluation failed, the calls are kept: rows 1" in done.stderr
        with (tmp_path / "report" / "calls.csv").open() as file:
            rows = list(csv.DictReader(file))
        assert [row["evaluation_status"] for row in rows] == ["ok", "failed", "ok"]
        server.faults.clear()
        before = len(server.requests)
        assert run(tmp_path, *asked, *model_of(server, *ONCE)).returncode == 0
        judged = [each for each in server.requests[before:] if "```json" in each.prompt]
        assert len(judged) == 1  # the others are known
        asked += ["--out", "second", *model_of(server, *ONCE, "budget.max_tokens=10")]
        spent = run(tmp_path, *asked)
        assert spent.returncode == 3
        assert "budget.max_tokens=10" in spent.stderr


@pytest.mark.parametrize("kill", [signal.SIGINT, signal.SIGKILL])
def test_an_evaluation_that_is_stopped_pays_nothing_twice(tmp_path, kill):
    """Ctrl-C cancels what was not sent; a killed process has kept each verdict as it came."""
    lines = [{"tool_name": "search", "input": {"q": n}, "output": "x"} for n in range(200)]
    (tmp_path / "calls.jsonl").write_text("\n".join(map(json.dumps, lines)))
    with ModelServer(latency=0.05) as server:
        asked = ["evaluate", "--input", "calls.jsonl", *model_of(server, *ONCE)]
        command = [*COMMAND, *asked]
        process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
        while len(server.requests) < 20:
            time.sleep(0.01)
        process.send_signal(kill)
        _, told = process.communicate(timeout=20)
        sent = len(server.requests)
        assert sent < 100
        if kill == signal.SIGINT:
            assert (process.returncode, told.strip()) == (130, "interrupted")
    with ToolMem(tmp_path / "report" / "memory.db", workspace="evaluate") as memory:
        rows = read_ledger(memory.services.store(OpSection()), "evaluate")
        answered = sum(row.outcome == "ok" for row in rows)
        assert answered >= 4
    with ModelServer() as server:
        assert run(tmp_path, *asked[:3], *model_of(server, *ONCE)).returncode == 0
        judged = sum("```json" in each.prompt for each in server.requests)
        assert judged <= 200 - answered + 8  # those whose reply was read and not kept yet


def test_an_evaluation_that_is_refused_leaves_the_earlier_one_as_it_was(tmp_path):
    (tmp_path / "calls.jsonl").write_text("\n".join(map(json.dumps, CALLS)))
    (tmp_path / "cut.jsonl.gz").write_bytes(b"\x1f\x8b\x08cut")
    keyless = ["llm.default.backend=dashscope", "llm.default.params.api_key="]
    assert run(tmp_path, "evaluate", "--out", "new", *keyless).returncode == 2
    assert not (tmp_path / "new").exists()
    assert run(tmp_path, "evaluate", "--input", "calls.jsonl").returncode == 0
    for refused in (["--input", "cut.jsonl.gz"], ["--input", "calls.jsonl", *keyless]):
        done = run(tmp_path, "evaluate", *refused)
        assert (done.returncode, done.stdout) == (2, "")
        with ToolMem(tmp_path / "report" / "memory.db", workspace="evaluate") as memory:
            assert len(memory.calls()) == 3


def test_a_store_that_a_file_names_is_used_and_not_cleared(tmp_path):
    (tmp_path / "calls.jsonl").write_text("\n".join(map(json.dumps, CALLS)))
    (tmp_path / "my.yaml").write_text("vector_store: {default: {params: {path: own.db}}}\n")
    for _ in range(2):
        run(tmp_path, "evaluate", "--input", "calls.jsonl", "--config", "my.yaml")
    with ToolMem(tmp_path / "own.db", workspace="evaluate") as memory:
        assert len(memory.calls()) == 6
    assert not (tmp_path / "report" / "memory.db").exists()


def test_the_judge_is_held_against_labels(tmp_path):
    (tmp_path / "calls.jsonl").write_text("\n".join(map(json.dumps, CALLS)))
    (tmp_path / "labels.csv").write_text("index,label\n0,1\n1,0\n2,1\n")
    done = run(tmp_path, "evaluate", "--input", "calls.jsonl", "--labels", "labels.csv")
    assert "66.7% worked (95 % interval" in done.stdout
    assert "the judge's score agrees with 2 of 3 labels (2 worked, 0 failed; 0 good" in done.stdout
    assert "balanced accuracy 0.500, of failures precision - and recall 0.000" in done.stdout
    assert "fewer than 20 labels (3)" in done.stderr
    (tmp_path / "labels.csv").write_text("index,label\n7,1\n")
    done = run(tmp_path, "evaluate", "--input", "calls.jsonl", "--labels", "labels.csv")
    assert (done.returncode, done.stdout) == (2, "")
    assert "none of the 1 rows is a call of the recording" in done.stderr


def test_costs_tell_the_price_and_its_source_and_are_held_against_the_budget(tmp_path):
    (tmp_path / "calls.jsonl").write_text("\n".join(map(json.dumps, CALLS)))
    ask = ("costs", "--input", "calls.jsonl")
    told = run(tmp_path, *ask).stdout
    assert "qwen-plus, CNY: 0.0008 for 1,000 tokens read" in told
    assert ", 2026-11-21)" in told and "not prose" in told
    done = run(tmp_path, *ask, "--json", "budget.max_tokens=100", "prices.[qwen-plus].input=0.01")
    assert (done.returncode, json.loads(done.stdout)["price"]["source"]) == (3, "override")
    assert "budget reached: always fresh" in done.stderr
    for price in ("{input: 2.5, currency: USD}", "{input: 1, per: 1M}"):
        done = run(tmp_path, *ask, f"prices.mine={price}")
        assert (done.returncode, done.stdout) == (2, "")
        assert "prices.mine" in done.stderr and "divide one per million by 1,000" in done.stderr


def test_a_dry_run_that_passes_the_budget_exits_with_3_as_a_real_one_does(tmp_path):
    (tmp_path / "calls.jsonl").write_text("\n".join(map(json.dumps, CALLS)))
    dry_run = ("evaluate", "--input", "calls.jsonl", "llm.default.backend=dry_run")
    tokens = int(re.search(r"not sent: (\d+) prompt tokens", run(tmp_path, *dry_run).stdout)[1])
    for limit, code in ((tokens, 0), (tokens - 1, 3), (1, 3)):  # in the summary; in judging
        done = run(tmp_path, *dry_run, f"budget.max_tokens={limit}")
        assert done.returncode == code
        assert (f"stopped: budget.max_tokens={limit}" in done.stderr) == (code == 3)


def test_a_local_store_of_reme_is_named_and_imported(tmp_path):
    folder = tmp_path / "local_vector_store"
    folder.mkdir()
    memory = {"memory_type": "tool", "when_to_use": "search", "content": "Short words."}
    call = {"input": {}, "output": "x", "success": True, "create_time": "2025-10-01 10:00:00"}
    lines = [{**memory, "tool_call_results": [call]}, {"memory_type": "task"}]
    (folder / "w.jsonl").write_text("\n".join(map(json.dumps, lines)))
    (tmp_path / "my.yaml").write_text("vector_store: {default: {backend: local}}\n")
    request = ["run", "rejudge", "--request", "-", "--config", "my.yaml", "--workspace", "w"]
    refused = run(tmp_path, *request, given={})
    assert refused.returncode == 2
    assert "toolmem store import local_vector_store" in refused.stderr
    done = run(tmp_path, "store", "import", "local_vector_store", "--store", "m.db")
    assert "1 tool, 1 call added, 1 task memory passed over" in done.stdout
    assert run(tmp_path, "tools", "show", "search", "--store", "m.db").stdout == "1. Short words.\n"
    info = run(tmp_path, "store", "info", "--store", "m.db", "--json")
    assert json.loads(info.stdout) == [{"workspace": "default", "calls": 1, "tools": 1}]


def test_the_model_server_serves_from_the_command_line(tmp_path):
    process = subprocess.Popen(
        [*COMMAND, "testing", "serve", "--port", "0", "--fault", "throttled", "--every", "2"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        assert process.stdout is not None
        url = process.stdout.readline().partition("base_url=")[2].strip()
        overrides = [
            "llm.default.backend=openai_compatible",
            f"llm.default.params.base_url={url}",
            "llm.default.model_name=any",
            *NO_WAIT,
        ]
        with ToolMem(":memory:", overrides=overrides) as memory:
            assert memory.add(CALLS).success
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130


def test_the_ledger_shows_what_each_op_asked_of_which_model(tmp_path):
    with ModelServer() as server:
        asked = {"workspace_id": "w", "tool_call_results": CALLS}
        flow = ["add_tool_call_result", "--request", "-", *model_of(server, *ONCE)]
        assert run(tmp_path, "run", *flow, given=asked).returncode == 0
    shown = run(tmp_path, "ledger", "--workspace", "w").stdout
    assert "parse_tool_call_result_op" in shown
    assert "openai_compatible/qwen-plus" in shown
    assert "CNY" in shown
    rows = json.loads(run(tmp_path, "ledger", "--workspace", "w", "--json").stdout)
    assert len(rows) == 3
    assert {row["outcome"] for row in rows} == {"ok"}


def test_the_service_starts_as_reme_starts_it(tmp_path):
    (tmp_path / "my.yaml").write_text("http: {host: 127.0.0.1}\n")
    asked = ["backend=http", "--http.port=0", "config=my.yaml"]
    command = [*COMMAND, *asked]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as it:
        told = it.stderr.readline()
        it.send_signal(signal.SIGINT)
    store = re.escape(str(tmp_path / ".toolmem"))
    assert re.match(rf"toolmem on http://127\.0\.0\.1:[1-9]\d+, store {store}.* \(new\) ", told)
