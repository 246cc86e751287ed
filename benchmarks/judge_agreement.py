"""How well the rule-based check tells failed calls from the output alone, beside two one-line judges.

    python benchmarks/judge_agreement.py [--data DIR] [--json FILE] [--quick]

For each public recording the `success` flag is withheld and then used as the label: failed = not success, predicted =
the verdict's `execution_failed`. Datasets are never pooled. The two one-line judges, letter case ignored: the first
letters of the output are error, traceback or malformed (what stands before the first letter, as in `{"error"`, is left
out); the first 1,000 characters hold one of error, traceback, exception, no such file, not found, invalid, cannot,
denied, failed.

The interval of the balanced accuracy is a percentile bootstrap over calls (95 %, seeded). Some failures print nothing
(a search without a match exits with 1): no judge of outputs can see them, so their number stands beside the misses.
`soft_error` and `spurious_error` are labels of the toolbench recording (see its README).

The last table is over outputs written by hand for the tests, failures and tempting clean ones. The rules were tuned on
`tuned`; `held_out` was only counted until the last round. `second`, `third` and `fourth` were each written against the
rules as they stood and were tuned on afterwards; at first sight the check got sensitivity 0.76, 0.75, 0.91 and
specificity 0.72, 0.83, 0.83 on them: the figure to expect on outputs that are made to mislead.

The recordings are not part of the project; without the folder only the hand-written outputs are measured.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from toolmem.judge.rule_based import RuleBasedCheck
from toolmem.models import ToolCallResult

ROOT = Path(__file__).resolve().parents[1]
DATASETS = ("tau_bench", "tau2_airline", "toolbench", "intercode", "openhands")
WRITTEN = ROOT / "tests" / "judge" / "outputs.jsonl"
SEED = 20260101
BEGINNINGS = ("error", "traceback", "malformed")
HOLDS = ("error", "traceback", "exception", "no such file", "not found", "invalid", "cannot", "denied", "failed")
_BEFORE_LETTERS = re.compile(r"^[^A-Za-z]+")
RULES = "rule-based check"

Judge = Callable[[ToolCallResult], bool]  # failed?


def begins_with_a_word(call: ToolCallResult) -> bool:
    return _BEFORE_LETTERS.sub("", call.output[:1_000]).lower().startswith(BEGINNINGS)


def holds_a_word(call: ToolCallResult) -> bool:
    text = call.output[:1_000].lower()
    return any(word in text for word in HOLDS)


def rule_based(call: ToolCallResult) -> bool:
    return RuleBasedCheck().check(call).execution_failed is True


JUDGES: dict[str, Judge] = {RULES: rule_based, "begins with a word": begins_with_a_word, "holds a word": holds_a_word}


@dataclass(frozen=True)
class Agreement:
    """One judge on one set of calls. Rates are None where the set has no call of that kind."""

    dataset: str
    part: str  # "all", or the label that picks the calls
    judge: str
    calls: int
    failures: int
    silent: int  # failures with an empty output
    misses: int
    false_alarms: int
    sensitivity: float | None
    specificity: float | None
    balanced_accuracy: float | None
    low: float | None  # 95 % interval of the balanced accuracy
    high: float | None
    seconds: float


def agreement(
    dataset: str, part: str, name: str, calls: Sequence[ToolCallResult], failed: Sequence[bool], resamples: int
) -> Agreement:
    begun = time.perf_counter()
    told = np.array([JUDGES[name](call) for call in calls], dtype=bool)
    seconds = time.perf_counter() - begun
    label = np.array(failed, dtype=bool)
    cells = np.array([(label & told).sum(), (label & ~told).sum(), (~label & ~told).sum(), (~label & told).sum()])
    hits, misses, quiet, alarms = (int(n) for n in cells)
    sensitivity = hits / (hits + misses) if hits + misses else None
    specificity = quiet / (quiet + alarms) if quiet + alarms else None
    balanced = low = high = None
    if sensitivity is not None and specificity is not None:
        balanced = (sensitivity + specificity) / 2
        low, high = interval(cells, resamples)
    silent = sum(1 for call, bad in zip(calls, failed, strict=True) if bad and not call.output.strip())
    return Agreement(
        dataset,
        part,
        name,
        len(calls),
        int(label.sum()),
        silent,
        misses,
        alarms,
        sensitivity,
        specificity,
        balanced,
        low,
        high,
        seconds,
    )


def interval(cells: np.ndarray, resamples: int) -> tuple[float, float]:
    """2.5th and 97.5th percentile of the balanced accuracy over resamples of the calls.

    Calls drawn with replacement fall into the four cells as a multinomial does, so the cells are drawn at once.
    Resamples without a failure, or without a success, have no balanced accuracy and are left out.
    """
    drawn = np.random.default_rng(SEED).multinomial(cells.sum(), cells / cells.sum(), size=resamples).astype(float)
    hits, misses, quiet, alarms = drawn.T
    with np.errstate(invalid="ignore"):
        values = (hits / (hits + misses) + quiet / (quiet + alarms)) / 2
    low, high = np.nanpercentile(values, [2.5, 97.5])
    return float(low), float(high)


def recorded(path: Path) -> tuple[list[ToolCallResult], list[bool], list[dict[str, Any]]]:
    """Calls with the flag withheld, the labels, and each record's metadata (for the rows per label only)."""
    calls, failed, metadata = [], [], []
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            calls.append(
                ToolCallResult(
                    tool_name=record["tool_name"],
                    input=record["input"],
                    output=record["output"],
                    create_time=record["create_time"],
                )
            )
            failed.append(not record["success"])
            metadata.append(record["metadata"])
    return calls, failed, metadata


