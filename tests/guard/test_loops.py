"""An agent that does its work is never stopped for it; one that runs in circles is.

`ordinary_loops.json`: by name, steps (what is done, and the error; "": it worked). `$ ...` is a
command; `read`, `edit` and `write` are tools for files.
"""

import json
from pathlib import Path

import pytest

from toolmem.config.sections import GuardSection
from toolmem.guard import Guard

LOOPS = json.loads(Path(__file__).with_name("ordinary_loops.json").read_text(encoding="utf-8"))
OK = ""
MAKE = ("$ make", "a.c:3: error")
CIRCLES = {
    "a file that is not there": [("$ cat x", "cat: x: No such file or directory")] * 2,
    "a build that nothing was done for": [("$ make", "Exit code 2\na.c:3: error: ';'")] * 2,
    "looks between": [MAKE, ("$ ls", OK), ("$ git status", OK), MAKE],
    "an edit that does not fit": [("edit a.py", "String to replace not found in file.")] * 2,
    "an edit with a look": [("edit a.py", "String not found."), ("$ ls", OK), ("edit a.py", OK)],
    "a read of nothing": [("read a.py", "File does not exist.")] * 2,
    "a read between reads": [("read a.py", "No such file."), ("read b.py", OK), ("read a.py", OK)],
    "a folder that could not be made": [
        ("$ cat x", "cat: x: No such file or directory"),
        ("$ mkdir /x", "mkdir: cannot create directory '/x': Permission denied"),
        ("$ cat x", "cat: x: No such file or directory"),
    ],
    "an exit code alone": [("$ grep -q a b", "Exit code 1")] * 2,
}
# Of each agent: its tools (shell, read, edit, write, fetch), its parameter for a path, and what it
# sends beside a command and writes around its errors.
AGENTS = {
    "claude-code": (
        ("Bash", "Read", "Edit", "Write", "WebFetch"),
        "file_path",
        {"description": "Update the state of things", "timeout": 60000},
        "Exit code 1\n{}",
    ),
    "codex": (("Bash", "read_file", "edit_file", "write_file", "web_fetch"), "file_path", {}, "{}"),
    "copilot": (
        ("Bash", "Read", "Edit", "Write", "WebFetch"),
        "path",
        {"description": "Run it", "mode": "sync", "initial_wait": 30},
        "{}",
    ),
    "gemini": (
        ("run_shell_command", "read_file", "replace", "write_file", "web_fetch"),
        "file_path",
        {"description": "Runs it.", "is_background": False},
        "{}",
    ),
    "cursor": (
        ("Shell", "Read", "StrReplace", "Write", "WebFetch"),
        "path",
        {"working_directory": "/p", "block_until_ms": 30000, "description": "Run it"},
        "{}",
    ),
    "goose": (
        ("developer__shell", "read_file", "developer__edit", "write_file", "web_fetch"),
        "file_path",
        {},
        "Exit code 1\n{}",
    ),
    "cline": (
        ("run_commands", "read_files", "editor", "write_file", "web_fetch"),
        "file_path",
        {},
        "{}\nCommand exited with code 1",
    ),
    "opencode": (
        ("bash", "read", "edit", "write", "webfetch"),
        "filePath",
        {"description": "Runs it", "workdir": "/p", "timeout": 120000},
        "{}",
    ),
}


def call_of(agent, step):
    tools, path, beside, _ = AGENTS[agent]
    shell, read, edit, write, fetch = tools
    kind, _, what = step.partition(" ")
    if kind == "$":
        given = {"commands": [what]} if agent == "cline" else {"command": what}
        return shell, {**given, **beside}
    if kind == "fetch":
        return fetch, {"url": what, "prompt": "What does it say?"}
    if kind == "wait":
        return "wait", {"seconds": int(what)}
    return {
        "read": (read, {path: f"/p/{what}"}),
        "edit": (edit, {path: f"/p/{what}", "old_string": "a", "new_string": "b"}),
        "write": (write, {path: f"/p/{what}", "content": "a"}),
    }[kind]


def output_of(agent, step, error):
    if error and step.startswith("$") and not error.startswith("Exit code"):
        return AGENTS[agent][3].format(error)
    return error or "fine"


@pytest.fixture
def stopped(store, clock):
    numbers = iter(range(10_000))

    def run(agent, steps):
        # A workspace of its own: what one loop taught must not let another through.
        modes = GuardSection(repeats="enforce")
        guard = Guard(store, f"w{next(numbers)}", clock, modes)
        found = []
        for step, error in steps:
            tool, given = call_of(agent, step)
            decision = guard.before(tool, given, conversation_id="c", force=None)
            if decision.action in ("ask", "deny"):
                found.append(f"{step}: {decision.reason}")
            else:
                output = output_of(agent, step, error)
                guard.after(decision, given, output=output, failed=bool(error))
        return found

    return run


@pytest.mark.parametrize("agent", AGENTS)
def test_an_ordinary_loop_is_not_stopped(agent, stopped):
    found = {loop: stopped(agent, steps) for loop, steps in LOOPS.items()}
    assert {loop: told for loop, told in found.items() if told} == {}


@pytest.mark.parametrize("agent", AGENTS)
def test_a_circle_is_stopped_once(agent, stopped):
    found = {circle: len(stopped(agent, steps)) for circle, steps in CIRCLES.items()}
    assert found == dict.fromkeys(CIRCLES, 1)
