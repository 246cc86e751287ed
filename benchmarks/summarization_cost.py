"""Print what summarization costs under each policy, and what it buys.

    python benchmarks/summarization_cost.py

Calls are replayed in order through the real op over a store in memory. A summary of every tool is
asked for after each conversation (after every 10 calls where none is named). Prompts are built and
counted (estimated tokens) and not sent: `llm.default.backend=dry_run`; the card stands in for the
model's text, so policies differ in what they name by their freshness alone. Money: the price of
qwen-plus, a reply of 270 tokens for each summary, no prefix cache.

A single pass reads each call once. Calls read: the share that any summary read. Later repairs: at
each failure that the next calls repaired, whether 500 tokens of the guidance in force name a repair
of it, with Wilson's 95 % interval.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from backtest import Repaired, is_named, repaired_failures
from msgspec import Struct
from msgspec.structs import replace
from shared import Table, publish, recorded_calls

from toolmem import ToolMem
from toolmem.config.sections import OpSection
from toolmem.guidance.card import CardWriter
from toolmem.guidance.model_writer import ModelWriter
from toolmem.judge.check import check
from toolmem.llm.budget import Budget
from toolmem.llm.models import DryRunModel
from toolmem.models.calls import ToolCallResult
from toolmem.models.guidance import Guidance
from toolmem.research.tables import wilson_interval

LIMIT = 1_000  # calls of a recording
TOKENS = 500  # of guidance per tool
REPLY_TOKENS = 270  # as the prompt asks for at most 200 words
MODEL = "qwen-plus"
DRY_RUN = ["llm.default.backend=dry_run", f"llm.default.model_name={MODEL}"]
PARAMS = "op.summary_tool_memory_op.params"
POLICIES: dict[str, list[str] | None] = {
    "no guidance": None,
    "counting only": [],
    "always fresh": [*DRY_RUN, f"{PARAMS}.force=true"],
    "smart skip, 1 new call": DRY_RUN,
    "smart skip, 10 new calls": [*DRY_RUN, f"{PARAMS}.min_new_calls=10"],
    "incremental, 10 new calls": [
        *DRY_RUN,
        f"{PARAMS}.min_new_calls=10",
        f"{PARAMS}.policy=incremental",
    ],
}
Calls = Sequence[ToolCallResult]


class Replay(Struct):
    """What one policy did on a recording."""

    summaries: int = 0
    tokens: int = 0
    cost: float | None = 0.0
    read: set[tuple[str, int]] = set()  # tool and seq
    named: int = 0
    repaired: int = 0


def conversations(calls: Calls) -> Iterator[list[ToolCallResult]]:
    """Runs of calls of one conversation; of ten where they name none."""
    if all(call.conversation_id for call in calls):
        for _, group in groupby(calls, key=lambda call: call.conversation_id):
            yield list(group)
        return
    for first in range(0, len(calls), 10):
        yield list(calls[first : first + 10])


def repairs(calls: Calls) -> dict[str, Repaired]:
    """By the id of the call that failed."""
    by_tool: defaultdict[str, list[ToolCallResult]] = defaultdict(list)
    for call in calls:
        by_tool[call.tool_name].append(call)
    return {
        own[one.position].id or "": one
        for own in by_tool.values()
        for one in repaired_failures(own)
    }


def replay(calls: Calls, overrides: list[str] | None) -> Replay:
    done, asked = Replay(), repairs(calls)
    guidance: dict[str, Guidance] = {}
    given = [f"{PARAMS}.summary_sleep_interval=0", *(overrides or [])]
    with ToolMem(":memory:", workspace="w", overrides=given) as memory:
        store = memory.services.store(OpSection())
        for group in conversations(calls):
            for call in group:
                if one := asked.get(call.id or ""):
                    held = guidance.get(call.tool_name)
                    done.repaired += 1
                    done.named += held is not None and is_named(one, held, TOKENS)
            if overrides is None:
                continue
            store.append_calls("w", group, 100)
            summarized = memory.summarize()
            usage = summarized.usage
            done.summaries += usage.requests
            done.tokens += usage.prompt_tokens
            names = [each.tool_name for each in summarized.outcomes if each.action == "summarized"]
            for record in store.records("w", names):
                assert record.guidance is not None
                guidance[record.tool_name] = record.guidance
                done.read |= {(record.tool_name, seq) for seq in record.guidance.covered}
        settings = memory.engine.configuration.settings
        budget = Budget(settings.budget, settings.prices)
        done.cost, _ = budget.price(MODEL, done.tokens, REPLY_TOKENS * done.summaries)
    return done


def single_pass(calls: Calls) -> int:
    """Estimated tokens of the lines of all calls, each read once."""
    with ToolMem(":memory:", overrides=DRY_RUN) as memory:
        model = memory.services.model("default")
    assert isinstance(model, DryRunModel)
    writer = ModelWriter(model, CardWriter(), max_tokens=TOKENS)
    empty = model.count(writer.prompt("", []))
    return sum(model.count(writer.prompt("", [call])) - empty for call in calls)


def table(name: str, tool: str = "") -> Table:
    recorded = [call for call in recorded_calls(name) if tool in ("", call.tool_name)][:LIMIT]
    calls = [
        replace(call.judged(check(call)), id=call.id or str(n)) for n, call in enumerate(recorded)
    ]
    once = single_pass(calls)
    rows: list[tuple[Any, ...]] = []
    for policy, overrides in POLICIES.items():
        done = replay(calls, overrides)
        low, high = wilson_interval(done.named, done.repaired)
        told = f"{done.named} of {done.repaired} ({low:.2f} to {high:.2f})"
        read = f"{len(done.read) / len(calls):.0%}" if done.read else "-"
        cost = None if done.cost is None else 1000 * done.cost / len(calls)
        rows.append((policy, done.summaries, read, done.tokens / once, cost, told))
    title = f"{name}{f', {tool}' if tool else ''}: {len(calls):,} calls, {once:,} tokens read once"
    columns = ("policy", "requests", "calls read", "times a single pass", "CNY per 1,000 calls")
    return Table(title, (*columns, "later repairs named (95 %)"), rows)


def main() -> None:
    tables = [table("intercode", "sql_execute"), table("sample"), table("tau_bench")]
    publish("cost", "What summarization costs, and what it buys", *tables)


if __name__ == "__main__":
    main()
