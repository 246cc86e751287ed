"""Count failures of imported calls that are too old for a summary, so that their lessons stay.

A summary reads a window of a tool's newest calls, and counts on from the history of failures in the
tool's guidance. An import brings many windows at once: all but the newest are counted here. They
count as older than what the history holds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence

from msgspec.structs import replace

from toolmem.config.sections import OpSection
from toolmem.errors import Conflict
from toolmem.guidance.evidence import examine
from toolmem.guidance.failures import count, key_of
from toolmem.memory.toolmem import ToolMem
from toolmem.models.calls import IMPORT_ID, ToolCallResult
from toolmem.models.guidance import Guidance, ToolHistory
from toolmem.ops.summary_tool_memory import MAX_CONVERSATIONS, MAX_LOG_CALLS, store_guidance

STEP = 30  # calls that are counted at once, read beside as many before them

Calls = Sequence[ToolCallResult]


def count_older_failures(memory: ToolMem, calls: Calls, imports: Collection[str]) -> set[str]:
    """Count calls of these imports that the next summary of their tool will not read.

    `calls`: the newest of the memory. Returns the tools whose histories changed. A tool that others
    change meanwhile is left as it is.
    """
    changed: set[str] = set()
    store = memory.services.store()
    op = "summary_tool_memory_op"
    writer = memory.services.writer(memory.services.settings.op.get(op, OpSection()))
    params = memory.engine.params()
    read_next = params[op][0].recent_call_count if op in params else STEP
    by_tool: defaultdict[str, list[ToolCallResult]] = defaultdict(list)
    by_conversation: defaultdict[str, list[ToolCallResult]] = defaultdict(list)
    for call in sorted(calls, key=lambda each: each.create_time):
        if call.metadata.get(IMPORT_ID) in imports:
            by_tool[call.tool_name].append(call)
        if call.conversation_id:
            by_conversation[call.conversation_id].append(call)
    for window in store.windows(memory.workspace_name, sorted(by_tool)):
        record = window.record
        read = window.calls[-read_next:]
        known = {call.id for call in (*read, *(c for c in window.calls if c.is_summarized))}
        own = [call for call in by_tool[record.tool_name] if call.id not in known]
        first = record.last_seq - len(read) - len(own) + 1  # what is read next comes after
        numbered = [replace(call, seq=seq) for seq, call in enumerate(own, first) if seq > 0]
        old = record.guidance or Guidance(text="", author=writer.author)
        history = _counted(numbered, old.history, by_conversation)
        if history is None or history is old.history:
            continue
        if old.history is not None:  # the newest failures stand at the end
            places = {key_of(one): place for place, one in enumerate(old.history.failures)}
            history.failures.sort(key=lambda one: places.get(key_of(one), -1))
        try:
            store_guidance(store, record, replace(old, history=history))
            changed.add(record.tool_name)
        except Conflict:
            continue
    return changed


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
        history = count(examine(window, around[-MAX_LOG_CALLS:]), history)
    return history
