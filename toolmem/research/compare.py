"""Two evaluations beside each other: two judges, two days, with and without memory."""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from toolmem.errors import RequestError
from toolmem.research.rates import (
    Errors,
    Told,
    difference,
    errors_of,
    kappa,
    paired_difference,
    rate_of,
)
from toolmem.research.tables import CallRow

MAX_SHOWN = 10  # rows with another score, and names of tools in a message
_FLAGS = {"true": True, "false": False}


class ReadCall(Struct, frozen=True, kw_only=True):
    """What is compared of a row of `calls.csv`."""

    tool_name: str
    input: str
    output: str
    worked: bool | None
    label: bool | None
    score: float | None


Calls = Sequence[ReadCall | CallRow]
ErrorsOf = Mapping[bool, Errors]  # of a judge, by its verdict


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
                    tool_name=row["tool_name"],
                    input=row["input"],
                    output=row["output"],
                    worked=_FLAGS.get(row["worked"]),
                    label=_FLAGS.get(row["label"]),
                    score=float(row["score"]) if row["score"] else None,
                )
                for row in csv.DictReader(file)
            ]
    except (OSError, KeyError, TypeError, ValueError, csv.Error) as error:
        what = f"no column {error}" if isinstance(error, KeyError) else str(error)
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
    groups = {"": common, **{name: {name} for name in sorted(common)}}
    tools = [
        _compared(name, _side(a, group), _side(b, group), is_paired)
        for name, group in groups.items()
    ]
    pairs = [
        (row, one.score >= 0.5, other.score >= 0.5)
        for row, (one, other) in enumerate(zip(a, b, strict=False) if is_paired else ())
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
    fields = ("tool_name", "input", "output")
    return all(getattr(one, name) == getattr(other, name) for name in fields)


class _Side(Struct):
    """Some calls of one evaluation."""

    worked: list[Told]
    scored: list[Told]
    errors: dict[bool, Errors]  # of the judge, on labels


def _side(calls: Calls, tools: set[str]) -> _Side:
    own = [call for call in calls if call.tool_name in tools]
    return _Side(
        [Told(call.worked, call.label) for call in own],
        [Told(None if call.score is None else call.score >= 0.5) for call in own],
        errors_of(Told(call.worked, call.label) for call in calls),
    )


def _compared(name: str, a: _Side, b: _Side, is_paired: bool) -> ComparedTool:
    return ComparedTool(
        tool_name=name,
        calls_a=len(a.worked),
        calls_b=len(b.worked),
        worked=_shares(a.worked, a.errors, b.worked, b.errors, is_paired),
        score=_shares(a.scored, {}, b.scored, {}, is_paired),
    )


def _shares(
    a: list[Told], errors_a: ErrorsOf, b: list[Told], errors_b: ErrorsOf, is_paired: bool
) -> Shares:
    one, other = rate_of(a, errors_a), rate_of(b, errors_b)
    if one.rate is None or other.rate is None:
        return Shares(a=one.rate, b=other.rate)
    interval = difference(one, other)
    if is_paired and not (errors_a or errors_b):
        pairs = zip(a, b, strict=True)
        interval = paired_difference([(before.judged, after.judged) for before, after in pairs])
    change = other.rate - one.rate
    return Shares(a=one.rate, b=other.rate, change=change, low=interval.low, high=interval.high)
