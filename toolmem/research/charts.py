"""Charts of an evaluation's frames, with matplotlib."""

from __future__ import annotations

from collections.abc import Iterable
from io import BytesIO

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from toolmem.text.display import shown_name

FAILED, UNFLAGGED, GOOD, DIM = "#c8402f", "#e39a3b", "#3a7d5c", "#8a929a"
MAX_BARS = 30  # tools or error classes in one chart


class Chart(Figure):
    """A figure that notebooks show, whatever backend they use."""

    def _repr_png_(self) -> bytes:
        image = BytesIO()
        self.savefig(image, format="png", dpi=100)
        return image.getvalue()


def failure_chart(tools: pd.DataFrame) -> Chart:
    """The share of calls that failed, by tool, with its 95 % interval (Wilson)."""
    shown = tools.head(MAX_BARS)[::-1]
    chart, axes = _chart(len(shown), "share of calls that failed", shown["tool_name"])
    failed = 1 - shown["success_rate"].astype(float)
    low, high = 1 - shown["high"].astype(float), 1 - shown["low"].astype(float)
    positions = range(len(shown))
    axes.barh(positions, failed, color=FAILED)
    axes.barh(positions, shown["flag_wrong"] / shown["calls"], left=failed, color=UNFLAGGED)
    axes.hlines(list(positions), low, high, color=DIM, linewidth=1)
    for position, (k, n) in enumerate(zip(shown["failures"], shown["calls"], strict=True)):
        axes.text(1.02, position, f"{k} of {n}", va="center", fontsize=8)
    axes.set_xlim(0, 1)
    return chart


def score_chart(tools: pd.DataFrame) -> Chart:
    """The judge's average score, by tool."""
    scored = tools[tools["avg_score"].notna()]
    shown = scored.sort_values("avg_score", ascending=False).tail(MAX_BARS)
    chart, axes = _chart(len(shown), "average score", shown["tool_name"])
    axes.barh(range(len(shown)), shown["avg_score"].astype(float), color=GOOD)
    axes.set_xlim(0, 1)
    return chart


def error_chart(errors: pd.DataFrame) -> Chart:
    """How many calls failed, by error class."""
    counts = errors.groupby("error_class")["calls"].sum().sort_values().tail(MAX_BARS)
    chart, axes = _chart(len(counts), "failed calls", counts.index)
    axes.barh(range(len(counts)), counts.astype(int), color=FAILED)
    return chart


def skip_chart(skips: pd.DataFrame) -> Chart:
    """What the two summaries did with the tools."""
    counts = skips.groupby(["run", "action"]).size().unstack(fill_value=0)[::-1]
    chart, axes = _chart(len(counts), "tools", counts.index)
    left = pd.Series(0, index=counts.index)
    colours = {"summarized": GOOD, "skipped": DIM, "failed": FAILED}
    for action in counts.columns:
        colour = colours.get(action, UNFLAGGED)
        axes.barh(range(len(counts)), counts[action], left=left, color=colour, label=action)
        left = left + counts[action]
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return chart


def _chart(bars: int, label: str, names: Iterable[str]) -> tuple[Chart, Axes]:
    """`names` may be text of calls, so invisible characters are left out."""
    chart = Chart(figsize=(7, 0.8 + 0.28 * max(bars, 1)), layout="tight")
    axes = chart.subplots()
    axes.set_yticks(range(bars), [shown_name(name, 40) for name in names], parse_math=False)
    axes.set_xlabel(label)
    axes.spines[["top", "right"]].set_visible(False)
    return chart, axes
