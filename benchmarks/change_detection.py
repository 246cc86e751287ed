"""How soon `on_change` notices that a tool has changed, and how often it raises a false alarm.

    python benchmarks/change_detection.py [--quick] [--json FILE]

Calls are drawn from a seeded generator. A stationary tool succeeds at 0.9 throughout, and is summarized from its first
call on as the op would. A drop takes the success rate from 0.9 to 0.6, so many calls after the tool's last summary,
which had seen so many (the place is shifted by 0 to 27 calls, so that drops lie anywhere between two comparisons). A
drop that was not noticed within 200 calls counts as noticed after 200. `bound` is the param `false_alarm_rate`.

For comparison: Page's CUSUM that is told both success rates beforehand, which no test of a real tool is; its limit is
set so that it gives a false alarm in the same share of the stationary runs. It shows how much room is left.

Recorded calls come in their order, where failures come in runs, and shuffled, where they do not; error classes and
parameters are compared as well. Recordings that are absent are left out.
"""

from __future__ import annotations

import json
import math
import random
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field

from guidance_benefit import SAMPLE, recorded
from recordings import DATA
from tables import Figure, TextTable, arguments, show

from toolmem.guidance.counted.on_change import (
    KEPT,
    RUNNING,
    TRAITS,
    WHOLE,
    Change,
    baseline_of,
    change_in_rate,
    change_in_traits,
)
from toolmem.guidance.outcomes import went_wrong
from toolmem.models import Baseline, CallFigures, LifetimeCounters, ToolCallResult, ToolRecord

GOOD, BAD = 0.9, 0.6
RATE, LIFE, WINDOW = 0.2, 1000, 30  # the op's defaults
RATES = (0.05, RATE, 0.5)
KEEP = 100  # calls kept per tool, the default
WATCHED = 200  # calls after a drop; what is not noticed by then counts as noticed then
SOON = 30
DROPS = ((30, 0), (100, 0), (300, 0), (100, 100), (300, 300))  # (calls known to the summary, calls since)
SHIFT = 28
RECORDED = (("intercode", "bash_execute"), ("intercode", "sql_execute"), ("sample", ""))
LEAST, MOST = 200, 1000  # calls of a recorded tool that is looked at


@dataclass
class Tool:
    """A tool whose calls arrive one by one. A look is made where a comparison ends: those between find nothing else."""

    rate: float
    good: int = 0
    bad: int = 0
    kept: list[CallFigures] = field(default_factory=list)
    calls: list[ToolCallResult] = field(default_factory=list)  # of recorded tools

    @property
    def count(self) -> int:
        return self.good + self.bad

    def add(self, worked: bool, call: ToolCallResult | None = None) -> None:
        self.good += worked
        self.bad += not worked
        self.kept.append(CallFigures.model_construct(seq=self.count, success=worked, execution_failed=None, score=1.0))
        del self.kept[:-KEEP]
        if call is not None:
            self.calls.append(call.model_copy(update={"seq": self.count}))
            del self.calls[:-KEEP]

    @property
    def record(self) -> ToolRecord:
        counters = LifetimeCounters.model_construct(successes=self.good, failures=self.bad)
        return ToolRecord.model_construct(
            workspace="w", tool_name="t", memory_id="m", version=1, last_seq=self.count, counters=counters
        )

    def change(self, baseline: Baseline) -> Change | None:
        age = self.count - baseline.seq
        if age not in WHOLE and all(age % step for _, step in (*RUNNING, *TRAITS)):
            return None
        found = change_in_rate(self.record, baseline, self.kept[-KEPT:], rate=self.rate, life=LIFE)
        if found is None and self.calls:
            found = change_in_traits(baseline, self.calls[-KEPT:], last_seq=self.count, rate=self.rate, life=LIFE)
        return found


def delay(seed: int, rate: float, known: int, drop_at: int) -> float:
    """Calls from the drop to the alarm; WATCHED where it was not noticed; NaN for an alarm before the drop."""
    draw, tool = random.Random(seed), Tool(rate)
    for _ in range(known):
        tool.add(draw.random() < GOOD)
    baseline = baseline_of(tool.record, [], None, changed=False)
    drop_at += seed % SHIFT if drop_at else 0
    for number in range(1, drop_at + WATCHED + 1):
        tool.add(draw.random() < (GOOD if number <= drop_at else BAD))
        if tool.change(baseline) is not None:
            return number - drop_at if number > drop_at else math.nan
    return WATCHED


def summaries(tool: Tool, worked: Sequence[bool], calls: Sequence[ToolCallResult] = ()) -> tuple[int, int]:
    """(summaries, alarms): after the first call, with a full window, every LIFE calls, at every alarm."""
    baseline: Baseline | None = None
    seen = written = alarms = 0
    for place, success in enumerate(worked):
        tool.add(success, calls[place] if calls else None)
        alarm = baseline is not None and tool.change(baseline) is not None
        due = baseline is None or tool.count - baseline.seq >= LIFE or seen < WINDOW <= tool.count
        if alarm or due:
            baseline = baseline_of(tool.record, tool.calls, baseline, changed=alarm)
            seen, written, alarms = min(tool.count, WINDOW), written + 1, alarms + alarm
    return written, alarms


def stationary(seed: int, rate: float) -> tuple[int, int]:
    draw = random.Random(seed)
    return summaries(Tool(rate), [draw.random() < GOOD for _ in range(LIFE)])


# -- the comparison


