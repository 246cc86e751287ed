"""`toolmem tools`, and tables on a narrow terminal."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest

from toolmem.cli import main
from toolmem.cli.console import print_table
from toolmem.cli.rules_listed import print_rules
from toolmem.testing.clock import ManualClock

CALLS = [
    {"tool_name": "search", "input": {"q": f"{n}"}, "output": "[1]" if n else "Error: no", "success": n > 0}
    for n in range(4)
] + [{"tool_name": "calculate the [bold] sum", "input": {}, "output": "4", "success": True}]


@pytest.fixture
def command(capsys, tmp_path):
    def run(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as left:
            main(arguments)
        shown = capsys.readouterr()
        return int(left.value.code or 0), shown.out, shown.err

    return run


@pytest.fixture
def stored(command, tmp_path):
    for flow, request in (
        ("add_tool_call_result", {"tool_call_results": CALLS}),
        ("summary_tool_memory", {"tool_names": ["search"]}),
    ):
        (tmp_path / "request.json").write_text(json.dumps({"workspace_id": "default", **request}))
        assert command("run", flow, "--request", "request.json")[0] == 0


@pytest.mark.usefixtures("stored")
def test_tools_are_listed_with_calls_rates_and_scores_without_a_request(command):
    code, out, _ = command("tools", "list")
    assert code == 0
    [line] = [line.strip() for line in out.splitlines() if line.strip().startswith("search")]
    assert line.split()[:7] == ["search", "4", "4", "1", "75.0%", "0.75", "0"]
    [other] = [line.strip() for line in out.splitlines() if line.strip().startswith("calculate the [bold] sum")]
    assert other.endswith("none yet")
    listed = json.loads(command("tools", "list", "--json")[1])
    assert {each["tool_name"]: each["calls_ever"] for each in listed} == {"search": 4, "calculate the [bold] sum": 1}


@pytest.mark.usefixtures("stored")
def test_a_tool_is_shown_with_its_guidance(command):
    code, out, _ = command("tools", "show", "search")
    shown = json.loads(command("tools", "show", "search", "--json")[1])
    assert code == 0
    assert shown["guidance"]
    assert shown["guidance"] in out
    assert "75.0%" in out
    assert "no guidance yet" in command("tools", "show", "calculate the [bold] sum")[1]


@pytest.mark.usefixtures("stored")
def test_a_tool_or_workspace_that_is_not_known_is_said(command):
    code, out, err = command("tools", "show", "serach")
    assert (code, out) == (1, "")
    assert "does not know the tool 'serach'; `toolmem tools list` shows the names" in err
    code, out, err = command("tools", "list", "--workspace", "team")
    assert (code, out) == (0, "")
    assert "workspace 'team' knows no tool" in err
    assert json.loads(command("tools", "list", "--workspace", "team", "--json")[1]) == []
    assert command("tools", "list", "--workspace", "no such")[0] == 2


def test_a_store_that_is_not_there_is_told_and_not_made(command, tmp_path):
    for arguments, told in ((("list",), (0, "")), (("list", "--json"), (0, "[]\n")), (("show", "search"), (1, ""))):
        code, out, err = command("tools", *arguments)
        assert (code, out) == told
        assert err.startswith("there is no store")
    assert list(tmp_path.iterdir()) == []


def be_narrow(monkeypatch, columns: int = 45) -> None:
    """Stdout is a terminal of so many columns from now on."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    for name, value in {"COLUMNS": str(columns), "TERM": "xterm", "NO_COLOR": "1"}.items():
        monkeypatch.setenv(name, value)


@pytest.mark.usefixtures("stored")
def test_a_narrow_terminal_gets_every_name_and_value_whole(command, monkeypatch):
    be_narrow(monkeypatch)
    name = "op.parse_tool_call_result_op.params.max_history_tool_call_cnt"
    assert name in command("config", "show")[1]
    out = command("tools", "list")[1]
    assert "calculate the [bold] sum\n" in out
    assert "success rate" in out
    assert "75.0%" in out
    assert "…" not in out
    assert "verdicts" in command("store", "info")[1]


