"""The time of a decision over a store, as `guard.py` and `elasticsearch.py` tell it."""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from tables import Figure

from toolmem.engine.guard_records import Places
from toolmem.engine.guarding import CallGuard
from toolmem.flow.runner import SystemClock
from toolmem.light_models import ToolCall, ToolMemoryRule
from toolmem.models import ToolCallResult
from toolmem.protocols import MemoryStore
from toolmem.providers.hashing import HashingEmbedder
from toolmem.rules.rule_store import RuleStore
from toolmem.store.sqlite import SqliteStore

CONVERSATION, WORKSPACE = "c1", "guard"
ARGUMENTS = {"to": "sarah@example.com", "subject": "Report", "body": "The report is attached. " * 40}


async def fill(store: MemoryStore, guard: CallGuard, *, ordered: bool = False) -> None:
    """1,000 rules of 200 tools, and a conversation of 1,000 calls. `ordered`: and a rule of order by day."""
    now = SystemClock().now()
    for n in range(1000):
        tool = f"send_{n % 200}"
        when = {
            "type": "object",
            "required": ["targets"],
            "properties": {"targets": {"type": "array", "contains": {"const": f"p{n}@example.com"}}},
        }
        rule = ToolMemoryRule(
            id=f"r{n}", tool_name=tool, rule="never", created_at=now, updated_at=now, effect="deny", when=when
        )
        await store.put(WORKSPACE, f"tool-{tool}", f"rule/r{n}", rule.model_dump(mode="json"))
    if ordered:
        tested = {"command": "^pytest", "worked": True, "since": {"writes": True}}
        clock = {"from": "08:00", "to": "20:00"}
        when: Any = {"when": [{"command": "^git commit"}], "unless": [{"earlier": tested, "clock": clock}]}
        rules = RuleStore(store, WORKSPACE, clock=SystemClock())
        await rules.put_rule("bash", "by day, run the tests before you commit", effect="deny", when=when)
    calls = [ToolCall("sql", {"q": n}, "Error: no such table", success=n % 3 != 0) for n in range(1000)]
    await guard.learn(calls, CONVERSATION)


async def in_turn(
    steps: Mapping[str, Callable[[int], Awaitable[object]]], times: int, clock: Callable[[], int]
) -> dict[str, list[float]]:
    """Milliseconds of each step, sorted; they take turns, so that the machine is as busy for all."""
    took: dict[str, list[float]] = {name: [] for name in steps}
    for n in range(times):
        for name, step in steps.items():
            begun = clock()
            await step(n)
            took[name].append((clock() - begun) / 1e6)
    return {name: sorted(each) for name, each in took.items()}


async def over_a_store(store: MemoryStore, times: int, clock: Callable[[], int]) -> dict[str, list[float]]:
    """Of `before`, of the read alone, of keeping a call alone, and of `after`."""
    guard = CallGuard(store, WORKSPACE, clock=SystemClock(), modes={"repeats": "enforce"}, timeout=60)
    await fill(store, guard)
    keys = Places(CONVERSATION).keys()

    async def decided(n: int) -> object:
        return await guard.before(f"send_{n % 200}", ARGUMENTS, conversation_id=CONVERSATION)

    async def read(n: int) -> object:
        return await store.read_stamped(WORKSPACE, keys)

    def call(n: int, tool: str) -> ToolCallResult:
        return ToolCallResult(
            tool_name=tool,
            input={"n": n},
            output="ok",
            success=True,
            create_time=SystemClock().now(),
            metadata={"conversation_id": CONVERSATION},
        )

    async def kept(n: int) -> object:
        return await store.append_calls(WORKSPACE, "get_kept", [call(n, "get_kept")], 100)

    async def learned(n: int) -> object:
        return await guard.after(None, call(n, "get_learned"))

    for n in range(400):
        await decided(n)  # rules are read and validators are compiled once
    took = await in_turn({"before": decided, "read": read}, times, clock)
    took |= await in_turn({"keep": kept, "after": learned}, min(times, 300), time.perf_counter_ns)
    await fill(store, guard, ordered=True)

    async def ordered(n: int) -> object:
        return await guard.before("bash", {"command": "git commit -m x"}, conversation_id=f"{CONVERSATION} {n}")

    await ordered(-1)
    took |= await in_turn({"before, order asked": decided, "before a commit": ordered}, times, clock)
    await store.delete_workspace(WORKSPACE)
    return took


def middle(took: list[float]) -> float:
    return statistics.median(took)


def late(took: list[float]) -> float:
    return took[int(len(took) * 0.99)]


async def _opened(store: SqliteStore, times: int) -> dict[str, list[float]]:
    async with store:
        return await over_a_store(store, times, time.process_time_ns)


def on_sqlite(times: int) -> list[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder) / "memory.db", clock=SystemClock(), embedder=HashingEmbedder(64).identity)
        took = asyncio.run(_opened(store, times))
    basis = "1,000 rules, 1,000 calls; processor time"
    return [
        Figure("SQLite: before, median", middle(took["before"]), "ms", 0.3, basis=basis),
        Figure("SQLite: before, 99th percentile", late(took["before"]), "ms", 1.0, basis=basis),
        Figure(
            "SQLite: before, with order asked, median", middle(took["before, order asked"]), "ms", None, basis=basis
        ),
        Figure("SQLite: before an ordered call, median", middle(took["before a commit"]), "ms", None, basis=basis),
        Figure("SQLite: keeping a call, median", middle(took["keep"]), "ms", None, basis="on the clock"),
        Figure("SQLite: after, median", middle(took["after"]), "ms", None, basis="on the clock, the call kept"),
    ]


async def on_elasticsearch(store: MemoryStore, times: int) -> list[Figure]:
    """Of a store on a server."""
    took = await over_a_store(store, times, time.perf_counter_ns)
    basis = "1,000 rules, 1,000 calls"
    more = middle(took["before"]) - middle(took["read"])
    return [
        Figure("guard: one multi-get, median", middle(took["read"]), "ms", None, basis=basis),
        Figure("guard: one multi-get, 99th percentile", late(took["read"]), "ms", None, basis=basis),
        Figure("guard: before beyond the multi-get, median", more, "ms", 1.0, basis=basis),
        Figure("guard: before, 99th percentile", late(took["before"]), "ms", None, basis=basis),
    ]
