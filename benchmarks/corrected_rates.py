"""How far a judge's rate is corrected by a few labels: how often the interval holds the true share, and how wide it is.

    python benchmarks/corrected_rates.py [--quick] [--json FILE]

The recorded flag serves as the label; the rule-based judge sees each call without it. A cell: a recording of 100 calls
or more, a share of verdicts that are turned round (0, 10, 20 %), and 30, 50 or 100 labels (at most 70 % of the calls)
drawn at random: 1,000 times, with seeds 0 to 999. What is estimated is the share of the recording's calls that worked.
Beside it the interval from the same labels alone (Wilson's). `sample` is the project's own recording, whose labels are
what its recorder knew; the others are public ones that are not part of the project, left out where they are absent.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from cost_streams import DATASETS, present
from numpy.typing import NDArray
from tables import Figure, TextTable, show

Bools = NDArray[np.bool_]

FLIPPED, LABELS, SEEDS = (0.0, 0.1, 0.2), (30, 50, 100), 1_000
LEAST_CALLS, MOST_LABELLED = 100, 0.7
FLIP_SEED = 99
A4 = ("intercode", "tau_bench", "toolbench")  # the recordings of the goals


def truth_and_verdicts(name: str) -> tuple[Bools, Bools]:
    """Whether each call worked, and whether the judge, who does not know, passes it."""
    import cost_streams

    from toolmem.judge.rule_based import RuleBasedCheck
    from toolmem.research.report.corrected_rates import passed_by_judge

    judge = RuleBasedCheck()
    calls = cost_streams._read(name, "")
    withheld = [call.model_copy(update={"success": None}) for call in calls]
    worked = [not call.metadata["expected_failure"] if name == "sample" else call.success is True for call in calls]
    return np.array(worked), np.array(
        [passed_by_judge(call.judged(judge.check(call))) for call in withheld], dtype=bool
    )


def cells(name: str, seeds: int) -> list[dict[str, Any]]:
    """The cells of one recording."""
    worked, passed = truth_and_verdicts(name)
    if len(worked) < LEAST_CALLS:
        return []
    numbers = [number for number in LABELS if number <= MOST_LABELLED * len(worked)]
    return [cell(name, worked, passed, flipped, number, seeds) for flipped in FLIPPED for number in numbers]


def cell(name: str, worked: Bools, passed: Bools, flipped: float, number: int, seeds: int) -> dict[str, Any]:
    """How often the interval held the truth, and its mean width; beside it that of the labels alone."""
    from toolmem.readers.proportions import wilson_interval

    passed = passed ^ (np.random.default_rng(FLIP_SEED).random(len(passed)) < flipped)
    truth = float(worked.mean())
    found = []
    for seed in range(seeds):
        drawn = np.random.default_rng(seed).choice(len(worked), number, replace=False)
        alone = wilson_interval(int(worked[drawn].sum()), number)
        found.append((*corrected(worked[drawn], passed[drawn], passed, seed), *alone))
    low, high, alone_low, alone_high = np.array(found).T
    return {
        "recording": name,
        "calls": len(worked),
        "flipped": flipped,
        "labels": number,
        "worked": truth,
        "by_judge": float(passed.mean()),
        "coverage": float(np.mean((low <= truth) & (truth <= high))),
        "width": float(np.mean(high - low)),
        "alone_coverage": float(np.mean((alone_low <= truth) & (truth <= alone_high))),
        "alone_width": float(np.mean(alone_high - alone_low)),
    }


def corrected(labels: Bools, verdicts: Bools, passed: Bools, seed: int) -> tuple[float, float]:
    from toolmem.research.report.corrected_rates import interval

    of_passed, of_failed = (
        (int(labels[verdicts == verdict].sum()), int((verdicts == verdict).sum())) for verdict in (True, False)
    )
    return interval(int(passed.sum()), len(passed), of_passed, of_failed, seed=seed)[1:]


def table(rows: Iterable[dict[str, Any]]) -> TextTable:
    columns = ("recording", "calls", "verdicts turned", "labels", "worked", "by the judge", "coverage", "width")
    columns += ("labels alone: coverage", "width", "of that width")
    return TextTable(
        "Rates corrected by labels: coverage and width of the 95 % interval",
        columns,
        [
            (
                *(row["recording"], f"{row['calls']:,}", f"{row['flipped']:.0%}", str(row["labels"])),
                *(f"{row['worked']:.3f}", f"{row['by_judge']:.3f}", f"{row['coverage']:.3f}", f"{row['width']:.3f}"),
                *(f"{row['alone_coverage']:.3f}", f"{row['alone_width']:.3f}"),
                f"{row['width'] / row['alone_width']:.2f}",
            )
            for row in rows
        ],
    )


def figures(rows: list[dict[str, Any]]) -> list[Figure]:
    """The goals, on the recordings of the table in the design where they are there, else on the sample."""
    chosen = [row for row in rows if row["recording"] in A4] or rows
    basis = f"{len(chosen)} cells: {', '.join(dict.fromkeys(row['recording'] for row in chosen))}"
    coverage = [row["coverage"] for row in chosen]
    found = [
        Figure("coverage of corrected rates, mean", float(np.mean(coverage)), "", 0.93, "", basis, at_least=True),
        Figure("coverage of corrected rates, the worst cell", min(coverage), "", 0.91, "", basis, at_least=True),
    ]
    every = [row["coverage"] for row in rows]
    found.append(Figure("the same, of all recordings, mean", float(np.mean(every)), "", 0.93, "", "", at_least=True))
    found.append(Figure("the same, of all recordings, the worst", min(every), "", 0.91, "", "", at_least=True))
    for row in chosen:
        if row["recording"] == chosen[0]["recording"] and row["labels"] == 30 and row["flipped"] in (0.0, 0.2):
            goal = 0.5 if row["flipped"] == 0.0 else 0.9
            found.append(
                Figure(
                    f"{row['recording']}, 30 labels, {row['flipped']:.0%} turned: width of that of labels alone",
                    row["width"] / row["alone_width"],
                    "",
                    goal,
                    "",
                    f"{row['width']:.3f} of {row['alone_width']:.3f}",
                )
            )
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="the sample alone, 100 draws, for a look")
    parser.add_argument("--json", type=Path, help="write figures, rows and tables to this file")
    options = parser.parse_args()
    there = present()
    names = ["sample"] if options.quick else [name for name in (*A4, *DATASETS) if name in there]
    with ProcessPoolExecutor(2) as workers:
        made = workers.map(cells, dict.fromkeys(names), [100 if options.quick else SEEDS] * len(names))
        rows = [row for of_one in made for row in of_one]
    shown, reached = table(rows), figures(rows)
    shown.show()
    show(reached, None)
    if options.json is not None:
        body = {
            "figures": [{**asdict(figure), "met": figure.met} for figure in reached],
            "cells": rows,
            "tables": [asdict(shown)],
        }
        options.json.write_text(json.dumps(body, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
