"""A figure on the README comes from a result of this tree."""

import json
import re
import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.fixture
def benchmark(monkeypatch):
    monkeypatch.setattr(sys, "path", [str(ROOT / "benchmarks"), *sys.path])
    return lambda name: runpy.run_path(str(ROOT / "benchmarks" / f"{name}.py"))


def test_the_readme_says_what_was_measured(benchmark):
    section = README.partition("## Measured")[2].partition("\n## ")[0]
    items = [" ".join(item.split()) for item in re.split(r"^\* ", section, flags=re.MULTILINE)[1:]]
    assert items == [line.removeprefix("* ") for line in benchmark("figures")["lines"]()]


def test_its_other_figures_are_among_the_results():
    """Shares such as "26 of 77"; sizes and times of other kinds are none of a benchmark."""
    results = "".join(path.read_text() for path in (ROOT / "benchmarks" / "results").glob("*.json"))
    told = re.findall(r"(\d+) of (\d+) labelled", README)
    assert told
    assert all(f'"{number}"' in results for pair in told for number in pair)


def test_each_benchmark_has_a_result_with_commit_date_and_machine(benchmark):
    for name in benchmark("run")["ALL"]:
        told = json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text())
        assert told["name"] == name
        assert told["commit"] and told["machine"] and re.fullmatch(r"\d{4}-\d\d-\d\d", told["date"])
        for table in told["tables"]:
            assert {len(row) for row in table["rows"]} == {len(table["columns"])}
