"""How soon `on_change` notices that a tool has changed, and how often it raises a false alarm.

    python benchmarks/change_detection.py [--quick] [--json FILE]

Calls are drawn from a seeded generator, and looked at after every one of them. A stationary tool succeeds at 0.9
throughout, and is summarized from its first call on as the op would. A drop takes the success rate from 0.9 to 0.6, so
many calls after the tool's last summary, which had seen so many. Delays are in calls; a drop that was not noticed
within 200 calls counts as endless.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Iterator
from dataclasses import dataclass, field

from tables import Figure, arguments, show

from toolmem.guidance.on_change import KEPT, baseline_of, change_in_rate
from toolmem.schema import Baseline, CallFigures, LifetimeCounters, ToolRecord

GOOD, BAD = 0.9, 0.6
RATE, LIFE, WINDOW = 0.05, 1000, 30  # the op's defaults
KEEP = 100  # calls kept per tool, the default
WATCHED = 200  # calls after a drop; what is not noticed by then counts as never noticed


@dataclass
class Tool:
    """A tool whose calls arrive one by one."""

    draw: random.Random
    successes: int = 0
    failures: int = 0
    kept: list[CallFigures] = field(default_factory=list)

    @property
    def calls(self) -> int:
        return self.successes + self.failures

    def call(self, rate: float) -> None:
        worked = self.draw.random() < rate
        self.successes += worked
        self.failures += not worked
        self.kept.append(
            CallFigures(
                seq=self.calls, success=worked, execution_failed=None, score=1.0, time_cost=None, token_cost=None
            )
        )
        del self.kept[:-KEEP]

    @property
    def record(self) -> ToolRecord:
        counters = LifetimeCounters.model_construct(successes=self.successes, failures=self.failures)
        return ToolRecord.model_construct(
            workspace="w", tool_name="t", memory_id="m", version=1, last_seq=self.calls, counters=counters
        )

    def changed(self, baseline: Baseline) -> bool:
        return change_in_rate(self.record, baseline, self.kept[-KEPT:], rate=RATE, life=LIFE) is not None


def delay(seed: int, known: int, drop_at: int) -> float:
    """Calls from the drop to the alarm; infinity where it was not noticed; NaN for an alarm before the drop."""
    tool = Tool(random.Random(seed))
    for _ in range(known):
        tool.call(GOOD)
    baseline = baseline_of(tool.record, [], None, changed=False)
    for number in range(1, drop_at + WATCHED + 1):
        tool.call(GOOD if number <= drop_at else BAD)
        if tool.changed(baseline):
            return number - drop_at if number > drop_at else math.nan
    return math.inf


def summaries(seed: int, calls: int) -> tuple[int, int]:
    """(summaries, false alarms) of a stationary tool: the first call, a full window, every LIFE calls, every alarm."""
    tool = Tool(random.Random(seed))
    baseline: Baseline | None = None
    seen = written = alarms = 0
    for _ in range(calls):
        tool.call(GOOD)
        age = tool.calls - (baseline.seq if baseline is not None else 0)
        alarm = baseline is not None and tool.changed(baseline)
        if baseline is None or alarm or age >= LIFE or seen < WINDOW <= tool.calls:
            baseline = baseline_of(tool.record, [], baseline, changed=alarm)
            seen, written, alarms = min(tool.calls, WINDOW), written + 1, alarms + alarm
    return written, alarms


def figures(runs: int) -> Iterator[Figure]:
    stationary = [summaries(seed, 1000) for seed in range(max(20, runs // 5))]
    most = max(count for count, _ in stationary)
    yield Figure("stationary tool, 1000 calls: summaries at most", most, "", 3, "", f"{len(stationary)} runs")
    share = sum(alarms > 0 for _, alarms in stationary) / len(stationary)
    yield Figure("  runs with a false alarm", 100 * share, "%", 100 * RATE, "", f"bound {RATE:.0%} per summary")
    for known, drop_at in ((30, 0), (100, 0), (300, 0), (100, 100), (300, 300)):
        found = [one for seed in range(runs) if not math.isnan(one := delay(seed, known, drop_at))]
        what = f"drop {GOOD} -> {BAD}, {drop_at} calls after a summary that knew {known}"
        basis = f"{len(found)} runs"
        yield Figure(f"{what}: median delay", statistics.median(found), "calls", 30, "", basis)
        ordered = sorted(found)
        yield Figure("  90th percentile", ordered[math.ceil(0.9 * len(ordered)) - 1], "calls", None, "", basis)
        within = sum(one <= 30 for one in found) / len(found)
        yield Figure("  noticed within 30 calls", 100 * within, "%", None, "", basis)


def main() -> None:
    options = arguments(__doc__)
    show(list(figures(60 if options.quick else 200)), options.json)


if __name__ == "__main__":
    main()
