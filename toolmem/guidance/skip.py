"""The smart skip: which calls a summary would read, and whether there is anything new among them.

The window of a tool is its `recent_call_count` newest judged calls. All of them covered by guidance: skip, and nothing
is sent or written. One of them new: the whole window is summarized and its calls are marked. New calls that lie
outside the window are counted (`not_analyzed`), never passed over in silence.

Everything here is computed from the tool record alone, without reading a call.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from toolmem.models import ToolRecord

Reason = Literal["forced", "no_guidance", "new_calls", "up_to_date", "nothing_judged"]


@dataclass(frozen=True, slots=True)
class Window:
    """The calls that a summary would read, by seq."""

    seqs: tuple[int, ...]  # the newest judged calls, oldest first
    new: tuple[int, ...]  # those of them that no guidance covers, oldest first
    not_analyzed: int  # judged calls outside the window that no guidance covers

    @property
    def covered(self) -> int:
        """How many of the window's calls guidance covers already."""
        return len(self.seqs) - len(self.new)


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether a tool is skipped, and why.

    `reason`: "up_to_date" (every call of the window is covered) and "nothing_judged" (an empty window) skip;
    "new_calls", "no_guidance" (none was written yet, or it was lost) and "forced" summarize.
    """

    skip: bool
    reason: Reason
    stale_author: bool  # the guidance that is there was written by another author or under another prompt version


def window_of(record: ToolRecord, recent: int, *, eligible: Collection[int] | None = None) -> Window:
    """The window of `record`: its `recent` newest judged calls.

    `eligible`: only these seqs may be read (calls created since `data_from`); None: all kept calls. Costs
    O(recent + covered ranges + unjudged calls), and O(eligible) on top where that is given.

    Raises ValueError where recent < 1.
    """
    if recent < 1:
        raise ValueError(f"a window holds at least 1 call, got {recent}")
    if eligible is not None:
        return _window_among(record, recent, eligible)
    newest = _newest_judged(record, recent)
    oldest = newest[0] if newest else record.first_seq
    return Window(
        seqs=tuple(newest),
        new=() if _within_one(newest, record.covered) else tuple(_uncovered(newest, record.covered)),
        not_analyzed=_count_new(record, record.first_seq, oldest - 1),
    )


def decide(
    record: ToolRecord,
    window: Window,
    *,
    author: str,
    prompt_version: str,
    also: Collection[str] = (),
    force: bool = False,
) -> Decision:
    """Whether to skip. `author` and `prompt_version` are those of the writer that would write now.

    Guidance of another author or prompt version is reported, not rewritten: only `force` or a new call does that.
    `also`: further versions that are this writer's own, of its incremental prompt.
    """
    guidance = record.guidance
    stale = guidance is not None and (
        guidance.author != author or guidance.prompt_version not in {prompt_version, *also}
    )
    if not window.seqs:
        return Decision(True, "nothing_judged", stale)
    if force:
        return Decision(False, "forced", stale)
    if window.new:
        return Decision(False, "new_calls", stale)
    if guidance is None:
        return Decision(False, "no_guidance", stale)
    return Decision(True, "up_to_date", stale)


def count_covered(record: ToolRecord) -> int:
    """How many of the kept calls guidance covers."""
    return sum(max(0, min(high, record.last_seq) - max(low, record.first_seq) + 1) for low, high in record.covered)


def count_new(record: ToolRecord) -> int:
    """How many of the kept calls are judged and not covered."""
    return _count_new(record, record.first_seq, record.last_seq)


def count_dropped(record: ToolRecord) -> int:
    """How many calls arrived after the newest one that the guidance has read, and are kept no more."""
    newest_read = max(record.guidance.covered, default=0) if record.guidance is not None else 0
    return max(0, record.first_seq - 1 - newest_read)


def _newest_judged(record: ToolRecord, recent: int) -> Sequence[int]:
    """The newest `recent` kept seqs that have a verdict, ascending."""
    if not record.unjudged:
        return range(max(record.first_seq, record.last_seq - recent + 1), record.last_seq + 1)
    unjudged = set(record.unjudged)
    newest: list[int] = []
    seq = record.last_seq
    while seq >= record.first_seq and len(newest) < recent:
        if seq not in unjudged:
            newest.append(seq)
        seq -= 1
    newest.reverse()
    return newest


def _within_one(seqs: Sequence[int], ranges: Sequence[tuple[int, int]]) -> bool:
    """The newest range holds all of them: the usual case where nothing is new, seen without a walk."""
    return bool(seqs) and bool(ranges) and ranges[-1][0] <= seqs[0] and seqs[-1] <= ranges[-1][1]


def _window_among(record: ToolRecord, recent: int, eligible: Collection[int]) -> Window:
    unjudged = set(record.unjudged)
    readable = sorted(
        seq for seq in set(eligible) if record.first_seq <= seq <= record.last_seq and seq not in unjudged
    )
    newest, older = readable[-recent:], readable[:-recent]
    return Window(
        seqs=tuple(newest),
        new=tuple(_uncovered(newest, record.covered)),
        not_analyzed=len(_uncovered(older, record.covered)),
    )


def _uncovered(seqs: Sequence[int], ranges: Sequence[tuple[int, int]]) -> list[int]:
    """`seqs` (ascending) that lie in none of `ranges` (ascending, disjoint)."""
    new: list[int] = []
    position = 0
    for seq in seqs:
        while position < len(ranges) and ranges[position][1] < seq:
            position += 1
        if position == len(ranges) or seq < ranges[position][0]:
            new.append(seq)
    return new


def _count_new(record: ToolRecord, low: int, high: int) -> int:
    """Judged calls with low <= seq <= high that no range covers."""
    if high < low:
        return 0
    inside = sum(max(0, min(high, b) - max(low, a) + 1) for a, b in record.covered)
    if not record.unjudged:
        return (high - low + 1) - inside
    waiting = sorted(seq for seq in set(record.unjudged) if low <= seq <= high)
    return (high - low + 1) - inside - len(_uncovered(waiting, record.covered))
