"""Calls over time: bins that suit the recording, and the figure over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from toolmem.research.report import style
from toolmem.research.report.style import Chart

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

MINUTE, HOUR, DAY = 60, 3600, 86400
# widths of a bin that people read without counting, in seconds
WIDTHS: tuple[tuple[int, str], ...] = (
    (1, "1 s"),
    (5, "5 s"),
    (10, "10 s"),
    (30, "30 s"),
    (MINUTE, "1 min"),
    (5 * MINUTE, "5 min"),
    (10 * MINUTE, "10 min"),
    (30 * MINUTE, "30 min"),
    (HOUR, "1 h"),
    (3 * HOUR, "3 h"),
    (6 * HOUR, "6 h"),
    (DAY, "1 day"),
    (7 * DAY, "1 week"),
    (28 * DAY, "4 weeks"),
    (91 * DAY, "13 weeks"),
    (364 * DAY, "52 weeks"),
    (3640 * DAY, "520 weeks"),
)
MOST_BINS = 60
CALLS_PER_BIN = 4  # on average, at least: fewer calls get fewer bins


@dataclass(frozen=True)
class Timeline:
    """Calls per bin of local time.

    `starts`: seconds since 1970 on the local clock, ascending, without empty bins where `gaps` is set;
    `worked`, `failed`, `unknown`: calls, one entry per start.
    """

    width: int  # seconds per bin
    width_text: str
    gaps: bool  # stretches without calls are left out
    empty: int  # bins between first and last call that hold no call
    starts: NDArray[np.int64]
    worked: NDArray[np.int64]
    failed: NDArray[np.int64]
    unknown: NDArray[np.int64]


def timeline(calls: pd.DataFrame) -> Timeline | None:
    """Bin the calls of `calls_frame`; None where all of them carry the same second.

    The finest width that gives at most 60 bins from the first to the last call, and some calls per bin. Where most of
    these bins would be empty (recordings made in a few sittings), the empty ones are left out and do not count.
    """
    if calls["create_time"].dt.floor("s").nunique() < 2:
        return None
    # bins are cut on the local clock, so that a day is a day where the reader lives
    local = calls["create_time"].dt.tz_localize(None).to_numpy().astype("datetime64[s]").astype(np.int64)
    first, last = int(local.min()), int(local.max())
    most = min(MOST_BINS, max(12, len(local) // CALLS_PER_BIN))
    full = next((pair for pair in WIDTHS if last // pair[0] - first // pair[0] < most), WIDTHS[-1])
    filled = len(np.unique(local // full[0]))
    span = last // full[0] - first // full[0] + 1
    gaps = filled < span * 0.4
    if gaps:
        full = next((pair for pair in WIDTHS if len(np.unique(local // pair[0])) <= most), WIDTHS[-1])
    width, text = full
    bins = local // width
    starts = np.unique(bins) if gaps else np.arange(first // width, last // width + 1)
    place = np.searchsorted(starts, bins)
    outcome = calls["failed"]

    def tally(mask: Any) -> NDArray[np.int64]:
        return np.bincount(place[mask.to_numpy(dtype=bool)], minlength=len(starts)).astype(np.int64)

    return Timeline(
        width=width,
        width_text=text,
        gaps=gaps,
        empty=int(last // width - first // width + 1 - len(np.unique(bins))),
        starts=starts.astype(np.int64) * width,
        worked=tally((~outcome).fillna(False)),
        failed=tally(outcome.fillna(False)),
        unknown=tally(outcome.isna()),
    )


def timeline_chart(line: Timeline, time_zone: str) -> Chart:
    """Stacked bars per bin: calls that did not fail, failed, and of which it is not known."""
    positions = _positions(line)
    parts = [
        ("did not fail", line.worked, style.BLUE),
        ("failed", line.failed, style.VERMILION),
        ("not known", line.unknown, style.GREY),
    ]

    def draw(axes: Axes) -> None:
        style.stacked(axes, positions, parts, size=0.86)
        places = _tick_places(line)
        axes.set_xticks([positions[i] for i in places], _tick_texts([int(line.starts[i]) for i in places], line.width))
        axes.set_xlim(-0.7, max(float(positions[-1]) + 0.7, 8.0))
        axes.set_ylabel(f"calls per {line.width_text.removeprefix('1 ')}")
        axes.set_xlabel(f"time of the call ({time_zone})")
        axes.grid(axis="y")
        style.whole_numbers(axes.yaxis, 5)
        style.legend_above(axes)

    return style.chart(draw, 3.3, f"Calls over time in bins of {line.width_text}")


def _positions(line: Timeline) -> NDArray[np.float64]:
    """One unit per bin; bins that are not neighbours in time stand 0.8 apart from each other."""
    if len(line.starts) == 1:
        return np.zeros(1)
    apart = np.diff(line.starts) > line.width
    return np.concatenate([[0.0], np.cumsum(np.where(apart, 1.8, 1.0))])


def _tick_places(line: Timeline) -> list[int]:
    """At most 8 bins that get a label; with gaps, the first bin after a gap goes before others."""
    positions = _positions(line)
    wanted = max(float(positions[-1]), 8.0) / 7.4
    places: list[int] = []
    for i, position in enumerate(positions):
        if not places or position - positions[places[-1]] >= wanted:
            places.append(i)
    return places


def _tick_texts(starts: Sequence[int], width: int) -> list[str]:
    """The clock on the first line, and below it the date where it changes (else a blank, so that all stand level)."""
    stamps = [np.datetime64(start, "s").item() for start in starts]
    if width >= DAY:
        years = {stamp.year for stamp in stamps}
        return [
            f"{stamp:%d %b}\n{stamp:%Y}" if len(years) > 1 or i == 0 else f"{stamp:%d %b}\n "
            for i, stamp in enumerate(stamps)
        ]
    clock = "%H:%M:%S" if width < MINUTE else "%H:%M"
    texts, day = [], None
    for stamp in stamps:
        date = f"\n{stamp:%d %b %Y}" if stamp.date() != day else "\n "
        texts.append(stamp.strftime(clock) + date)
        day = stamp.date()
    return texts
