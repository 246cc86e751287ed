"""`toolmem calls` and `toolmem tools list` as a user runs them."""

import json

import pytest
from command_line import run as run_command

from toolmem import ToolMem


@pytest.fixture
def toolmem(tmp_path, call):
    path = str(tmp_path / "m.db")
    with ToolMem(path) as memory:
        calls = [
            call("ab"[n % 2], id=str(n), success=n % 3 > 0, input={"q": n}, output=f"no\n{n} of it")
            for n in range(30)
        ]
        memory.services.store().append_calls("default", calls, 100)

    return lambda *arguments: run_command(tmp_path, *arguments, "--store", path)


def test_calls_are_printed_a_line_each_the_newest_last_with_the_way_to_older_ones(toolmem):
    done = toolmem("calls")
    _, *lines = done.stdout.splitlines()
    assert len(lines) == 20
    newest = '2026-01-01T00:00:00+00:00 worked b {"q":29} -> no\\n29 of it'
    assert lines[-1].split() == newest.split()
    older = done.stderr.split("older calls: ")[1].split()
    _, *rest = toolmem("calls", *older).stdout.splitlines()
    assert [line.split()[3] for line in rest] == [f'{{"q":{n}}}' for n in range(10)]


def test_calls_are_found_by_tool_outcome_and_text(toolmem):
    found = json.loads(toolmem("calls", "--tool", "a", "--outcome", "failed", "--json").stdout)
    assert [each["input"]["q"] for each in found] == [0, 6, 12, 18, 24]
    done = toolmem("calls", "--tool", "a", "--tool", "b", "--text", "7 OF", "--outcome", "worked")
    assert [line.split()[3] for line in done.stdout.splitlines()[1:]] == ['{"q":7}', '{"q":17}']
    assert done.stderr == ""
    done = toolmem("calls", "--conversation", "none")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "no call fits\n")


def test_tools_are_listed_in_the_order_asked_and_as_many_as_asked(toolmem):
    def names(*arguments):
        return [line.split()[0] for line in toolmem("tools", *arguments).stdout.splitlines()[1:]]

    assert names("--sort", "share", "--limit", "1") == names("--text", "A") == ["a"]
    assert "has no tool with this text" in toolmem("tools", "list", "--text", "z").stderr
    assert "seconds  new" in toolmem("tools").stdout
