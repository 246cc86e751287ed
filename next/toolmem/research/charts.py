"""Charts of an evaluation's frames, with matplotlib."""

from __future__ import annotations

import pandas as pd
from matplotlib import pyplot  # with a plain Figure, notebooks would not show it
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from toolmem.text.display import plain

FAILED, UNFLAGGED, GOOD, DIM = "#c8402f", "#e39a3b", "#3a7d5c", "#8a929a"
MOST = 30  # tools or classes in one chart


def failure_chart(tools: pd.DataFrame) -> Figure:
    """The share of calls that failed, by tool, with its 95 % interval (Wilson)."""
    shown = tools.head(MOST)[::-1]
    axes = _axes(len(shown), "share of calls that failed", [_name(t) for t in shown["tool_name"]])
    failed = 1 - shown["success_rate"].astype(float)
    low, high = 1 - shown["high"].astype(float), 1 - shown["low"].astype(float)
    places = range(len(shown))
    axes.barh(places, failed, color=FAILED)
    axes.barh(places, shown["flag_wrong"] / shown["calls"], left=failed, color=UNFLAGGED)
    axes.hlines(list(places), low, high, color=DIM, linewidth=1)
    for place, (k, n) in enumerate(zip(shown["failures"], shown["calls"], strict=True)):
        axes.text(1.02, place, f"{k} of {n}", va="center", fontsize=8)
    axes.set_xlim(0, 1)
    return _done(axes)


def score_chart(tools: pd.DataFrame) -> Figure:
    """The judge's average score, by tool."""
    shown = tools[tools["avg_score"].notna()].sort_values("avg_score", ascending=False)
    shown = shown.tail(MOST)
    axes = _axes(len(shown), "average score", [_name(t) for t in shown["tool_name"]])
    axes.barh(range(len(shown)), shown["avg_score"].astype(float), color=GOOD)
    axes.set_xlim(0, 1)
    return _done(axes)


def error_chart(errors: pd.DataFrame) -> Figure:
    """How many calls failed, by error class."""
    counts = errors.groupby("error_class")["calls"].sum().sort_values().tail(MOST)
    axes = _axes(len(counts), "failed calls", [_name(each) for each in counts.index])
    axes.barh(range(len(counts)), counts.astype(int), color=FAILED)
    return _done(axes)


def skip_chart(skips: pd.DataFrame) -> Figure:
    """What the two summaries did with the tools."""
    counts = skips.groupby(["run", "action"]).size().unstack(fill_value=0)[::-1]
    axes = _axes(len(counts), "tools", list(counts.index))
    left = pd.Series(0, index=counts.index)
    colours = {"summarized": GOOD, "skipped": DIM, "failed": FAILED}
    for action in counts.columns:
        colour = colours.get(action, UNFLAGGED)
        axes.barh(range(len(counts)), counts[action], left=left, color=colour, label=action)
        left = left + counts[action]
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return _done(axes)


def _axes(bars: int, label: str, names: list[str]) -> Axes:
    axes: Axes
    _, axes = pyplot.subplots(figsize=(7, 0.8 + 0.28 * max(bars, 1)))
    axes.set_yticks(range(bars), names, parse_math=False)
    axes.set_xlabel(label)
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def _done(axes: Axes) -> Figure:
    figure = axes.figure
    assert isinstance(figure, Figure)
    figure.tight_layout()
    pyplot.close(figure)  # else notebooks would show it twice
    return figure


def _name(text: str) -> str:
    """Words of calls, on one line and without characters that cannot be seen."""
    return plain(text, 40)
