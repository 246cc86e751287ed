"""The plot of repair coverage against money: a point per policy, beside the baselines and the single-pass bound."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolmem.readers.plain_text import counted
from toolmem.research.report import style
from toolmem.research.report.style import Chart

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# A colour and a mark per policy, the same in every panel; told apart without the colour.
LOOKS: Sequence[tuple[str, str]] = (
    (style.VERMILION, "s"),
    (style.ORANGE, "D"),
    (style.SKY, "^"),
    (style.BLUE, "o"),
    ("#009E73", "P"),
    ("#CC79A7", "v"),
    (style.INK, "X"),
    (style.FAINT, "*"),
)


@dataclass(frozen=True, slots=True)
class Point:
    """One policy on one recording."""

    name: str
    money: float  # for 1000 calls
    share: float  # of the repairs that were named, 0 to 1
    low: float  # 95 % interval of the share
    high: float


@dataclass(frozen=True, slots=True)
class Panel:
    """One recording. `bound`: money that reading each call once would take, for 1000 calls."""

    title: str
    points: Sequence[Point]
    bound: float


def money_chart(panels: Sequence[Panel], currency: str, budget: int) -> Chart | None:
    """Repair coverage against the money for summaries, a panel per recording. Points without cost stand at 0.

    Names of policies come from the first panel that has them. None without panels.
    """
    if not panels:
        return None
    names = list(dict.fromkeys(point.name for panel in panels for point in panel.points))
    looks = {name: LOOKS[place % len(LOOKS)] for place, name in enumerate(names)}
    most = max(point.money for panel in panels for point in panel.points)
    paid = [point.money for panel in panels for point in panel.points if point.money > 0]
    least = min([*paid, *(panel.bound for panel in panels)], default=0.01)
    top = max(point.high for panel in panels for point in panel.points)

    def draw_all(axes: Axes) -> None:
        figure: Any = axes.figure
        axes.remove()
        handles: dict[str, Any] = {}
        for place in range(len(panels)):
            one = figure.add_subplot(1, len(panels), place + 1)
            draw(place, one)
            for handle, label in zip(*one.get_legend_handles_labels(), strict=True):
                handles.setdefault(label, handle)
        figure.legend(list(handles.values()), list(handles), loc="outside upper left", ncols=4, handlelength=1.2)

    def draw(place: int, axes: Axes) -> None:
        panel = panels[place]
        _scale(axes, least, most)
        axes.set_ylim(0, min(top * 1.08, 1.03) or 1.0)
        axes.axvline(panel.bound, color=style.FAINT, linewidth=1.0, linestyle=(0, (4, 3)), label="single pass")
        for point in panel.points:
            colour, mark = looks[point.name]
            axes.vlines(point.money, point.low, point.high, color=colour, linewidth=1.6, alpha=0.55)
            axes.plot(
                [point.money],
                [point.share],
                mark,
                color=colour,
                markersize=7.5,
                markeredgecolor="white",
                markeredgewidth=0.8,
                label=point.name,
                linestyle="none",
                clip_on=False,
                zorder=3,
            )
        axes.set_title(panel.title, fontsize=9.5, loc="left", color=style.INK)
        axes.set_xlabel(f"summaries: {currency} per 1000 calls")
        if place == 0:
            axes.set_ylabel(f"share of repairs named, at {budget} tokens")
        axes.grid(axis="both")
        _percent(axes)

    alt = (
        f"Money for summaries against the share of repairs that the guidance names, {counted(len(panels), 'recording')}"
    )
    return style.chart(draw_all, 4.1, alt)


def _scale(axes: Axes, least: float, most: float) -> None:
    """Logarithmic from the smallest price on; what costs nothing has a place left of it."""
    from matplotlib.ticker import FuncFormatter, NullFormatter, NullLocator

    start = 10.0 ** _floor_log(least)
    axes.set_xscale("symlog", linthresh=start, linscale=0.7)
    axes.set_xlim(-start * 0.25, most * 1.6)
    ticks = [0.0]
    tick = start
    while tick <= most * 1.6:
        ticks.append(tick)
        tick *= 10
    axes.set_xticks(ticks)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_minor_formatter(NullFormatter())


def _floor_log(value: float) -> int:
    from math import floor, log10

    return floor(log10(value)) if value > 0 else -2


def _percent(axes: Any) -> None:
    from matplotlib.ticker import FuncFormatter

    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value * 100:.0f} %"))
