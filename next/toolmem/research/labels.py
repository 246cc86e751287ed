"""Verdicts beside labels of people, and beside another judge's. Calls are rows of calls.csv."""

from __future__ import annotations

import csv
import math
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from toolmem.errors import RequestError
from toolmem.research.tables import wilson_interval

MAX_TEXT = 2_000  # characters of an input or an output that somebody reads


class ScoredCall(Struct, frozen=True):
    """A judged call of a report."""

    row: int
    tool_name: str
    worked: bool
    judge: str
    input: str
    output: str


class ToLabel(Struct, frozen=True):
    """A call that somebody labels, without its verdict. `label`: 1 worked, 0 did not."""

    index: int
    tool_name: str
    input: str
    output: str
    label: str = ""


class Calibrated(Struct, frozen=True):
    """The success rate by the judge, and corrected by labels, with its 95 % interval."""

    calls: int
    labelled: int
    disagreements: int
    rate: float
    corrected: float
    low: float
    high: float


class Difference(Struct, frozen=True):
    """A call on which two judges differ. Its texts are those of the first report."""

    row: int
    tool_name: str
    first: bool
    second: bool
    input: str
    output: str


class Compared(Struct, frozen=True):
    """Two judges on the same calls."""

    calls: int  # that both scored
    agreed: int
    kappa: float | None  # Cohen's; None where both always say the same one thing
    differences: list[Difference]


def read_scored(folder: Path) -> list[ScoredCall]:
    """The judged calls of `toolmem evaluate --out FOLDER`. Raises RequestError."""
    path = folder / "calls.csv"
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return list(_scored(csv.DictReader(file)))
    except (OSError, KeyError, ValueError) as error:
        told = f"{path}: {error}; expected the calls.csv of `toolmem evaluate`"
        raise RequestError(told, field="report") from error


def _scored(rows: csv.DictReader[str]) -> Iterator[ScoredCall]:
    for row in rows:
        if row["score"]:
            texts = (row["input"][:MAX_TEXT], row["output"][:MAX_TEXT])
            is_good = float(row["score"]) >= 0.5
            yield ScoredCall(int(row["row"]), row["tool_name"], is_good, row["judge"], *texts)


def sample_to_label(calls: Sequence[ScoredCall], size: int, seed: int) -> list[ToLabel]:
    """As many of either verdict as there are, up to half of `size` each, in random order."""
    chance, chosen = random.Random(seed), list[ScoredCall]()
    for worked in (True, False):
        own = [call for call in calls if call.worked is worked]
        chosen += chance.sample(own, min(len(own), size // 2))
    chance.shuffle(chosen)
    return [ToLabel(each.row, each.tool_name, each.input, each.output) for each in chosen]


def calibrated(calls: Sequence[ScoredCall], labels: Mapping[int, bool]) -> Calibrated:
    """Weighs what labels say of either verdict by how often the judge gave it.

    The interval combines those of both shares by the square-and-add method of R. G. Newcombe,
    Statistics in Medicine 17 (1998) 873-890; it keeps its width where no label disagrees. Raises
    RequestError where a verdict that was given has no label.
    """
    centre = below = above = 0.0
    labelled = wrong = 0
    for worked in (True, False):
        given = [call for call in calls if call.worked is worked]
        said = [labels[call.row] for call in given if call.row in labels]
        if not given:
            continue
        if not said:
            told = "labels: needed of calls that were judged good and of calls judged bad"
            raise RequestError(told, field="labels")
        good, weight = said.count(True), len(given) / len(calls)
        low, high = wilson_interval(good, len(said))
        share = good / len(said)
        centre += weight * share
        below += (weight * (share - low)) ** 2
        above += (weight * (high - share)) ** 2
        labelled += len(said)
        wrong += said.count(not worked)
    rate = sum(call.worked for call in calls) / max(len(calls), 1)
    ends = (max(0.0, centre - math.sqrt(below)), min(1.0, centre + math.sqrt(above)))
    return Calibrated(len(calls), labelled, wrong, rate, centre, *ends)


def compared(one: Sequence[ScoredCall], other: Sequence[ScoredCall]) -> Compared:
    """Two reports of one recording, by row."""
    second = {call.row: call.worked for call in other}
    pairs = [(call, second[call.row]) for call in one if call.row in second]
    differences = [
        Difference(call.row, call.tool_name, call.worked, said, call.input, call.output)
        for call, said in pairs
        if call.worked is not said
    ]
    agreed = len(pairs) - len(differences)
    table = Counter((call.worked, said) for call, said in pairs)
    chance = sum(
        (table[side, True] + table[side, False]) * (table[True, side] + table[False, side])
        for side in (True, False)
    )
    total = len(pairs) ** 2
    kappa = None if chance == total else (agreed * len(pairs) - chance) / (total - chance)
    return Compared(len(pairs), agreed, kappa, differences)
