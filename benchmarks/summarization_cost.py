"""What summarization costs and what it buys: policies x recordings, and policies x tools x arrival patterns.

    python benchmarks/summarization_cost.py [--quick] [--json FILE] [--figure FILE]

Calls are replayed one by one, in order, through the real summary op and the real store (in memory). The prompts are
built and counted by Qwen's tokenizer; nothing is sent (`llm.default.backend=dry_run`), and the data-driven writer's
text stands in for the model's. So input tokens are counted, and the tokens of replies are estimates (270 per summary,
as the prompt asks for at most 200 words). Money is by the price table for qwen-plus; a prefix cache that never forgets
is taken for granted, which favours policies that read calls again.

* What it buys: repair coverage at 500 tokens of guidance (`toolmem.research.backtest`), asked at every failure that the
  next calls repaired, of the guidance as it was then; intervals by tasks or conversations; differences are paired. The
  baselines: no guidance; counting only (free of charge, from the newest 30 calls, fresh at every failure).
* Many tools: the calls of a recording, as if they were of 1, 10, 100 or 1000 tools, in three patterns of arrival. 150
  calls per cell; the three recordings with fewer than 300 calls for 1 and 10 tools that are called steadily; 1000 tools
  with 1000 calls of the sample, steadily and with one hot tool.

The single pass reads each call's line once. Calls read: the share of the calls that any summary read. Waiting at most:
calls of one tool that its guidance did not hold yet, those among them that the store keeps no more. The public
recordings are not part of the project; without the folder the project's own sample is measured alone.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cost_runs import BUDGET, MODEL, SMART_SKIP_10, app, cell, recording
from cost_streams import PATTERNS, ROOT, present
from tables import Figure, TextTable, show

from toolmem.readers.plain_text import counted

FIGURE = ROOT / "docs" / "images" / "summarization_cost.svg"
STREAMS = (("intercode", "sql_execute"), ("tau_bench", ""), ("sample", ""), ("toolbench", ""))
PANELS = 3
TOOLS = (1, 10, 100)
SMALL, SMALL_TOOLS = ("toolbench", "tau2_airline", "openhands"), (1, 10)  # recordings with fewer than 300 calls
MANY, MANY_PATTERNS = 1000, (PATTERNS[0], PATTERNS[2])  # tools, and calls of the sample
CALLS, CELL_CALLS = 1000, 150
ONE_TOOL = "intercode: sql_execute"
INCREMENTAL, FRESH = "incremental, 10 new calls", "always fresh"
OVER = "summary tokens over a single pass"


def measure(quick: bool) -> dict[str, list[dict[str, Any]]]:
    """All runs, on two processes; the largest first."""
    here = ["sample"] if quick else present()
    calls, cell_calls = (150, 40) if quick else (CALLS, CELL_CALLS)
    many = [] if quick else [("sample", MANY, pattern, MANY) for pattern in MANY_PATTERNS]
    cells = [
        (name, tools, pattern, cell_calls)
        for name in here
        for tools in (SMALL_TOOLS if name in SMALL else TOOLS)
        for pattern in (PATTERNS[:1] if name in SMALL else PATTERNS)
    ]
    with ProcessPoolExecutor(2) as workers:
        streams = [workers.submit(recording, name, tool, calls) for name, tool in STREAMS if name in here]
        filled = [workers.submit(cell, *each) for each in [*many, *cells]]
        return {
            "recordings": [each.result() for each in streams],
            "many_tools": [row for each in filled for row in each.result()],
        }


# ---------------------------------------------------------------- figures with goals


def figures(found: dict[str, Any], seconds: float, quick: bool) -> list[Figure]:
    by_name = {_title(each): each for each in found["recordings"]}
    one_tool = by_name.get(ONE_TOOL, found["recordings"][0])
    rows = {row["policy"]: row for row in one_tool["policies"]}
    basis = f"{_title(one_tool)}, {one_tool['calls']:,} calls"
    lost = [_lost(each, 0.02 if each is one_tool else None) for each in found["recordings"]]
    return [
        Figure(
            f"{OVER}: {INCREMENTAL}",
            rows[INCREMENTAL]["times_single_pass"],
            "x",
            1.5,
            "",
            f"{basis}; waiting at most {rows[INCREMENTAL]['most_waiting']}",
        ),
        *(figure for figure in lost if figure is not None),
        Figure(f"{OVER}: {SMART_SKIP_10}", rows[SMART_SKIP_10]["times_single_pass"], "x", None, "", basis),
        Figure(f"{OVER}: {FRESH}", rows[FRESH]["times_single_pass"], "x", None, "", basis),
        Figure("the whole benchmark", seconds / 60, "min", None if quick else 10, "", "two processes"),
    ]


def _lost(stream: dict[str, Any], goal: float | None) -> Figure | None:
    """The repair coverage that the incremental policy may lose beside the smart skip at the same freshness: the upper
    end of the interval, so that a goal is met only where the policy is shown to be not inferior."""
    row = next(row for row in stream["policies"] if row["policy"] == INCREMENTAL)
    beside = row["than_smart_skip_10"]
    if beside is None:
        return None
    return Figure(
        f"{_title(stream)}: coverage lost by incremental beside smart skip, both 10 new calls, at most (95 %)",
        -beside["low"],
        "",
        goal,
        "",
        f"{stream['repaired']} repairs, paired; difference {beside['difference']:+.3f}: {beside['verdict']}",
    )


# ---------------------------------------------------------------- tables and the picture


def tables(found: dict[str, Any]) -> list[TextTable]:
    return [
        *(_policies(stream) for stream in found["recordings"]),
        _judging(found["recordings"]),
        _many_tools(found["many_tools"]),
    ]


def _policies(stream: dict[str, Any]) -> TextTable:
    columns = ("policy", "summaries", "input tokens", "of these cached", "times a single pass")
    age = ("calls read", "waiting at most")
    money = ("CNY per 1000 calls", "in a batch", "repair coverage (95 %)", "beside smart skip, 10 new calls")
    rows = [
        (
            row["policy"],
            f"{row['summaries']:,}",
            f"{row['input_tokens']:,}",
            f"{row['cached_tokens']:,}",
            f"{row['times_single_pass']:.2f}",
            "-" if row["share_read"] is None else f"{row['share_read']:.0%}",
            "-" if row["most_waiting"] is None else f"{row['most_waiting']:,}",
            f"~{row['cost_per_1000_calls']:.3f}",
            f"~{1000 * row['batch_cost'] / stream['calls']:.3f}",
            "-" if row["coverage"] is None else f"{row['coverage']:.2f} ({row['low']:.2f} to {row['high']:.2f})",
            "-" if row["policy"] == SMART_SKIP_10 else _said(row["than_smart_skip_10"]),
        )
        for row in stream["policies"]
    ]
    title = (
        f"{_title(stream)}: {stream['calls']:,} calls of {counted(stream['tools'], 'tool')}, {stream['repaired']} "
        f"repaired failures; a single pass reads {stream['bound_tokens']:,} tokens"
    )
    return TextTable(title, (*columns, *age, *money), rows)


def _said(beside: dict[str, Any] | None) -> str:
    if beside is None:
        return "-"
    return f"{beside['difference']:+.3f} ({beside['low']:+.3f} to {beside['high']:+.3f}), {beside['verdict']}"


def _judging(streams: Sequence[dict[str, Any]]) -> TextTable:
    rows = [
        (
            _title(stream),
            f"{stream['judging']['requests']:,}",
            f"{stream['judging']['input_tokens']:,}",
            f"~{1000 * stream['judging']['cost'] / stream['calls']:.3f}",
        )
        for stream in streams
    ]
    columns = ("recording", "requests", "input tokens", "CNY per 1000 calls")
    return TextTable("Judging the same calls, under every policy", columns, rows)


def _many_tools(cells: Sequence[dict[str, Any]]) -> TextTable:
    """Times a single pass, by recording, tools and pattern: a column per policy."""
    policies = list(dict.fromkeys(row["policy"] for row in cells))
    by_cell: dict[tuple[str, int, str, int], dict[str, dict[str, Any]]] = {}
    for row in cells:
        key = (row["recording"], row["tools"], row["pattern"], row["calls"])
        by_cell.setdefault(key, {})[row["policy"]] = row
    rows = [
        (*map(str, key), *(f"{found[name]['times_single_pass']:.2f} ({found[name]['summaries']})" for name in policies))
        for key, found in sorted(by_cell.items())
    ]
    columns = ("recording", "tools", "pattern", "calls", *policies)
    return TextTable("Input tokens of summaries, times a single pass (summaries)", columns, rows)


def _title(stream: dict[str, Any]) -> str:
    return f"{stream['recording']}: {stream['tool']}" if stream["tool"] else str(stream["recording"])


def draw(streams: Sequence[dict[str, Any]], target: Path) -> None:
    """Money against what it buys."""
    from money_chart import Panel, Point, money_chart

    panels = [
        Panel(
            _title(stream),
            [
                Point(row["policy"], row["cost_per_1000_calls"], row["coverage"], row["low"], row["high"])
                for row in stream["policies"]
            ],
            1000 * stream["bound_cost"] / stream["calls"],
        )
        for stream in streams
        if stream["repaired"]
    ][:PANELS]
    picture = money_chart(panels, "CNY", BUDGET)
    if picture is not None:
        target.parent.mkdir(parents=True, exist_ok=True)
        picture.save(str(target))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="the sample alone, fewer calls, for a look")
    parser.add_argument("--json", type=Path, help="write figures, rows and tables to this file")
    parser.add_argument("--figure", type=Path, help="draw into this file (default: the documentation's, if not quick)")
    options = parser.parse_args()
    begun = time.perf_counter()
    found = measure(options.quick)
    seconds = time.perf_counter() - begun
    for table in tables(found):
        table.show()
    print(f"\n{app().services.price.stated(MODEL)}; ~: with an estimate of the replies\n")
    reached = figures(found, seconds, options.quick)
    show(reached, None)
    target = options.figure or (None if options.quick else FIGURE)
    if target is not None:
        draw(found["recordings"], target)
    if options.json is not None:
        body = {
            "figures": [{**asdict(figure), "met": figure.met} for figure in reached],
            "price": app().services.price.stated(MODEL),
            **found,
            "tables": [asdict(table) for table in tables(found)],
        }
        options.json.write_text(json.dumps(body, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
