"""The folder of an evaluation: what in it is the evaluation's own, and what is left alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from toolmem.errors import RequestError
from toolmem.research.evaluation import evaluate, folder
from toolmem.research.report import write_tables


@pytest.fixture
def calls(tmp_path: Path) -> Path:
    path = tmp_path / "calls.jsonl"
    records = [{"tool_name": f"tool_{n % 2}", "input": {"n": n}, "output": f"[{n}]"} for n in range(6)]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


@pytest.fixture
def without_page(monkeypatch):
    """The tables are written and the page is not made: it takes seconds, and its rules are the tables'."""

    def write(evaluation, out):
        write_tables(evaluation, out)
        return out / "report.html"

    monkeypatch.setattr("toolmem.research.evaluation.run.write_report", write)


FILES = ["report.html", "summary.json", "calls.csv", "tools.csv", "skips.csv", "errors.csv", "claims.csv"]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("text", ["mine\n", "a,b\n1,2\n", '{"mine": 1}', "<html><title>mine</title></html>", "\x00\n"])
def test_a_file_that_no_evaluation_wrote_is_refused_before_anything_is_judged(tmp_path, calls, name, text):
    out = tmp_path / "report"
    out.mkdir()
    (out / name).write_text(text)
    with pytest.raises(RequestError, match=rf"out: .*{name} was not written by an evaluation.*--force"):
        evaluate(calls, out)
    assert {path.name: path.read_text() for path in out.iterdir()} == {name: text}


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo])
def test_what_is_no_file_is_not_waited_for(tmp_path, calls, make):
    out = tmp_path / "report"
    out.mkdir()
    make(out / "summary.json")
    with pytest.raises(RequestError, match="was not written by an evaluation"):
        evaluate(calls, out)


@pytest.mark.usefixtures("without_page")
def test_force_overwrites_it(tmp_path, calls):
    (tmp_path / "report").mkdir()
    (tmp_path / "report" / "calls.csv").write_text("mine\n")
    (tmp_path / "report" / "notes.txt").write_text("mine\n")
    evaluate(calls, tmp_path / "report", force=True)
    assert (tmp_path / "report" / "calls.csv").read_text().startswith("row,tool_name,")
    assert (tmp_path / "report" / "notes.txt").read_text() == "mine\n"


def test_its_own_report_is_written_again_and_what_a_killed_run_left(tmp_path, calls):
    out = tmp_path / "report"
    evaluate(calls, out)
    assert sorted(path.name for path in out.iterdir()) == sorted([*FILES, "memory.db"])
    evaluate(calls, out)
    for name in FILES:
        (out / name).write_bytes((out / name).read_bytes()[: 0 if name == "tools.csv" else 1200])
    (out / "summary.json").unlink()
    folder.refuse_foreign(out)


def test_the_command_refuses_with_exit_code_2_and_names_the_remedy(tmp_path, calls):
    (tmp_path / "report").mkdir()
    (tmp_path / "report" / "summary.json").write_text("{}")
    command = [sys.executable, "-m", "toolmem", "evaluate", "--input", str(calls)]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 2
    assert "choose another folder (--out), or overwrite what it holds (--force)" in ran.stderr
    assert not (tmp_path / "report" / "memory.db").exists()


def memory(make_app, out: Path):
    return make_app(store=str(out.relative_to(out.parent) / "memory.db"))


@pytest.mark.usefixtures("without_page")
def test_an_evaluation_works_in_the_default_workspace_and_goes_on_there(tmp_path, calls, make_app):
    out = tmp_path / "report"
    for _ in range(2):
        assert evaluate(calls, out).workspace == "default"
    with memory(make_app, out) as app:
        assert app.run("retrieve_tool_memory", workspace_id="default", tool_names="tool_0,tool_1").success
        assert app.call(_workspaces(app)) == ["default"]


async def _workspaces(app) -> list[str]:
    return await (await app.services.store_named()).workspaces()


@pytest.mark.usefixtures("without_page")
def test_a_memory_of_the_same_workspace_that_no_evaluation_made_is_left_alone(tmp_path, calls, make_app):
    (tmp_path / "report").mkdir()
    with memory(make_app, tmp_path / "report") as app:
        app.run("add_tool_call_result", workspace_id="default", tool_call_results=[{"tool_name": "t", "output": "1"}])
    with pytest.raises(RequestError, match="holds a memory that no evaluation made"):
        evaluate(calls, tmp_path / "report")
    with memory(make_app, tmp_path / "report") as app:
        assert app.run("retrieve_tool_memory", workspace_id="default", tool_names="t").success


@pytest.mark.usefixtures("without_page")
@pytest.mark.parametrize("workspace", ["default", "team"])
def test_calls_that_an_agent_adds_to_the_memory_of_a_report_are_not_removed(tmp_path, calls, make_app, workspace):
    evaluate(calls, tmp_path / "report")
    with memory(make_app, tmp_path / "report") as app:
        app.run("add_tool_call_result", workspace_id=workspace, tool_call_results=[{"tool_name": "t", "output": "1"}])
    with pytest.raises(RequestError, match=f"no evaluation made \\(workspace '{workspace}'\\)"):
        evaluate(calls, tmp_path / "report")
    with memory(make_app, tmp_path / "report") as app:
        assert app.run("retrieve_tool_memory", workspace_id=workspace, tool_names="t").success


@pytest.mark.usefixtures("without_page")
def test_an_evaluation_that_was_cut_off_leaves_its_own_store(tmp_path, calls, make_app, monkeypatch):
    def interrupted(*_):
        raise RuntimeError

    monkeypatch.setattr("toolmem.research.evaluation.evaluator.Evaluator._evaluation", interrupted)
    with pytest.raises(RuntimeError):
        evaluate(calls, tmp_path / "report")
    monkeypatch.undo()
    os.chdir(tmp_path)
    monkeypatch.setattr("toolmem.research.evaluation.run.write_report", lambda *_: None)
    assert evaluate(calls, tmp_path / "report").workspace == "default"
