"""What a hook costs an agent: a fresh interpreter at each step, on a store with 1,000 rules and 1,000 calls.

    python benchmarks/hooks.py [--quick] [--json FILE]

The rules are of 200 tools. Each run stands beside a run of the bare interpreter (`python -P -c pass`), in turn; the
figures are how much longer it took: files in the cache, modules compiled as pip leaves them, fsync included. First the
processes that an installed hook of Claude Code starts, each with an event of its own, then functions of the engine.
On a machine that is busy with other work: `chrt -f 10 python benchmarks/hooks.py`.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from tables import Figure, arguments, show

CALLED = [f"tool_{number}" for number in range(10)]
LIGHT, CHECKED, SPOKEN = 60, 120, 300  # ms over the bare interpreter (95th percentile)
STORE = ".toolmem/memory.db"
OPEN = f"from toolmem.engine import StoreFile, before, prompt_for, user_said\nwith StoreFile('{STORE}') as store: "


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


def hook(name: str, goal: float | None, event: str, **given: Any) -> Run:
    """An event of Claude Code; `NUMBER` in its texts is another one each time."""

    def payload(number: int) -> str:
        told = {"session_id": "s1", "transcript_path": "", "hook_event_name": event, **given}
        told |= {"tool_use_id": "toolu_NUMBER"} if "tool_name" in given else {"prompt_id": "prompt_NUMBER"}
        return json.dumps(told).replace("NUMBER", f"{event}{number}{time.monotonic_ns()}")

    return Run(f"{event}, {name}", goal, ["-m", "toolmem.hosts", "claude-code"], payload)


def engine(name: str, code: str) -> Run:
    return Run(f"engine: {name}", None, ["-c", f"{OPEN}{code}"])


def bash(command: str) -> dict[str, Any]:
    return {"tool_name": "Bash", "tool_input": {"command": command}}


READ = {"tool_name": "Read", "tool_input": {"file_path": "/tmp/x"}}
WORKED = {"stdout": "a.txt", "stderr": "", "interrupted": False}
RUNS = [
    hook("a tool without rules", LIGHT, "PreToolUse", **READ),
    hook("reminders alone", LIGHT, "PreToolUse", tool_name="tool_1", tool_input={"q": "rain"}),
    hook("a condition that does not hold", CHECKED, "PreToolUse", **bash("git push origin feature")),
    hook("denied", CHECKED, "PreToolUse", **bash("git push origin main")),
    hook("a call that worked", None, "PostToolUse", **bash("ls"), tool_response=WORKED),
    hook("a call that failed", None, "PostToolUseFailure", **bash("lsx"), error="command not found: lsx"),
    hook("a demand", SPOKEN, "UserPromptSubmit", prompt="Never email Sarah at NUMBER@example.com."),
    hook("a request", SPOKEN, "UserPromptSubmit", prompt="Please find out why NUMBER broke."),
    hook("startup", None, "SessionStart", source="startup", session_id="NUMBER"),
    Run("import toolmem", 50, ["-c", "import toolmem"]),
    engine("open the store", "pass"),
    engine("prompt_for, 10 tools", f"assert prompt_for(store, {CALLED})"),
    engine("before, a tool without rules", "assert not before(store, {'tool_name': 'Read', 'input': {}}).stops"),
    engine("user_said, a demand", f"user_said(store, 'Never email Sarah at sarah@example.com.', tools={CALLED})"),
]
BARE = Run("the bare interpreter", None, ["-c", "pass"])


def taken(run: Run, number: int, home: Path) -> Taken:
    begun = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-P", *run.command],
        cwd=home,
        env=environment(home),
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


def environment(home: Path) -> dict[str, str]:
    """Of a user whose home folder this is."""
    return {"HOME": str(home), "PATH": os.environ["PATH"], "CLAUDE_PROJECT_DIR": str(home)}


def loaded(run: Run, home: Path) -> set[str]:
    """Modules that it loads."""
    command = [sys.executable, "-P", "-X", "importtime", *run.command]
    told = subprocess.run(
        command, cwd=home, env=environment(home), input=run.stdin(-1), check=True, capture_output=True, text=True
    ).stderr
    return {line.rsplit("|", 1)[1].strip() for line in told.splitlines() if line.startswith("import time:")}


def fill(home: Path, rules: int, tools: int) -> None:
    """A store as a long use leaves it; on `Bash` a rule that is checked."""
    from toolmem import ToolMem

    with ToolMem(home / STORE) as mem:
        calls = [
            {"input": {"q": f"rain {number}"}, "output": "[1]", "success": True} for number in range(1000 // tools)
        ]
        mem.add([{"tool_name": f"tool_{number}", **call} for number in range(tools) for call in calls])
        mem.summarize(CALLED)
        for number in range(rules - 1):
            text = f"never change anything of customer {number} without asking the owner first"
            mem.rules.put(f"tool_{number % tools}", text, priority=("critical", "high", "normal")[number % 3])
        mem.rules.put("Bash", "never push to main", priority="critical")


def filled(home: Path, rules: int) -> None:
    """In a process of its own: the peak memory of a process begins with that of the one that starts it."""
    path = f"import sys, pathlib; sys.path.insert(0, {str(Path(__file__).parent)!r}); import hooks"
    code = f"{path}; hooks.fill(pathlib.Path({str(home)!r}), {rules}, {rules // 5})"
    subprocess.run([sys.executable, "-c", code], check=True)


def figures_of(run: Run, pairs: Iterable[tuple[Taken, Taken]], modules: set[str], rules: int) -> list[Figure]:
    pairs = list(pairs)
    over = sorted(ours.wall - bare.wall for bare, ours in pairs)
    cpu = statistics.median(ours.cpu - bare.cpu for bare, ours in pairs)
    peak = statistics.median(ours.peak for _, ours in pairs)
    bare = statistics.median(bare.peak for bare, _ in pairs)
    own = sum(each.startswith("toolmem") for each in modules)
    basis = f"{len(pairs)} pairs, {rules} rules"
    told = f"at its peak {peak:.0f} MB (bare: {bare:.0f}); {len(modules)} modules, {own} of them toolmem's"
    return [
        Figure(run.name, statistics.median(over), "ms", None, "", basis),
        Figure("  95th percentile", over[round(0.95 * (len(over) - 1))], "ms", run.goal, "", basis),
        Figure("  processor time", cpu, "ms", None, "", told),
    ]


def main() -> None:
    options = arguments(__doc__)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # installed modules have their bytecode
    runs, rules = (5, 100) if options.quick else (60, 1000)
    figures = []
    with tempfile.TemporaryDirectory() as place:
        home = Path(place)
        filled(home, rules)
        bare = loaded(BARE, home)
        busy = [os.getloadavg()[0]]
        for run in RUNS:
            taken(run, -2, home)  # its bytecode is there from now on
            modules = loaded(run, home) - bare
            pairs = [(taken(BARE, number, home), taken(run, number, home)) for number in range(runs)]
            figures += figures_of(run, pairs, modules, rules)
            busy.append(os.getloadavg()[0])
        trouble = home / ".local" / "state" / "toolmem" / "hooks.log"
        if trouble.exists():
            raise SystemExit(trouble.read_text())
    first = hasattr(os, "SCHED_FIFO") and os.sched_getscheduler(0) == os.SCHED_FIFO
    ahead = "; it ran before all else (chrt -f 10)" if first else ""
    told = f"{os.cpu_count()} cores; this program alone makes it 1{ahead}"
    figures.append(Figure("load of the machine while it ran", statistics.mean(busy), "", None, "", told))
    show(figures, options.json)


if __name__ == "__main__":
    main()
