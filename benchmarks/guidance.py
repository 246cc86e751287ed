"""Print what cards are worth: facts of the office trial, and later repairs that they name.

    python benchmarks/guidance.py

Office: eight tools with unwritten conventions and 51 recorded calls. A card holds a fact where it
holds one of the strings that say it. Goal: 24 facts in 1,200 estimated tokens.

Later repairs: cards of earlier conversations are asked for the repairs of later ones
(`backtest.py`), strictly: what is said of any failure counts for nothing. Advice at
the error is measured by `advice.py`.
"""

from __future__ import annotations

import json

import advice
from backtest import BUDGETS, backtest
from shared import Table, publish, recorded_calls, shared_data

from toolmem import ToolMem
from toolmem.judge.check import check
from toolmem.llm.tokens import estimated_tokens

GOALS = {"intercode": 0.78, "sample": 0.77, "toolbench": 1.0}  # at 500 tokens


def office() -> Table:
    """The eight cards at default settings, and one prompt of all of them."""
    folder = shared_data() / "trials" / "office"
    facts: dict[str, list[str]] = json.loads((folder / "facts.json").read_text())
    calls = [json.loads(line) for line in (folder / "recorded.jsonl").open()]
    with ToolMem(":memory:") as memory:
        memory.add(calls, tools=json.loads((folder / "tools.json").read_text()))
        memory.summarize()
        cards = [tool.guidance for tool in memory.tools()]
        prompt = memory.prompt()
    rows = []
    for name, texts in (("eight cards", cards), ("one prompt of 1,200 tokens", [prompt])):
        whole = "\n".join(texts)
        missing = [fact for fact, said in facts.items() if not any(each in whole for each in said)]
        tokens = sum(map(estimated_tokens, texts))
        rows.append((name, f"{len(facts) - len(missing)} of {len(facts)}", tokens))
        for fact in missing:
            print(f"missing in {name}: {fact}")
    return Table("Unwritten conventions of an office", ("office", "facts", "tokens"), rows)


def later_repairs() -> Table:
    """The share of later repairs that cards name, for each number of tokens."""
    rows = []
    for name in ("intercode", "sample", "toolbench", "tau_bench"):
        calls = [call.judged(check(call)) for call in recorded_calls(name)]
        found = backtest(calls)
        rows.append((name, found[0].repaired, *(each.share for each in found), GOALS.get(name)))
    columns = ("later repairs", "repaired", *(f"{budget} tokens" for budget in BUDGETS))
    return Table("Later repairs named by cards", (*columns, "goal at 500"), rows)


def main() -> None:
    tables = (office(), later_repairs(), advice.table())
    publish("guidance", "What cards and advice are worth", *tables)


if __name__ == "__main__":
    main()
