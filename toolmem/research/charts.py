"""Charts of an evaluation's frames, with matplotlib. `savefig` writes one as PDF, SVG or PNG."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterable
from functools import cache
from io import BytesIO
from typing import Any

import pandas as pd
from matplotlib import font_manager, rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from toolmem.text.display import counted, shown_name

FAILED = "#c8402f"
SILENT = "#e39a3b"
GOOD = "#3a7d5c"
INK = "#1b1f24"
MAX_BARS = 30  # tools or error classes in one chart
_CHINESE = 0x2E80  # the first character of the scripts of China, Japan and Korea
_FONTS = (  # of Linux, macOS and Windows
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "Source Han Sans SC",
    "WenQuanYi Micro Hei",
    "WenQuanYi Zen Hei",
    "PingFang SC",
    "Hiragino Sans GB",
    "Microsoft YaHei",
    "SimHei",
    "Arial Unicode MS",
)


class Chart(Figure):
    """A figure that notebooks show, whatever backend they use."""

    def savefig(self, *args: Any, **kwargs: Any) -> None:
        """Save the chart like Figure.savefig. A PDF has TrueType fonts, which journals accept."""
        with rc_context({"pdf.fonttype": 42}):
            super().savefig(*args, **kwargs)

    def _repr_png_(self) -> bytes:
        image = BytesIO()
        self.savefig(image, format="png", dpi=100)
        return image.getvalue()


def failure_chart(tools: pd.DataFrame) -> Chart:
    """Draw the share of failed calls with its 95 % interval, in the order of the table.

    `tools`: the table `tools` or `groups`.
    """
    by = "group" if "group" in tools else "tool; most failures above"
    tools = _all_tools(tools)
    shown = tools.head(MAX_BARS)
    title = f"Calls that failed, by {by}{_left_out(tools)}"
    chart, axes = _chart(_names(shown), title, "share of its calls")
    calls = shown["calls"].astype(float)
    rows = range(len(shown))
    silent = shown["silent_failures"] / calls
    flagged = (shown["failures"] - shown["silent_failures"]) / calls
    axes.barh(rows, flagged, color=FAILED, label="failed")
    _silent_bars(axes, silent, flagged)
    known = shown["success_rate"].notna()
    rate = 1 - shown["success_rate"].astype(float)
    ends = [rate - 1 + shown["high"].astype(float), 1 - shown["low"].astype(float) - rate]
    places = [row for row, is_known in zip(rows, known, strict=True) if is_known]
    axes.errorbar(
        rate[known],
        places,
        xerr=[each[known].clip(lower=0) for each in ends],
        fmt="none",
        ecolor=INK,
        elinewidth=1.2,
        capsize=2.5,
        label="95 % interval",
    )
    for row, (k, n) in enumerate(zip(shown["failures"], shown["calls"], strict=True)):
        axes.text(1.02, row, f"{k} of {n}", va="center", fontsize=8)
    axes.set_xlim(0, 1)
    return _with_legend(chart, axes)


def score_chart(tools: pd.DataFrame) -> Chart:
    """Draw the judge's average score, in the order of the table `tools` or `groups`."""
    scored = _all_tools(tools).dropna(subset="avg_score")
    shown = scored.head(MAX_BARS)
    title = "Average score; most failures above"
    chart, axes = _chart(_names(shown), title + _left_out(scored), "score")
    label = "average of the judge's 0.0 and 1.0"
    axes.barh(range(len(shown)), shown["avg_score"].astype(float), color=GOOD, label=label)
    for row, calls in enumerate(shown["calls"]):
        axes.text(1.02, row, counted(calls, "call"), va="center", fontsize=8)
    axes.set_xlim(0, 1)
    return _with_legend(chart, axes)


def error_chart(errors: pd.DataFrame) -> Chart:
    """Draw how many calls failed by error class, from the table `errors`; most failures first."""
    sums = errors.groupby("error_class")[["calls", "silent_failures"]].sum().astype(int)
    shown = sums.sort_values("calls", ascending=False, kind="stable").head(MAX_BARS)
    chart, axes = _chart(shown.index, "Why calls failed", "failed calls")
    flagged = shown["calls"] - shown["silent_failures"]
    axes.barh(range(len(shown)), flagged, color=FAILED, label="failed")
    _silent_bars(axes, shown["silent_failures"], flagged)
    axes.set_xlim(0, 1.1 * max(shown["calls"].max(), 1) if len(shown) else 1)
    return _with_legend(chart, axes)


