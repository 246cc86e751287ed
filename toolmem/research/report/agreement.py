"""How far judges of the same calls agree, and which side a label takes where they differ. Figures only.

A verdict is a score: 1.0, 0.0, or None where there is none. A call that one side of a pair gives no verdict is left out
of that pair, and of no other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from toolmem.models import ToolCallResult, Usage
from toolmem.readers.proportions import wilson_interval

SEED = 20260101  # of the bootstrap
RESAMPLES = 2000

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class JudgeRun:
    """What one judge said of the calls, and what that took. A label is a judge that costs nothing."""

    name: str  # as it was asked for: "offline", "default", "column:useful", ...
    identity: str  # who judged; "" for a label
    reading: str  # what its score of 0.0 means
    label: bool  # recorded with the calls
    scores: tuple[float | None, ...]  # per call
    evaluations: tuple[str, ...]  # per call: its words, or why there is no verdict
    usage: Usage = field(default_factory=Usage)
    asked: int = 0  # verdicts made now
    reused: int = 0  # verdicts that were known already, or are those of an identical call
    seconds: float = 0.0  # wall clock
    stopped: str = ""  # why it was not asked about all calls
    prompts_only: bool = False  # a dry run: requests were counted, not sent

    @property
    def judged(self) -> int:
        return sum(score is not None for score in self.scores)

    def per_thousand(self, figure: float | None) -> float | None:
        """A figure of its usage, scaled from the verdicts made now to a thousand of them."""
        return None if figure is None or not self.asked else figure / self.asked * 1000


@dataclass(frozen=True)
class Comparison:
    """Several judges on the same calls."""

    rows: tuple[int, ...]  # of the recording, from 0
    calls: tuple[ToolCallResult, ...]
    judges: tuple[JudgeRun, ...]
    notes: tuple[str, ...] = ()
    stopped_by: str = ""  # "budget", "errors"

    @property
    def labels(self) -> list[JudgeRun]:
        return [judge for judge in self.judges if judge.label]

    @property
    def judges_proper(self) -> list[JudgeRun]:
        return [judge for judge in self.judges if not judge.label]

    def differing(self) -> list[int]:
        """Positions of the calls on which two verdicts differ."""
        return [n for n in range(len(self.calls)) if len({j.scores[n] for j in self.judges} - {None}) > 1]


@dataclass(frozen=True, slots=True)
class Cells:
    """Counts of calls by the two scores: `one_zero` is 1.0 by the first and 0.0 by the second."""

    one_one: int
    one_zero: int
    zero_one: int
    zero_zero: int

    @property
    def calls(self) -> int:
        return self.one_one + self.one_zero + self.zero_one + self.zero_zero

    @classmethod
    def count(cls, first: Sequence[float | None], second: Sequence[float | None]) -> Cells:
        pairs = list(zip(first, second, strict=True))
        return cls(*(pairs.count(cell) for cell in ((1.0, 1.0), (1.0, 0.0), (0.0, 1.0), (0.0, 0.0))))


@dataclass(frozen=True, slots=True)
class PairAgreement:
    """Two judges. Shares are None without calls; kappa is None where both said the same of every call."""

    first: str
    second: str
    cells: Cells
    agreement: float | None  # share of the calls on which they agree
    agreement_interval: Interval | None  # 95 %, Wilson
    kappa: float | None
    kappa_interval: Interval | None  # 95 %, percentiles of a bootstrap over calls


@dataclass(frozen=True, slots=True)
class AgainstLabel:
    """A judge measured by a label. Rates are None where the label has no call of that kind."""

    judge: str
    label: str
    calls: int
    found: float | None  # share of the label's zeros that the judge scores 0.0 (sensitivity)
    spared: float | None  # share of the label's ones that the judge scores 1.0 (specificity)
    balanced_accuracy: float | None
    interval: Interval | None  # 95 %, percentiles of a bootstrap over calls


@dataclass(frozen=True, slots=True)
class Sides:
    """Whom a label is with, on the calls where two judges differ."""

    label: str
    first: str
    second: str
    with_first: int
    with_second: int


def pairs(comparison: Comparison) -> list[PairAgreement]:
    """Every two judges, labels included, in the order given."""
    runs = comparison.judges
    return [_pair(a, b) for n, a in enumerate(runs) for b in runs[n + 1 :]]


def against_labels(comparison: Comparison) -> list[AgainstLabel]:
    """Every judge beside every label."""
    return [_against(judge, label) for label in comparison.labels for judge in comparison.judges_proper]


def sides(comparison: Comparison) -> list[Sides]:
    """Every label beside every two judges."""
    runs = comparison.judges_proper
    return [_sides(label, a, b) for label in comparison.labels for n, a in enumerate(runs) for b in runs[n + 1 :]]


def _pair(a: JudgeRun, b: JudgeRun) -> PairAgreement:
    cells = Cells.count(a.scores, b.scores)
    alike = cells.one_one + cells.zero_zero
    kappa = None if not cells.calls else _value(cohens_kappa([_counts(cells)])[0])
    return PairAgreement(
        a.name,
        b.name,
        cells,
        alike / cells.calls if cells.calls else None,
        wilson_interval(alike, cells.calls) if cells.calls else None,
        kappa,
        None if kappa is None else _bootstrap(cells, cohens_kappa),
    )


def _against(judge: JudgeRun, label: JudgeRun) -> AgainstLabel:
    cells = Cells.count(label.scores, judge.scores)
    zeros, ones = cells.zero_zero + cells.zero_one, cells.one_one + cells.one_zero
    accuracy = _value(balanced_accuracy([_counts(cells)])[0])
    return AgainstLabel(
        judge.name,
        label.name,
        cells.calls,
        cells.zero_zero / zeros if zeros else None,
        cells.one_one / ones if ones else None,
        accuracy,
        None if accuracy is None else _bootstrap(cells, balanced_accuracy),
    )


def _sides(label: JudgeRun, a: JudgeRun, b: JudgeRun) -> Sides:
    with_first = with_second = 0
    for told, first, second in zip(label.scores, a.scores, b.scores, strict=True):
        if None not in (told, first, second) and first != second:
            with_first += told == first
            with_second += told == second
    return Sides(label.name, a.name, b.name, with_first, with_second)


# ---------------------------------------------------------------- statistics on cells


def cohens_kappa(cells: Any) -> Any:
    """Agreement beyond chance, per row of cells (one_one, one_zero, zero_one, zero_zero), shape (n, 4) -> (n,).

    J. Cohen, "A coefficient of agreement for nominal scales", Educational and Psychological Measurement 20 (1960):
    (p_o - p_e) / (1 - p_e). NaN where chance alone gives full agreement.
    """
    import numpy as np

    one_one, one_zero, zero_one, zero_zero = np.asarray(cells, dtype=float).T
    total = one_one + one_zero + zero_one + zero_zero
    with np.errstate(invalid="ignore", divide="ignore"):
        observed = (one_one + zero_zero) / total
        first, second = (one_one + one_zero) / total, (one_one + zero_one) / total
        chance = first * second + (1 - first) * (1 - second)
        return np.where(chance < 1, (observed - chance) / (1 - chance), np.nan)


def balanced_accuracy(cells: Any) -> Any:
    """Mean of the two rates at which the second agrees with the first's ones and zeros, shape (n, 4) -> (n,)."""
    import numpy as np

    one_one, one_zero, zero_one, zero_zero = np.asarray(cells, dtype=float).T
    with np.errstate(invalid="ignore"):
        return (one_one / (one_one + one_zero) + zero_zero / (zero_zero + zero_one)) / 2


def _bootstrap(cells: Cells, statistic: Any) -> Interval | None:
    """2.5th and 97.5th percentile over resamples of the calls, seeded.

    Calls drawn with replacement fall into the four cells as a multinomial does, so the cells are drawn at once.
    Resamples for which the statistic is not defined are left out.
    """
    import numpy as np

    counts = np.array(_counts(cells), dtype=float)
    drawn = np.random.default_rng(SEED).multinomial(cells.calls, counts / counts.sum(), size=RESAMPLES)
    values = statistic(drawn)
    values = values[~np.isnan(values)]
    if not len(values):
        return None
    low, high = np.percentile(values, [2.5, 97.5])
    return float(low), float(high)


def _counts(cells: Cells) -> tuple[int, int, int, int]:
    return cells.one_one, cells.one_zero, cells.zero_one, cells.zero_zero


def _value(number: Any) -> float | None:
    return None if number != number else float(number)
