"""What a hook costs an agent: a fresh interpreter runs one function of the engine on a store with 1,000 rules.

    python benchmarks/engine.py [--quick] [--json FILE]

Each run stands beside a run of the bare interpreter, in turn; the figures are how much longer it took (files in the
cache, fsync included). Modules: those that the bare interpreter has not loaded.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from tables import Figure, arguments, show

TOOLS = [f"tool_{number}" for number in range(10)]
OPEN = "from toolmem.engine import StoreFile, after, prompt_for, user_said\nwith StoreFile('memory.db') as store: "
# What is run, and how many ms it may take over the bare interpreter (95th percentile), where a host waits for it.
RUNS: dict[str, tuple[str, float | None]] = {
    "import toolmem": ("import toolmem", 50),
    "open the store": (f"{OPEN}pass", None),
    "prompt_for, 10 tools": (f"{OPEN}assert prompt_for(store, {TOOLS})", None),
    "prompt_for, all tools": (f"{OPEN}assert prompt_for(store)", None),
    "after": (f"{OPEN}after(store, {{'tool_name': 'tool_1', 'input': {{'q': 'rain'}}, 'output': 'ok'}})", None),
    "user_said, a demand": (f"{OPEN}user_said(store, 'Never email Sarah at sarah@example.com.', tools={TOOLS})", 300),
    "user_said, a request": (f"{OPEN}user_said(store, 'Please find out why the build broke.', tools={TOOLS})", 300),
}


class Taken(NamedTuple):
    """Seconds of one process."""

    wall: float
    cpu: float


def taken(code: str, folder: Path) -> Taken:
    begun, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], cwd=folder, check=True, stderr=subprocess.DEVNULL)
    wall, used = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    return Taken(wall, used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime)


def modules(code: str, folder: Path) -> int:
    counted = f"import sys; before = len(sys.modules)\n{code}\nprint(len(sys.modules) - before)"
    run = subprocess.run([sys.executable, "-c", counted], cwd=folder, check=True, capture_output=True, text=True)
    return int(run.stdout)


def fill(folder: Path, rules: int, tools: int) -> None:
    from toolmem import ToolMem

    with ToolMem(folder / "memory.db") as mem:
        calls = [{"input": {"q": f"rain {number}"}, "output": "[1]"} for number in range(20)]
        mem.add([{"tool_name": tool, **call} for tool in TOOLS for call in calls])
        mem.summarize(TOOLS)
        for number in range(rules):
            text = f"never change anything of customer {number} without asking the owner first"
            mem.rules.put(f"tool_{number % tools}", text, priority=("critical", "high", "normal")[number % 3])


def main() -> None:
    options = arguments(__doc__)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # installed modules have their bytecode
    runs, rules = (5, 100) if options.quick else (40, 1000)
    figures = []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        fill(folder, rules, rules // 5)
        for name, (code, budget) in RUNS.items():
            loaded = modules(code, folder)  # and bytecode is there from now on
            pairs = [(taken("pass", folder), taken(code, folder)) for _ in range(runs)]
            over = sorted((ours.wall - bare.wall) * 1000 for bare, ours in pairs)
            cpu = statistics.median((ours.cpu - bare.cpu) * 1000 for bare, ours in pairs)
            times = statistics.median(ours.cpu / bare.cpu for bare, ours in pairs)
            basis = f"{runs} pairs, {rules} rules"
            figures.append(Figure(name, statistics.median(over), "ms", None, "", basis))
            figures.append(Figure("  95th percentile", over[round(0.95 * (runs - 1))], "ms", budget, "", basis))
            told = f"{times:.1f} times the bare interpreter's; {loaded} modules"
            figures.append(Figure("  CPU time", cpu, "ms", None, "", told))
    show(figures, options.json)


if __name__ == "__main__":
    main()
