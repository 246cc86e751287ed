"""The cost benchmark: its streams, its figures and tables, and what of it is kept in the repository."""

from __future__ import annotations

import importlib
import json
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results" / "summarization_cost.json"


@pytest.fixture(scope="module")
def modules():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "benchmarks"))
        yield {name: importlib.import_module(name) for name in ("cost_streams", "cost_runs", "summarization_cost")}


@pytest.fixture(scope="module")
def measured():
    if not RESULTS.is_file():
        pytest.skip("no results of the benchmark are kept")
    return json.loads(RESULTS.read_text(encoding="utf-8"))


@given(
    st.sampled_from(["steady", "bursty", "one hot tool"]), st.integers(1, 50), st.integers(1, 200), st.integers(0, 9)
)
def test_every_arrival_is_of_one_of_the_tools_and_a_seed_repeats_it(modules, pattern, tools, calls, seed):
    arrivals = modules["cost_streams"].arrivals
    found = arrivals(pattern, tools, calls, seed)
    assert len(found) == calls
    assert set(found) <= set(range(tools))
    assert found == arrivals(pattern, tools, calls, seed)


def test_the_patterns_are_what_they_are_called(modules):
    arrivals = modules["cost_streams"].arrivals
    steady, bursty, hot = (arrivals(pattern, 10, 2000, 1) for pattern in modules["cost_streams"].PATTERNS)
    assert set(Counter(steady).values()) == {200}
    changes = sum(a != b for a, b in pairwise(bursty))
    assert 0.04 < changes / 2000 < 0.12
    assert 0.75 < Counter(hot)[0] / 2000 < 0.85


def test_one_recording_is_measured_whole(modules):
    runs = modules["cost_runs"]
    found = runs.recording("sample", "sql_query", 24)
    rows = {row["policy"]: row for row in found["policies"]}
    assert list(rows) == [*runs.BASELINES, *(way.name for way in runs.WAYS)]
    assert rows["no guidance"]["cost"] == rows["counting only"]["cost"] == 0
    assert rows["always fresh"]["summaries"] == 24
    assert rows["smart skip, 10 new calls"]["summaries"] == 3
    assert rows["smart skip, 10 new calls"]["most_waiting"] == 10
    assert rows["always fresh"]["cost"] < rows["always fresh"]["uncached_cost"]
    assert rows["always fresh"]["than_always_fresh"]["difference"] == 0
    (table,) = [modules["summarization_cost"]._policies(found)]
    assert [row[0] for row in table.rows] == list(rows)


def test_the_kept_tables_are_those_of_the_kept_rows(modules, measured):
    made = [
        {"title": table.title, "columns": list(table.columns), "rows": [list(row) for row in table.rows]}
        for table in modules["summarization_cost"].tables(measured)
    ]
    assert made == measured["tables"]


def test_the_kept_figures_say_truly_whether_a_goal_was_met(measured):
    for figure in measured["figures"]:
        goal = figure["goal"]
        assert figure["met"] == ("" if goal is None else "yes" if figure["value"] <= goal else "NO")


def test_the_picture_of_the_documentation_is_there_with_the_results(modules, measured):
    assert measured["recordings"]
    assert modules["summarization_cost"].FIGURE.is_file()
