"""`toolmem judge compare`, `toolmem ledger` and `toolmem testing serve`, as they are run."""

from __future__ import annotations

import csv
import json
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest

from toolmem.testing.model_script import FAULTS, Script
from toolmem.testing.model_server import ModelServer

UNPACED = "op.parse_tool_call_result_op.params.evaluation_sleep_interval=0"


@pytest.fixture
def toolmem(run_command: Callable[..., Any]) -> Callable[..., Any]:
    return run_command


@pytest.fixture
def server():
    with ModelServer(Script()) as server:
        yield server


def asked_of(server, name="default", model="qwen-plus"):
    return [
        f"llm.{name}.backend=dashscope",
        f"llm.{name}.model_name={model}",
        f"llm.{name}.params.base_url={server.dashscope_url}",
        f"llm.{name}.params.api_key=sk-loopback",
    ]


def write_calls(path, count=40):
    with path.open("w") as out:
        for n in range(count):
            record = {
                "tool_name": f"tool_{n % 2}",
                "input": {"n": n},
                "output": "Error: no such row" if n % 4 == 0 else f"[{n}]",
                "success": n % 8 != 0,
                "create_time": f"2026-03-01T00:{n:02}:00+00:00",
                "metadata": {"useful": n % 4 != 0, "reward": None if n < 10 else n % 3 / 2},
            }
            out.write(json.dumps(record) + "\n")
    return str(path)


# ---------------------------------------------------------------- judge compare


def test_a_model_that_overrides_alone_describe_can_be_compared(toolmem, server, tmp_path):
    recording = write_calls(tmp_path / "calls.jsonl", 3)
    judges = ["--judge", "offline", "--judge", "second"]
    ran = toolmem("judge", "compare", "--input", recording, *judges, "--json", *asked_of(server, "second"), UNPACED)
    assert ran.code == 0, ran.err
    assert len(server.requests) == 3


def test_judges_are_compared_and_costs_are_told(toolmem, server, tmp_path):
    recording = write_calls(tmp_path / "calls.jsonl")
    judges = ["--judge", "offline", "--judge", "default", "--label", "useful", "--ignore-success"]
    overrides = [*asked_of(server), UNPACED]
    ran = toolmem("judge", "compare", "--input", recording, *judges, "--csv", "out/all.csv", "--json", *overrides)
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)
    offline, model, label = found["judges"]
    assert (offline["name"], model["name"], label["name"]) == ("offline", "default", "column:useful")
    assert model["usage"]["requests"] == len(server.requests) == 40
    assert model["usage"]["prompt_tokens"] == sum(request.prompt_tokens for request in server.requests)
    assert model["cost_per_1000_calls"] == pytest.approx(model["usage"]["cost"] * 25)
    assert not any("Reported success" in request.prompt and "true" in request.prompt for request in server.requests)
    by_pair = {(pair["first"], pair["second"]): pair for pair in found["pairs"]}
    assert by_pair["offline", "column:useful"]["agreement"] == 1.0
    assert sum(by_pair["offline", "default"]["cells"].values()) == 40
    assert {each["judge"] for each in found["labels"]} == {"offline", "default"}
    rows = list(csv.DictReader((tmp_path / "out" / "all.csv").open()))
    assert [row["row"] for row in rows] == [str(n) for n in range(40)]
    assert rows[0]["offline score"] == "0.0"
    again = toolmem("judge", "compare", "--input", recording, *judges, *overrides)
    assert again.code == 0
    assert len(server.requests) == 40  # the verdict cache knows all of them
    assert "Agreement of every two" in again.out
    assert "known already, or those of an identical call: 40 verdicts" in again.out


def test_two_models_on_a_seeded_sample_of_the_labelled_calls(toolmem, server, tmp_path):
    recording = write_calls(tmp_path / "calls.jsonl")
    command = ["judge", "compare", "--input", recording, "--limit", "12", "--judge", "default", "--judge", "fast"]
    command += ["--judge", "column:reward<0.6", "--json", *asked_of(server), *asked_of(server, "fast", "qwen-flash")]
    ran = toolmem(*command, UNPACED)
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)
    assert found["calls"] == 12
    assert any("10 calls without column:reward<0.6" in note for note in found["notes"])
    assert [run["judged"] for run in found["judges"]] == [12, 12, 12]
    assert found["judges"][2]["zero_means"] == "that metadata.reward is below 0.6"
    assert sorted({request.model for request in server.requests}) == ["qwen-flash", "qwen-plus"]
    first_prompts = [request.prompt for request in server.requests]
    assert sorted(first_prompts[:12]) == sorted(first_prompts[12:])
    booked = json.loads(toolmem("ledger", "--by", "model", "--json").out)
    assert {each["model"]: each["requests"] for each in booked["sums"]} == {"qwen-flash": 12, "qwen-plus": 12}


