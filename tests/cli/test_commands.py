"""The `toolmem` command as a user runs it: a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess

import click
import pytest
from command_line import COMMAND, run

from toolmem import ToolMem
from toolmem.cli.main import commands


@pytest.fixture
def filled(tmp_path, records):
    with ToolMem(str(tmp_path / "m.db")) as memory:
        memory.add(records(3) + records(2, "evil\x1b[31m\nname"))
    return tmp_path


def test_tools_are_listed_with_visible_control_characters_of_their_names(filled):
    done = run(filled, "tools", "--store", "m.db")
    assert done.returncode == 0
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert lines[0].split()[:5] == ["tool", "calls", "kept", "failed", "lost"]
    assert [line.split()[0] for line in lines[1:]] == ["evil\\x1b[31m\\nname", "search"]
    assert "\x1b" not in done.stdout


def test_what_tools_are_sorted_by_is_a_column(tmp_path):
    failed = {"tool_name": "slow", "output": "x", "success": False, "time_cost": 2.5}
    with ToolMem(str(tmp_path / "m.db")) as memory:
        memory.add([failed, {"tool_name": "quick", "output": "x"}])
    done = run(tmp_path, "tools", "--sort", "lost", "--store", "m.db")
    header, first, _ = done.stdout.splitlines()
    assert "failed  lost" in header and "seconds" in header
    assert first.split()[:5] == ["slow", "1", "1", "1", "1"] and "  2.500  " in first


def test_tools_are_printed_as_json(filled):
    done = run(filled, "tools", "list", "--store", "m.db", "--json")
    assert done.returncode == 0
    found = {tool["tool_name"]: tool["calls_ever"] for tool in json.loads(done.stdout)}
    assert found == {"search": 3, "evil\x1b[31m\nname": 2}


def test_a_store_without_the_default_workspace_is_copied_and_looked_at_whole(tmp_path, records):
    with ToolMem(str(tmp_path / "m.db"), workspace="other") as memory:
        memory.add(records(3))
    done = run(tmp_path, "store", "copy", "m.db", "copy.db")
    assert (done.returncode, done.stderr) == (0, "")
    assert "other" in run(tmp_path, "store", "info", "--store", "copy.db").stdout


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["tools"], "there is no file .toolmem/memory.db"),
        (["tools", "--stroe", "x"], "--stroe"),
        (["evaluate", "--input", "missing.jsonl"], "missing.jsonl"),
        (["evaluate", "--limit", "0"], "--limit"),
        (["evaluate", "--out", "file/report"], "file"),
        (["evaluate", "--by", "modle"], "no call has a field 'modle' (known: agent, "),
        (["compare", "file", "none"], "name a folder that `toolmem evaluate --out FOLDER` wrote"),
        (["config", "show", "op.recal"], "no setting is called 'op.recal' (known: op"),
        (["config", "show", "lm"], "(did you mean 'llm'?)"),
        (["tools", "--store", "m.db", "--workspace", "w"], "has no 'w'; it has default: name one"),
        (["config", "show", "guard.ruls"], "(did you mean 'guard.rules'?)"),
        (["rules", "prompt", "guard.ruls=a", "--store", "m.db"], "guard.ruls: unknown"),
        (["rules", "try", "t", "Never", "guard.ruls=a", "--store", "m.db"], "guard.ruls: unknown"),
        (["rules", "list", "guard.ruls=a", "--store", "m.db"], "guard.ruls: unknown"),
        (["rules", "list", "a", "b", "--store", "m.db"], "one argument too many: b"),
        (["forget", "guard.ruls=a", "--store", "m.db"], "guard.ruls: unknown"),
        (["import", "file", "guard.ruls=a", "--store", "m.db"], "guard.ruls: unknown"),
        (["store", "copy", "m.db", "n.db", "guard.ruls=a"], "guard.ruls: unknown"),
        (["store", "copy", "m.db", "n.db", "--workspace", "w"], "has no 'w'; it has default"),
        (["store", "copy", "m.db", "./m.db"], "target: it is the source"),
        (["store", "import", "file", "guard.ruls=a"], "guard.ruls: unknown"),
        (["store", "restore", "guard.rules=off"], "guard.rules=off: a store file takes no"),
        (["rules", "list", "=x", "--store", "m.db"], "override '=x': expected name=value"),
        (["note"], "standard input: the input is empty"),
        (["store", "restore", "guard.ruls=a"], "guard.ruls: unknown"),
        (["guard", "replay", "guard.ruls=a"], "guard.ruls: unknown"),
        (["store", "trust", "a.b=c"], "store trust takes no settings; leave a.b=c out"),
        (["hook", "install", "codex", "a.b=c"], "hook install takes no settings; leave a.b=c out"),
        (["mcp", "proxy", "--", "a.b=c", "npx"], "a.b: toolmem mcp proxy takes no settings"),
        (["mcp", "wrap", "n", "--file", "file", "a.b=c"], "mcp wrap takes no settings"),
        (["evaluate", "--input", "-", "--labels", "-"], "standard input (-) can be read only once"),
    ],
)
def test_what_cannot_be_done_is_refused_in_one_line_with_exit_code_2(filled, arguments, told):
    (filled / "file").write_text("")
    done = run(filled, *arguments)
    assert done.returncode == 2
    assert told in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert sorted(each.name for each in filled.iterdir()) == ["file", "m.db"]


def test_a_tool_is_shown_with_its_guidance_and_a_near_name_is_told(filled):
    with ToolMem(str(filled / "m.db")) as memory:
        memory.summarize()
    done = run(filled, "tools", "show", "search", "--store", "m.db")
    assert done.returncode == 0
    assert done.stdout.startswith('1. worked: {"q": ')
    found = json.loads(run(filled, "tools", "show", "search", "--store", "m.db", "--json").stdout)
    assert (found["tool_name"], found["calls_ever"]) == ("search", 3)
    unknown = run(filled, "tools", "show", "serach", "--store", "m.db")
    assert (unknown.returncode, unknown.stdout) == (1, "")
    assert "did you mean 'search'?" in unknown.stderr
    ToolMem(str(filled / "empty.db")).tool_rule_put("search", "never search for Bob")
    nothing = run(filled, "tools", "show", "search", "--store", "empty.db")
    assert nothing.stderr == "error: no tool is called 'search' (there is none)\n"
    hostile = run(filled, "tools", "show", "evil\x1b[31m\nname", "--store", "m.db")
    assert hostile.returncode == 0
    assert "\x1b" not in hostile.stdout


def test_a_line_of_guidance_is_taken_away_by_the_number_that_show_gives_it(filled):
    with ToolMem(str(filled / "m.db")) as memory:
        memory.summarize()
    numbered = run(filled, "tools", "show", "search", "--store", "m.db").stdout
    done = run(filled, "tools", "forget-line", "search", "1", "--store", "m.db")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"taken away: {numbered.splitlines()[0].removeprefix('1. ')}\n"
    assert run(filled, "tools", "show", "search", "--store", "m.db").stdout != numbered
    hostile = run(filled, "tools", "forget-line", "evil\x1b[31m\nname", "1", "--store", "m.db")
    assert hostile.returncode == 0 and "\x1b" not in hostile.stdout
    for arguments, told in [
        (["search", "0"], "0 is not in the range"),
        (["search", "first"], "'first' is not a valid integer"),
        (["search"], "Missing argument 'N'"),
        (["search", "99"], "toolmem tools show"),
        (["serach", "1"], "did you mean 'search'?"),
    ]:
        refused = run(filled, "tools", "forget-line", *arguments, "--store", "m.db")
        assert (refused.returncode, refused.stdout) == (2, "")
        assert told in refused.stderr and "Traceback" not in refused.stderr


def test_every_command_shows_an_example(tmp_path):
    for command in ("costs", "evaluate", "tools list", "tools show", "tools forget-line"):
        assert "Example" in run(tmp_path, *command.split(), "--help").stdout


def commands_of(command, path="toolmem"):
    yield path, command
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            inner = command.get_command(click.Context(command), name)
            yield from commands_of(inner, f"{path} {name}")


NO_VERBS = ("Of", "The", "A", "An", "So", "Those", "Also", "With", "In", "Where", "For", "Left")


def test_every_help_text_is_a_sentence_that_begins_with_what_the_option_does():
    for path, command in commands_of(commands):
        options = [each for each in command.params if isinstance(each, click.Option)]
        for option in options:
            text = (option.help or "").partition("  [default")[0]
            assert text[:1].isupper() and text[-1] == ".", (path, option.name)
            assert text.split()[0] not in NO_VERBS, (path, option.name)
        assert command.help, path


def test_the_workspace_that_holds_something_is_read_where_none_is_named(tmp_path, records):
    def listed(*arguments):
        done = run(tmp_path, "tools", *arguments, "--store", "m.db")
        return done.returncode, "search" in done.stdout, done.stderr

    def add(workspace):
        with ToolMem(str(tmp_path / "m.db"), workspace=workspace) as memory:
            memory.add(records(3))

    add("team")
    assert listed() == (0, True, "")
    add("qa")
    code, _, told = listed()
    assert code == 2 and "has no 'default'; it has qa, team: name one by --workspace qa" in told
    assert listed("--workspace", "team") == (0, True, "")
    add("default")
    others = "note: this is workspace default; qa, team can be read by --workspace\n"
    assert listed() == (0, True, others)


CALL = json.dumps({"tool_name": "search", "input": {"q": 1}, "output": "[]", "success": True})
READING = [
    (("import", "-", "--store", "m.db"), CALL, "1 new call"),
    (("evaluate", "--input", "-"), CALL, "1 call, 0 bad records"),
    (("evaluate", "--input", "calls.jsonl", "--labels", "-"), "index,label\n0,1", "of 1 label"),
    (("costs", "--input", "-"), CALL, "1 call; tokens"),
    (("guard", "replay", "--input", "-"), CALL, "1 call, 0 failures"),
    (("config", "show", "guard.rules", "--config", "-"), "guard: {rules: shadow}", "shadow"),
    (("rules", "capture", "--turns", "-"), '{"user_message": "Never email Bob"}', "0: Would keep"),
    (
        ("rules", "try", "mail", "Never email bob@x.org", "--call", "-"),
        '{"to": "bob@x.org"}',
        "yes",
    ),
    (("rules", "import", "-", "--yes"), "rules: []\n", "0 rules changed"),
    (("guard", "check", "Bash", "-"), "ls", "allow"),
    (("store", "import", "-"), "", "standard input: 0 tools"),
]


@pytest.mark.parametrize(("arguments", "given", "told"), READING)
def test_a_dash_is_standard_input_wherever_a_file_is_read(tmp_path, arguments, given, told):
    (tmp_path / "calls.jsonl").write_text(CALL)
    with ToolMem(str(tmp_path / ".toolmem" / "memory.db")) as memory:
        memory.add([json.loads(CALL)])
    done = run(tmp_path, *arguments, given=given)
    assert done.returncode == 0, done.stderr
    assert told in done.stdout


def test_what_is_imported_from_standard_input_twice_is_kept_once(tmp_path):
    for told in ("1 new call", "0 new calls; 1 was there already"):
        assert told in run(tmp_path, "import", "-", "--store", "m.db", given=CALL).stdout


def test_a_setting_or_a_section_is_shown_by_its_name(tmp_path):
    shown = run(tmp_path, "config", "show", "guard.rules", "guard.rules=shadow").stdout
    assert shown.split() == ["name", "value", "origin", "guard.rules", '"shadow"', "override"]
    assert "guard.repeats" in run(tmp_path, "config", "show", "guard").stdout


def test_an_evaluation_of_known_calls_says_that_they_are_not_judged_again(tmp_path):
    line = {"id": "a", "tool_name": "search", "input": {}, "output": "[]", "success": True}
    (tmp_path / "calls.jsonl").write_text(json.dumps(line))
    asked = ("evaluate", "--input", "calls.jsonl", "--store", "m.db")
    page = tmp_path / "report" / "report.html"
    for is_told in (False, True):
        done = run(tmp_path, *asked)
        assert ("1 call has an id that is in the store already" in done.stderr) is is_told
        assert ("1 call of a known id" in " ".join(page.read_text().split())) is is_told


@pytest.mark.parametrize("command", ["costs", "guard replay"])
def test_records_that_cannot_be_read_are_counted_where_not_all_are_printed(tmp_path, command):
    call = {"tool_name": "search", "input": {}, "output": "[]", "success": True}
    (tmp_path / "calls.jsonl").write_text(json.dumps(call) + "\n{}" * 25)
    done = run(tmp_path, *command.split(), "--input", "calls.jsonl")
    assert "and 5 more bad records" in done.stderr


def test_an_interrupt_ends_a_command_without_a_traceback(tmp_path):
    os.mkfifo(tmp_path / "calls.jsonl")
    command = [*COMMAND, "evaluate", "--input", "calls.jsonl"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        with open(tmp_path / "calls.jsonl", "w") as fifo:  # returns once the command reads it
            fifo.write("{")
            fifo.flush()
            process.send_signal(signal.SIGINT)
        process.wait(timeout=60)
        told = process.stderr.read()
    assert process.returncode == 130
    assert "Traceback" not in told


def test_a_reader_that_stops_early_sees_no_traceback(filled):
    command = [*COMMAND, "tools", "--store", "m.db"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, cwd=filled, **pipes) as process:
        process.stdout.close()
        told = process.stderr.read()
        process.wait(timeout=60)
    assert told == b""
    assert process.returncode == 1


def test_import_says_in_words_what_a_folder_teaches_and_adds_nothing_twice(tmp_path):
    call = {"run_type": "tool", "name": "look", "inputs": {"a": 1}, "trace_id": "t"}
    runs = [{**call, "id": str(number), "error": "no such a"} for number in range(4)]
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "a.jsonl").write_text("".join(f"{json.dumps(run)}\n" for run in runs))
    first = run(tmp_path, "import", "runs", "--store", "m.db")
    assert (first.returncode, first.stderr) == (0, "")
    assert "4 new calls (4 from langsmith)." in first.stdout
    assert "look: 4 of 4 (100%)" in first.stdout
    assert "3 of 4 failed calls (75%) repeated, word for word" in first.stdout
    second = run(tmp_path, "import", "runs", "--store", "m.db")
    assert second.stdout.startswith("0 new calls.\nWhat is known of each tool: toolmem tools list")
    assert second.stderr == "1 file was imported before and has not changed\n"
    third = run(tmp_path, "import", "runs", "--again", "--store", "m.db")
    assert third.stdout.startswith("0 new calls; 4 were there already.\n")


def test_forget_lists_imports_and_asks_before_it_removes_one(tmp_path):
    call = {"tool_name": "look", "output": "seen", "id": "1"}
    (tmp_path / "a.jsonl").write_text(json.dumps(call))
    assert run(tmp_path, "import", "a.jsonl", "--store", "m.db").returncode == 0
    forget = ("forget", "--store", "m.db")
    ((name, listed),) = json.loads(run(tmp_path, *forget, "--json").stdout).items()
    assert (listed["tools"]["look"]["calls"], listed["sources"]) == (1, ["a.jsonl"])
    assert name in run(tmp_path, *forget).stdout
    unknown = run(tmp_path, *forget, "--import", "other", "--yes")
    assert (unknown.returncode, name in unknown.stderr) == (2, True)
    refused = run(tmp_path, *forget, "--import", name)
    assert "Remove 1 call of 1 tool?" in refused.stderr and "--yes" in refused.stderr
    assert refused.returncode == 2
    done = run(tmp_path, *forget, "--import", name, "--yes")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("1 call was removed.")


def test_a_store_of_somebody_else_is_copied_only_with_trust(filled):
    (filled / "theirs.db").write_bytes((filled / "m.db").read_bytes())
    copy = ("store", "copy", "theirs.db", "mine.db")
    done = run(filled, *copy)
    assert done.returncode == 2
    assert "theirs.db is not known to be made by this user's toolmem" in done.stderr
    assert "to copy them: --trust" in done.stderr
    with ToolMem(str(filled / "mine.db")) as memory:
        assert memory.calls() == []
    assert run(filled, *copy, "--trust").returncode == 0
    with ToolMem(str(filled / "mine.db")) as memory:
        assert len(memory.calls()) == 5
