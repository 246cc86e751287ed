"""The figures of the report.

Each function takes a frame of `toolmem.research.report` and answers a Chart, or None where there is nothing to draw.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolmem.pages.numbers import count, percent
from toolmem.readers.plain_text import counted
from toolmem.research.report import style
from toolmem.research.report.style import Chart

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

MOST_ROWS = 60  # tools in one figure: those with most calls; the tables have all


def success_chart(tools: pd.DataFrame) -> Chart | None:
    """How often each tool worked with its 95 % Wilson interval, best first; beside it the rate by the recorded flag
    where that is another one. `tools`: `tools_frame`."""
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
        _whole_numbers(axes.xaxis)
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


def _whole_numbers(axis: Any) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
