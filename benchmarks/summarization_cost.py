"""Print what summarization costs under each policy, and what it buys.

    python benchmarks/summarization_cost.py

`toolmem costs` on recordings, with the price of qwen-plus and no prefix cache. The card stands in
for the model's text, so policies differ in what they name by their freshness alone: counting only
names what the smart skip at 1 new call does.

A single pass reads each call once. Calls read: the share that any summary read. Later repairs: at
each failure that the next calls repaired, whether 500 tokens of the guidance in force name a repair
of it, with Wilson's 95 % interval.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace
from shared import Table, publish, recorded_calls

from toolmem import ToolMem
from toolmem.guidance.card import CardWriter
from toolmem.guidance.model_writer import ModelWriter
from toolmem.judge.check import check
from toolmem.llm.models import DryRunModel
from toolmem.models.calls import ToolCallResult
from toolmem.models.guidance import Guidance
from toolmem.pages.intervals import wilson_interval
from toolmem.research.backtest import Calls, by_tool, is_named, repaired_failures
from toolmem.research.costs import POLICIES, PolicyCost, bill

LIMIT = 1_000  # calls of a recording
TOKENS = 500  # of guidance per tool


def replayed(calls: Calls, policy: str) -> tuple[PolicyCost, int, int]:
    """What the policy costs, and of how many repaired failures guidance named the repair."""
    asked = {
        own[one.position].id: one
        for own in by_tool(calls).values()
        for one in repaired_failures(own)
    }
    named = []

    def watch(call: ToolCallResult, held: Guidance | None) -> None:
        if one := asked.get(call.id):
            named.append(held is not None and is_named(one, held, TOKENS))

    (cost,) = bill(calls, {policy: POLICIES[policy]}, watch=watch).policies
    return cost, sum(named), len(named)


def single_pass(calls: Calls) -> int:
    """Estimated tokens of the lines of all calls, each read once."""
    with ToolMem(":memory:", overrides=["llm.default.backend=dry_run"]) as memory:
        model = memory.services.model("default")
    assert isinstance(model, DryRunModel)
    writer = ModelWriter(model, CardWriter(), max_tokens=TOKENS)
    empty = model.count(writer.prompt("", []))
    return sum(model.count(writer.prompt("", [call])) - empty for call in calls)


def row(name: str, cost: PolicyCost, named: int, repaired: int, calls: int, once: int) -> Any:
    low, high = wilson_interval(named, repaired)
    told = f"{named} of {repaired} ({low:.2f} to {high:.2f})"
    read = f"{cost.calls_read:.0%}" if cost.calls_read else "-"
    money = 1000 * (cost.cost or 0.0) / calls
    return (name, cost.requests, read, cost.prompt_tokens / once, money, told)


def table(name: str, tool: str = "") -> Table:
    recorded = [call for call in recorded_calls(name) if tool in ("", call.tool_name)][:LIMIT]
    calls = [
        replace(call.judged(check(call)), id=call.id or str(n)) for n, call in enumerate(recorded)
    ]
    found = {policy: replayed(calls, policy) for policy in POLICIES}
    fresh, named, repaired = found["smart skip, 1 new call"]
    unpaid = PolicyCost(calls_read=fresh.calls_read)
    found = {
        "no guidance": (PolicyCost(), 0, repaired),
        "counting only": (unpaid, named, repaired),
        **found,
    }
    once = single_pass(calls)
    rows = [row(policy, *each, len(calls), once) for policy, each in found.items()]
    title = f"{name}{f', {tool}' if tool else ''}: {len(calls):,} calls, {once:,} tokens read once"
    columns = ("policy", "requests", "calls read", "times a single pass", "CNY per 1,000 calls")
    return Table(title, (*columns, "later repairs named (95 %)"), rows)


def main() -> None:
    tables = [table("intercode", "sql_execute"), table("sample"), table("tau_bench")]
    publish("cost", "What summarization costs, and what it buys", *tables)


if __name__ == "__main__":
    main()
