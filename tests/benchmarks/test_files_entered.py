"""The page that follows one call through the files names those that it goes through."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


def test_a_call_goes_through_the_files_that_the_page_lists(tmp_path):
    target = tmp_path / "now.json"
    command = [sys.executable, str(BENCHMARKS / "files_entered.py"), "--json", str(target)]
    subprocess.run(command, check=True, capture_output=True)
    told = json.loads((BENCHMARKS / "results" / "files_entered.json").read_text(encoding="utf-8"))
    now = json.loads(target.read_text(encoding="utf-8"))
    assert now["files"] == told["files"], (
        f"run {' '.join(command[1:3])} benchmarks/results/files_entered.json, then docs/generate.py"
    )


def test_a_toolmem_from_elsewhere_is_refused_because_no_file_of_it_would_be_counted(tmp_path):
    (tmp_path / "toolmem").mkdir()
    (tmp_path / "benchmarks").mkdir()
    for name in ("files_entered.py", "tables.py"):
        shutil.copy(BENCHMARKS / name, tmp_path / "benchmarks")
    target = tmp_path / "now.json"
    command = [sys.executable, str(tmp_path / "benchmarks" / "files_entered.py"), "--json", str(target)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "toolmem is imported from" in done.stderr
    assert str(tmp_path / "toolmem") in done.stderr
    assert "Traceback" not in done.stderr
    assert "yes" not in done.stdout
    assert not target.exists()
