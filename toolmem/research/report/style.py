"""One look for all figures: palette, fonts, sizes, labels, and the `Chart` that a notebook shows."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from toolmem.config.extras import need
from toolmem.pages.numbers import count
from toolmem.readers.plain_text import name_shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's palette (2008): told apart with any of the common colour vision deficiencies
BLUE = "#0072B2"  # worked, score 1
VERMILION = "#D55E00"  # failed, score 0
GREY = "#B8BDC4"  # not known
SKY = "#56B4E9"
ORANGE = "#E69F00"  # failed as the judge sees it, flagged as a success
INK = "#1F2933"
FAINT = "#6B7580"
GRID = "#E3E7EB"

WIDTH = 8.6  # inches; the page shows 96 px per inch
LABEL_CHARACTERS = 40  # longer tool names are cut in the middle; tables show them whole

# families that are tried for characters which matplotlib's own font lacks
FALLBACK_FAMILIES = (
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "Noto Sans SC",
    "Source Han Sans SC",
    "WenQuanYi Micro Hei",
    "WenQuanYi Zen Hei",
    "Droid Sans Fallback",
    "PingFang SC",
    "Hiragino Sans GB",
    "Heiti TC",
    "Microsoft YaHei",
    "SimHei",
    "Arial Unicode MS",
)


@dataclass(frozen=True, slots=True)
class Chart:
    """A figure as notebooks and the page show it: SVG with a text that says what is to be seen.

    `figure` is a plain matplotlib Figure, free to be changed or saved elsewhere.
    """

    figure: Figure
    alt: str

    def svg(self) -> str:
        """The same figure gives the same text: no date, no random ids."""
        text = io.StringIO()
        with _figure_style():
            self.figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None, "Type": None})
        return text.getvalue()

    def save(self, path: str) -> None:
        """Write the figure to a file; its ending names the format (png, svg, pdf)."""
        with _figure_style():
            self.figure.savefig(path, dpi=200)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> tuple[dict[str, str], dict[str, Any]]:
        return {"image/svg+xml": self.svg(), "text/plain": self.alt}, {"image/svg+xml": {"alt": self.alt}}


def chart(draw: Callable[[Axes], None], height: float, alt: str) -> Chart:
    """A chart of one panel, `height` inches high, drawn by `draw` on its axes."""
    with _figure_style():
        # no pyplot: no global state, no display hooks, and half a second less to import
        from matplotlib.figure import Figure

        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        draw(figure.add_subplot())
        figure.draw_without_rendering()  # the layout is settled here, where a warning still has a place
    return Chart(figure, alt)


@contextmanager
def _figure_style() -> Iterator[None]:
    need("a figure", "research")
    import matplotlib

    settings: dict[Any, Any] = {
        "font.family": list(font_families()),
        "font.size": 9.5,
        "text.color": INK,
        "text.parse_math": False,  # a `$` in a tool's name is a dollar sign
        "axes.edgecolor": FAINT,
        "axes.labelcolor": INK,
        "axes.labelsize": 9.5,
        "axes.linewidth": 0.8,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.axisbelow": True,
        "axes.unicode_minus": False,
        "grid.color": GRID,
        "grid.linewidth": 0.8,
        "xtick.color": FAINT,
        "ytick.color": FAINT,
        "xtick.labelcolor": INK,
        "ytick.labelcolor": INK,
        "legend.frameon": False,
        "figure.facecolor": "white",
        "savefig.facecolor": "white",
        "svg.fonttype": "path",  # looks the same where a font is missing
        "svg.hashsalt": "toolmem",
    }
    with matplotlib.rc_context(settings):
        yield


def bare_rows(axes: Axes, labels: Sequence[str]) -> None:
    """Horizontal rows with a label each, the first on top."""
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0, pad=8)
    axes.spines["left"].set_visible(False)
    axes.grid(axis="x")


def right_column(axes: Axes, texts: Sequence[str], title: str = "") -> None:
    """Figures of the rows, right of the plot, where nothing can overlap them."""
    side = axes.secondary_yaxis("right")
    side.set_yticks(range(len(texts)), texts)
    side.tick_params(axis="y", length=0, labelsize=8.5, labelcolor=FAINT, pad=8)
    side.spines["right"].set_visible(False)
    if title:
        place: dict[str, Any] = {"xytext": (8, 4), "textcoords": "offset points", "ha": "left", "va": "bottom"}
        axes.annotate(title, (1, 1), xycoords="axes fraction", color=FAINT, fontsize=8.5, **place)


def whole_numbers(axis: Any, most: int = 6) -> None:
    """At most so many ticks on an axis of counts, with separators between thousands."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axis.set_major_locator(MaxNLocator(nbins=most, integer=True))
    axis.set_major_formatter(FuncFormatter(lambda value, _: count(value)))


def stacked(
    axes: Axes, places: Any, parts: Iterable[tuple[str, Any, str]], *, size: float = 0.62, across: bool = False
) -> Any:
    """Bars of several parts (name, values, colour) on each other, `across` from left to right; answers their ends."""
    ends = np.zeros(len(places))
    for name, values, colour in parts:
        if values.any() and across:
            axes.barh(places, values, left=ends, height=size, color=colour, label=name)
        elif values.any():
            axes.bar(places, values, bottom=ends, width=size, color=colour, label=name)
        ends = ends + values
    return ends


def row_height(rows: int) -> float:
    """Inches for a chart of that many labelled rows, axis and legend included."""
    return 1.0 + 0.25 * max(rows, 1)


def legend_above(axes: Axes) -> None:
    """The legend over the plot, on one line, left."""
    options: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0, 1.0), "ncols": 4, "borderaxespad": 0.2}
    options |= {"handlelength": 1.2, "columnspacing": 1.4, "borderpad": 0.2}
    axes.legend(**options)


# ---------------------------------------------------------------- fonts


@lru_cache(maxsize=1)
def font_families() -> tuple[str, ...]:
    """DejaVu Sans, which matplotlib brings along, and those of the fallbacks that are installed."""
    from matplotlib import font_manager

    installed = set(font_manager.get_font_names())
    return ("DejaVu Sans", *(name for name in FALLBACK_FAMILIES if name in installed))


@lru_cache(maxsize=1)
def _drawable() -> frozenset[int]:
    """Code points for which one of the families has a glyph."""
    from matplotlib import font_manager

    points: set[int] = set()
    for family in font_families():
        font = font_manager.get_font(font_manager.findfont(family))
        points.update(font.get_charmap())
    return frozenset(points)


def drawable(text: str) -> str:
    r"""`text` with each character that no font can draw (and each control character) as its escape (`\u67e5`).

    An escape names the tool without doubt; an empty box would not.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(mark if mark.isprintable() and ord(mark) in _drawable() else _escape(mark) for mark in text)


def _escape(mark: str) -> str:
    return mark.encode("unicode_escape").decode("ascii")


def labels(names: Iterable[str], width: int = LABEL_CHARACTERS) -> list[str]:
    """Names for the axis of a figure: drawable, the middle cut out where too long, and still told apart."""
    short: dict[str, None] = {}
    for name in names:
        whole = drawable(name_shown(name)) or "(no name)"
        text, number = shortened(whole, width), 1
        while text in short:
            number += 1
            text = f"{shortened(whole, width - 6)} ({number})"
        short[text] = None
    return list(short)


def shortened(text: str, width: int) -> str:
    """At most `width` characters; what is cut is the middle, since both ends of a tool's name tell it apart."""
    if len(text) <= width:
        return text
    tail = (width - 1) * 2 // 5
    return f"{text[: width - 1 - tail]}…{text[-tail:]}"
