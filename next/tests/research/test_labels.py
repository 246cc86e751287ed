"""Verdicts beside labels and beside another judge, and the ledger."""

import csv
import json
import subprocess
import sys

import pytest

from toolmem.errors import RequestError
from toolmem.research.labels import ScoredCall, calibrated, compared, sample_to_label


def scored(verdicts):
    return [ScoredCall(n, "search", bool(v), "j", "{}", str(n)) for n, v in enumerate(verdicts)]


def run(folder, *arguments):
    command = [sys.executable, "-m", "toolmem", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60)


def test_a_rate_is_corrected_by_what_labels_say_of_either_verdict():
    calls = scored([1] * 80 + [0] * 20)
    labels = {n: n >= 5 for n in range(20)} | {80: True, **{n: False for n in range(81, 90)}}
    found = calibrated(calls, labels)
    assert (found.rate, found.labelled, found.disagreements) == (0.8, 30, 6)
    assert found.corrected == pytest.approx(0.8 * 15 / 20 + 0.2 * 1 / 10)
    assert found.low < found.corrected < found.high


def test_labels_without_a_disagreement_leave_the_interval_its_width():
    calls = scored([1] * 50 + [0] * 50)
    found = calibrated(calls, {n: n < 50 for n in (*range(10), *range(50, 60))})
    assert (found.corrected, found.disagreements) == (0.5, 0)
    assert found.high - found.low > 0.2
    assert calibrated(calls, {n: n < 50 for n in range(100)}).high - 0.5 < found.high - 0.5


def test_a_verdict_without_any_label_cannot_be_corrected():
    with pytest.raises(RequestError, match="labels"):
        calibrated(scored([1, 1, 0]), {0: True, 1: True})


def test_kappa_is_agreement_beyond_chance():
    one = scored([1, 1, 1, 1, 1, 0, 0, 0, 0, 0])
    assert compared(one, one).kappa == 1.0
    assert compared(one, scored([1, 0] * 5)).kappa == pytest.approx(0.2)
    assert compared(scored([1, 1]), scored([1, 1])).kappa is None
    found = compared(one, scored([0, 1, 1, 1, 1, 0, 0, 0, 0, 0]))
    assert [(each.row, each.first, each.second) for each in found.differences] == [(0, True, False)]


def test_calls_to_label_are_of_both_verdicts_and_do_not_tell_them():
    rows = sample_to_label(scored([1] * 90 + [0] * 10), 40, 0)
    assert len(rows) == 30
    assert sum(each.index >= 90 for each in rows) == 10
    assert rows == sample_to_label(scored([1] * 90 + [0] * 10), 40, 0)


def test_a_report_is_labelled_calibrated_and_compared_by_commands(tmp_path):
    calls = [{"tool_name": "t", "output": "Error: no" if n % 3 else "fine"} for n in range(30)]
    (tmp_path / "calls.jsonl").write_text("\n".join(map(json.dumps, calls)))
    assert run(tmp_path, "evaluate", "--input", "calls.jsonl").returncode == 0
    done = run(tmp_path, "judge", "label", "report", "--size", "10")
    assert "10 calls" in done.stdout
    assert run(tmp_path, "judge", "label", "report").returncode == 2  # labels are never lost
    with (tmp_path / "labels.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    with (tmp_path / "labels.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows({**row, "label": int(row["output"] == "fine")} for row in rows)
    done = run(tmp_path, "judge", "calibrate", "report", "--labels", "labels.csv", "--json")
    found = json.loads(done.stdout)
    assert (found["calls"], found["disagreements"]) == (30, 0)
    assert found["corrected"] == pytest.approx(1 / 3)
    done = run(tmp_path, "judge", "compare", "report", "report", "--out", "differences.csv")
    assert done.stdout == "30 of 30 verdicts agree; Cohen's kappa 1.000\n"
    assert len((tmp_path / "differences.csv").read_text().splitlines()) == 1
    assert run(tmp_path, "judge", "compare", ".", "report").returncode == 2
