"""`toolmem ledger --savings`, as it is run."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from typing import Any

import pytest

from toolmem import ToolMemApp
from toolmem.sample import load_records


@pytest.fixture
def toolmem(run_command: Callable[..., Any], monkeypatch, tmp_path) -> Callable[..., Any]:
    monkeypatch.chdir(tmp_path)
    return run_command


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A folder with a memory and the reports of four runs: prompts counted and not sent, some skipped."""
    folder = tmp_path_factory.mktemp("runs")
    settings = [f"vector_store.default.params.path='{folder / 'memory.db'}'", "llm.default.backend=dry_run"]
    records = load_records()[:30]
    tools = sorted({record["tool_name"] for record in records})
    with ToolMemApp(overrides=settings) as app:
        for flow, request in [
            ("add_tool_call_result", {"tool_call_results": records}),
            ("summary_tool_memory", {"tool_names": tools}),
            ("summary_tool_memory", {"tool_names": tools}),
            ("add_tool_call_result", {"tool_call_results": records[:5]}),
        ]:
            run = app.call(app.run_detailed(flow, workspace_id="team", **request))
            run.report.save(folder / "reports")
    return folder


@pytest.fixture
def evaluated(runs):
    """The options of a bill over these runs."""
    return [
        "--reports",
        str(runs / "reports"),
        "--workspace",
        "team",
        f"vector_store.default.params.path={runs}/memory.db",
    ]


def test_the_bill_names_what_was_spent_avoided_and_estimated(toolmem, evaluated):
    ran = toolmem("ledger", "--savings", "--by", "kind", *evaluated)
    assert ran.code == 0, ran.err
    for text in (
        "Spent and avoided",
        "Beside a single pass",
        "Staleness",
        "estimated",
        "an assumption: none was booked",
    ):
        assert text in ran.out


def test_json_csv_and_the_run_reports_agree(toolmem, evaluated, runs, tmp_path):
    found = json.loads(toolmem("ledger", "--savings", "--by", "tool", "--json", "--csv", "bill.csv", *evaluated).out)
    (total,) = found["total"]
    rows = list(csv.DictReader((tmp_path / "bill.csv").open()))
    assert sum(int(row["input_tokens"]) for row in rows) == total["input_tokens"]
    reports = [json.loads(path.read_text()) for path in (runs / "reports").glob("*.json")]
    entries = [entry for report in reports for entry in report["entries"]]
    assert total["input_tokens"] == sum(entry["prompt_tokens"] for entry in entries)
    assert total["requests"] == total["not_sent"] == len(entries)
    saved = sum(op["usage"]["saved_requests"] for report in reports for op in report["ops"])
    judged = [row for report in reports for op in report["ops"] for row in op["details"] if row["kind"] == "judged"]
    assert total["avoided_requests"] == saved + sum(row["reused"] + row["duplicates"] for row in judged)
    assert sum(row["duplicates"] for row in judged) == 5
    assert sum(row["calls"] for row in judged) == sum(row["calls"] for row in found["single_pass"]) == 30
    assert not any(row["estimated"] for row in found["single_pass"])
    assert {row["now"] for row in found["freshness"]} == {0}


def test_a_bill_of_a_time_has_no_bound_beside_it(toolmem, evaluated):
    found = json.loads(toolmem("ledger", "--savings", "--json", "--since", "2020-01-01", *evaluated).out)
    assert found["single_pass"] == []
    assert found["bill"]


def test_without_reports_the_bill_says_what_it_cannot_know(toolmem):
    ran = toolmem("ledger", "--savings")
    assert ran.code == 0
    assert "nothing was asked or avoided" in ran.err
    assert "--reports DIR" in ran.err


def test_a_workspace_without_runs_is_told_from_those_that_have_some(toolmem, runs):
    options = ["--reports", str(runs / "reports"), f"vector_store.default.params.path={runs}/memory.db"]
    ran = toolmem("ledger", "--savings", *options)
    assert ran.code == 0
    assert "'default'; there are run reports" in ran.err
    assert "of 'team': choose by --workspace team" in ran.err
    plain = toolmem("ledger", *options)
    assert "no run report of workspace 'default'" in plain.err
    assert "choose by --workspace team" in plain.err


def test_what_avoided_requests_are_held_against_stands_below(toolmem, evaluated):
    ran = toolmem("ledger", "--savings", *evaluated)
    assert "summarized all its tools" in " ".join(ran.out.split())


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--savings", "--by", "outcome"], "outcome"),
        (["--savings", "--by", "reason"], "reason"),
        (["--savings", "--reports", "nosuch"], "nosuch"),
    ],
)
def test_a_bill_that_cannot_be_drawn_up_is_refused(toolmem, arguments, named):
    ran = toolmem("ledger", *arguments)
    assert ran.code == 2
    assert named in ran.err
