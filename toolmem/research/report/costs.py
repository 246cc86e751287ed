"""Time and tokens per tool: one row of points and a box each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from toolmem.pages.numbers import count, seconds
from toolmem.readers.plain_text import counted
from toolmem.research.report import style
from toolmem.research.report.style import Chart

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

MOST_ROWS = 40
MOST_POINTS = 250  # per tool; of more calls, evenly spaced ones in order of size, extremes included
BOX_FROM = 5  # fewer calls have no quartiles worth a box

AXIS = {"time_cost": "seconds per call", "token_cost": "tokens per call"}


def cost_chart(calls: pd.DataFrame, column: str) -> Chart | None:
    """What a call of each tool costs. `calls`: `calls_frame`; `column`: "time_cost" or "token_cost".

    Tools in the order of their medians, the largest first; boxes span the quartiles, whiskers the 5th to the 95th
    percentile. None where no call has a known value.
    """
    known = calls[calls[column].notna()]
    if known.empty:
        return None
    groups = {str(name): np.sort(group.to_numpy(dtype=float)) for name, group in known.groupby("tool_name")[column]}
    largest = sorted(groups, key=lambda name: -len(groups[name]))[:MOST_ROWS]
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
