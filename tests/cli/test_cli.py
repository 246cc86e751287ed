"""The command line, run as its users run it: in processes of its own; `here` where the process is not the point."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from toolmem.cli import main


def toolmem(
    *arguments: str, cwd: Path, stdin: str | None = None, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "toolmem", *arguments],
        cwd=cwd,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **(env or {})},
        check=False,
    )


@pytest.fixture
def here(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """The same in this process, in the test's folder."""

    def run(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        with pytest.raises(SystemExit) as left:
            main(arguments)
        shown = capsys.readouterr()
        return subprocess.CompletedProcess(arguments, int(left.value.code or 0), shown.out, shown.err)

    return run


def request_of(records: Sequence[dict[str, Any]], **more: Any) -> str:
    return json.dumps({"workspace_id": "team", "tool_call_results": list(records), **more})


GOOD = {"tool_name": "search", "input": {"q": "a"}, "output": "[1]", "success": True}


def test_help_shows_every_command_with_examples(here, tmp_path):
    shown = toolmem("--help", cwd=tmp_path)
    assert shown.returncode == 0
    for word in ("evaluate", "run", "config", "Examples"):
        assert word in shown.stdout
    for command in (["evaluate"], ["run"], ["config", "check"], ["config", "show"]):
        helped = here(*command, "--help")
        assert helped.returncode == 0
        assert f"toolmem {' '.join(command)}" in helped.stdout


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(["config", "check"], id="config"),
        pytest.param(["run", "add_tool_call_result"], id="run"),
        pytest.param(["evaluate", "--limit", "3"], id="evaluate", marks=pytest.mark.slow),
        pytest.param(["mcp"], id="mcp"),
    ],
)
def test_a_model_that_is_named_and_not_asked_is_told_once(command, tmp_path):
    stdin = request_of([GOOD]) if command[0] == "run" else ""
    ran = toolmem(*command, "llm.default.model_name=qwen-plus", cwd=tmp_path, stdin=stdin)
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr.count("no model is asked") == 1
    assert "add llm.default.backend=dashscope or llm.default.backend=openai_compatible" in ran.stderr