def written() -> dict[str, tuple[list[ToolCallResult], list[bool]]]:
    """The hand-written outputs, by part."""
    parts: dict[str, tuple[list[ToolCallResult], list[bool]]] = {}
    with WRITTEN.open(encoding="utf-8") as lines:
        for record in map(json.loads, lines):
            calls, failed = parts.setdefault(record["part"], ([], []))
            given = {key: record[key] for key in ("tool_name", "input", "output")}
            calls.append(ToolCallResult(**given, create_time=datetime(2025, 1, 1, tzinfo=UTC)))
            failed.append(record["failed"])
    return parts


def measure(folder: Path, resamples: int) -> list[Agreement]:
    rows = []
    for dataset in DATASETS:
        path = folder / f"{dataset}.calls.jsonl.gz"
        if not path.exists():
            continue
        calls, failed, metadata = recorded(path)
        rows += [agreement(dataset, "all", name, calls, failed, resamples) for name in JUDGES]
        for label in ("soft_error", "spurious_error"):
            picked = [i for i, item in enumerate(metadata) if item.get(label)]
            if picked:
                some, labels = [calls[i] for i in picked], [failed[i] for i in picked]
                rows += [agreement(dataset, label, name, some, labels, resamples) for name in JUDGES]
    for part, (calls, failed) in written().items():
        rows += [agreement("written outputs", part, name, calls, failed, resamples) for name in JUDGES]
    return rows


def show(rows: Sequence[Agreement]) -> None:
    head = ("dataset", "part", "judge", "calls", "failures", "silent", "misses", "false alarms")
    table = [(*head, "sensitivity", "specificity", "balanced accuracy (95 %)", "s")]
    for row in rows:
        counts = (row.calls, row.failures, row.silent, row.misses, row.false_alarms)
        balanced = rate(row.balanced_accuracy)
        if row.balanced_accuracy is not None:
            balanced += f" ({rate(row.low)} to {rate(row.high)})"
        rates = (rate(row.sensitivity), rate(row.specificity), balanced, f"{row.seconds:.2f}")
        table.append((row.dataset, row.part, row.judge, *map(str, counts), *rates))
    widths = [max(len(line[i]) for line in table) for i in range(len(table[0]))]
    before = ""
    for line in table:
        if before and line[0] != before:
            print()
        before = line[0]
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def rate(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data", help="folder of the recordings")
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    parser.add_argument("--quick", action="store_true", help="fewer resamples, for a look")
    options = parser.parse_args()
    folder = options.data / "recorded_calls"
    if not folder.is_dir():
        print(f"no recordings in {folder.name} of the data folder: only the written outputs are measured\n")
    rows = measure(folder, 500 if options.quick else 5_000)
    show(rows)
    if options.json is not None:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
