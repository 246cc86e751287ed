"""The figures of the report.

Each function takes a frame of `toolmem.research.report` and answers a Chart, or None where there is nothing to draw.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from toolmem.pages.numbers import count, percent, seconds
from toolmem.readers.plain_text import counted
from toolmem.research.report import style
from toolmem.research.report.style import Chart

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

MOST_ROWS = 60  # tools in one figure: those with most calls; the tables have all
MOST_COSTS = 40  # tools in a figure of costs
MOST_POINTS = 250  # per tool; of more calls, evenly spaced ones in order of size, extremes included
BOX_FROM = 5  # fewer calls have no quartiles worth a box

AXIS = {"time_cost": "seconds per call", "token_cost": "tokens per call"}


def success_chart(tools: pd.DataFrame) -> Chart | None:
    """How often each tool worked with its 95 % Wilson interval, best first; beside it the rate by the recorded flag
    where that is another one. `tools`: `tools_frame`.
    """
    known = tools[tools["worked_rate"].notna()].head(MOST_ROWS)
    if known.empty:
        return None
    known = known.sort_values(["worked_rate", "worked_low", "tool_name"], ascending=[False, False, True])
    names = ("worked_rate", "worked_low", "worked_high", "success_rate")
    rates, lows, highs, flagged = (known[name].to_numpy(dtype=float) * 100 for name in names)
    trials, worked = (known["calls"] - known["unknown"]).tolist(), known["worked"].tolist()
    differ = (known["flag_wrong"] > 0).to_numpy()

    def draw(axes: Axes) -> None:
        rows = range(len(known))
        style.bare_rows(axes, style.labels(known["tool_name"]))
        axes.hlines(rows, lows, highs, color=style.SKY, linewidth=4.5, capstyle="round", label="95 % Wilson interval")
        axes.plot(rates, rows, "o", color=style.BLUE, markersize=6, label="worked", clip_on=False)
        if differ.any():
            places = [row for row, other in zip(rows, differ, strict=True) if other]
            (ring,) = axes.plot(flagged[differ], places, "o", color=style.VERMILION, markersize=6, clip_on=False)
            ring.set(markerfacecolor="none", label="success by the recorded flag")
        axes.set_xlim(0, 100)
        axes.set_xlabel("% of the calls whose outcome is known")
        style.right_column(axes, [f"{k:,} of {n:,}" for k, n in zip(worked, trials, strict=True)])
        style.legend_above(axes)

    return style.chart(
        draw, style.row_height(len(known)), f"How often {counted(len(known), 'tool')} worked, with 95 % intervals"
    )


def score_chart(calls: pd.DataFrame) -> Chart | None:
    """Share of each tool's calls with score 1, score 0 and no score. `calls`: `calls_frame`."""
    if calls.empty or calls["score"].notna().sum() == 0:
        return None
    counts = score_counts(calls).head(MOST_ROWS)
    counts = counts.assign(mean=counts["score 1"] / (counts["score 1"] + counts["score 0"]))
    counts = counts.sort_values(["mean", "calls"], ascending=[False, False], na_position="last")
    parts = [("score 1", style.BLUE), ("score 0", style.VERMILION), ("no score", style.GREY)]

    def draw(axes: Axes) -> None:
        style.bare_rows(axes, style.labels(map(str, counts.index)))
        _stacked_shares(axes, counts, parts)
        axes.set_xlabel("share of the recorded calls (%)")
        style.right_column(axes, [count(total) for total in counts["calls"]], "calls")
        style.legend_above(axes)

    return style.chart(draw, style.row_height(len(counts)), f"Scores of the calls of {counted(len(counts), 'tool')}")


def score_counts(calls: pd.DataFrame) -> pd.DataFrame:
    """Per tool (index), most calls first: calls, score 1, score 0, no score."""
    import pandas as pd

    frame = pd.DataFrame(
        {
            "calls": 1,
            "score 1": (calls["score"] >= 0.5).astype(int),
            "score 0": (calls["score"] < 0.5).astype(int),
            "no score": calls["score"].isna().astype(int),
        }
    )
    sums = frame.groupby(calls["tool_name"], sort=True).sum()
    return sums.sort_values("calls", ascending=False, kind="stable")


def error_chart(errors: pd.DataFrame) -> Chart | None:
    """Failed calls per error class, most frequent first. `errors`: `errors_frame`."""
    if errors.empty:
        return None
    sums = errors.groupby("error_class")[["calls", "not_flagged"]].sum()
    sums = sums.sort_values("calls", ascending=False, kind="stable").head(25)
    classes, unflagged = sums["calls"], sums["not_flagged"]
    tools = errors.groupby("error_class")["tool_name"].nunique()
    notes = [
        f"{counted(calls, 'call')}, {counted(of, 'tool')}"
        for calls, of in zip(classes, tools.reindex(classes.index), strict=True)
    ]

    def draw(axes: Axes) -> None:
        style.bare_rows(axes, style.labels(map(str, classes.index)))
        rows, failed = range(len(classes)), (classes - unflagged).to_numpy(dtype=float)
        axes.barh(rows, failed, height=0.62, color=style.VERMILION, label="failed")
        if unflagged.any():
            text = "flagged as a success, failed as the judge sees it"
            axes.barh(rows, unflagged.to_numpy(dtype=float), left=failed, height=0.62, color=style.ORANGE, label=text)
            style.legend_above(axes)
        axes.set_xlim(0, float(classes.max()) * 1.02)
        axes.set_xlabel("calls")
        style.whole_numbers(axes.xaxis)
        style.right_column(axes, notes)

    alt = f"Failed calls in {counted(len(classes), 'error class')}"
    return style.chart(draw, style.row_height(len(classes)) - 0.2, alt)


