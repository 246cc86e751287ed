"""Print how well the rule-based judge tells failed calls from their output alone.

    python benchmarks/judge.py

Of each shared recording the `success` flag is withheld and then used as the label. Failures that
print nothing are counted: no judge of outputs can see them. The flags of the packaged sample hide
failures, so that its own labels are used: its recorder knew which calls it made to fail.
"""

from __future__ import annotations

import time

from msgspec.structs import replace
from shared import RECORDINGS, Table, publish, recorded_calls

from toolmem.judge.check import check
from toolmem.models.calls import ToolCallResult

GOALS = {
    "tau_bench": 1.0,
    "tau2_airline": 1.0,
    "toolbench": 0.997,
    "intercode": 0.985,
    "openhands": 0.973,
    "sample": 0.998,
}


def labelled(name: str) -> list[tuple[ToolCallResult, bool]]:
    """The calls of a recording, and whether each failed."""
    calls = recorded_calls(name)
    if name != "sample":
        return [(call, not call.success) for call in calls if call.success is not None]
    labels = [call.metadata.get("expected_failure") for call in calls]
    if missing := sum(label not in (True, False) for label in labels):
        raise SystemExit(f"{missing} of {len(calls)} calls of the sample lack `expected_failure`")
    return list(zip(calls, map(bool, labels), strict=True))


def measured(name: str) -> tuple[object, ...]:
    """One row: counts, balanced accuracy, milliseconds of CPU per call."""
    calls, failed = zip(*labelled(name), strict=True)
    started = time.process_time()
    found = [check(replace(call, success=None)).execution_failed is True for call in calls]
    seconds = time.process_time() - started
    pairs = list(zip(failed, found, strict=True))
    silent = sum(bad and not call.output.strip() for call, bad in zip(calls, failed, strict=True))
    hits, misses = pairs.count((True, True)), pairs.count((True, False))
    alarms, quiet = pairs.count((False, True)), pairs.count((False, False))
    accuracy = (hits / (hits + misses) + quiet / (quiet + alarms)) / 2
    per_call = 1000 * seconds / len(calls)
    counts = (len(calls), hits + misses, silent, misses, alarms)
    return (name, *counts, accuracy, GOALS[name], per_call)


def main() -> None:
    columns = ("recording", "calls", "failed", "silent", "missed", "false alarms")
    columns += ("balanced accuracy", "goal", "ms per call")
    rows = [measured(name) for name in (*RECORDINGS, "sample")]
    table = Table("Failed calls told from their output alone", columns, rows)
    publish("judge", "The rule-based judge", table)


if __name__ == "__main__":
    main()
