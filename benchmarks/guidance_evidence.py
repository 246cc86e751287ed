"""What the data-driven writer says, how fast, and whether it holds on conversations that it has not seen.

    python benchmarks/guidance_evidence.py [--data DIR] [--json FILE] [--quick]

Calls are judged by the rule-based check with their recorded flag, as `toolmem evaluate` does, and guidance is written
per tool: from the newest 30 calls (the default window) and from all of them. Per set of calls: tools, claims per tool,
characters per guidance, and seconds per tool (medians over tools).

Held out: the conversations of a tool are ordered by their first call; guidance is written from the earlier half and its
claims about parameters are checked on the later half. A claim holds where the calls with its condition did better than
the others there, if that is what it says, or worse. Where the later half lacks one of the two sides nothing can be
checked; such claims are counted apart. A refused value holds where no later call with it worked. Tools with fewer than
two conversations are left out. 95 % intervals are Wilson's; claims of one tool are not independent of one another.

The public recordings are not part of the project; without the folder the project's own sample is measured alone.
"""

from __future__ import annotations

import argparse
import gzip
import json
import statistics
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from toolmem.guidance.counted.analysis import Analysis, analyze
from toolmem.guidance.counted.conditions import holds
from toolmem.guidance.counted.data_driven import DataDrivenWriter
from toolmem.guidance.counted.patterns import Pattern
from toolmem.guidance.counted.refusals import RefusedValues, refused_by
from toolmem.guidance.outcomes import UNKNOWN, conversations
from toolmem.judge.rule_based import RuleBasedCheck
from toolmem.models import Guidance, ToolCallResult
from toolmem.readers.proportions import wilson_interval

ROOT = Path(__file__).resolve().parents[1]
SAMPLE = ROOT / "toolmem" / "data" / "recording.calls.jsonl.gz"
DATASETS = ("tau_bench", "tau2_airline", "toolbench", "intercode", "openhands")
WINDOW = 30

Tools = dict[str, list[ToolCallResult]]


@dataclass(frozen=True)
class Written:
    """Guidance on one set of calls. Medians are over tools."""

    dataset: str
    calls_of: str  # "window" (the newest 30 of each tool) or "all"
    tools: int
    calls: int
    failures: int  # the flag or the judge says so
    behind_the_flag: int  # of these: recorded as a success
    claims: int
    claims_per_tool: float  # median
    most_claims: int
    by_kind: dict[str, int]
    characters: float  # of a guidance text, median
    most_characters: int
    milliseconds: float  # per tool, median
    most_milliseconds: float


@dataclass(frozen=True)
class HeldOut:
    """Claims from the earlier half of the conversations, checked on the later half."""

    dataset: str
    kind: str  # "parameter" or "refused"
    tools: int  # with two conversations or more
    claims: int
    checked: int  # both sides occur in the later half
    held: int
    low: float  # 95 % interval of the share that held
    high: float


def recorded(path: Path) -> Tools:
    """Judged calls by tool, in order of arrival."""
    judge = RuleBasedCheck()
    tools: Tools = {}
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for i, line in enumerate(lines):
            call = ToolCallResult(**{"id": str(i), **json.loads(line)})
            tools.setdefault(call.tool_name, []).append(call.judged(judge.check(call)))
    return tools


def written(dataset: str, calls_of: str, tools: Tools, repeats: int) -> Written:
    writer = DataDrivenWriter()
    made: list[Guidance] = []
    seconds: list[float] = []
    for name, calls in tools.items():
        runs = []
        for _ in range(repeats):
            begun = time.perf_counter()
            guidance = writer.compose(name, calls)
            runs.append(time.perf_counter() - begun)
        made.append(guidance)
        seconds.append(min(runs))
    calls = [call for some in tools.values() for call in some]
    counts = [len(one.claims) for one in made]
    lengths = [len(one.text) for one in made]
    kinds = Counter(claim.kind for one in made for claim in one.claims)
    return Written(
        dataset,
        calls_of,
        len(tools),
        len(calls),
        sum(call.success is False or call.execution_failed is True for call in calls),
        sum(call.success is True and call.execution_failed is True for call in calls),
        sum(counts),
        statistics.median(counts),
        max(counts),
        dict(kinds.most_common()),
        statistics.median(lengths),
        max(lengths),
        1e3 * statistics.median(seconds),
        1e3 * max(seconds),
    )


def halves(calls: Sequence[ToolCallResult]) -> tuple[list[ToolCallResult], list[ToolCallResult]] | None:
    """Calls of the conversations that began earlier, and of the others; None where there are fewer than two."""
    grouped = conversations(calls)
    if UNKNOWN in grouped.numbers or len(grouped.groups) < 2:
        return None
    ordered = sorted(grouped.groups, key=lambda group: calls[group[0]].create_time)
    middle = len(ordered) // 2
    earlier, later = ordered[:middle], ordered[middle:]
    return [calls[i] for group in earlier for i in group], [calls[i] for group in later for i in group]


