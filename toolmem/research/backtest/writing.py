"""Guidance as it would stand at the cut, had the tool been summarized now and then since its first call."""

from __future__ import annotations

from collections.abc import Sequence

from toolmem.guidance.counted.data_driven import DataDrivenWriter
from toolmem.models import Guidance, ToolCallResult

WINDOW = 30  # newest calls that a summary reads (recent_call_count's default)
EVERY = 10  # calls between two summaries


def kept_up(
    writer: DataDrivenWriter, calls: Sequence[ToolCallResult], window: int = WINDOW, every: int = EVERY
) -> Guidance | None:
    """What `writer` says after `calls` (oldest first, of one tool); None for no calls.

    It was asked for the newest `window` calls at every `every`-th call, the last time after the last one, and each time
    it was given what it had said before. Calls get seqs from 1, as a store would number them.
    """
    if window < 1 or every < 1:
        raise ValueError(f"a window and a distance of one call or more are wanted, got {window} and {every}")
    numbered = [call.model_copy(update={"seq": seq}) for seq, call in enumerate(calls, 1)]
    guidance: Guidance | None = None
    for end in range(len(calls) % every or every, len(calls) + 1, every):
        held = numbered[max(0, end - window) : end]
        guidance = writer.compose(held[0].tool_name, held, before=guidance.history if guidance else None)
    return guidance