def cusum(worked: Iterator[bool], limit: float = math.inf) -> tuple[float, int]:
    """(highest value, calls until `limit` was passed; 0: never) of Page's CUSUM of the two known success rates."""
    value = highest = 0.0
    for number, success in enumerate(worked, 1):
        step = math.log(BAD / GOOD) if success else math.log((1 - BAD) / (1 - GOOD))
        value = max(0.0, value + step)
        highest = max(highest, value)
        if value > limit:
            return highest, number
    return highest, 0


def drawn(seed: int, calls: int, rate: float) -> Iterator[bool]:
    draw = random.Random(seed)
    return (draw.random() < rate for _ in range(calls))


def known_rates(runs: int, false_alarms: float) -> list[float]:
    """Delays of the CUSUM that gives a false alarm in this share of stationary runs."""
    highest = sorted(cusum(drawn(seed, LIFE, GOOD))[0] for seed in range(5 * runs))
    limit = highest[min(len(highest) - 1, math.ceil((1 - false_alarms) * len(highest)) - 1)]
    found = (cusum(drawn(seed, WATCHED, BAD), limit)[1] for seed in range(runs))
    return [float(number or WATCHED) for number in found]


# -- what is told


def told(delays: Sequence[float]) -> str:
    return f"{statistics.median(delays):g}; {soon(delays):.0%}"


def soon(delays: Sequence[float]) -> float:
    return sum(one <= SOON for one in delays) / len(delays)


def by_rate(runs: int) -> tuple[list[Figure], TextTable]:
    """Figures of the default rate, and the table of all."""
    figures: list[Figure] = []
    rows: list[tuple[str, ...]] = []
    for rate in RATES:
        still = [stationary(seed, rate) for seed in range(runs)]
        alarmed = sum(alarms > 0 for _, alarms in still) / runs
        few = sum(count <= 3 for count, _ in still) / runs
        found = [[one for seed in range(runs) if not math.isnan(one := delay(seed, rate, *drop))] for drop in DROPS]
        rows.append((f"{rate:g}", f"{alarmed:.1%}", f"{few:.1%}", *map(told, found)))
        if rate == RATE:
            figures = list(figures_of(still, found))
            best = known_rates(runs, alarmed)
            compared = ("CUSUM, rates known", f"{alarmed:.1%}", "", "", "", told(best), "", "")
    rows.append(compared)
    drops = (f"knew {known}, {since} since" for known, since in DROPS)
    title = f"Noticing a drop from {GOOD} to {BAD}: median delay in calls; share noticed within {SOON} ({runs} runs)"
    columns = ("bound", "false alarm in 1000 calls", "at most 3 summaries", *drops)
    return figures, TextTable(title, columns, rows)


def figures_of(still: Sequence[tuple[int, int]], found: Sequence[Sequence[float]]) -> Iterator[Figure]:
    basis = f"{len(still)} runs"
    few = sum(count <= 3 for count, _ in still) / len(still)
    yield Figure("stationary tool, 1000 calls: runs with at most 3 summaries", 100 * few, "%", 95, "", basis, True)
    alarmed = sum(alarms > 0 for _, alarms in still) / len(still)
    yield Figure("  runs with a false alarm", 100 * alarmed, "%", 100 * RATE, "", f"bound {RATE:.0%} per summary")
    for (known, since), delays in zip(DROPS, found, strict=True):
        what = f"drop {GOOD} -> {BAD}, {since} calls after a summary that knew {known}"
        basis = f"{len(delays)} runs"
        yield Figure(f"{what}: median delay", statistics.median(delays), "calls", SOON, "", basis)
        yield Figure(f"  noticed within {SOON} calls", 100 * soon(delays), "%", None, "", basis)


def on_recordings(shuffles: int) -> TextTable:
    """Alarms of recorded tools, and of the same calls in random order."""
    rows: list[tuple[str, ...]] = []
    for dataset, wanted in RECORDED:
        path = SAMPLE if dataset == "sample" else DATA / f"{dataset}.calls.jsonl.gz"
        tools = recorded(path) if path.exists() else {}
        for name in sorted(tools):
            calls = tools[name][:MOST]
            if len(calls) < LEAST or wanted not in {"", name}:
                continue
            worked = [not went_wrong(call) for call in calls]
            alarms = []
            for seed in range(shuffles + 1):
                order = list(range(len(calls)))
                if seed:
                    random.Random(seed).shuffle(order)
                made = summaries(Tool(RATE), [worked[i] for i in order], [calls[i] for i in order])
                alarms.append(made[1])
            mean = f"{statistics.mean(alarms[1:]):.2f}"
            rows.append((dataset, name, str(len(calls)), f"{sum(worked) / len(worked):.2f}", str(alarms[0]), mean))
    columns = ("recording", "tool", "calls", "worked", "alarms", f"shuffled, mean of {shuffles}")
    return TextTable(f"Alarms on recorded calls, bound {RATE:g} per summary", columns, rows)


def main() -> None:
    options = arguments(__doc__)
    figures, table = by_rate(40 if options.quick else 150)
    tables = [table, on_recordings(2 if options.quick else 8)]
    show(figures, None)
    for each in tables:
        each.show()
    if options.json is not None:
        body = {
            "figures": [{**asdict(one), "met": one.met} for one in figures],
            "tables": [asdict(each) for each in tables],
        }
        text = json.dumps(body, indent=1, ensure_ascii=False)
        options.json.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
