"""What the benchmarks share: a figure with its goal, printed as a table and written as JSON."""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Figure:
    question: str
    value: float
    unit: str
    goal: float | None = None  # at most this much, in the same unit
    peer: str = ""  # what the peer needs for the same (source: the project's notes on ReMe 0.2.0.6)
    basis: str = ""  # how many runs, which data
    at_least: bool = False  # the goal is a minimum

    @property
    def met(self) -> str:
        if self.goal is None:
            return ""
        return "yes" if (self.value >= self.goal if self.at_least else self.value <= self.goal) else "NO"


@dataclass(frozen=True)
class TextTable:
    """A table as it is printed, kept in the results, and shown by the documentation and the notebooks."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]

    def show(self) -> None:
        """Print it, columns aligned."""
        lines = [tuple(self.columns), *map(tuple, self.rows)]
        widths = [max(len(line[i]) for line in lines) for i in range(len(self.columns))]
        print(f"\n{self.title}")
        for line in lines:
            print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def arguments(description: str | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="smaller sizes, for a look")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    return parser.parse_args()


def show(figures: Sequence[Figure], target: Path | None) -> None:
    rows = [("question", "value", "goal", "met", "peer", "basis")]
    for f in figures:
        goal = "" if f.goal is None else f"{'>=' if f.at_least else '<='} {f.goal:g} {f.unit}"
        rows.append((f.question, f"{f.value:.4g} {f.unit}", goal, f.met, f.peer, f.basis))
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    if target is not None:
        body = [{**asdict(f), "met": f.met} for f in figures]
        target.write_text(json.dumps(body, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


async def median_ms(times: int, work: Callable[[int], Awaitable[object]]) -> float:
    """Milliseconds that `work(number)` takes, the median of so many times."""
    taken = []
    for number in range(times):
        begun = time.perf_counter()
        await work(number)
        taken.append(time.perf_counter() - begun)
    return statistics.median(taken) * 1000