def test_a_comparison_keeps_its_budget_and_names_what_is_missing(toolmem, server, tmp_path):
    recording = write_calls(tmp_path / "calls.jsonl")
    command = ["judge", "compare", "--input", recording, "--judge", "offline", "--judge", "default", *asked_of(server)]
    stopped = toolmem(*command, UNPACED, "budget.max_tokens=2000")
    assert stopped.code == 3
    assert "was stopped: budget.max_tokens" in stopped.out
    paid = len(server.requests)
    assert 3 < paid < 20
    server.script = Script.failing("bad_request", share=0.2)
    partial = toolmem(*command, UNPACED)
    assert partial.code == 1
    assert "verdicts are missing" in partial.err
    assert re.search(r"^\d+ evaluations by dashscope/qwen-plus", partial.err, re.MULTILINE)
    server.script = Script()
    assert toolmem(*command, UNPACED).code == 0
    counted = [request.prompt for request in server.requests if request.status == 200]
    assert len(counted) == len(set(counted)) == 40


def test_a_comparison_keeps_no_call_and_judges_none_that_was_not_asked_for(toolmem, server, tmp_path):
    broken = {"tool_name": "tool_0", "output": "x", "success": True}
    (tmp_path / "request.json").write_text(json.dumps({"workspace_id": "default", "tool_call_results": [broken]}))
    server.script = Script.failing("bad_request")
    toolmem("run", "add_tool_call_result", "--request", "request.json", *asked_of(server), UNPACED)
    server.script = Script()
    before = len(server.requests)
    recording = write_calls(tmp_path / "calls.jsonl", 4)
    toolmem("judge", "compare", "--input", recording, "--judge", "offline", "--judge", "default", *asked_of(server))
    assert len(server.requests) - before == 4
    (tmp_path / "list.json").write_text('{"workspace_id": "default", "action": "list"}')
    listed = json.loads(toolmem("run", "vector_store", "--request", "list.json").out)
    assert [len(memory["tool_call_results"]) for memory in listed["metadata"]["memory_list"]] == [1]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--judge", "offline"], "two judges"),
        (["--judge", "offline", "--judge", "ofline"], "offline"),
        (["--judge", "offline", "--judge", "offline"], "same judge"),
        (["--judge", "offline", "--judge", "default"], "same judge"),
        (["--judge", "offline", "--judge", "recorded", "--judge", "recorded"], "same judge"),
        (["--judge", "offline", "--label", "nosuch"], "nosuch"),
        (["--judge", "offline", "--label", "useful<many"], "many"),
        (["--judge", "offline", "--judge", "default", "llm.default.backend=dashscope"], "DASHSCOPE_API_KEY"),
        (
            ["--judge", "offline", "--judge", "default", "op.parse_tool_call_result_op.llm=fast"],
            "op.parse_tool_call_result_op.llm",
        ),
    ],
)
def test_what_cannot_be_compared_is_refused_before_anything_is_judged(toolmem, arguments, named):
    extra = ["llm.fast.backend=dry_run"] if "llm=fast" in arguments[-1] else []
    ran = toolmem("judge", "compare", *arguments, *extra)
    assert ran.code == 2, ran.err
    assert named in ran.err
    assert ran.out == ""


# ---------------------------------------------------------------- ledger


def test_an_empty_ledger_says_so_and_where_requests_are(toolmem, server, tmp_path):
    empty = toolmem("ledger")
    assert (empty.code, empty.out) == (0, "")
    assert "no model was asked on behalf of workspace 'default'" in empty.err
    write_calls(tmp_path / "calls.jsonl", 3)
    command = ["judge", "compare", "--input", "calls.jsonl", "--judge", "offline", "--judge", "default"]
    toolmem(*command, "--workspace", "team", *asked_of(server), UNPACED)
    assert "'team'" in toolmem("ledger").err
    assert json.loads(toolmem("ledger", "--json").out)["sums"] == []