def test_run_prints_the_response_alone_on_stdout(tmp_path):
    (tmp_path / "request.json").write_text(request_of([GOOD]))
    ran = toolmem("run", "add_tool_call_result", "--request", "request.json", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["metadata"]["evaluation"]["evaluated"] == 1
    assert (tmp_path / ".toolmem" / "memory.db").is_file()


def test_run_reads_stdin_and_exits_1_where_a_part_failed(tmp_path):
    ran = toolmem("run", "add_tool_call_result", "--request", "-", cwd=tmp_path, stdin=request_of([GOOD, {}]))
    assert ran.returncode == 1
    assert json.loads(ran.stdout)["metadata"]["partial"] is True


def test_a_named_tool_that_is_not_there_exits_1(tmp_path):
    ran = toolmem("run", "retrieve_tool_memory", "--workspace", "team", cwd=tmp_path, stdin='{"tool_names": "nosuch"}')
    assert ran.returncode == 1
    assert json.loads(ran.stdout)["metadata"]["not_found"] == ["nosuch"]


@pytest.mark.parametrize(
    ("arguments", "stdin", "named"),
    [
        (["run", "add_tool_call_result"], "{", "line 1"),
        (["run", "add_tool_call_result"], "[]", "object"),
        (["run", "add_tool_call_result"], '{"tool_call_results": []}', "workspace_id"),
        (["run", "nosuch_flow"], "{}", "nosuch_flow"),
        (["run", "add_tool_call_result", "--request", "nofile.json"], "", "nofile.json"),
        (["run", "retrieve_tool_memory", "op.nosuch.params.x=1"], "{}", "nosuch"),
        (["config", "check", "op.summary_tool_memory_op.params.recent_cal_count=1"], "", "recent_call_count"),
        (["config", "check", "llm.default.backend=dashscop"], "", "dashscope"),
        (["config", "check", "nonsense"], "", "nonsense"),
        (["config", "check", "--config", "nofile.yaml"], "", "nofile.yaml"),
        (["evaluate", "--input", "nofile.jsonl"], "", "nofile.jsonl"),
        (["evaluate", "--format", "csv"], "", "csv"),
    ],
)
def test_bad_input_is_refused_with_exit_code_2_and_named(here, tmp_path, arguments, stdin, named):
    ran = here(*arguments, stdin=stdin)
    assert ran.returncode == 2, ran.stderr
    assert named in ran.stderr
    assert "Traceback" not in ran.stderr
    assert ran.stdout == ""
    assert not (tmp_path / "report").exists()


def test_overrides_may_carry_dashes_and_config_is_a_file(tmp_path):
    (tmp_path / "my.yaml").write_text("op:\n  summary_tool_memory_op:\n    params:\n      recent_call_count: 12\n")
    shown = toolmem(
        "config",
        "show",
        "--json",
        "config=my.yaml",
        "--op.parse_tool_call_result_op.params.max_history_tool_call_cnt=50",
        cwd=tmp_path,
    )
    assert shown.returncode == 0, shown.stderr
    values = {row["name"]: row for row in json.loads(shown.stdout)}
    window = values["op.parse_tool_call_result_op.params.max_history_tool_call_cnt"]
    assert (str(window["value"]), "override" in window["origin"]) == ("50", True)
    recent = values["op.summary_tool_memory_op.params.recent_call_count"]
    assert str(recent["value"]) == "12"
    assert "my.yaml" in recent["origin"]


def test_config_check_finds_all_problems_at_once_and_config_show_hides_secrets(tmp_path):
    checked = toolmem(
        "config",
        "check",
        "op.summary_tool_memory_op.params.recent_call_count=0",
        "op.parse_tool_call_result_op.params.max_history_tool_call_cnt=many",
        cwd=tmp_path,
    )
    assert checked.returncode == 2
    assert "recent_call_count" in checked.stderr
    assert "max_history_tool_call_cnt" in checked.stderr
    shown = toolmem("config", "show", "llm.default.params.api_key=sk-very-secret", cwd=tmp_path)
    assert "sk-very-secret" not in shown.stdout + shown.stderr
    assert "***" in shown.stdout


def write_calls(path: Path, count: int) -> None:
    with path.open("w") as out:
        for n in range(count):
            failed = n % 4 == 0
            call = {
                "tool_name": f"tool_{n % 3}",
                "input": {"n": n, "mode": "bad" if failed else "good"},
                "output": "Error: mode 'bad' is not supported" if failed else f"[{n}]",
                "success": not failed,
                "create_time": f"2026-03-01T{n // 60:02}:{n % 60:02}:00+00:00",
            }
            out.write(json.dumps(call) + "\n")


@pytest.mark.slow
def test_why_a_model_gave_no_verdict_is_said_with_its_count(tmp_path):
    write_calls(tmp_path / "calls.jsonl", 6)
    ran = toolmem(
        *("evaluate", "--input", "calls.jsonl", "--out", "out"),
        *("llm.default.backend=dashscope", "llm.default.params.api_key=any-text", "llm.default.params.max_retries=0"),
        *("llm.default.params.base_url=http://127.0.0.1:9/api/v1", "llm.default.model_name=qwen-plus"),
        *("op.parse_tool_call_result_op.params.evaluation_sleep_interval=0",),
        cwd=tmp_path,
    )
    assert ran.returncode == 1
    assert "6 records failed; out/summary.json names them" in ran.stderr
    assert "most of all (6 of 6): dashscope/qwen-plus: no connection (" in ran.stderr
    assert "127.0.0.1:9" in ran.stderr


def test_evaluate_writes_the_page_and_the_tables(tmp_path):
    write_calls(tmp_path / "calls.jsonl", 60)
    ran = toolmem("evaluate", "--input", "calls.jsonl", "--out", "out", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    out = tmp_path / "out"
    page = (out / "report.html").read_text()
    assert "offline/rule_based_check" in page
    rows = list(csv.DictReader((out / "calls.csv").open()))
    assert list(rows[0]) == [
        "row",
        "tool_name",
        "success",
        "execution_failed",
        "score",
        "evaluation_status",
        "judge",
        "evaluation",
        "id",
        "input",
    ]
    assert json.loads(rows[1]["input"]) == {"n": 1, "mode": "good"}
    assert [row["row"] for row in rows] == [str(n) for n in range(60)]
    assert [row["execution_failed"] for row in rows[:5]] == ["true", "false", "false", "false", "true"]
    tools = list(csv.DictReader((out / "tools.csv").open()))
    assert list(tools[0])[:7] == ["tool_name", "calls", "failures", "success_rate", "low", "high", "avg_score"]
    skips = list(csv.DictReader((out / "skips.csv").open()))
    assert {row["action"] for row in skips} == {"summarized", "skipped"}
    assert json.loads((out / "summary.json").read_text())
    assert (out / "memory.db").is_file()
    assert "report.html" in ran.stdout


@pytest.mark.slow
def test_an_evaluation_goes_on_in_its_folder_and_answers_in_json(tmp_path):
    write_calls(tmp_path / "calls.jsonl", 60)
    first = toolmem("evaluate", "--input", "calls.jsonl", "--out", "out", cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    again = toolmem("evaluate", "--input", "calls.jsonl", "--out", "out", "--json", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)


def test_an_interrupted_run_exits_130_and_the_store_opens_clean(tmp_path):
    records = [{**GOOD, "input": {"q": f"{n} " + "word " * 400}, "output": "line\n" * 3000} for n in range(6000)]
    (tmp_path / "request.json").write_text(request_of(records))
    process = subprocess.Popen(
        [sys.executable, "-m", "toolmem", "run", "add_tool_call_result", "--request", "request.json"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 300
    while not (tmp_path / ".toolmem" / "memory.db").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=300)
    assert process.returncode == 130, stderr
    assert "Traceback" not in stderr
    after = toolmem("run", "add_tool_call_result", "--request", "-", cwd=tmp_path, stdin=request_of([GOOD]))
    assert after.returncode == 0, after.stderr


def test_several_processes_on_one_tool_lose_nothing(tmp_path):
    processes = []
    for worker in range(4):
        (tmp_path / f"{worker}.json").write_text(
            request_of([{**GOOD, "input": {"worker": worker, "n": n}} for n in range(10)])
        )
        processes.append(
            subprocess.Popen(
                [sys.executable, "-m", "toolmem", "run", "add_tool_call_result", "--request", f"{worker}.json"],
                cwd=tmp_path,
                stdout=subprocess.DEVNULL,
            )
        )
    assert [process.wait(timeout=300) for process in processes] == [0] * 4
    got = toolmem(
        "run",
        "retrieve_tool_memory",
        cwd=tmp_path,
        stdin='{"workspace_id": "team", "tool_names": "search", "include_calls": true}',
    )
    calls = json.loads(got.stdout)["metadata"]["memory_list"][0]["tool_call_results"]
    assert len({json.dumps(call["input"]) for call in calls}) == 40


def test_an_evaluation_leaves_denied_calls_out_of_its_figures_and_says_so(tmp_path):
    calls = [{"tool_name": "search", "input": {"q": n}, "output": "[1]", "success": True} for n in range(3)]
    calls.append({"tool_name": "search", "input": {}, "output": "Error: toolmem: not run. No.", "success": False})
    source, out = tmp_path / "calls.jsonl", tmp_path / "out"
    source.write_text("".join(json.dumps(call) + "\n" for call in calls), encoding="utf-8")
    ran = toolmem("evaluate", "--input", str(source), "--out", str(out), cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    with (out / "tools.csv").open(encoding="utf-8") as rows:
        (row,) = csv.DictReader(rows)
    assert [row[name] for name in ("calls", "failures", "unknown", "unscored")] == ["3", "0", "0", "0"]
    with (out / "calls.csv").open(encoding="utf-8") as rows:
        recorded = [
            (row["row"], row["evaluation_status"], row["success"], row["score"]) for row in csv.DictReader(rows)
        ]
    assert recorded == [*((str(n), "ok", "true", "1.0") for n in range(3)), ("3", "denied", "", "")]
    assert "1 call denied before running" in (out / "report.html").read_text(encoding="utf-8")
