"""The figures: legible with any tool names, no warning, nothing drawn over something else."""

from __future__ import annotations

import warnings
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolmem.models import ToolCallResult
from toolmem.research.report import (
    calls_frame,
    cost_chart,
    error_chart,
    errors_frame,
    score_chart,
    success_chart,
    timeline,
    timeline_chart,
    tools_frame,
)
from toolmem.research.report.style import drawable, font_families, labels, shortened
from toolmem.research.report.timeline import MOST_BINS

ODD_NAMES = [
    "price_in_$_per_$unit",
    "a_very_long_name_of_a_tool_that_goes_on_and_on_for_streaming_availability",
    "a_very_long_name_of_a_tool_that_goes_on_and_on_for_streaming_availability_too",
    "查询天气",
    "tab\tand\nnewline",
    "Send Email, with/slash",
    "send email, with/slash",
    "🌦 forecast",
    "",
    "^_{x}\\frac",
]


def over_time(calls):
    line = timeline(calls)
    return timeline_chart(line, "UTC") if line else None


CHARTS = [
    lambda evaluation: success_chart(tools_frame(evaluation)),
    lambda evaluation: score_chart(calls_frame(evaluation)),
    lambda evaluation: error_chart(errors_frame(evaluation)),
    lambda evaluation: over_time(calls_frame(evaluation)),
    lambda evaluation: cost_chart(calls_frame(evaluation), "time_cost"),
    lambda evaluation: cost_chart(calls_frame(evaluation), "token_cost"),
]


def charts_of(evaluation, most=6):
    return [draw(evaluation) for draw in CHARTS[:most]]


def drawn_texts(axis):
    texts = [
        tick.label1 for tick in axis.get_major_ticks() if tick.label1.get_visible() and tick.label1.get_text().strip()
    ]
    return [text.get_window_extent() for text in texts]


@pytest.mark.parametrize(
    ("names", "per_tool", "charts"),
    [
        (ODD_NAMES, 12, 6),
        (["only_one"], 1, 6),
        (["only_one"], 30, 6),
        ([f"tool_{n:02d}_of_a_long_list" for n in range(75)], 2, 1),
    ],
    ids=["odd names", "one call", "one tool", "75 tools"],
)
def test_charts_draw_without_warning_and_labels_do_not_overlap(build, names, per_tool, charts):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for chart in filter(None, charts_of(build(tools=names, per_tool=per_tool), charts)):
            assert chart.svg().startswith("<?xml")
            figure = chart.figure
            whole = figure.bbox
            for axes in figure.axes:
                boxes = drawn_texts(axes.yaxis)
                assert all(whole.x0 <= box.x0 and box.x1 <= whole.x1 for box in boxes)
                rows = sorted(boxes, key=lambda box: box.y0)
                assert all(low.y1 <= high.y0 + 1 for low, high in pairwise(rows))
                columns = sorted(drawn_texts(axes.xaxis), key=lambda box: box.x0)
                assert all(left.x1 <= right.x0 for left, right in pairwise(columns))


def test_the_same_data_gives_the_same_picture(build):
    first, second = (success_chart(tools_frame(build())).svg() for _ in range(2))
    assert first == second
    assert "<dc:date>" not in first


def test_there_is_no_chart_where_nothing_is_known(build):
    calls = [ToolCallResult(tool_name="t", create_time=datetime(2026, 1, 1, tzinfo=UTC))]
    assert charts_of(build(calls=calls, memories=[])) == [None] * 6
    assert charts_of(build(calls=[], memories=[])) == [None] * 6


def test_names_are_drawn_as_they_are_or_as_escapes():
    assert drawable("get_price ($)") == "get_price ($)"
    assert drawable("a\tb") == "a\\tb"
    if len(font_families()) == 1:  # matplotlib's own font alone: no ideographs
        assert drawable("查") == "\\u67e5"
    assert drawable("\U000e0041") == "\\U000e0041"


@given(st.lists(st.text(max_size=80), max_size=12))
def test_labels_are_short_and_all_different(names):
    found = labels(names)
    assert len(set(found)) == len(found) == len(names)
    assert all(len(text) <= 41 for text in found)


@given(st.text(max_size=100), st.integers(5, 50))
def test_shortening_keeps_both_ends(text, width):
    short = shortened(text, width)
    assert len(short) <= width
    assert short == text if len(text) <= width else short[0] == text[0] and short[-1] == text[-1]


@given(
    offsets=st.lists(st.integers(0, 3 * 10**8), min_size=1, max_size=60),
    flags=st.lists(st.sampled_from([True, False, None]), min_size=60, max_size=60),
)
def test_each_call_is_in_exactly_one_bin_of_the_timeline(build_calls, offsets, flags):
    line = timeline(build_calls(offsets, flags))
    if len(set(offsets)) == 1:
        assert line is None
        return
    known = flags[: len(offsets)]
    assert line.worked.sum() == known.count(True)
    assert line.failed.sum() == known.count(False)
    assert line.unknown.sum() == known.count(None)
    assert len(line.starts) <= MOST_BINS
    assert (np.diff(line.starts) >= line.width).all()
    if line.gaps:
        assert ((line.worked + line.failed + line.unknown) > 0).all()


@pytest.fixture(scope="module")
def build_calls():
    import pandas as pd

    def make(offsets, flags):
        start = datetime(2020, 1, 1, tzinfo=UTC)
        times = pd.Series([start + timedelta(seconds=offset) for offset in offsets])
        failed = [None if flag is None else not flag for flag in flags[: len(offsets)]]
        return pd.DataFrame({"create_time": times, "failed": pd.array(failed, dtype="boolean")})

    return make


def test_recordings_made_in_a_few_sittings_leave_the_nights_out(build_calls):
    sitting = [day * 86400 * 20 + second for day in range(3) for second in range(0, 900, 10)]
    line = timeline(build_calls(sitting, [True] * len(sitting)))
    assert line.gaps
    assert line.width <= 300
    assert line.empty > 1000


def test_time_is_shown_on_the_clock_of_the_time_zone(build):
    line = timeline(calls_frame(build(time_zone="Asia/Shanghai")))
    # 09:00 UTC is 17:00 in Shanghai
    assert int(line.starts[0]) % 86400 // 3600 == 17
