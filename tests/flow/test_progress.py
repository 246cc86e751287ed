"""Live progress: it moves in a terminal and in a notebook, and is a few lines elsewhere."""

from __future__ import annotations

import io
import re
import sys
import time

import pytest

from toolmem.flow import progress as progress_module
from toolmem.flow.progress import ProgressLine, in_notebook
from toolmem.flow.report import Event


def progress_of(done: int, total: int = 40) -> Event:
    return Event("progress", "flow", "op", done=done, total=total, message="judged")


@pytest.fixture
def clock(monkeypatch):
    """Seconds that the test moves."""
    now = [100.0]
    monkeypatch.setattr(progress_module.time, "monotonic", lambda: now[0])
    return now


def test_a_short_run_in_a_pipe_says_nothing(capsys, clock):
    with ProgressLine() as line:
        line(Event("op_started", "flow", "parse_tool_call_result_op"))
        for done in range(41):
            clock[0] += 0.04
            line(progress_of(done))
    assert capsys.readouterr() == ("", "")


def test_a_long_step_in_a_pipe_says_every_ten_seconds_how_far_it_is(capsys, clock):
    with ProgressLine() as line:
        line(Event("op_started", "flow", "parse_tool_call_result_op"))
        for done in range(41):
            line(progress_of(done))
            clock[0] += 1.0
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [
        "parse_tool_call_result_op: 2 of 40 judged after 2 s",
        "parse_tool_call_result_op: 12 of 40 judged after 12 s",
        "parse_tool_call_result_op: 22 of 40 judged after 22 s",
        "parse_tool_call_result_op: 32 of 40 judged after 32 s",
    ]


def test_phases_are_lines_in_a_pipe_and_ops_do_not_rename_them(capsys, clock):
    with ProgressLine() as line:
        line.phase("judge and store")
        line(Event("op_started", "flow", "parse_tool_call_result_op"))
        clock[0] += 5.0
        line(progress_of(7))
        line(Event("notice", "flow", message="40 evaluations by a model"))
    assert capsys.readouterr().err.splitlines() == [
        "judge and store ...",
        "judge and store: 7 of 40 judged after 5 s",
        "40 evaluations by a model",
    ]


def test_seconds_are_those_of_the_whole_run_as_the_count_is(capsys, clock):
    with ProgressLine() as line:
        line.phase("judge and store")
        clock[0] += 60.0
        line.phase("judge and store the newest 5 %")
        clock[0] += 5.0
        line(progress_of(39))
    assert capsys.readouterr().err.splitlines()[-1] == "judge and store the newest 5 %: 39 of 40 judged after 65 s"


def test_a_slow_model_is_seen_to_answer_before_the_first_verdict(capsys, clock):
    with ProgressLine() as line:
        line.phase("judge and store")
        line(progress_of(0))
        for _ in range(30):
            clock[0] += 1.0
            line(Event("request", "flow", "op", done=1, message="search"))
        line.phase("summarize (all new)")
        clock[0] += 30.0
        line(Event("request", "flow", "op", done=1, message="search"))
    assert capsys.readouterr().err.splitlines() == [
        "judge and store ...",
        "judge and store: 0 of 40 judged after 2 s",
        "judge and store: 0 of 40 judged after 12 s",
        "judge and store: 0 of 40 judged after 22 s",
        "summarize (all new) ...",
    ]


def drawn(monkeypatch, *steps: str | Event) -> list[str]:
    """What a terminal of 80 columns shows after each step: a phase by its name, or an event."""
    written = io.StringIO()
    monkeypatch.setattr(written, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys, "stderr", written)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    shown = []
    with ProgressLine() as line:
        for step in steps:
            line.phase(step) if isinstance(step, str) else line(step)
            written.truncate(written.seek(0))
            line._view._progress.refresh()
            shown.append(re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|[\r━╸╺]", "", written.getvalue()).rstrip())
    return shown


def test_a_step_that_counts_nothing_shows_no_count_and_none_of_the_step_before(monkeypatch):
    lines = drawn(monkeypatch, "read", "judge and store", progress_of(40), "summarize (all new)")
    assert [" ".join(line.split()[:-1]) for line in lines] == [
        "read",
        "judge and store",
        "judge and store 40/40 judged",
        "summarize (all new)",
    ]


def test_the_longest_line_of_an_evaluation_fits_a_terminal_of_80_columns(monkeypatch):
    _, shown = drawn(monkeypatch, "judge and store the newest 5 %", progress_of(12_345, 12_827))
    assert len(shown.splitlines()) == 1
    assert "judge and store the newest 5 %" in shown
    assert "12345/12827 judged" in shown


def test_what_is_shown_is_text_and_not_markup(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    with ProgressLine() as line:
        line.phase("reading [bold]")
        line(Event("notice", "flow", message="[red]not a colour[/red] :warning:"))
    out, err = capsys.readouterr()
    assert out == ""
    assert "[red]not a colour[/red]" in err


class Cell:
    """Stands for the output of a notebook's cell: what it shows now, and how often that changed."""

    def __init__(self) -> None:
        self.shown: list[str] = []

    def HTML(self, text: str) -> str:
        return text

    def display(self, html: str, display_id: bool) -> Cell:
        assert display_id
        self.shown.append(html)
        return self

    def update(self, html: str) -> None:
        self.shown.append(html)


@pytest.fixture
def cell(monkeypatch):
    cell = Cell()
    monkeypatch.setattr(progress_module, "import_module", lambda _: cell)
    return cell


def test_a_notebook_shows_the_terminals_line_and_leaves_what_was_done(cell, clock, capsys):
    with ProgressLine(notebook=True) as line:
        line.phase("judge and store")
        for done in range(0, 41, 4):
            clock[0] += 1.0
            line(progress_of(done))
        line.phase("write the report")
        clock[0] += 2.5
    assert "judge and store" in cell.shown[0]
    assert any("20/40" in shown and "━" in shown for shown in cell.shown)
    assert cell.shown[-1].endswith("judge and store 11.0 s, write the report 2.5 s</pre>")
    assert capsys.readouterr() == ("", "")


def test_a_notebook_shows_nothing_of_what_is_over_in_two_seconds(cell, clock):
    with ProgressLine(notebook=True) as line:
        line.phase("judge and store")
        clock[0] += 1.9
        line(progress_of(39))
    assert cell.shown == []


def test_a_notebook_is_not_flooded(cell, clock):
    with ProgressLine(notebook=True) as line:
        line.phase("judge and store")
        clock[0] += 3.0
        for done in range(1000):
            clock[0] += 0.001
            line(progress_of(done, 1000))
    assert len(cell.shown) <= 6


def test_this_process_is_no_notebook():
    assert not in_notebook()
    assert time.monotonic() > 0
