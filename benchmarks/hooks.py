"""What a hook costs an agent: a fresh interpreter at each step, on a store with 1,000 rules and 1,000 calls.

    python benchmarks/hooks.py [--quick] [--json FILE]

The rules are of 200 tools. Each run stands beside a run of the bare interpreter (`python -P -c pass`), in turn; the
figures are how much longer it took: files in the cache, compiled as pip leaves them, fsync included. Each kind is run
as the engine's function alone.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tables import Figure, arguments, show

CALLED = [f"tool_{number}" for number in range(10)]
OPEN = (
    "from toolmem.engine import StoreFile, after, before, prompt_for, user_said\nwith StoreFile('memory.db') as store: "
)
LIGHT, CHECKED, SPOKEN = 60, 120, 300  # ms over the bare interpreter (95th percentile)


class Run(NamedTuple):
    """One kind of process."""

    name: str
    goal: float | None
    command: list[str]
    stdin: Callable[[int], str] = lambda number: ""


class Taken(NamedTuple):
    """What one process took: milliseconds, and MB at its peak."""

    wall: float
    cpu: float
    peak: float


def engine(name: str, goal: float | None, code: str) -> Run:
    return Run(name, goal, ["-c", f"{OPEN}{code}"])


def call(tool: str, **given: object) -> str:
    return repr({"tool_name": tool, "input": given})


RUNS = [
    Run("import toolmem", 50, ["-c", "import toolmem"]),
    engine("open the store", None, "pass"),
    engine("prompt_for, 10 tools", None, f"assert prompt_for(store, {CALLED})"),
    engine("before, a tool without rules", LIGHT, f"assert not before(store, {call('Read', file_path='/x')}).stops"),
    engine("before, reminders alone", LIGHT, f"assert not before(store, {call('tool_1', q='rain')}).stops"),
    engine(
        "before, a condition that does not hold",
        CHECKED,
        f"assert not before(store, {call('Bash', command='git push origin x')}, conversation_id='c').stops",
    ),
    engine("before, denied", CHECKED, f"assert before(store, {call('Bash', command='git push origin main')}).stops"),
    engine("after", None, f"after(store, {{**{call('Read', file_path='/x')}, 'output': 'ok', 'success': True}})"),
    engine(
        "user_said, a demand", SPOKEN, f"user_said(store, 'Never email Sarah at sarah@example.com.', tools={CALLED})"
    ),
    engine("user_said, a request", SPOKEN, f"user_said(store, 'Please find out why it broke.', tools={CALLED})"),
]
BARE = Run("the bare interpreter", None, ["-c", "pass"])


def taken(run: Run, number: int, folder: Path) -> Taken:
    begun = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-P", *run.command],
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdin is not None
        process.stdin.write(run.stdin(number))
        process.stdin.close()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        wall = time.perf_counter() - begun
    if process.returncode:
        raise SystemExit(f"{run.name}: exit {process.returncode}")
    return Taken(wall * 1000, (used.ru_utime + used.ru_stime) * 1000, used.ru_maxrss / 1024)


def loaded(run: Run, folder: Path) -> set[str]:
    """Modules that it loads."""
    command = [sys.executable, "-P", "-X", "importtime", *run.command]
    told = subprocess.run(command, cwd=folder, input=run.stdin(-1), check=True, capture_output=True, text=True).stderr
    return {line.rsplit("|", 1)[1].strip() for line in told.splitlines() if line.startswith("import time:")}


def fill(folder: Path, rules: int, tools: int) -> None:
    """A store as a long use leaves it; on `Bash` a rule that is checked."""
    from toolmem import ToolMem

    with ToolMem(folder / "memory.db") as mem:
        calls = [
            {"input": {"q": f"rain {number}"}, "output": "[1]", "success": True} for number in range(1000 // tools)
        ]
        mem.add([{"tool_name": f"tool_{number}", **call} for number in range(tools) for call in calls])
        mem.summarize(CALLED)
        for number in range(rules - 1):
            text = f"never change anything of customer {number} without asking the owner first"
            mem.rules.put(f"tool_{number % tools}", text, priority=("critical", "high", "normal")[number % 3])
        mem.rules.put("Bash", "never push to main", priority="critical")


def figures_of(run: Run, pairs: list[tuple[Taken, Taken]], modules: set[str], rules: int) -> list[Figure]:
    over = sorted(ours.wall - bare.wall for bare, ours in pairs)
    cpu = statistics.median(ours.cpu - bare.cpu for bare, ours in pairs)
    memory = statistics.median(ours.peak - bare.peak for bare, ours in pairs)
    own = sum(each.startswith("toolmem") for each in modules)
    basis = f"{len(pairs)} pairs, {rules} rules"
    told = f"over the bare interpreter's; {memory:.0f} MB more; {len(modules)} modules, {own} of them toolmem's"
    return [
        Figure(run.name, statistics.median(over), "ms", None, "", basis),
        Figure("  95th percentile", over[round(0.95 * (len(over) - 1))], "ms", run.goal, "", basis),
        Figure("  CPU time", cpu, "ms", None, "", told),
    ]


def main() -> None:
    options = arguments(__doc__)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # installed modules have their bytecode
    runs, rules = (5, 100) if options.quick else (40, 1000)
    figures = []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        fill(folder, rules, rules // 5)
        bare = loaded(BARE, folder)
        for run in RUNS:
            taken(run, -2, folder)  # its bytecode is there from now on
            modules = loaded(run, folder) - bare
            pairs = [(taken(BARE, number, folder), taken(run, number, folder)) for number in range(runs)]
            figures += figures_of(run, pairs, modules, rules)
    show(figures, options.json)


if __name__ == "__main__":
    main()