def test_rules_on_a_narrow_terminal_keep_ids_and_sentences_whole(monkeypatch, capsys):
    be_narrow(monkeypatch)
    from toolmem.models import ToolMemoryRule

    now = ManualClock().now()
    sentence = "never email sarah.connor.of.the.resistance@example.org before nine in the morning"
    rule = ToolMemoryRule(
        id="4e2cc2ca-1111", tool_name="send_email_to_everybody", rule=sentence, created_at=now, updated_at=now
    )
    print_rules([rule], status=True)
    out = capsys.readouterr().out
    for whole in ("4e2cc2ca\n", "send_email_to_everybody\n", sentence, "active"):
        assert whole in out


def test_what_fits_stays_a_table(monkeypatch, capsys):
    be_narrow(monkeypatch)
    print_table("T", ("tool", "calls"), [("search", "4")], numeric=frozenset({"calls"}))
    assert "search       4" in capsys.readouterr().out


FIGURES = ("calls", "worked", "rate", "95 % interval", "by the flag", "score", "time", "tokens")


def lines_at(columns: int, monkeypatch, capsys, table: tuple[tuple[str, ...], list[list[str]]]) -> list[str]:
    be_narrow(monkeypatch, columns)
    heads, rows = table
    print_table("T", heads, rows, numeric=frozenset(FIGURES))
    lines = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out).splitlines()
    assert all(len(line) <= columns for line in lines), lines
    return [" ".join(line.split()) for line in lines if line.strip(" ─")]


def test_figures_that_do_not_fit_beside_a_name_stand_below_with_the_name_again(monkeypatch, capsys):
    row = ["calendar_create_event", "12", "11", "83.3 %", "51–100 %", "100 %", "0.92", "1.6 ms", "1,234"]
    other = ["search", *row[1:]]
    assert lines_at(80, monkeypatch, capsys, (("tool", *FIGURES), [row, other])) == [
        "T",
        *("95 % by the", "tool calls worked rate interval flag score"),
        *("calendar_create_event 12 11 83.3 % 51–100 % 100 % 0.92", "search 12 11 83.3 % 51–100 % 100 % 0.92"),
        *("tool time tokens", "calendar_create_event 1.6 ms 1,234", "search 1.6 ms 1,234"),
    ]


def test_a_column_whose_words_fit_is_not_broken_inside_a_word(monkeypatch, capsys):
    heads = ("op", "by the flag", "prompt tokens of the requests", "cost of the requests", "score")
    lines = lines_at(75, monkeypatch, capsys, (heads, [["parse_tool_call_result_op", "38", "17,165", "1,141", "–"]]))
    assert "parse_tool_call_result_op 38 17,165 1,141 –" in lines


def test_where_hardly_a_figure_fits_beside_the_name_each_row_is_a_block(monkeypatch, capsys):
    lines = lines_at(45, monkeypatch, capsys, (("tool", *FIGURES), [["x" * 30, *["1,234,567"] * 8]]))
    assert lines == ["T", f"tool {'x' * 30}", *(f"{figure} 1,234,567" for figure in FIGURES)]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shell_completes_commands_and_options(shell, tmp_path):
    def asked(words: str) -> str:
        given = {"_TOOLMEM_COMPLETE": f"complete_{shell}", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()))}
        given |= {"_TYPER_COMPLETE_ARGS": words, "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
        entry = "import sys; sys.argv = ['toolmem']; from toolmem.cli import main; main()"
        ran = subprocess.run(
            [sys.executable, "-c", entry],
            cwd=tmp_path,
            env={**os.environ, **given},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode in (0, 1), ran.stderr
        return ran.stdout

    assert "tools" in asked("toolmem ")
    assert "show" in asked("toolmem tools ")


def test_an_unanswered_conversation_is_one_conversation(command, tmp_path):
    asked = {"messages": [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"}]}
    (tmp_path / "chat.jsonl").write_text(json.dumps(asked) + "\n")
    code, _, err = command("evaluate", "--input", "chat.jsonl")
    assert code == 2
    assert "(1 conversation, no tool calls)" in err