def pattern_held(pattern: Pattern, later: Analysis) -> bool | None:
    """Whether the direction is the same there; None where one of the sides is missing."""
    sides: dict[bool, list[bool]] = {True: [], False: []}
    for one, outcome in zip(later.seen, later.outcomes, strict=True):
        if outcome is not None and (pattern.within is None or holds(one, pattern.within)):
            sides[holds(one, pattern.condition)].append(outcome)
    if not sides[True] or not sides[False]:
        return None
    here, there = statistics.fmean(sides[True]), statistics.fmean(sides[False])
    return here > there if pattern.good else here < there


def refusal_held(refusal: RefusedValues, later: Analysis) -> bool | None:
    outcomes = [
        outcome
        for one, outcome in zip(later.seen, later.outcomes, strict=True)
        if outcome is not None and refused_by(one, refusal)
    ]
    return not any(outcomes) if outcomes else None


def held_out(dataset: str, tools: Tools) -> list[HeldOut]:
    answers: dict[str, list[bool | None]] = {"parameter": [], "refused": []}
    split = {name: parts for name, calls in tools.items() if (parts := halves(calls)) is not None}
    for name, (earlier, later) in split.items():
        found, then = analyze(name, earlier), analyze(name, later)
        answers["parameter"] += [pattern_held(pattern, then) for pattern in found.failures.patterns]
        answers["refused"] += [refusal_held(refusal, then) for refusal in found.refusals]
    rows = []
    for kind, said in answers.items():
        checked = [answer for answer in said if answer is not None]
        low, high = wilson_interval(sum(checked), len(checked))
        rows.append(HeldOut(dataset, kind, len(split), len(said), len(checked), sum(checked), low, high))
    return rows


def measure(folder: Path, repeats: int) -> tuple[list[Written], list[HeldOut]]:
    paths = {"sample": SAMPLE, **{name: folder / f"{name}.calls.jsonl.gz" for name in DATASETS}}
    texts: list[Written] = []
    checks: list[HeldOut] = []
    for dataset, path in paths.items():
        if not path.exists():
            continue
        tools = recorded(path)
        texts.append(written(dataset, "window", {name: calls[-WINDOW:] for name, calls in tools.items()}, repeats))
        texts.append(written(dataset, "all", tools, 1))
        checks += held_out(dataset, tools)
    return texts, checks


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    lines = [tuple(head), *map(tuple, rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    for line in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def show(texts: Sequence[Written], checks: Sequence[HeldOut]) -> None:
    head = ("dataset", "calls of", "tools", "calls", "failures", "behind the flag", "claims", "per tool (most)")
    table(
        (*head, "characters (most)", "ms per tool (most)"),
        [
            (
                *(row.dataset, row.calls_of, str(row.tools), str(row.calls), str(row.failures)),
                *(str(row.behind_the_flag), str(row.claims), f"{row.claims_per_tool:g} ({row.most_claims})"),
                f"{row.characters:.0f} ({row.most_characters})",
                f"{row.milliseconds:.2f} ({row.most_milliseconds:.1f})",
            )
            for row in texts
        ],
    )
    print("\nclaims by kind")
    kinds = sorted({kind for row in texts for kind in row.by_kind})
    table(
        ("dataset", "calls of", *kinds),
        [(row.dataset, row.calls_of, *(str(row.by_kind.get(kind, 0)) for kind in kinds)) for row in texts],
    )
    print("\nclaims of the earlier half of the conversations, checked on the later half")
    table(
        ("dataset", "kind", "tools", "claims", "checked", "held", "share (95 %)"),
        [
            (
                *(row.dataset, row.kind, str(row.tools), str(row.claims), str(row.checked), str(row.held)),
                f"{row.held / row.checked:.2f} ({row.low:.2f} to {row.high:.2f})" if row.checked else "-",
            )
            for row in checks
        ],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data", help="folder of the recordings")
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    parser.add_argument("--quick", action="store_true", help="one run per tool instead of five, for a look")
    options = parser.parse_args()
    folder = options.data / "recorded_calls"
    if not folder.is_dir():
        print(f"no recordings in {folder.name} of the data folder: only the project's own sample is measured\n")
    texts, checks = measure(folder, 1 if options.quick else 5)
    show(texts, checks)
    if options.json is not None:
        body = {"written": [asdict(row) for row in texts], "held_out": [asdict(row) for row in checks]}
        options.json.write_text(json.dumps(body, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
