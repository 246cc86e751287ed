"""Print what the guard flags in recordings, which evasions it sees, and what a decision costs.

    python benchmarks/guard.py

*wrong*: flagged, and the call worked as recorded. `guard_evasions.jsonl` holds ways to do what a
sentence forbids, each beside a call that is like it and allowed; ways marked `limit` are known not
to be seen. `guard_neighbours.jsonl` holds sentences with calls that they forbid and do not.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from shared import RECORDINGS, Table, publish, recorded_calls

from toolmem.guard import Guard
from toolmem.guard.replay import replay
from toolmem.models.calls import SystemClock
from toolmem.models.tools import ToolSchema
from toolmem.rules.prompt import ToolMemoryRulesSection, choose
from toolmem.rules.reader.demands import demands
from toolmem.rules.store import RuleInput, ToolMemoryStore
from toolmem.store.sqlite import SqliteStore
from toolmem.view.conditions import Match, read_conditions
from toolmem.view.view import CallView

HERE = Path(__file__).parent
TOOLS = {
    tool["name"]: ToolSchema(**tool)
    for tool in json.loads((HERE / "guard_tools.json").read_text(encoding="utf-8"))
}


def rows(name: str) -> list[Any]:
    lines = (HERE / name).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def is_stopped(sentence: str, tool: str, call: Mapping[str, Any], folder: str = "") -> bool:
    """Whether a call is stopped or asked about once the sentence was read."""
    schema = TOOLS.get(tool, ToolSchema(tool))
    for demand in demands(sentence, [tool], list({**TOOLS, tool: schema}.values())):
        found = demand.conditions.get(tool)
        if found is not None:
            view = CallView(tool, call, schema.parameters, folder)
            conditions = read_conditions(found.when, found.unless)
            if conditions.check(view, datetime.now(UTC)) is not Match.NO:
                return True
    return False


def of_recording(name: str) -> tuple[object, ...]:
    done = replay(recorded_calls(name))
    repeat, names = done.sources["repeat"], done.sources["known_name"]
    counts = (repeat.flagged, repeat.wrong, names.flagged, names.wrong)
    return (name, done.calls, done.failures, *counts)


def evasions() -> list[tuple[object, ...]]:
    found = [(row, row.get("directory", "")) for row in rows("guard_evasions.jsonl")]
    seen = [is_stopped(r["rule"], r["tool"], r["call"], folder) for r, folder in found]
    wrong = [is_stopped(r["rule"], r["tool"], r["neighbour"], folder) for r, folder in found]
    expected = [row["expected"] == "stopped" for row, _ in found]
    pairs = list(zip(expected, seen, strict=True))
    ways = ("evasions", sum(expected), pairs.count((True, True)), len(wrong), sum(wrong))
    sentences = rows("guard_neighbours.jsonl")
    forbidden = [is_stopped(row["said"], *row["stopped"]) for row in sentences if row["stopped"]]
    passed = [is_stopped(row["said"], *call) for row in sentences for call in row["passed"]]
    others = ("sentences", len(forbidden), sum(forbidden), len(passed), sum(passed))
    return [ways, others]


def filled(rules_in_all: int, tools: int) -> tuple[SqliteStore, ToolMemoryStore]:
    store = SqliteStore(":memory:")
    rules = ToolMemoryStore(store, "default", SystemClock())
    for number in range(rules_in_all):
        rules.put_rule(
            RuleInput(
                tool_name=f"send_{number % tools}",
                rule=f"Never write to p{number}@example.com",
                priority="critical",
                effect="deny",
                when=[{"target": f"^p{number}@example\\.com$"}],
            )
        )
    return store, rules


def decisions() -> list[tuple[object, ...]]:
    """Milliseconds of wall clock in a store with 1,000 rules on 200 tools, in a conversation."""
    store, rules = filled(1_000, 200)
    guard = Guard(store, "default", SystemClock())
    given = {"to": "sarah@example.com", "subject": "Report", "body": "It is attached. " * 40}
    took = []
    for number in range(3_000):
        begun = time.perf_counter()
        guard.before(f"send_{number % 200}", given, conversation_id="c")
        took.append(1_000 * (time.perf_counter() - begun))
    took = sorted(took[200:])
    of_guard = ("a decision", median(took), took[int(0.99 * len(took))])
    took = []
    for _ in range(60):
        begun = time.perf_counter()
        ToolMemoryRulesSection(choose(rules.all_rules()))
        took.append(1_000 * (time.perf_counter() - begun))
    return [of_guard, ("rules_for_prompt of 1,000 rules", median(took), max(took))]


def main() -> None:
    columns = ("recording", "calls", "failed", "repeats", "wrong", "names", "wrong")
    publish(
        "guard",
        "The guard",
        Table("Repeats and unknown names", columns, [of_recording(name) for name in RECORDINGS]),
        Table("Rules", ("calls", "forbidden", "stopped", "near", "near stopped"), evasions()),
        Table("A decision", ("milliseconds", "p50", "p99"), decisions()),
    )


if __name__ == "__main__":
    main()
