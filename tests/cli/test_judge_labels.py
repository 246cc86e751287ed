"""`toolmem judge label`, `toolmem judge calibrate` and the rates corrected in a report, as they are run."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from toolmem import evaluate
from toolmem.errors import RequestError
from toolmem.research.report import Evaluation, corrected_block
from toolmem.research.report.summary import summary_table


@pytest.fixture
def toolmem(run_command: Callable[..., Any]) -> Callable[..., Any]:
    return run_command


@pytest.fixture
def answering(toolmem: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """The command, with somebody who types these answers."""

    def run(answers: str, *arguments: str) -> Any:
        monkeypatch.setattr("sys.stdin", io.StringIO(answers))
        return toolmem(*arguments)

    return run


@pytest.fixture
def recording(tmp_path: Path) -> str:
    """120 calls of two tools; every fourth failed, and of every twelfth only its user knows."""
    path = tmp_path / "calls.jsonl"
    with path.open("w") as out:
        for n in range(120):
            output = "Error: no such row" if n % 4 == 0 else f"[{n}]"
            when = f"2026-03-01T{n // 60:02}:{n % 60:02}:00+00:00"
            record = {"tool_name": f"tool_{n % 2}", "input": {"n": n}, "output": output, "create_time": when}
            out.write(json.dumps(record) + "\n")
    return str(path)


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def fill(path: Path, worked: Callable[[int], bool]) -> None:
    rows = rows_of(path)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(row | {"label": int(worked(int(row["index"])))} for row in rows)


def truly(index: int) -> bool:
    return index % 4 != 0 and index % 12 != 1


def test_calls_are_drawn_to_be_labelled_and_the_rates_corrected(toolmem, recording, tmp_path):
    labels = tmp_path / "labels.csv"
    ran = toolmem("judge", "label", "--input", recording, "--n", "60", "--out", str(labels))
    assert ran.code == 0, ran.err
    assert "60 calls in" in ran.err
    rows = rows_of(labels)
    assert list(rows[0]) == ["index", "tool_name", "input", "output", "verdict", "label"]
    assert len({row["index"] for row in rows}) == 60
    assert all((row["verdict"] == "0") == (int(row["index"]) % 4 == 0) for row in rows)
    assert {row["label"] for row in rows} == {""}

    early = toolmem("judge", "calibrate", "--input", recording, "--labels", str(labels))
    assert (early.code, "has no label yet" in early.err) == (2, True)

    fill(labels, truly)
    told = toolmem("judge", "calibrate", "--input", recording, "--labels", str(labels))
    assert told.code == 0, told.err
    assert "75 % by the judge, 6" in told.out
    assert "corrected with 60 labels." in told.out
    found = json.loads(toolmem("judge", "calibrate", "--input", recording, "--labels", str(labels), "--json").out)
    assert found["all"]["by_judge"] == 0.75
    assert found["all"]["low"] < 80 / 120 < found["all"]["high"]
    assert found["all"]["labels"] == sum(tool["labels"] for tool in found["tools"]) == 60
    assert {tool["tool_name"] for tool in found["tools"]} == {"tool_0", "tool_1"}
    assert found["all"]["labelled_failed"]["worked"] == 0


def test_labels_are_written_to_and_read_from_one_file_by_default(toolmem, recording, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    missing = toolmem("judge", "calibrate", "--input", recording)
    assert (missing.code, "`toolmem judge label` draws" in missing.err) == (2, True)
    toolmem("judge", "label", "--input", recording, "--n", "20")
    fill(tmp_path / "labels.csv", truly)
    assert "corrected with 20 labels." in toolmem("judge", "calibrate", "--input", recording).out


def test_a_label_changes_no_verdict(toolmem, recording, tmp_path):
    labels = tmp_path / "labels.csv"
    toolmem("judge", "label", "--input", recording, "--n", "20", "--out", str(labels))
    before = [row["verdict"] for row in rows_of(labels)]
    fill(labels, lambda index: False)
    toolmem("judge", "calibrate", "--input", recording, "--labels", str(labels))
    again = tmp_path / "again.csv"
    toolmem("judge", "label", "--input", recording, "--n", "20", "--out", str(again))
    assert [row["verdict"] for row in rows_of(again)] == before


def test_more_calls_are_added_to_those_that_are_labelled(toolmem, recording, tmp_path):
    labels = tmp_path / "labels.csv"
    toolmem("judge", "label", "--input", recording, "--n", "10", "--out", str(labels))
    fill(labels, truly)
    toolmem("judge", "label", "--input", recording, "--n", "15", "--out", str(labels))
    rows = rows_of(labels)
    assert [row["label"] != "" for row in rows] == [True] * 10 + [False] * 5
    ran = toolmem("judge", "label", "--input", recording, "--n", "500", "--out", str(labels))
    assert "120 calls in" in ran.err
    assert "there are no more calls than 120" in ran.err


def test_calls_are_asked_about_one_by_one_and_each_answer_is_kept(answering, recording, tmp_path):
    labels = tmp_path / "labels.csv"
    ask = ("judge", "label", "--input", recording, "--n", "5", "--out", str(labels), "--ask")
    ran = answering("y\nwhat\nn\ns\nq\n", *ask)
    assert ran.code == 0, ran.err
    assert "y, n, s or q" in ran.out
    assert "verdict" not in ran.out
    assert [row["label"] for row in rows_of(labels)] == ["1", "0", "", "", ""]
    answering("1\n", *ask)  # the end of the input ends it
    assert [row["label"] for row in rows_of(labels)] == ["1", "0", "1", "", ""]


def test_what_calls_print_does_not_reach_the_terminal_as_it_is(answering, tmp_path):
    path = tmp_path / "calls.jsonl"
    path.write_text(json.dumps({"tool_name": "t", "output": "\x1b[2Jgone", "create_time": "2026-03-01T00:00:00Z"}))
    labels = str(tmp_path / "labels.csv")
    ran = answering("y\n", "judge", "label", "--input", str(path), "--n", "1", "--out", labels, "--ask")
    assert ran.code == 0, ran.err
    assert "\x1b" not in ran.out


def test_another_file_is_not_written_over(toolmem, recording, tmp_path):
    mine = tmp_path / "mine.csv"
    mine.write_text("name,age\nKim,3\n")
    ran = toolmem("judge", "label", "--input", recording, "--out", str(mine))
    assert (ran.code, "has no column 'index'" in ran.err) == (2, True)
    assert mine.read_text() == "name,age\nKim,3\n"


def test_the_flag_withheld_from_the_judge_is_no_verdict(toolmem, tmp_path):
    path = tmp_path / "calls.jsonl"
    record = {"tool_name": "t", "output": "[1]", "success": False, "create_time": "2026-03-01T00:00:00Z"}
    path.write_text(json.dumps(record))
    for option, verdict in (((), "0"), (("--ignore-success",), "1")):
        labels = tmp_path / f"{verdict}.csv"
        toolmem("judge", "label", "--input", str(path), "--n", "1", "--out", str(labels), *option)
        assert [row["verdict"] for row in rows_of(labels)] == [verdict]


def test_report_summary_and_notebook_show_the_same_corrected_rates(toolmem, recording, tmp_path):
    labels = tmp_path / "labels.csv"
    toolmem("judge", "label", "--input", recording, "--n", "60", "--out", str(labels))
    fill(labels, truly)
    found = json.loads(toolmem("judge", "calibrate", "--input", recording, "--labels", str(labels), "--json").out)
    evaluation = evaluate(recording, tmp_path / "report", labels=labels, say=lambda _: None)
    assert json.loads((tmp_path / "report" / "summary.json").read_text())["corrected"] == found
    sentence = next(note for note in summary_table(evaluation).notes if "corrected with 60 labels" in note)
    assert sentence in (tmp_path / "report" / "report.html").read_text()
    saved = Evaluation.load(evaluation.save(tmp_path / "saved"))
    assert saved.labels == evaluation.labels
    assert sentence in corrected_block(saved).text


def test_labels_of_another_recording_are_refused_before_anything_is_judged(recording, tmp_path):
    labels = tmp_path / "labels.csv"
    labels.write_text("index,tool_name,label\n0,other_tool,1\n")
    with pytest.raises(RequestError, match="were they drawn from another --input"):
        evaluate(recording, tmp_path / "report", labels=labels, say=lambda _: None)
    assert not (tmp_path / "report" / "summary.json").exists()


def test_a_report_without_labels_says_how_to_get_some(recording, tmp_path):
    evaluation = evaluate(recording, tmp_path / "report", say=lambda _: None)
    assert json.loads((tmp_path / "report" / "summary.json").read_text())["corrected"] is None
    assert "toolmem judge label --ask" in corrected_block(evaluation).text
