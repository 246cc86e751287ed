"""The CSV files and summary.json: exact, readable by any CSV reader, true to what was recorded."""

from __future__ import annotations

import csv
import json
import math

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolmem.research.report import write_tables
from toolmem.research.report.csv_files import write_csv

ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)


def read(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_calls_csv_has_one_row_per_recorded_call_in_input_order(build, tmp_path):
    evaluation = build(per_tool=50)
    rows = read(write_tables(evaluation, tmp_path)["calls.csv"])
    expected = ["row", "tool_name", "success", "execution_failed", "score", "evaluation_status", "judge", "evaluation"]
    assert list(rows[0])[: len(expected)] == expected
    assert [int(row["row"]) for row in rows] == list(range(150))
    words = {True: "true", False: "false", None: ""}
    for row, call in zip(rows, evaluation.calls, strict=True):
        assert row["tool_name"] == call.tool_name
        assert row["success"] == words[call.success]
        assert row["execution_failed"] == words[call.execution_failed]
        assert row["score"] == ("" if call.score is None else str(call.score))
        assert row["evaluation_status"] == call.evaluation_status


def test_a_claim_can_be_checked_from_the_csv_files_alone(build, tmp_path):
    evaluation = build(per_tool=50)
    paths = write_tables(evaluation, tmp_path)
    rows = read(paths["calls.csv"])
    assert list(rows[0])[-2:] == ["id", "input"]
    assert [json.loads(row["input"]) for row in rows] == [call.input for call in evaluation.calls]
    by_id = {row["id"]: row for row in rows}
    assert len(by_id) == len(rows)
    claims = [claim for memory in evaluation.memories for claim in memory.metadata["claims"]]
    cited = [[by_id[call_id] for call_id in claim["call_ids"]] for claim in claims]
    assert [[row["row"] for row in found] for found in cited] == [
        row["rows"].split() for row in read(paths["claims.csv"])
    ]
    assert any(cited)


def test_a_text_as_input_is_json_text_and_a_call_that_was_not_stored_has_no_id(build, tmp_path):
    evaluation = build()
    call = evaluation.calls[0].model_copy(update={"input": 'say "hi",\nÄ', "id": None})
    rows = read(write_tables(build(calls=[call]), tmp_path)["calls.csv"])
    assert (json.loads(rows[0]["input"]), rows[0]["id"]) == ('say "hi",\nÄ', "")


def test_tools_csv_begins_with_the_promised_columns(build, tmp_path):
    rows = read(write_tables(build(), tmp_path)["tools.csv"])
    assert list(rows[0])[:7] == ["tool_name", "calls", "failures", "success_rate", "low", "high", "avg_score"]
    assert sorted(row["tool_name"] for row in rows) == ["search", "shell", "sql"]
    for row in rows:
        assert float(row["low"]) <= float(row["success_rate"]) <= float(row["high"])


def test_skips_csv_says_what_each_run_did_with_each_tool(build, tmp_path):
    rows = read(write_tables(build(), tmp_path)["skips.csv"])
    assert [row["action"] for row in rows] == ["summarized"] * 3 + ["skipped"] * 3 + ["summarized"] * 3
    assert {row["estimated"] for row in rows} == {"true"}
    assert sum(int(row["saved_prompt_tokens"]) for row in rows) == 3 * 655


def test_summary_json_is_strict_json_with_the_documented_keys(build, tmp_path):
    text = write_tables(build(), tmp_path)["summary.json"].read_text(encoding="utf-8")
    found = json.loads(text, parse_constant=lambda name: math.nan)
    assert "NaN" not in text
    assert set(found) >= {
        "source",
        "judge",
        "calls",
        "errors",
        "summaries",
        "phases",
        "failures",
        "settings",
        "backend",
    }
    assert found["calls"]["calls"] == 60
    assert [run["run"] for run in found["summaries"]] == ["all new", "nothing new", "newest 5 %"]
    assert found["summaries"][1]["saved_prompt_tokens"] == 1965


def test_an_evaluation_without_calls_still_writes_every_file(build, tmp_path):
    paths = write_tables(build(calls=[], memories=[], summaries=[]), tmp_path)
    assert read(paths["calls.csv"]) == read(paths["tools.csv"]) == read(paths["claims.csv"]) == []
    assert json.loads(paths["summary.json"].read_text())["calls"]["success_rate"] is None


@given(texts=st.lists(ANY_TEXT, min_size=1, max_size=6))
def test_any_text_comes_back_from_a_csv_file_but_for_the_apostrophe_before_a_formula(texts, tmp_path_factory):
    path = tmp_path_factory.mktemp("csv") / "x.csv"
    write_csv(pd.DataFrame({"number": range(len(texts)), "text": pd.array(texts, dtype=object)}), path)
    rows = read(path)
    for row, text in zip(rows, texts, strict=True):
        assert row["text"] == text or (row["text"] == f"'{text}" and set(text) & set("=+-@＝＋－＠"))
        assert not row["text"].lstrip().startswith(("=", "+", "-", "@")) or isinstance(float(row["text"]), float)
    assert [row["number"] for row in rows] == [str(n) for n in range(len(texts))]


def test_pandas_reads_a_lone_carriage_return_as_one_row(tmp_path):
    path = tmp_path / "x.csv"
    write_csv(pd.DataFrame({"text": ["a\rb", "=1+1", 'say "hi", twice']}), path)
    assert list(pd.read_csv(path)["text"]) == ["a\rb", "'=1+1", 'say "hi", twice']


@pytest.mark.parametrize("dataset", ["tau_bench", "tau2_airline", "toolbench", "intercode", "openhands"])
def test_recorded_calls_are_all_in_the_files_and_add_up(recorded, tmp_path, dataset):
    evaluation = recorded(dataset)
    paths = write_tables(evaluation, tmp_path)
    rows, tools = read(paths["calls.csv"]), read(paths["tools.csv"])
    assert [row["tool_name"] for row in rows] == [call.tool_name for call in evaluation.calls]
    assert sum(int(tool["calls"]) for tool in tools) == len(rows)
    assert sum(int(tool["failures"]) for tool in tools) == sum(row["success"] == "false" for row in rows) > 0
    assert sum(int(row["calls"]) for row in read(paths["errors.csv"])) == sum(row["success"] == "false" for row in rows)


FORMULAS = [
    *("=1+1", "+1+1", "-1+1", "@SUM(A1)", "=cmd|' /C calc'!A0", "\t=1+1", "\r=1+1", " =1+1", "\n=1+1", "＝1+1"),
    *("=HYPERLINK(1)", "\ufeff=1+1", "-", "+", "=", "-2+3"),
]


def test_no_text_of_a_recording_is_a_formula_in_any_csv(build, tmp_path):
    calls = build(tools=FORMULAS, per_tool=12).calls
    calls = [
        call.model_copy(
            update={"input": formula, "output": formula, "evaluation": formula, "error_class": formula, "id": formula}
            | {"success": False, "execution_failed": True}
        )
        for call, formula in zip(calls, FORMULAS * len(calls), strict=False)
    ]
    paths = write_tables(build(calls=calls), tmp_path)
    for name in ("calls.csv", "tools.csv", "skips.csv", "errors.csv", "claims.csv"):
        cells = [cell for row in read(paths[name]) for cell in row.values()]
        acting = [cell for cell in cells if cell.strip("\t\r\n \ufeff").startswith(("=", "+", "@", "＝"))]
        assert acting == []
        assert all(cell.replace(".", "").isdigit() for cell in (c.lstrip("-") for c in cells if c.startswith("-")))
    assert {row["tool_name"] for row in read(paths["tools.csv"])} == {"'" + formula for formula in FORMULAS}


def test_numbers_and_other_texts_are_written_as_they_are(tmp_path):
    texts = ["-1", "+2.5", "-1e-5", "a=b", "'quoted", "x;=1+1", "查询天气", "#1"]
    write_csv(pd.DataFrame({"text": texts}), tmp_path / "t.csv")
    assert [row["text"] for row in read(tmp_path / "t.csv")] == texts
    assert '"x;=1+1"' in (tmp_path / "t.csv").read_text(encoding="utf-8")
