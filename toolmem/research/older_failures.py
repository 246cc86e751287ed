"""Add failures to the history of a tool, from imported calls that are too old for a summary.

A summary reads a tool's newest calls, and adds their failures to the history in its guidance. An
import may bring more calls than a summary reads. The failures of the older calls are added here,
before those in the history.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

from msgspec.structs import replace

from toolmem.errors import Conflict
from toolmem.guidance.evidence import examine
from toolmem.guidance.failures import count, key_of
from toolmem.memory.toolmem import ToolMem
from toolmem.models.calls import IMPORT_ID, ToolCallResult
from toolmem.models.guidance import Guidance, ToolHistory
from toolmem.ops.summary_tool_memory import MAX_CONVERSATIONS, MAX_LOG_CALLS, store_guidance
from toolmem.research.backtest import Calls, by_tool
from toolmem.research.import_runs import OP, summary_writer

STEP = 30  # calls that are counted at once, read together with as many before them


def add_older_failures(memory: ToolMem, calls: Calls, imports: Collection[str]) -> set[str]:
    """Add failures of these imports to the history of their tool if no summary will read them.

    `calls`: the newest calls of the memory. Returns the tools whose history changed. A tool that
    another process changes meanwhile is left as it is.
    """
    changed: set[str] = set()
    store = memory.services.store()
    writer = summary_writer(memory)
    params = memory.engine.params()
    read_next = params[OP][0].recent_call_count if OP in params else STEP
    ordered = sorted(calls, key=lambda call: call.create_time)
    imported = by_tool([call for call in ordered if call.metadata.get(IMPORT_ID) in imports])
    by_conversation: defaultdict[str, list[ToolCallResult]] = defaultdict(list)
    for call in ordered:
        if call.conversation_id:
            by_conversation[call.conversation_id].append(call)
    for window in store.windows(memory.workspace_name, sorted(imported)):
        record = window.record
        read = window.calls[-read_next:]
        known = {call.id for call in (*read, *(c for c in window.calls if c.is_summarized))}
        own = [call for call in imported[record.tool_name] if call.id not in known]
        first = record.last_seq - len(read) - len(own) + 1  # the calls that are read next follow
        numbered = [replace(call, seq=seq) for seq, call in enumerate(own, first) if seq > 0]
        old = record.guidance or Guidance(text="", author=writer.author)
        history = _counted(numbered, old.history, by_conversation)
        if history is None or history is old.history:
            continue
        if old.history is not None:  # the newest failures are at the end
            places = {key_of(each): place for place, each in enumerate(old.history.failures)}
            history.failures.sort(key=lambda each: places.get(key_of(each), -1))
        try:
            store_guidance(store, record, replace(old, history=history))
            changed.add(record.tool_name)
        except Conflict:
            continue
    return changed


def _counted(
    calls: Calls, history: ToolHistory | None, conversations: dict[str, list[ToolCallResult]]
) -> ToolHistory | None:
    """The history with the failures of newer calls added."""
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
