"""Print what a hook before a call costs over a bare interpreter, start-up included.

    python benchmarks/hooks.py

CPU of the whole process, the least of 21, in a store with 20 rules. It depends on the machine: the
bare interpreter of the same run stands beside it.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from shared import Table, publish

RUNS = 21
RULES = 20
HOOK = [sys.executable, "-P", "-E", "-m", "toolmem.hooks", "claude-code"]
CALLS = {
    "a file to read": ("Read", {"file_path": "src/a.py"}),
    "a shell line": ("Bash", {"command": "cd src && ls -la | grep py && git status"}),
}


def spent() -> float:
    """CPU seconds of the children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def answer(command: list[str], event: dict[str, object], folder: Path) -> bytes:
    environment = {"HOME": str(folder / "home"), "PATH": os.defpath}
    data = json.dumps({"session_id": "s", "cwd": str(folder), **event}).encode()
    done = subprocess.run(command, input=data, capture_output=True, env=environment, check=True)
    return done.stdout


def start(command: list[str], event: dict[str, object], folder: Path) -> float:
    """Milliseconds of CPU."""
    before = spent()
    answer(command, event, folder)
    return 1_000 * (spent() - before)


def main() -> None:
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "home").mkdir()
        (folder / ".git").mkdir()
        for number in range(RULES):
            said = {"hook_event_name": "UserPromptSubmit", "prompt": f"Never push to b{number}."}
            start(HOOK, {**said, "prompt_id": f"p{number}"}, folder)
        call = {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_use_id": "forbidden"}
        for number in (0, RULES - 1):
            forbidden = {**call, "tool_input": {"command": f"git push origin b{number}"}}
            assert b"toolmem: not run" in answer(HOOK, forbidden, folder)
        bare = [sys.executable, "-P", "-E", "-c", "pass"]
        for what, (tool, given) in CALLS.items():
            event = {"hook_event_name": "PreToolUse", "tool_name": tool, "tool_input": given}
            pairs = [
                (start(bare, {}, folder), start(HOOK, {**event, "tool_use_id": str(n)}, folder))
                for n in range(RUNS)
            ]
            least, hook = (min(pair[place] for pair in pairs) for place in (0, 1))
            rows.append((what, round(least), round(hook), round(hook - least)))
    columns = ("a call", "bare interpreter, ms", "hook, ms", "over bare, ms")
    table = Table(f"CPU of a process, least of {RUNS}, {RULES} rules in the store", columns, rows)
    publish("hooks", "A hook before a call", table)


if __name__ == "__main__":
    main()
