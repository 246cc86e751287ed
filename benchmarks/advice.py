"""What advice at an error names: strict repair coverage of `advise_tool_call`, call by call.

    python benchmarks/advice.py [--data DIR] [--json FILE] [--quick]

At each failure that a later call of the tool repaired (`toolmem.research.backtest.opportunities`), the lines are asked
for that `advise_tool_call` gives on this error, from the calls that had ended by then, the newest 500 of the tool:
is one of the repairs that then worked named, within 200 tokens (Qwen's tokenizer)? Lines on any failure count for
nothing; there are none. Recordings: the first 1,000 SQL calls of intercode and all of its shell, the project's own sample, all of tau_bench.
The public recordings are not part of the project; those that are absent are left out. Intervals are 95 % bootstrap
intervals over tasks or conversations. Milliseconds are processor time of one answer without reading the store.
"""

from __future__ import annotations

import argparse
import gzip
import json
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from guidance_benefit import ROOT, SAMPLE
from tables import TextTable

from toolmem.guidance.advice import MAX_CALLS, Known, at_error, within
from toolmem.judge.rule_based import RuleBasedCheck
from toolmem.models import Claim, Guidance, ToolCallResult
from toolmem.providers.tokenizer import QwenTokenizer
from toolmem.research.backtest.naming import named
from toolmem.research.backtest.opportunities import Opportunity, opportunities
from toolmem.research.backtest.paired import cluster_interval

BUDGET = 200
# name: file ("": the sample), tool ("": all), calls, goal
RECORDINGS: Mapping[str, tuple[str, str, int, float | None]] = {
    "intercode, SQL, 1,000 calls": ("intercode", "sql_execute", 1000, 0.90),
    "sample": ("", "", 1000, 0.79),
    "tau_bench": ("tau_bench", "", 5000, 0.77),
    "intercode, shell": ("intercode", "bash_execute", 5000, None),
}


def in_order(path: Path, tool: str, limit: int) -> list[ToolCallResult]:
    """Judged calls as they came."""
    judge, found = RuleBasedCheck(), []
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for i, line in enumerate(lines):
            record = json.loads(line)
            if not tool or record["tool_name"] == tool:
                call = ToolCallResult(**{"id": str(i), **record})
                found.append(call.judged(judge.check(call)))
            if len(found) == limit:
                break
    return found


def asked(calls: Sequence[ToolCallResult]) -> list[tuple[Opportunity, list[Claim], float]]:
    """Each repaired failure with the lines that it got, and the milliseconds that they took."""
    found = []
    of_tool: dict[str, list[int]] = {}
    for place, call in enumerate(calls):
        of_tool.setdefault(call.tool_name, []).append(place)
    for one in opportunities(calls):
        call = calls[one.position]
        before = [calls[place] for place in of_tool[call.tool_name] if place < one.position][-MAX_CALLS:]
        begun = time.process_time()
        around = calls[max(0, one.position - MAX_CALLS) : one.position]
        known = Known(call.tool_name, before, around, conversation=call.conversation_id)
        lines = within(at_error(known, call.input, call.output), BUDGET)
        found.append((one, lines, 1000 * (time.process_time() - begun)))
    return found


def row(name: str, calls: Sequence[ToolCallResult], goal: float | None) -> dict[str, Any]:
    made = asked(calls)
    count = QwenTokenizer().count
    hits = [named(one, _guidance(lines), BUDGET, strict=True) for one, lines, _ in made]
    tokens = sorted(count("\n".join(line.text for line in lines)) for _, lines, _ in made)
    low, high = cluster_interval([float(hit) for hit in hits], [one.cluster for one, _, _ in made])
    share = sum(hits) / len(hits)
    return {
        "recording": name,
        "failures": len(hits),
        "named": share,
        "low": low,
        "high": high,
        "goal": goal,
        "met": goal is None or share >= goal,
        "without_lines": sum(not lines for _, lines, _ in made),
        "tokens_mean": statistics.mean(tokens),
        "tokens_most": tokens[-1],
        "ms_median": statistics.median(ms for _, _, ms in made),
        "ms_most": max(ms for _, _, ms in made),
    }


def _guidance(lines: Sequence[Claim]) -> Guidance:
    text = "\n".join(f"- {line.text}" for line in lines)
    return Guidance(text=text, claims=list(lines), author="", prompt_version="")


def table(rows: Sequence[Mapping[str, Any]]) -> TextTable:
    return TextTable(
        f"Repairs that advice at the error names, strictly, within {BUDGET} tokens",
        ("recording", "repaired failures", "named", "goal", "no line", "tokens: mean, most", "ms: median, most"),
        [
            (
                *(each["recording"], str(each["failures"])),
                f"{each['named']:.2f} ({each['low']:.2f} to {each['high']:.2f})",
                *("-" if each["goal"] is None else f"{each['goal']:.2f}", str(each["without_lines"])),
                f"{each['tokens_mean']:.0f}, {each['tokens_most']}",
                f"{each['ms_median']:.0f}, {each['ms_most']:.0f}",
            )
            for each in rows
        ],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data", help="folder of the recordings")
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    parser.add_argument("--quick", action="store_true", help="the project's own sample only")
    given = parser.parse_args()
    rows = []
    for name, (file, tool, limit, goal) in RECORDINGS.items():
        path = given.data / "recorded_calls" / f"{file}.calls.jsonl.gz" if file else SAMPLE
        if path.exists() and (not file or not given.quick):
            rows.append(row(name, in_order(path, tool, limit), goal))
    made = table(rows)
    made.show()
    if given.json is not None:
        given.json.write_text(json.dumps({"tables": [asdict(made)], "rows": rows}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
