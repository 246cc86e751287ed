"""Print what the embedded store costs, by counts, bytes and ratios of one run.

    python benchmarks/store.py

Times are medians inside the process and stand beside a bare synced write of the same run; bytes
are those of one transaction in the write-ahead log. Times of other processes are CPU seconds.
"""

from __future__ import annotations

import compileall
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import apsw
from shared import PROJECT, Table, publish

from toolmem import ToolMem
from toolmem.config.sections import OpSection
from toolmem.models.calls import JudgeIdentity, ToolCallResult, Verdict
from toolmem.store.sqlite import SqliteStore
from toolmem.store.sqlite.files import PAGE_BYTES

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
JUDGE = JudgeIdentity("offline", "rule_based_check", "1")
VERDICT = Verdict("Searched.", "Ran and answered (90 characters).", 1, False, JUDGE)
KEEP = 100
FRAME_BYTES = PAGE_BYTES + 24  # a page in the log, with its header
ENCODERS = ("onnxruntime", "tokenizers", "fastembed", "torch", "sentence_transformers")

FRESH = """
import sys, time
from toolmem import ToolMem
calls = [{"tool_name": "search", "input": {"q": n}, "output": "Error: no such thing" if n % 3 else
          '{"rows": [1]}', "conversation_id": "a"} for n in range(36)]
with ToolMem(sys.argv[1]) as memory:
    memory.add(calls)
    memory.summarize("search")
print(time.process_time(), *(name for name in sys.argv[2:] if name in sys.modules))
"""


def call(number: int, tool: str) -> ToolCallResult:
    """About 700 bytes, as many recorded calls have."""
    return ToolCallResult(
        tool_name=tool,
        input={"query": f"question {number}", "limit": number % 10},
        output=f"[{number}] " + "an answer of some length " * (8 + number % 15),
        success=True,
        create_time=BEGIN + timedelta(seconds=number),
        time_cost=0.25,
        token_cost=40,
        id=f"call-{number}",
        metadata={"conversation_id": f"conversation-{number // 20}"},
    ).judged(VERDICT)


def median_ms(rounds: int, work: Callable[[int], object]) -> float:
    """Milliseconds of one execution."""
    times = []
    for number in range(rounds):
        started = time.perf_counter()
        work(number)
        times.append(1000 * (time.perf_counter() - started))
    return statistics.median(times)


def filled(path: Path, tools: int) -> SqliteStore:
    """Tools with 100 calls each, summarized."""
    store = SqliteStore(path)
    for first in range(0, tools, 50):
        some = range(first, min(first + 50, tools))
        store.append_calls("w", [call(i, f"tool {n}") for n in some for i in range(KEEP)], KEEP)
    with ToolMem(stores={"default": store}, workspace="w") as memory:
        memory.summarize()
    return SqliteStore(path)


def adding(folder: Path, tools: int, rounds: int = 200) -> list[tuple[str, object, str]]:
    """One call added, and an idle summary."""
    path = folder / f"{tools}.db"
    store = filled(path, tools)
    number = 1_000_000

    def add(_: int) -> None:
        nonlocal number
        number += 1
        store.append_calls("w", [call(number, f"tool {number * 7 % tools}")], KEEP)

    add(0)
    milliseconds = median_ms(rounds, add)
    bare = bare_write_ms(folder / "bare", rounds)
    log = apsw.Connection(str(path))
    log.set_busy_timeout(10_000)
    log.execute("SELECT count(*) FROM workspaces").fetchall()
    log.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_FULL)
    kilobytes = []
    for n in range(rounds):
        add(n)
        # All that the log holds goes into the file, so that the next write begins the log anew.
        frames, _ = log.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        kilobytes.append(frames * FRAME_BYTES / 1000)
    log.close()
    case = f"{tools:,} tools x {KEEP} calls"
    with ToolMem(stores={"default": store}, workspace="w") as memory:
        memory.summarize()
        idle = median_ms(5, lambda _: memory.summarize())
        prompt = median_ms(20, lambda _: memory.guidance("tool 3"))
        window = memory.services.store(OpSection()).windows("w", ["tool 3"])[0]
    assert window.record.kept == KEEP
    return [
        (f"{case}: one call added, ms", milliseconds, "1"),
        ("  a bare synced write of 16 kB, ms", bare, ""),
        (f"{case}: one call added, kB in the log", statistics.median(kilobytes), "26"),
        (f"{case}: idle summary of all tools, ms", idle, "60" if tools == 1000 else ""),
        (f"{case}: guidance of one tool, ms", prompt, ""),
    ]


def bare_write_ms(path: Path, rounds: int) -> float:
    """What the disk alone takes: eight pages written and synced."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT)

    def write(_: int) -> None:
        os.write(file, b"x" * 8 * PAGE_BYTES)
        os.fsync(file)

    found = median_ms(rounds, write)
    os.close(file)
    return found


def cpu_seconds(*arguments: str) -> float:
    """Least CPU time of 15 processes."""
    times = []
    for _ in range(15):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *arguments], check=True, cwd=PROJECT)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        user, system = after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime
        times.append(user + system)
    return min(times)


def processes(folder: Path) -> list[tuple[str, object, str]]:
    """A fresh process, and what importing costs. Everything is compiled before."""
    compileall.compile_dir(PROJECT / "toolmem", quiet=2)
    bare = cpu_seconds("-c", "pass")
    imported = cpu_seconds("-c", "import toolmem")
    done = subprocess.run(
        [sys.executable, "-c", FRESH, str(folder / "fresh.db"), *ENCODERS],
        check=True,
        capture_output=True,
        text=True,
        cwd=PROJECT,
    )
    seconds, *encoders = done.stdout.split()
    return [
        ("import toolmem over a bare interpreter, CPU ms", 1000 * (imported - bare), "20"),
        ("36 calls and a summary in a fresh process, CPU s", float(seconds), "0.5"),
        ("  encoders that it loaded", ", ".join(encoders) or "none", "none"),
    ]


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = [*adding(folder, 10), *adding(folder, 1000), *processes(folder)]
        table = Table("Times, bytes and processes", ("figure", "measured", "goal"), rows)
        publish("store", "The embedded store", table)


if __name__ == "__main__":
    main()
