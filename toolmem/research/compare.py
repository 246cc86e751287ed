"""Compare two evaluations: two judges, two days, with and without memory."""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from toolmem.errors import RequestError, wrong
from toolmem.research.rates import (
    Outcome,
    difference,
    kappa,
    known_pairs,
    paired_difference,
    rate_of,
)
from toolmem.research.tables import CallRow
from toolmem.text.masking import MASK

MAX_SHOWN = 10  # rows with another score, and names of tools in a message
_FLAGS = {"true": True, "false": False, "": None}


class ComparedCall(Struct, frozen=True, kw_only=True):
    """The fields of a row of `calls.csv` that are compared."""

    row: int
    tool_name: str
    input: str
    output: str
    worked: bool | None
    label: bool | None
    score: float | None


Calls = Sequence[ComparedCall | CallRow]


class Shares(Struct, kw_only=True):
    """A share of calls in evaluations A and B, and its change from A to B. None: not known."""

    a: float | None
    b: float | None
    change: float | None = None
    low: float | None = None  # 95 % interval of the change
    high: float | None = None
    changed: int | None = None  # calls that changed; None: the evaluations have other calls


class ComparedTool(Struct, kw_only=True):
    """One tool, or all tools, of both evaluations."""

    tool_name: str  # "": all tools that both have
    calls_a: int
    calls_b: int
    worked: Shares
    score: Shares  # the average score


class Comparison(Struct, kw_only=True):
    """How B differs from A. If both have the same calls, each call is compared with itself."""

    tools: list[ComparedTool]  # all together, then by name
    is_paired: bool
    only_a: list[str]  # tools
    only_b: list[str]
    scored_pairs: int  # calls with a score in both; 0 if they are not the same calls
    same_scores: int
    kappa: float | None  # of the scores
    other_scores: list[int]  # rows whose scores differ


def read_calls(place: str | os.PathLike[str]) -> list[ComparedCall]:
    """Read the calls of an evaluation from `calls.csv` or its folder. Raises RequestError."""
    path = Path(place) / "calls.csv" if Path(place).is_dir() else Path(place)
    csv.field_size_limit(2**31 - 1)
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return [
                ComparedCall(
                    row=int(row["row"]),
                    tool_name=row["tool_name"],
                    input=row["input"],
                    output=row["output"],
                    worked=_FLAGS[row["worked"].lower()],
                    label=_FLAGS[row["label"].lower()],
                    score=_score(row["score"]),
                )
                for row in csv.DictReader(file)
            ]
    except (OSError, KeyError, TypeError, ValueError, csv.Error) as error:
        what = f"{error} is missing or not read" if isinstance(error, KeyError) else str(error)
        if isinstance(error, OSError):
            what = error.strerror or what
        problem = f"{path}: {what}; name a folder that `toolmem evaluate --out FOLDER` wrote"
        raise RequestError(problem, "evaluation") from None


def _score(text: str) -> float | None:
    """The score in a cell; None: an empty cell. Raises ValueError."""
    score = float(text) if text else None
    if score is not None and not 0 <= score <= 1:
        raise ValueError(f"the score {text!r} is not between 0 and 1")
    return score


def compare(a: Calls, b: Calls) -> Comparison:
    """Compare the calls of evaluations A and B. Raises RequestError if no tool is in both."""
    names_a, names_b = ({call.tool_name for call in calls} for calls in (a, b))
    common = names_a & names_b
    if not common:
        first, second = (named(sorted(each)) or "none" for each in (names_a, names_b))
        problem = f"no tool is in both: the first has {first}; the second has {second}"
        raise wrong("evaluation", f"{problem}; compare evaluations of the same tools")
    is_paired = len(a) == len(b) and all(map(_is_same, a, b))
    sides = [_by_tool(calls, common) for calls in (a, b)]
    tools = [
        ComparedTool(
            tool_name=name,
            calls_a=len(side.worked),
            calls_b=len(other.worked),
            worked=_shares(side.worked, other.worked, is_paired),
            score=_shares(side.scored, other.scored, is_paired),
        )
        for (name, side), other in zip(sides[0].items(), sides[1].values(), strict=True)
    ]
    pairs = [
        (one.row, one.score >= 0.5, other.score >= 0.5)
        for one, other in (zip(a, b, strict=True) if is_paired else ())
        if one.score is not None and other.score is not None
    ]
    return Comparison(
        tools=tools,
        is_paired=is_paired,
        only_a=sorted(names_a - names_b),
        only_b=sorted(names_b - names_a),
        scored_pairs=len(pairs),
        same_scores=sum(one is other for _, one, other in pairs),
        kappa=kappa([(one, other) for _, one, other in pairs]),
        other_scores=[row for row, one, other in pairs if one is not other],
    )


def named(names: Sequence[str]) -> str:
    """Join the first ten names by commas, with `...` if there are more."""
    first = ", ".join(names[:MAX_SHOWN])
    return f"{first}, ..." if len(names) > MAX_SHOWN else first


def _is_same(one: ComparedCall | CallRow, other: ComparedCall | CallRow) -> bool:
    """Whether two calls are the same. Masked secrets may differ: each store has its own masks."""
    return one.tool_name == other.tool_name and all(
        MASK.sub("", getattr(one, name)) == MASK.sub("", getattr(other, name))
        for name in ("input", "output")
    )


class _Side(Struct):
    """Whether some calls of one evaluation worked, in the calls' order. None: unknown."""

    worked: list[bool | None] = []  # by the label of a call, else by the judge
    scored: list[bool | None] = []  # whether the score is at least 0.5


def _by_tool(calls: Calls, tools: set[str]) -> dict[str, _Side]:
    """Group calls by the names of these tools. The group "" has the calls of all of them."""
    found = {name: _Side() for name in ("", *sorted(tools))}
    for call in calls:
        if call.tool_name in tools:
            for side in (found[""], found[call.tool_name]):
                side.worked.append(call.worked if call.label is None else call.label)
                side.scored.append(None if call.score is None else call.score >= 0.5)
    return found


def _shares(a: Sequence[bool | None], b: Sequence[bool | None], is_paired: bool) -> Shares:
    """Compare the shares of True. A pair of calls counts if both of its values are known."""
    if is_paired:
        pairs = known_pairs(zip(a, b, strict=True))
        a, b = ([pair[side] for pair in pairs] for side in (0, 1))
    one, other = (rate_of(map(Outcome, side)) for side in (a, b))
    if one.rate is None or other.rate is None:
        return Shares(a=one.rate, b=other.rate)
    low, high = paired_difference(pairs) if is_paired else difference(one, other)
    changed = sum(x is not y for x, y in pairs) if is_paired else None
    change = other.rate - one.rate
    return Shares(a=one.rate, b=other.rate, change=change, low=low, high=high, changed=changed)