def _stacked_shares(axes: Axes, counts: pd.DataFrame, parts: list[tuple[str, str]]) -> None:
    totals = counts["calls"].to_numpy(dtype=float)
    left = totals * 0
    for name, colour in parts:
        if not counts[name].any():
            continue
        shares = counts[name].to_numpy(dtype=float) / totals * 100
        bars = axes.barh(range(len(counts)), shares, left=left, height=0.62, color=colour, label=name)
        for bar, share in zip(bars, shares, strict=True):
            if 9 <= share < 100:  # narrower bars have no room for their figure, whole ones need none
                ink = style.INK if colour == style.GREY else "white"
                middle = bar.get_x() + bar.get_width() / 2
                height = bar.get_y() + bar.get_height() / 2
                axes.text(middle, height, percent(share / 100), color=ink, ha="center", va="center", fontsize=8)
        left = left + shares
    axes.set_xlim(0, 100)


# ---------------------------------------------------------------- time and tokens per call


def cost_chart(calls: pd.DataFrame, column: str) -> Chart | None:
    """What a call of each tool costs. `calls`: `calls_frame`; `column`: "time_cost" or "token_cost".

    Tools in the order of their medians, the largest first; boxes span the quartiles, whiskers the 5th to the 95th
    percentile. None where no call has a known value.
    """
    known = calls[calls[column].notna()]
    if known.empty:
        return None
    groups = {str(name): np.sort(group.to_numpy(dtype=float)) for name, group in known.groupby("tool_name")[column]}
    largest = sorted(groups, key=lambda name: -len(groups[name]))[:MOST_COSTS]
    names = sorted(largest, key=lambda name: (-float(np.median(groups[name])), name))
    values = np.concatenate([groups[name] for name in names])

    def draw(axes: Axes) -> None:
        style.bare_rows(axes, style.labels(names))
        for row, name in enumerate(names):
            _row(axes, row, groups[name])
        _axis(axes, values, column)
        write = seconds if column == "time_cost" else count
        style.right_column(axes, [write(np.median(groups[name])) for name in names], "median")

    what = "Seconds" if column == "time_cost" else "Tokens"
    return style.chart(draw, style.row_height(len(names)), f"{what} per call of {counted(len(names), 'tool')}")


def _row(axes: Axes, row: int, values: NDArray[np.float64]) -> None:
    shown = values
    if len(values) > MOST_POINTS:
        shown = values[np.linspace(0, len(values) - 1, MOST_POINTS).round().astype(int)]
    boxed = len(values) >= BOX_FROM
    # a fixed pattern instead of chance: the same data gives the same figure
    spread = ((np.arange(len(shown)) * 0.6180339887) % 1.0 - 0.5) * boxed
    axes.scatter(shown, row + spread * 0.5, s=9, color=style.BLUE, alpha=0.4 if boxed else 0.8, linewidths=0)
    if not boxed:
        return
    low, first, middle, third, high = np.percentile(values, [5, 25, 50, 75, 95])
    box = {"whislo": low, "q1": first, "med": middle, "q3": third, "whishi": high, "fliers": []}
    axes.bxp(
        [box],
        positions=[row],
        orientation="horizontal",
        widths=0.55,
        showfliers=False,
        manage_ticks=False,
        boxprops={"color": style.INK, "linewidth": 1.0},
        whiskerprops={"color": style.INK, "linewidth": 1.0},
        capprops={"color": style.INK, "linewidth": 1.0},
        medianprops={"color": style.VERMILION, "linewidth": 1.8},
    )


def _axis(axes: Axes, values: NDArray[np.float64], column: str) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    write = _tick_seconds if column == "time_cost" else _tick_tokens
    positive = values[values > 0]
    wide = len(positive) > 0 and positive.max() / positive.min() > 50
    axes.set_xlabel(AXIS[column] + (", logarithmic scale" if wide else ""))
    if not wide:
        axes.set_xlim(0, float(values.max()) * 1.04 or 1.0)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: write(value)))
        return
    low = 10 ** np.floor(np.log10(positive.min()))
    high = 10 ** np.ceil(np.log10(positive.max()) + 1e-9)
    if len(positive) < len(values):  # zeros have a place on a scale that is linear below the smallest value
        axes.set_xscale("symlog", linthresh=low, linscale=0.3)
        axes.set_xlim(-low * 0.5, high)
    else:
        axes.set_xscale("log")
        axes.set_xlim(low, high)
        axes.xaxis.set_major_locator(LogLocator(numticks=9))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: write(value)))


def _tick_seconds(value: float) -> str:
    """Ticks are round numbers: a unit that keeps them so."""
    if value == 0:
        return "0"
    if abs(value) < 0.999e-3:
        return f"{value * 1e6:g} µs"
    return f"{value * 1e3:g} ms" if abs(value) < 0.999 else f"{value:,.10g} s"


def _tick_tokens(value: float) -> str:
    return f"{value:,.10g}"
