"""Charts can be read: a title, a legend, the order of the table, every script."""

import logging

import pandas as pd
import pytest
from matplotlib import font_manager

from toolmem.research import charts


def tools(*names):
    rows = [(name, 10, 4, 2, 0.6, 0.3, 0.83, 0.5) for name in names]
    columns = ["tool_name", "calls", "failures", "silent_failures", "success_rate", "low", "high"]
    return pd.DataFrame(rows, columns=[*columns, "avg_score"])


@pytest.fixture
def no_font(monkeypatch):
    monkeypatch.setattr(font_manager, "get_font_names", lambda: ["DejaVu Sans"])
    charts._chinese_font.cache_clear()
    yield
    charts._chinese_font.cache_clear()


def test_the_order_is_that_of_the_table_and_a_legend_names_each_colour(tmp_path):
    chart = charts.failure_chart(tools("b", "a"))
    (axes,) = chart.axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["b", "a"]
    assert axes.yaxis_inverted() and chart.get_suptitle() and axes.get_xscale() == "linear"
    (legend,) = chart.legends
    told = [text.get_text() for text in legend.get_texts()]
    assert told == ["failed", "failed silently: flagged as a success", "95 % interval"]
    chart.savefig(tmp_path / "figure.pdf")
    assert b"/Type3" not in (tmp_path / "figure.pdf").read_bytes()


def test_what_a_chart_leaves_out_is_in_its_title():
    chart = charts.failure_chart(tools(*map(str, range(40))))
    assert "(30 of 40)" in chart.get_suptitle()


def test_groups_have_a_chart():
    groups = tools("", "a").assign(group="m1")
    (axes,) = charts.failure_chart(groups).axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["m1"]


def test_without_a_chinese_font_a_note_says_so_once(no_font, caplog, recwarn, tmp_path):
    with caplog.at_level(logging.WARNING, "toolmem"):
        for number in range(2):
            charts.failure_chart(tools("搜索")).savefig(tmp_path / f"{number}.png")
    assert [record.message for record in caplog.records] == [
        "charts: no font has Chinese characters; install one, such as Noto Sans CJK SC"
    ]
    assert not [each for each in recwarn if "Glyph" in str(each.message)]
