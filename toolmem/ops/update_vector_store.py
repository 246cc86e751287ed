"""UpdateVectorStoreOp: keeps judged calls, in one commit with what they teach the guard."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from toolmem.engine import KEEP_CALLS
from toolmem.flow.op import Context, Op
from toolmem.guidance.tool_memory import tool_memory
from toolmem.models import ToolCallResult
from toolmem.ops.check_tool_call import keep_and_learn, learns, told_apart


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

        if is_told:
            kept = await keep_and_learn(context.services, context.workspace, store, [call for _, call in judged], keep)
            context.progress(len(by_tool), len(by_tool), "stored")
        else:
            kept = {}
            for done, (tool, items) in enumerate(by_tool.items(), start=1):
                kept[tool] = await store.append_calls(context.workspace, tool, [call for _, call in items], keep)
                context.progress(done, len(by_tool), "stored")
        trimmed = {tool: appended.trimmed for tool, appended in kept.items() if appended.trimmed}
        duplicates = sum(len(appended.duplicates) for appended in kept.values())
        failures = [
            {"index": by_tool[tool][failure.index][0], "tool_name": tool, "error": failure.error}
            for tool, appended in kept.items()
            for failure in appended.failures
        ]
        memories = await store.memories(context.workspace, list(by_tool))
        metadata = context.response.metadata
        metadata["memory_list"] = [tool_memory(memory, include_calls=False).reply() for memory in memories]
        metadata["trimmed"] = trimmed
        if failures or duplicates:
            self._correct(context, failures, duplicates)

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
