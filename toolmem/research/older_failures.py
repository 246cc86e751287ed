"""Count failures of imported calls that are too old for a summary, so that their lessons stay.

A summary reads a window of a tool's newest calls, and counts on from the history of failures in the
tool's guidance. An import brings many windows at once: all but the newest are counted here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence

from msgspec.structs import replace

from toolmem.config.sections import OpSection
from toolmem.errors import Conflict
from toolmem.guidance.evidence import examine
from toolmem.guidance.failures import count
from toolmem.memory.toolmem import ToolMem
from toolmem.models.calls import ToolCallResult
from toolmem.models.guidance import Guidance, ToolHistory
from toolmem.ops.summary_tool_memory import MAX_AROUND, MAX_CONVERSATIONS, store_guidance

STEP = 30  # calls that are counted at once, read beside as many before them

Calls = Sequence[ToolCallResult]


def count_older_failures(memory: ToolMem, calls: Calls, tools: Collection[str]) -> None:
    """Count those of `calls`, the newest of the memory, that its next summary will not read.

    A tool that others change meanwhile is left as it is.
    """
    store, op = memory.services.store(), "summary_tool_memory_op"
    writer = memory.services.writer(memory.services.settings.op.get(op, OpSection()))
    params = memory.engine.params()
    read_next = params[op][0].recent_call_count if op in params else STEP
    by_tool: defaultdict[str, list[ToolCallResult]] = defaultdict(list)
    by_conversation: defaultdict[str, list[ToolCallResult]] = defaultdict(list)
    for call in calls:
        by_tool[call.tool_name].append(call)
        if call.conversation_id:
            by_conversation[call.conversation_id].append(call)
    for record in store.records(memory.workspace_id, sorted(tools)):
        own = by_tool[record.tool_name]
        first = record.last_seq - len(own) + 1  # the log of a tool has no gaps
        numbered = [replace(call, seq=seq) for seq, call in enumerate(own, first) if seq > 0]
        old = record.guidance or Guidance(text="", author=writer.author)
        history = _counted(numbered[:-read_next], old.history, by_conversation)
        if history is old.history:
            continue
        try:
            store_guidance(store, record, replace(old, history=history))
        except Conflict:
            continue


def _counted(
    calls: Calls, history: ToolHistory | None, conversations: dict[str, list[ToolCallResult]]
) -> ToolHistory | None:
    """The history with the calls that it does not hold."""
    known = history.last_seq if history else 0
    start = next((i for i, call in enumerate(calls) if (call.seq or 0) > known), len(calls))
    for end in range(start + STEP, len(calls) + STEP, STEP):
        window = [each for each in calls[max(0, end - 2 * STEP) : end] if each.score is not None]
        if not window:
            continue
        names = dict.fromkeys(filter(None, (call.conversation_id for call in window)))
        around = [call for name in [*names][-MAX_CONVERSATIONS:] for call in conversations[name]]
        history = count(examine(window, around[-MAX_AROUND:]), history)
    return history
