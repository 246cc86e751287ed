"""RetrieveToolMemoryOp: hands guidance out, by exact name or by query."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Annotated, Any

from pydantic import Field

from toolmem.errors import RequestError, StoreUntrusted
from toolmem.flow.op import Context, Op, OpParams
from toolmem.guidance.shown import said_to_be_data
from toolmem.guidance.statistics import known_figures
from toolmem.guidance.tool_memory import tool_memory
from toolmem.models import ToolMemory
from toolmem.ops.arguments import read_tool_names
from toolmem.ops.tool_search import ToolFit, fitting_tools
from toolmem.readers.plain_text import name_shown
from toolmem.readers.query import read_query


class RetrieveToolMemoryOp(Op):
    """Answer the memories of the tools named, in the order asked; with `query`, those that fit it best.

    Names are exact keys. With both, the query ranks among the tools named.
    """

    class Params(OpParams):
        top_k: Annotated[int, Field(ge=1)] = 5  # hits of a query
        include_calls: bool = False  # send the kept calls as well

    reads = ("workspace_id",)
    optional = ("tool_names", "query", "top_k", "include_calls")
    params: Params

    async def execute(self, context: Context) -> None:
        names = read_tool_names(context.get("tool_names"))
        given = context.get("query")
        query = "" if given is None else read_query(given)
        if names is None and not query:
            raise RequestError("tool_names or query is required", field="tool_names")
        store = await context.services.store(self)
        if reason := context.services.untrusted(self.settings.vector_store):
            raise StoreUntrusted(reason)
        fits: dict[str, ToolFit] = {}
        wanted = names
        if query:
            fits = {fit.tool: fit for fit in await self._search(context, query, names)}
            wanted = list(fits)
        include_calls = bool(context.get("include_calls", self.params.include_calls))
        if include_calls:
            stored = await store.memories(context.workspace, wanted or [], calls=True)
            memories = [tool_memory(memory, include_calls=True) for memory in stored]
        else:
            counted = await known_figures(store).memories(store, context.workspace, wanted or [])
            memories = [tool_memory(memory, figures=figures) for memory, figures in counted]
        found = {memory.when_to_use for memory in memories}
        missing = await self._missing(context, names, found)

        memory_list: list[dict[str, Any]] = []
        for memory in memories:
            shown = memory.reply()
            if fit := fits.get(memory.when_to_use):
                # beyond four digits a cosine of single-precision vectors differs between machines and says nothing
                shown["metadata"]["similarity"] = None if fit.similarity is None else round(fit.similarity, 4)
                if fit.low:
                    shown["metadata"]["relevance"] = "low"
            memory_list.append(shown)
        response = context.response
        response.metadata["memory_list"] = memory_list
        response.metadata["not_found"] = missing
        response.metadata["partial"] = bool(missing) and bool(memory_list)
        response.success = bool(memory_list) or not missing  # what is known is an answer; clients drop one that is none
        low = {name for name, fit in fits.items() if fit.low}
        response.answer = self._answer(context, memories, low) if memories else _nothing(missing)

    def _answer(self, context: Context, memories: Sequence[ToolMemory], low: Collection[str]) -> str:
        language = self.settings.language or context.services.settings.language
        data = said_to_be_data("zh" if language == "zh" else "")
        marks = dict.fromkeys(low, " (relevance: low)")
        parts = [
            f"## `{name_shown(each.when_to_use)}`{marks.get(each.when_to_use, '')}\n"
            f"{each.content or '(no guidance yet)'}"
            for each in memories
        ]
        return "\n\n".join([data, *parts])

    async def _search(self, context: Context, query: str, names: list[str] | None) -> list[ToolFit]:
        store = await context.services.store(self)
        embedder = await context.services.embedder(self)
        top_k = context.get("top_k", self.params.top_k)
        if isinstance(top_k, bool) or not isinstance(top_k, int) or top_k < 1:
            raise RequestError(f"top_k: expected a whole number from 1, got {top_k!r}", field="top_k")
        return (await fitting_tools(store, context.workspace, query, embedder, names))[:top_k]

    async def _missing(self, context: Context, names: list[str] | None, found: set[str]) -> list[str]:
        """Names asked for that the workspace does not hold; one that a query merely ranked out is not missing."""
        absent = [name for name in names or [] if name not in found]
        if not absent:
            return []
        store = await context.services.store(self)
        known = {record.tool_name for record in await store.records(context.workspace, absent)}
        return [name for name in absent if name not in known]


def _nothing(missing: Sequence[str]) -> str:
    if not missing:
        return "No tool memory fits the query"
    return "No tool memory found: " + ", ".join(map(name_shown, missing))
