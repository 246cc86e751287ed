"""An agent that does its work is never stopped for it; one that runs in circles is."""

from __future__ import annotations

from typing import Any

import pytest

from tests.guard.ordinary_loops import AGENTS, LOOPS, Agent, Step, call_of, output_of
from toolmem.guard.conversation import ConversationGuard

ENFORCE: Any = {"rules": "enforce", "repeats": "enforce", "names": "advise", "schema": "advise"}


def stopped(agent: Agent, steps: list[Step]) -> list[str]:
    guard, found = ConversationGuard(modes=ENFORCE), []
    for number, (step, error) in enumerate(steps):
        tool, arguments = call_of(agent, step)
        checked = guard.before(tool, arguments, force=None)
        if checked.stops:
            found.append(f"{step}: {checked.decision.reason}")
        else:
            guard.after(checked, failed=bool(error), output=output_of(agent, step, error), call_id=str(number))
    return found


@pytest.mark.parametrize("agent", AGENTS)
def test_an_ordinary_loop_is_not_stopped(agent: str) -> None:
    assert {loop: found for loop, steps in LOOPS.items() if (found := stopped(AGENTS[agent], steps))} == {}


CIRCLES: dict[str, list[Step]] = {
    "a file that is not there": [("$ cat x", "cat: x: No such file or directory")] * 2,
    "a build that nothing was done for": [("$ make", "Exit code 2\na.c:3: error: expected ';'")] * 2,
    "a look between": [
        ("$ make", "a.c:3: error"),
        ("$ ls", OK := ""),
        ("$ git status", OK),
        ("$ make", "a.c:3: error"),
    ],
    "an edit that does not fit": [("edit a.py", "String to replace not found in file.")] * 2,
    "an edit with a look at the folder": [("edit a.py", "String not found."), ("$ ls", OK), ("edit a.py", OK)],
    "a read of nothing": [("read a.py", "File does not exist.")] * 2,
    "a read between reads": [("read a.py", "File does not exist."), ("read b.py", OK), ("read a.py", OK)],
    "a folder that could not be made": [
        ("$ cat x", "cat: x: No such file or directory"),
        ("$ mkdir /x", "mkdir: cannot create directory '/x': Permission denied"),
        ("$ cat x", "cat: x: No such file or directory"),
    ],
    "an exit code alone": [("$ grep -q a b", "Exit code 1")] * 2,
}


@pytest.mark.parametrize("agent", AGENTS)
def test_a_circle_is_stopped(agent: str) -> None:
    assert {circle: len(stopped(AGENTS[agent], steps)) for circle, steps in CIRCLES.items()} == dict.fromkeys(
        CIRCLES, 1
    )
