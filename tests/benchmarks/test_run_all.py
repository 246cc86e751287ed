"""The command that runs the benchmarks: what it writes, and what a quick look leaves alone."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


def contents(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


def test_a_quick_look_prints_its_table_and_leaves_the_results_as_they_are():
    before = contents(BENCHMARKS / "results")
    ran = subprocess.run(
        [sys.executable, str(BENCHMARKS / "run_all.py"), "start_up", "--quick"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert "import toolmem" in ran.stdout
    assert "nothing written" in ran.stdout
    assert contents(BENCHMARKS / "results") == before


@pytest.mark.parametrize("quick", [True, False])
def test_only_a_full_run_is_told_where_to_write(quick, monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import run_all

    command = run_all.command_of("store", quick)
    assert ("--json" in command) is not quick
    assert ("--quick" in command) is quick
    assert quick or command[-1] == str(BENCHMARKS / "results" / "store.json")
