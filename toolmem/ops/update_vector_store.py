"""UpdateVectorStoreOp: keeps judged calls, one commit per tool."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from toolmem.engine import KEEP_CALLS
from toolmem.flow.op import Context, Op
from toolmem.guidance.tool_memory import tool_memory
from toolmem.models import ToolCallResult
from toolmem.ops.check_tool_call import learn_from, learns, told_apart


class UpdateVectorStoreOp(Op):
    """Commit the calls that an op before it judged: the newest stay in the tool's window, all of them are counted.

    Without judged calls it does nothing, so that flows which end in it after a summary stay valid. From calls that
    the request brought the guard learns which failures stand, and what became of its decisions.
    """

    reads = ("workspace_id",)
    optional = ("judged_calls", "keep_calls")

    async def execute(self, context: Context) -> None:
        judged: list[tuple[int, ToolCallResult]] = context.get("judged_calls") or []
        if not judged:
            context.response.metadata.setdefault("memory_list", [])
            return
        # Whoever hands over judged calls, as an AgentSession does, teaches the guard itself.
        is_told = "evaluation" in context.response.metadata and learns(context.services)
        judged = [(index, told_apart(call)) for index, call in judged] if is_told else judged
        keep: int = context.get("keep_calls", KEEP_CALLS)  # where no op before this one says how many
        store = await context.services.store(self)
        by_tool: dict[str, list[tuple[int, ToolCallResult]]] = defaultdict(list)
        for index, call in judged:
            by_tool[call.tool_name].append((index, call))

        trimmed: dict[str, int] = {}
        failures: list[dict[str, Any]] = []
        duplicates = 0
        left_out: set[int] = set()
        for done, (tool, items) in enumerate(by_tool.items(), start=1):
            appended = await store.append_calls(context.workspace, tool, [call for _, call in items], keep)
            duplicates += len(appended.duplicates)
            if appended.trimmed:
                trimmed[tool] = appended.trimmed
            left_out |= {items[at][0] for at in (*appended.duplicates, *(f.index for f in appended.failures))}
            failures += [{"index": items[f.index][0], "tool_name": tool, "error": f.error} for f in appended.failures]
            context.progress(done, len(by_tool), "stored")
        memories = await store.memories(context.workspace, list(by_tool))
        metadata = context.response.metadata
        metadata["memory_list"] = [tool_memory(memory, include_calls=False).reply() for memory in memories]
        metadata["trimmed"] = trimmed
        if failures or duplicates:
            self._correct(context, failures, duplicates)
        if is_told:
            await learn_from(context.services, context.workspace, [c for at, c in judged if at not in left_out])

    @staticmethod
    def _correct(context: Context, failures: list[dict[str, Any]], duplicates: int) -> None:
        """Name what could not be kept, and what another writer had stored meanwhile."""
        metadata = context.response.metadata
        evaluation = metadata.get("evaluation")
        if evaluation is not None:
            evaluation["duplicates"] += duplicates
            evaluation["evaluated"] -= duplicates + len(failures)
            evaluation["failed"] += len(failures)
            evaluation["failures"] = sorted([*evaluation["failures"], *failures], key=lambda f: f["index"])
        if failures:
            context.response.success = False
            metadata["partial"] = True
            context.response.answer += f"; {len(failures)} could not be stored"