def test_the_ledger_is_summed_by_what_is_asked_and_written_to_a_file(toolmem, server, tmp_path):
    write_calls(tmp_path / "calls.jsonl", 12)
    server.script = Script.failing("unavailable", every=5)
    command = ["judge", "compare", "--input", "calls.jsonl", "--judge", "offline", "--judge", "default"]
    assert toolmem(*command, *asked_of(server), UNPACED).code == 0
    ran = toolmem("ledger", "--by", "tool", "--by", "outcome", "--csv", "sums.csv")
    assert ran.code == 0
    assert "ModelOverloaded" in ran.out
    rows = list(csv.DictReader((tmp_path / "sums.csv").open()))
    assert {row["tool"] for row in rows} == {"tool_0", "tool_1"}
    assert sum(int(row["requests"]) for row in rows) == len(server.requests) == 14
    assert sum(int(row["prompt_tokens"]) for row in rows) == sum(r.prompt_tokens for r in server.requests)
    total = json.loads(toolmem("ledger", "--json").out)["total"]
    assert total[0]["cost"] == pytest.approx(
        sum(r.prompt_tokens * 0.0008 + r.completion_tokens * 0.002 for r in server.requests) / 1000
    )
    today = rows and json.loads(toolmem("ledger", "--by", "day", "--json").out)["sums"][0]["day"]
    assert json.loads(toolmem("ledger", "--since", today, "--until", today, "--json").out)["sums"]
    assert json.loads(toolmem("ledger", "--until", "2020-01-01", "--json").out)["sums"] == []


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--by", "modle"], "modle"),
        (["--since", "yesterday"], "yesterday"),
        (["--reports", "nosuch"], "nosuch"),
        (["llm.default.backend=dashscop"], "dashscope"),
    ],
)
def test_a_ledger_that_cannot_be_shown_is_refused(toolmem, arguments, named):
    ran = toolmem("ledger", *arguments)
    assert ran.code == 2
    assert named in ran.err


# ---------------------------------------------------------------- testing serve


def serving(tmp_path, *arguments):
    return subprocess.Popen(
        [sys.executable, "-m", "toolmem", "testing", "serve", *arguments],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def chat(url, prompt="hello"):
    """The status of one request."""
    body = json.dumps({"model": "qwen-plus", "messages": [{"role": "user", "content": prompt}]}).encode()
    headers = {"Authorization": "Bearer sk-x", "Content-Type": "application/json"}
    try:
        with urllib.request.urlopen(urllib.request.Request(f"{url}/chat/completions", body, headers)) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def test_the_loopback_server_prints_its_addresses_and_faults_take_turns(tmp_path):
    arguments = ["--port", "0", "--fail-every", "2", "--fault", "unavailable", "--fault", "throttled"]
    process = serving(tmp_path, *arguments)
    dashscope, openai = process.stdout.readline().strip(), process.stdout.readline().strip()
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/api/v1", dashscope)
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/compatible-mode/v1", openai)
    assert [chat(openai)[0] for _ in range(8)] == [200, 503, 200, 429, 200, 503, 200, 429]
    assert chat(openai, "你好")[1]["usage"]["prompt_tokens"] == 1
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 130
    assert out == ""
    assert "served 9 requests, 4 of them failed on purpose" in err
    assert "Traceback" not in err


def test_the_loopback_server_stops_in_an_orderly_way_and_refuses_a_port_that_is_taken(tmp_path):
    process = serving(tmp_path, "--port", "0", "--key", "sk-right")
    url = process.stdout.readline().strip()
    port = url.split(":")[2].split("/")[0]
    process.stdout.readline()
    taken = serving(tmp_path, "--port", port)
    _, err = taken.communicate(timeout=300)
    assert taken.returncode == 2
    assert port in err
    assert chat(url.replace("/api/v1", "/compatible-mode/v1"))[0] == 401
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=300)
    assert process.returncode == 0
    with socket.create_server(("127.0.0.1", int(port))):
        pass


def test_an_unknown_fault_is_refused_and_the_known_ones_are_named(toolmem):
    ran = toolmem("testing", "serve", "--fault", "throtled")
    assert ran.code == 2
    assert "throttled" in ran.err
    assert all(name in ran.err for name in FAULTS)


@pytest.mark.parametrize("command", [["judge", "compare"], ["ledger"], ["testing", "serve"], ["evaluate"]])
def test_help_shows_examples(toolmem, command):
    shown = toolmem(*command, "--help")
    assert shown.code == 0
    assert f"toolmem {' '.join(command)}" in shown.out
