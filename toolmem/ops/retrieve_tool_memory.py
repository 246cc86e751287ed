"""RetrieveToolMemoryOp: return guidance by exact name or by query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta, Struct

from toolmem.errors import RequestError
from toolmem.flow.op import Context, Op, register
from toolmem.guard.shown_guidance import permitted_records
from toolmem.guidance.shown import fit, require_trusted, tool_memory
from toolmem.models.calls import with_all_fields
from toolmem.models.protocols import Store
from toolmem.models.tools import ToolRecord, Window
from toolmem.ops.dispatch import track_usage
from toolmem.ops.retrieval import fitting_tools
from toolmem.text.display import shown_name


@register
class RetrieveToolMemoryOp(Op):
    """Return the guidance of the named tools, in this order, or of those that fit `query` best.

    Names must be exact. With names and a query, only the named tools are ranked.
    """

    class Params(Struct, frozen=True):
        top_k: Annotated[int, Meta(ge=1)] = 5  # hits of a query
        include_calls: bool = False  # return the kept calls as well

    reads = ("workspace",)
    optional = ("tool_names", "query", "top_k", "include_calls")
    params: Params

    def run(self, context: Context) -> None:
        names = context.names("tool_names")
        query = context.get("query") or ""
        if names is None and not query:
            raise RequestError("tool_names or query is required", field="tool_names")
        store = context.services.store(self.settings)
        require_trusted(store)
        wanted: Sequence[str] = names or []
        if query:
            wanted = self._hits(context, store, query, names)
        if context.get("include_calls", self.params.include_calls):
            windows = store.windows(context.workspace, wanted)
        else:
            windows = [Window(each, []) for each in store.records(context.workspace, wanted)]
        guards = [context.services.guard(context.workspace)]
        records = permitted_records((each.record for each in windows), guards, context.language)
        pairs = zip(records, windows, strict=True)
        memories = [tool_memory(record, window.calls) for record, window in pairs]
        found = {memory.when_to_use for memory in memories}
        missing = [name for name in names or [] if name not in found]
        if query and missing:  # a known tool that the query does not fit is not missing
            known = {each.tool_name for each in store.records(context.workspace, missing)}
            missing = [name for name in missing if name not in known]
        response = context.response
        response.metadata |= {
            "memory_list": [with_all_fields(memory) for memory in memories],
            "not_found": missing,
            "partial": bool(missing) and bool(memories),
        }
        response.success = bool(memories) or not missing
        max_tokens = context.services.settings.guidance.max_tokens
        texts = [_text(record, max_tokens) for record in records]
        nothing = f"found: {', '.join(map(shown_name, missing))}" if missing else "fits the query"
        response.answer = "\n\n".join(texts) or f"No tool memory {nothing}"

    def _hits(
        self, context: Context, store: Store, query: str, names: Sequence[str] | None
    ) -> list[str]:
        limit = context.get("top_k", self.params.top_k)
        if not isinstance(limit, int) or limit < 1:
            raise RequestError(f"top_k: expected at least 1, got {limit!r}", field="top_k")

        def report(made: int) -> None:
            context.progress(made, made, "embedded")

        with track_usage(context):
            embedder = context.services.embedder(self.settings)
            return fitting_tools(store, context.workspace, query, embedder, names, report)[:limit]


def _text(record: ToolRecord, max_tokens: int) -> str:
    guidance = record.guidance
    text = fit(guidance, max_tokens) if guidance is not None else ""
    return f"## `{shown_name(record.tool_name)}`\n{text or '(no guidance yet)'}"
