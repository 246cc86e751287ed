"""The smart skip: decide which calls a summary would read, and whether any of them is new.

The tool's record is enough to decide; no call is read.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from msgspec import Struct

from toolmem.models.tools import ToolRecord

Reason = Literal[
    "forced", "new_calls", "no_guidance", "up_to_date", "too_few_new_calls", "nothing_judged"
]


class Plan(Struct, frozen=True):
    """Which calls a summary of a tool reads, by ascending seq, and why it is made or skipped."""

    reason: Reason
    seqs: tuple[int, ...]  # the newest judged calls, which a summary reads
    new: tuple[int, ...]  # the calls among `seqs` that no guidance covers
    not_analyzed: int  # judged calls outside the window that no guidance covers

    @property
    def skip(self) -> bool:
        return self.reason in ("up_to_date", "too_few_new_calls", "nothing_judged")


def plan_summary(
    record: ToolRecord,
    recent: int,
    *,
    force: bool = False,
    has_guidance: bool,
    min_new_calls: int = 1,
    among: Collection[int] | None = None,
) -> Plan:
    """Return a plan to read the `recent` newest judged calls, or to skip if guidance covers them.

    Guidance also stays if fewer than `min_new_calls` are new. `among`: seqs to choose from, if set.
    """
    unjudged = set(record.unjudged)
    seqs = range(record.first_seq, record.last_seq + 1)
    judged = [seq for seq in seqs if seq not in unjudged and (among is None or seq in among)]
    window = judged[-recent:]
    uncovered = [seq for seq in record.new if seq not in unjudged]
    read = set(window)
    new = tuple(seq for seq in uncovered if seq in read)
    reason: Reason = "up_to_date"
    if not window:
        reason = "nothing_judged"
    elif force:
        reason = "forced"
    elif new and (len(new) >= min_new_calls or not has_guidance):
        reason = "new_calls"
    elif not has_guidance:
        reason = "no_guidance"
    elif new:
        reason = "too_few_new_calls"
    return Plan(reason, tuple(window), new, len(uncovered) - len(new))
