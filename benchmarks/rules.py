"""What the rule store costs: pinning the rules of a prompt, putting one, capturing a turn.

    python benchmarks/rules.py [--quick] [--json FILE]

1000 rules over 200 tools (critical, high and normal in turn) in a file of the embedded store, fsync included. Medians.
"""

from __future__ import annotations

import asyncio
import logging
import tempfile
from pathlib import Path

from tables import Figure, arguments, median_ms, show

PRIORITIES = ("critical", "high", "normal")
VERBS = ("delete", "send", "overwrite", "publish", "book")


async def measure(folder: Path, quick: bool) -> list[Figure]:
    from toolmem.flow.runner import SystemClock
    from toolmem.providers.hashing import HashingEmbedder
    from toolmem.rules.capture.hook import ToolMemoryCaptureHook
    from toolmem.rules.rule_store import RuleStore
    from toolmem.rules.section import ToolMemoryRulesSection
    from toolmem.rules.turns import ToolUse, Turn
    from toolmem.store.sqlite import SqliteStore

    count, tools, times = (100, 20, 20) if quick else (1000, 200, 200)
    clock, embedder = SystemClock(), HashingEmbedder(384)
    async with SqliteStore(folder / "memory.db", clock=clock, embedder=embedder.identity) as store:
        # All critical rules are pinned, however long: this measures a thousand.
        rules = RuleStore(store, "bench", clock=clock, embedder=embedder, max_critical_characters=10**6)
        hook = ToolMemoryCaptureHook(rules, enabled=True)

        async def put(number: int) -> None:
            text = f"never {VERBS[number % 5]} anything of customer {number} without asking the owner first"
            await rules.put_rule(f"tool_{number % tools}", text, priority=PRIORITIES[number % 3])

        putting = await median_ms(count, put)
        catalogue = tuple(f"tool_{number}" for number in range(20))

        def uses(number: int) -> tuple[ToolUse, ...]:
            names = [f"tool_{(number + step) % tools}" for step in range(3)]
            return tuple(ToolUse(name, success=True, output_summary="done") for name in names)

        async def pin_all(_: int) -> None:
            pinned = await rules.rules_for_prompt()
            assert sum(rule.priority == "critical" for rule in pinned.rules) == (count + 2) // 3

        async def pin_ten(_: int) -> None:
            assert (await rules.rules_for_prompt(catalogue[:10])).rules

        async def render(_: int) -> None:
            assert ToolMemoryRulesSection(await rules.rules_for_prompt()).text

        async def quiet_turn(number: int) -> None:
            turn = Turn(f"Please look up order {number} and tell me when it arrives.", uses(number), tools=catalogue)
            assert not (await hook.after_turn(turn)).rules

        async def turn_with_an_instruction(number: int) -> None:
            turn = Turn(
                f"Thanks. Never email customer {number} at c{number}@example.com.", uses(number), tools=catalogue
            )
            assert len((await hook.after_turn(turn)).rules) == 1

        async def turn_that_repeats_it(number: int) -> None:
            turn = Turn(f"Never email customer {number} at c{number}@example.com!", uses(number), tools=catalogue)
            assert len((await hook.after_turn(turn)).rules) == 1

        basis = f"{count} rules, {tools} tools, median of {times}"
        return [
            Figure("rules_for_prompt, all tools", await median_ms(times, pin_all), "ms", 5, "", basis),
            Figure("  and rendered", await median_ms(times, render), "ms", None, "", basis),
            Figure("rules_for_prompt, 10 tools", await median_ms(times, pin_ten), "ms", 5, "", basis),
            Figure("put of a new rule", putting, "ms", 2, "", f"median of {count}"),
            Figure("capture: nothing demanded", await median_ms(times, quiet_turn), "ms", 2, "", basis),
            Figure("capture: a new instruction", await median_ms(times, turn_with_an_instruction), "ms", 2, "", basis),
            Figure(
                "capture: an instruction said again", await median_ms(times, turn_that_repeats_it), "ms", 2, "", basis
            ),
        ]


def main() -> None:
    logging.getLogger("toolmem").setLevel(logging.ERROR)  # what the caps leave out is said at every prompt
    options = arguments(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        show(asyncio.run(measure(Path(folder), options.quick)), options.json)


if __name__ == "__main__":
    main()
