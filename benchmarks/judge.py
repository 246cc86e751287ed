"""Print how well the rule-based judge tells failed calls from their output alone.

    python benchmarks/judge.py

Of each shared recording the `success` flag is withheld and then used as the label. Failures that
print nothing are counted: no judge of outputs can see them.
"""

from __future__ import annotations

import time

from msgspec.structs import replace
from shared import RECORDINGS, Table, publish, recorded_calls

from toolmem.judge.check import check

GOALS = {
    "tau_bench": 1.0,
    "tau2_airline": 1.0,
    "toolbench": 0.997,
    "intercode": 0.985,
    "openhands": 0.973,
}


def measured(name: str) -> tuple[object, ...]:
    """One row: counts, balanced accuracy, milliseconds of CPU per call."""
    calls = [call for call in recorded_calls(name) if call.success is not None]
    started = time.process_time()
    found = [check(replace(call, success=None)).execution_failed is True for call in calls]
    seconds = time.process_time() - started
    failed = [not call.success for call in calls]
    pairs = list(zip(failed, found, strict=True))
    silent = sum(not call.success and not call.output.strip() for call in calls)
    hits, misses = pairs.count((True, True)), pairs.count((True, False))
    alarms, quiet = pairs.count((False, True)), pairs.count((False, False))
    accuracy = (hits / (hits + misses) + quiet / (quiet + alarms)) / 2
    per_call = 1000 * seconds / len(calls)
    counts = (len(calls), hits + misses, silent, misses, alarms)
    return (name, *counts, accuracy, GOALS[name], per_call)


def main() -> None:
    columns = ("recording", "calls", "failed", "silent", "missed", "false alarms")
    columns += ("balanced accuracy", "goal", "ms per call")
    rows = [measured(name) for name in RECORDINGS]
    table = Table("Failed calls told from their output alone", columns, rows)
    publish("judge", "The rule-based judge", table)


if __name__ == "__main__":
    main()
