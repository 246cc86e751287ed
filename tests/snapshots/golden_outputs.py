"""What an evaluation writes, as fingerprints per file, tool and column: which of them a change touches is seen at once.

python tests/snapshots/golden_outputs.py          print what changed
python tests/snapshots/golden_outputs.py --write  write it down, where the change is meant

The project's own sample always; the public recordings where their folder is there (they are not part of the project,
so that nothing of them but fingerprints and counts stands here).
"""

from __future__ import annotations

import csv
import hashlib
import json
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

from toolmem import evaluate

FILE = Path(__file__).parent / "golden_outputs.json"
SHARED = Path(__file__).resolve().parents[3] / "shared" / "data" / "recorded_calls"
DATASETS = ("tau_bench", "tau2_airline", "toolbench", "intercode", "openhands")
FIGURES = ("judge_agreement", "instructions")  # benchmarks whose figures are counts
TABLES = ("calls.csv", "claims.csv", "tools.csv", "skips.csv", "errors.csv")
_MASKED = re.compile(r"\[masked:[0-9a-f]{6}\]")
_MOMENTARY = {"started", "seconds", "store", "phases", "toolmem", "inputs"}  # of a run, not of its result


def outputs(recordings: Path = SHARED) -> dict[str, Any]:
    """By recording: the tables' fingerprints, and summary.json as it is but for times and places."""
    found = {"sample": evaluated(None)}
    for name in DATASETS:
        path = recordings / f"{name}.calls.jsonl.gz"
        if path.is_file():
            found[name] = evaluated(path)
    return found | ({name: figures(name) for name in FIGURES} if recordings.is_dir() else {})


def evaluated(recording: Path | None) -> dict[str, Any]:
    """One recording, judged and summarized offline into a folder that is gone afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        evaluate([] if recording is None else recording, folder, say=lambda _: None)
        summary = json.loads((Path(folder) / "summary.json").read_text("utf-8"))
        tables = {name: table(Path(folder) / name) for name in TABLES}
    return {"summary.json": _lasting(summary), **tables}


def figures(benchmark: str) -> list[dict[str, Any]]:
    """The rows of a benchmark but for those of its baselines and the times it took."""
    script = Path(__file__).parents[2] / "benchmarks" / f"{benchmark}.py"
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "figures.json"
        subprocess.run([sys.executable, script, "--json", file], check=True, stdout=subprocess.DEVNULL)
        rows = json.loads(file.read_text("utf-8"))
    ours = [row for row in rows if row.get("judge", row.get("detector")) in ("rule-based check", "ours")]
    return [{key: value for key, value in row.items() if key != "seconds"} for row in ours]


def table(path: Path) -> dict[str, Any]:
    """Rows, and by tool a fingerprint of each column."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    columns: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        for column, value in row.items():
            columns[row.get("tool_name") or "-"][column].append(value)
    return {
        "rows": len(rows),
        "by tool": {
            tool: {column: fingerprint(values) for column, values in sorted(each.items()) if column != "seconds"}
            for tool, each in sorted(columns.items())
        },
    }


def fingerprint(values: list[str]) -> str:
    """The marks of secrets are those of one store, so they count as one mark."""
    return hashlib.sha256(_MASKED.sub("[masked]", "\0".join(values)).encode()).hexdigest()[:10]


def _lasting(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _lasting(each) for key, each in value.items() if key not in _MOMENTARY}
    return [_lasting(each) for each in value] if isinstance(value, list) else value


if __name__ == "__main__":
    now = outputs()
    if "--write" in sys.argv:
        FILE.write_text(json.dumps(now, indent=1, ensure_ascii=False, sort_keys=True) + "\n", encoding="utf-8")
    else:
        from differences import differences

        print("\n".join(differences(json.loads(FILE.read_text("utf-8")), now)) or "nothing changed")