def skip_chart(skips: pd.DataFrame) -> Chart:
    """Draw the prompt tokens that both summaries sent and saved, from the table `skips`."""
    names = {"sent_prompt_tokens": "sent", "saved_prompt_tokens": "saved: nothing was new"}
    sums = skips.groupby("run", sort=False)[list(names)].sum().astype(int)
    estimated = ", estimated" if bool(skips["estimated"].all()) else ""
    title = "What two summaries send, and what the second saves"
    chart, axes = _chart(sums.index, title, f"prompt tokens of all tools{estimated}")
    left = pd.Series(0, index=sums.index)
    for (column, label), colour in zip(names.items(), (FAILED, GOOD), strict=True):
        axes.barh(range(len(sums)), sums[column], left=left, color=colour, label=label)
        left = left + sums[column]
    axes.set_xlim(0, 1.1 * max(left.max(), 1) if len(left) else 1)
    return _with_legend(chart, axes)


def cost_chart(costs: pd.DataFrame) -> Chart:
    """Draw each policy's prompt tokens and age of guidance, from `summarization_costs`."""
    title = "What keeping guidance fresh costs"
    chart, axes = _chart(costs.index, title, "estimated prompt tokens")
    tokens = costs["prompt_tokens"].astype(float)
    axes.barh(range(len(costs)), tokens, color=GOOD, label="prompt tokens")
    for row, (value, age) in enumerate(zip(tokens, costs["age_median"], strict=True)):
        freshness = "no guidance" if pd.isna(age) else f"guidance {age} calls old"
        axes.text(value, row, f"  {value:,.0f}, {freshness}", va="center", fontsize=8)
    axes.set_xlim(0, 1.6 * max(tokens.max(), 1))
    axes.locator_params(axis="x", nbins=5)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    return _with_legend(chart, axes)


def _all_tools(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of the table `groups` that are about all tools; the whole table `tools`."""
    return rows[rows["tool_name"].fillna("") == ""] if "group" in rows else rows


def _names(shown: pd.DataFrame) -> pd.Series:
    """The names of the tools or groups."""
    names = shown["group" if "group" in shown else "tool_name"]
    return names.fillna("").replace("", "none")


def _left_out(rows: pd.DataFrame) -> str:
    return f" ({MAX_BARS} of {len(rows)})" if len(rows) > MAX_BARS else ""


def _silent_bars(axes: Axes, values: pd.Series, left: pd.Series) -> None:
    """Draw the silent failures, if there are any."""
    if values.sum():
        label = "failed silently: flagged as a success"
        axes.barh(range(len(values)), values, left=left, color=SILENT, label=label)


def _chart(names: Iterable[str], title: str, label: str) -> tuple[Chart, Axes]:
    """A chart with a named row for each bar. Invisible characters in `names` are left out."""
    shown = [shown_name(name, 40) for name in names]
    chart = Chart(figsize=(7, 1.6 + 0.28 * max(len(shown), 1)), layout="constrained")
    axes = chart.subplots()
    axes.set_yticks(range(len(shown)), shown, parse_math=False)
    if any(character >= chr(_CHINESE) for name in shown for character in name):
        for tick in axes.get_yticklabels():
            tick.set_fontfamily(["DejaVu Sans", *_chinese_font()])
    axes.invert_yaxis()
    axes.set_xlabel(label)
    chart.suptitle(title, fontsize=11)
    axes.spines[["top", "right"]].set_visible(False)
    return chart, axes


def _with_legend(chart: Chart, axes: Axes) -> Chart:
    # Below the axis, where no bar is hidden.
    parts = axes.get_legend_handles_labels()
    chart.legend(*parts, frameon=False, loc="outside lower center", ncols=3, fontsize=8)
    return chart


@cache
def _chinese_font() -> list[str]:
    """A font of this machine with Chinese characters; without one, a warning is logged once."""
    known = set(font_manager.get_font_names())
    if found := [name for name in _FONTS if name in known][:1]:
        return found
    warnings.filterwarnings("ignore", "Glyph .* missing from")  # one for each character
    log = logging.getLogger("toolmem")
    log.warning("charts: no font has Chinese characters; install one, such as Noto Sans CJK SC")
    return []
