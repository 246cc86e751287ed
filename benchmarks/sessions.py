"""Print what a session costs its agent: tokens of the prompt, and time around a call.

    python benchmarks/sessions.py

Tokens are estimated. Times are of one process, in a store with 1,000 rules on 200 tools, beside a
read of the same records one by one.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from shared import Table, publish

from toolmem import AgentSession, ToolMem
from toolmem.config.sections import OpSection
from toolmem.llm.tokens import estimated_tokens
from toolmem.rules.notes import contract
from toolmem.rules.store import RuleInput

TOOLS, RULES, ROUNDS = 200, 1_000, 21


def milliseconds(work: Callable[[], Any], rounds: int = ROUNDS) -> tuple[float, float]:
    """Least and median."""
    times = []
    for _ in range(rounds):
        started = time.perf_counter()
        work()
        times.append(1000 * (time.perf_counter() - started))
    return min(times), statistics.median(times)


def fill(memory: ToolMem) -> None:
    store = memory.services.store(OpSection())
    with store.transaction():
        for number in range(RULES):
            rule = RuleInput(
                tool_name=f"tool_{number % TOOLS}",
                rule=f"Never send a message to person {number}",
                priority="critical" if number % 10 == 0 else "normal",
            )
            memory.rules.put_rule(rule)


def rows(memory: ToolMem) -> list[tuple[Any, ...]]:
    store = memory.services.store(OpSection())
    tools = [f"tool_{number}" for number in range(TOOLS)]

    def read_records() -> None:
        for record in store.list_records("default", prefix="tool-", key_prefix="rule/"):
            record.read(dict)

    with AgentSession.start(memory, base_prompt="Be brief.") as session:

        @session.tool
        def tool_7(to: str) -> str:
            return f"sent to {to}"

        def plain_call() -> str:
            return tool_7("somebody")

        called = milliseconds(plain_call, 200)
    rules = milliseconds(memory.tool_rules_for_prompt)
    return [
        ("1,000 rules read and decoded, ms", *milliseconds(read_records), None),
        (
            "tool_rules_for_prompt, 1,000 rules, ms",
            *rules,
            6.0,
        ),
        ("prompt of 200 tools, ms", *milliseconds(lambda: memory.prompt(tools)), None),
        ("a call checked, made and recorded, ms", *called, None),
    ]


def tokens(memory: ToolMem) -> list[tuple[str, int]]:
    pinned = memory.tool_rules_for_prompt().rendered
    return [
        ("the contract for notes", estimated_tokens(contract())),
        (
            "rules pinned to the prompt, 1,000 rules",
            estimated_tokens(pinned),
        ),
    ]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "memory.db"
        with ToolMem(path) as memory:
            fill(memory)
            times = Table("Times", ("in one process", "least", "median", "goal"), rows(memory))
            sizes = Table("Sizes", ("text", "tokens"), tokens(memory))
            publish("sessions", "Sessions", times, sizes)


if __name__ == "__main__":
    main()
