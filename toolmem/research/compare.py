"""Two evaluations beside each other: two judges, two days, with and without memory."""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from toolmem.errors import RequestError
from toolmem.research.rates import (
    Errors,
    Rate,
    Told,
    difference,
    errors_of,
    kappa,
    known_pairs,
    paired_difference,
    rate_of,
    rate_of_part,
)
from toolmem.research.tables import CallRow
from toolmem.text.masking import MASK

MAX_SHOWN = 10  # rows with another score, and names of tools in a message
_FLAGS = {"true": True, "false": False, "": None}


class ReadCall(Struct, frozen=True, kw_only=True):
    """What is compared of a row of `calls.csv`."""

    row: int
    tool_name: str
    input: str
    output: str
    worked: bool | None
    label: bool | None
    score: float | None


Calls = Sequence[ReadCall | CallRow]


class Shares(Struct, kw_only=True):
    """A share of calls in both evaluations. None: of no call anything is known."""

    a: float | None
    b: float | None
    change: float | None = None
    low: float | None = None  # 95 % interval of the change
    high: float | None = None


class ComparedTool(Struct, kw_only=True):
    """One tool in both evaluations, or all tools that both have."""

    tool_name: str  # "": all tools that both have
    calls_a: int
    calls_b: int
    worked: Shares
    score: Shares  # the average score


class Comparison(Struct, kw_only=True):
    """Two evaluations. Where they are of the same calls, each call is compared with itself."""

    tools: list[ComparedTool]  # all together, then by name
    is_paired: bool
    only_a: list[str]  # tools
    only_b: list[str]
    scored_pairs: int  # calls with a score in both, where they are the same calls
    same_scores: int
    kappa: float | None  # of the scores
    other_scores: list[int]  # rows whose scores differ
    labels: str = ""  # which of them has labels: "a", "b", "both"


def read_calls(place: str | os.PathLike[str]) -> list[ReadCall]:
    """The calls in a folder that an evaluation wrote, or in its `calls.csv`. RequestError."""
    path = Path(place) / "calls.csv" if Path(place).is_dir() else Path(place)
    csv.field_size_limit(2**31 - 1)
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return [
                ReadCall(
                    row=int(row["row"]),
                    tool_name=row["tool_name"],
                    input=row["input"],
                    output=row["output"],
                    worked=_FLAGS[row["worked"].lower()],
                    label=_FLAGS[row["label"].lower()],
                    score=float(row["score"]) if row["score"] else None,
                )
                for row in csv.DictReader(file)
            ]
    except (OSError, KeyError, TypeError, ValueError, csv.Error) as error:
        what = f"{error} is missing or not read" if isinstance(error, KeyError) else str(error)
        what = error.strerror or what if isinstance(error, OSError) else what
        problem = f"{path}: {what}; name a folder that `toolmem evaluate --out FOLDER` wrote"
        raise RequestError(problem, "evaluation") from None


def compare(a: Calls, b: Calls) -> Comparison:
    """Compare rows of the table `calls`. Raises RequestError where no tool is in both."""
    names_a, names_b = ({call.tool_name for call in calls} for calls in (a, b))
    common = names_a & names_b
    if not common:
        first, second = (", ".join(sorted(each)[:MAX_SHOWN]) for each in (names_a, names_b))
        raise RequestError(
            f"evaluation: no tool is in both: the first has {first or 'none'}, the second "
            f"{second or 'none'}; compare evaluations of the same tools",
            "evaluation",
        )
    is_paired = len(a) == len(b) and all(map(_is_same, a, b))
    sides = [_by_tool(calls, common) for calls in (a, b)]
    tools = [_compared(name, sides[0][name], sides[1][name], is_paired) for name in sides[0]]
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
        labels=_labelled(a, b),
    )


def _labelled(a: Calls, b: Calls) -> str:
    first, second = (any(call.label is not None for call in calls) for calls in (a, b))
    return "both" if first and second else "a" if first else "b" if second else ""


def _is_same(one: ReadCall | CallRow, other: ReadCall | CallRow) -> bool:
    """Secrets count as the same: each store masks them in its own way."""
    return one.tool_name == other.tool_name and all(
        MASK.sub("", getattr(one, name)) == MASK.sub("", getattr(other, name))
        for name in ("input", "output")
    )


class _Side(Struct):
    """Some calls of one evaluation."""

    worked: list[Told] = []
    scored: list[Told] = []
    errors: dict[bool, Errors] = {}  # of the judge, on the labels of all calls


def _by_tool(calls: Calls, tools: set[str]) -> dict[str, _Side]:
    """The calls of all these tools ("") and of each, by name."""
    errors = errors_of(Told(call.worked, call.label) for call in calls)
    found = {name: _Side(errors=errors) for name in ("", *sorted(tools))}
    for call in calls:
        if call.tool_name in tools:
            for side in (found[""], found[call.tool_name]):
                side.worked.append(Told(call.worked, call.label))
                side.scored.append(Told(None if call.score is None else call.score >= 0.5))
    return found


def _compared(name: str, a: _Side, b: _Side, is_paired: bool) -> ComparedTool:
    rates = [
        rate_of_part(side.worked, side.errors) if name else rate_of(side.worked, side.errors)
        for side in (a, b)
    ]
    if is_paired and not any(rate.labelled for rate in rates):
        worked = _of_pairs(a.worked, b.worked)
    else:
        worked = _of_rates(*rates)
    return ComparedTool(
        tool_name=name,
        calls_a=len(a.worked),
        calls_b=len(b.worked),
        worked=worked,
        score=_of_pairs(a.scored, b.scored)
        if is_paired
        else _of_rates(rate_of(a.scored), rate_of(b.scored)),
    )


def _of_rates(a: Rate, b: Rate) -> Shares:
    if a.rate is None or b.rate is None:
        return Shares(a=a.rate, b=b.rate)
    low, high = difference(a, b)
    return Shares(a=a.rate, b=b.rate, change=b.rate - a.rate, low=low, high=high)


def _of_pairs(a: list[Told], b: list[Told]) -> Shares:
    """Of the calls of which both evaluations know the outcome."""
    pairs = known_pairs((one.judged, other.judged) for one, other in zip(a, b, strict=True))
    if not pairs:
        return Shares(a=None, b=None)
    before, after = (sum(pair[side] for pair in pairs) / len(pairs) for side in (0, 1))
    low, high = paired_difference(pairs)
    return Shares(a=before, b=after, change=after - before, low=low, high=high)
