"""ParseToolCallResultOp: records in, judged calls out. UpdateVectorStoreOp: store these calls."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Annotated, Any

from msgspec import Meta, Struct

from toolmem.flow.op import Context, Op, register
from toolmem.formats.records import PositionedCall, read_records, read_schemas
from toolmem.guidance.shown import tool_memory
from toolmem.models.calls import ToolCallResult, with_all_fields
from toolmem.models.protocols import Store
from toolmem.models.tools import CallFailure
from toolmem.ops.judging import add_evaluation, calls_at, judge_calls, replace_verdicts
from toolmem.ops.retrieval import keep_descriptions
from toolmem.text.stopped_calls import was_stopped

DEFAULT_WINDOW = 100  # calls that are kept of each tool


@register
class ParseToolCallResultOp(Op):
    """Judge each tool call: summary, evaluation, score 0.0 or 1.0.

    A bad record is named and the others go on. A call whose id is known is not judged again. A
    call whose evaluation failed is kept without a score, and judged again by the next request for
    its tool.
    """

    class Params(Struct, frozen=True):
        max_history_tool_call_cnt: Annotated[int, Meta(ge=1)] = DEFAULT_WINDOW  # FIFO
        evaluation_sleep_interval: Annotated[float, Meta(ge=0)] = 1.0  # seconds between requests
        force: bool = False  # judge again what the verdict cache knows

    reads = ("workspace", "tool_call_results")
    optional = ("tools", "force")
    leaves = ("judged_calls", "keep_calls")
    takes_results = True
    params: Params

    def run(self, context: Context) -> None:
        records = context["tool_call_results"]
        read = read_records(records, context.services.clock.now())
        schemas = read_schemas(context.get("tools"))
        store = context.services.store(self.settings)
        ran = [item for item in read.calls if not was_stopped(item.call.output)]
        fresh = _without_known_ids(store, context.workspace, ran)
        fresh.sort(key=lambda item: (item.call.create_time, item.position))
        kept = _kept_without_verdict(store, context.workspace, fresh)
        judged = judge_calls(context, [*kept, *(item.call for item in fresh)], schemas)
        if schemas:
            keep_descriptions(store, context.workspace, schemas.values())
        replace_verdicts(store, context.workspace, judged.calls[: len(kept)])
        context["judged_calls"] = [
            PositionedCall(item.position, call)
            for item, call in zip(fresh, judged.calls[len(kept) :], strict=True)
        ]
        context["keep_calls"] = self.params.max_history_tool_call_cnt
        failures = read.failures + [
            CallFailure(fresh[failure.index - len(kept)].position, failure.tool_name, failure.error)
            for failure in judged.failures
            if failure.index >= len(kept)
        ]
        requested, duplicates = len(records), len(ran) - len(fresh)
        add_evaluation(context, requested, judged, duplicates, failures)
        done, response = requested - len(failures), context.response
        if failures:
            response.answer = f"Evaluated {done} of {requested} tool calls, {len(failures)} failed"
        else:
            response.answer = f"Successfully evaluated {requested - duplicates} tool calls"
        if duplicates:
            response.answer += f", {duplicates} of a known id left as they are"


def _without_known_ids(
    store: Store, workspace: str, calls: Sequence[PositionedCall]
) -> list[PositionedCall]:
    """Leave out the calls whose id their tool knows, from the store or from this request."""
    ids: defaultdict[str, list[str]] = defaultdict(list)
    for _, call in calls:
        if call.id is not None:
            ids[call.tool_name].append(call.id)
    known = {tool: store.known_ids(workspace, tool, given) for tool, given in ids.items()}
    fresh = []
    for item in calls:
        call = item.call
        if call.id is not None:
            if call.id in known[call.tool_name]:
                continue
            known[call.tool_name].add(call.id)
        fresh.append(item)
    return fresh


def _kept_without_verdict(
    store: Store, workspace: str, calls: Sequence[PositionedCall]
) -> list[ToolCallResult]:
    """Stored calls of the same tools whose evaluation failed earlier."""
    names = list(dict.fromkeys(item.call.tool_name for item in calls))
    records = store.records(workspace, names, guidance=False)
    return calls_at(store, workspace, {record.tool_name: record.unjudged for record in records})


@register
class UpdateVectorStoreOp(Op):
    """Store the calls that an op before it judged: each tool keeps its newest, all are counted.

    Without judged calls it does nothing: ReMe's flows end in it after a summary as well.
    """

    reads = ("workspace",)
    optional = ("judged_calls", "keep_calls")

    def run(self, context: Context) -> None:
        judged: list[PositionedCall] = context.get("judged_calls") or []
        if not judged:
            context.response.metadata.setdefault("memory_list", [])
            return
        store = context.services.store(self.settings)
        calls = [item.call for item in judged]
        keep = context.get("keep_calls", DEFAULT_WINDOW)
        kept = store.append_calls(context.workspace, calls, keep)
        context.progress(len(calls), len(calls), "stored")
        records = store.records(context.workspace, list(kept))
        metadata = context.response.metadata
        metadata["memory_list"] = [with_all_fields(tool_memory(each)) for each in records]
        metadata["trimmed"] = {
            tool: appended.trimmed for tool, appended in kept.items() if appended.trimmed
        }
        # Count the calls that could not be stored, or that another writer stored meanwhile.
        failures: list[dict[str, Any]] = [
            {"index": judged[each.index].position, "tool_name": tool, "error": each.error}
            for tool, appended in kept.items()
            for each in appended.failures
        ]
        duplicates = sum(len(appended.duplicates) for appended in kept.values())
        evaluation = metadata.get("evaluation")
        if evaluation is not None:
            evaluation["duplicates"] += duplicates
            evaluation["evaluated"] -= duplicates + len(failures)
            evaluation["failed"] += len(failures)
            evaluation["failures"] += failures
        if failures:
            context.response.success = False
            metadata["partial"] = True
            context.response.answer += f"; {len(failures)} could not be stored"
