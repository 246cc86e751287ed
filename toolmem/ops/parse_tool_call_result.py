"""ParseToolCallResultOp reads and judges calls; UpdateVectorStoreOp stores them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from msgspec import Meta, Struct
from msgspec.structs import replace

from toolmem.flow.op import Context, Op, register
from toolmem.formats.records import PositionedCall, read_records, read_schemas
from toolmem.guidance.shown import tool_memory
from toolmem.models.calls import with_all_fields
from toolmem.models.protocols import Store
from toolmem.models.tools import AppendResult, CallFailure, ToolRecord
from toolmem.ops.judging import add_evaluation, calls_at, judge_calls, replace_verdicts
from toolmem.ops.retrieval import keep_descriptions
from toolmem.text.stopped_calls import was_stopped

DEFAULT_WINDOW = 100  # calls kept per tool


@register
class ParseToolCallResultOp(Op):
    """Judge each tool call: give it a summary, an evaluation and the score 0.0 or 1.0.

    A record that cannot be read is named in the response, and the others are judged. A call with a
    known id is not judged again. A call whose evaluation failed is kept without a score, and judged
    again by the next request for its tool.
    """

    class Params(Struct, frozen=True):
        max_history_tool_call_cnt: Annotated[int, Meta(ge=1)] = DEFAULT_WINDOW  # per tool
        evaluation_sleep_interval: Annotated[float, Meta(ge=0)] = 1.0  # seconds between requests
        force: bool = False  # do not use cached verdicts

    reads = ("workspace", "tool_call_results")
    optional = ("tools", "force")
    leaves = ("judged_calls", "keep_calls", "known_tools")
    takes_results = True
    params: Params

    def run(self, context: Context) -> None:
        records = context["tool_call_results"]
        read = read_records(records, context.services.clock.now())
        schemas = read_schemas(context.get("tools"))
        store = context.services.store(self.settings)
        workspace = context.workspace
        ran = [item for item in read.calls if not was_stopped(item.call.output)]
        fresh = _without_known_ids(store, workspace, ran)
        fresh.sort(key=lambda item: (item.call.create_time, item.position))
        names = list(dict.fromkeys(item.call.tool_name for item in fresh))
        known = store.records(workspace, names) if names else []
        unjudged = calls_at(store, workspace, {each.tool_name: each.unjudged for each in known})
        judged = judge_calls(context, [*unjudged, *(item.call for item in fresh)], schemas)
        offset = len(unjudged)
        if schemas:
            keep_descriptions(store, workspace, schemas.values())
        replace_verdicts(store, workspace, judged.calls[:offset])
        context["judged_calls"] = [
            PositionedCall(item.position, call)
            for item, call in zip(fresh, judged.calls[offset:], strict=True)
        ]
        context["keep_calls"] = self.params.max_history_tool_call_cnt
        context["known_tools"] = known
        failures = read.failures + [
            CallFailure(fresh[failure.index - offset].position, failure.tool_name, failure.error)
            for failure in judged.failures
            if failure.index >= offset
        ]
        requested = len(records)
        duplicates = len(ran) - len(fresh)
        add_evaluation(context, requested, judged, duplicates, failures)
        done = requested - len(failures)
        response = context.response
        if failures:
            response.answer = f"Evaluated {done} of {requested} tool calls, {len(failures)} failed"
        else:
            response.answer = f"Successfully evaluated {requested - duplicates} tool calls"
        if duplicates:
            response.answer += f", {duplicates} with a known id left unchanged"


def _without_known_ids(
    store: Store, workspace: str, calls: Sequence[PositionedCall]
) -> list[PositionedCall]:
    """The calls without those whose id is in the store already, or twice in this request."""
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


@register
class UpdateVectorStoreOp(Op):
    """Store the calls that an earlier op judged. Each tool keeps the newest, and counts all.

    Without judged calls it does nothing, so that a flow of ReMe may end with it after a summary.
    """

    reads = ("workspace",)
    optional = ("judged_calls", "keep_calls", "known_tools")

    def run(self, context: Context) -> None:
        judged: list[PositionedCall] = context.get("judged_calls") or []
        if not judged:
            context.response.metadata.setdefault("memory_list", [])
            return
        store = context.services.store(self.settings)
        workspace = context.workspace
        calls = [item.call for item in judged]
        keep = context.get("keep_calls", DEFAULT_WINDOW)
        results = store.append_calls(workspace, calls, keep)
        context.progress(len(calls), len(calls), "stored")
        records = _with_guidance(store, workspace, results, context.get("known_tools") or ())
        metadata = context.response.metadata
        metadata["memory_list"] = with_all_fields([tool_memory(each) for each in records])
        metadata["trimmed"] = {
            tool: appended.trimmed for tool, appended in results.items() if appended.trimmed
        }
        # Count the calls that could not be stored, or that another writer stored meanwhile.
        failures: list[dict[str, Any]] = [
            {"index": judged[each.index].position, "tool_name": tool, "error": each.error}
            for tool, appended in results.items()
            for each in appended.failures
        ]
        duplicates = sum(len(appended.duplicates) for appended in results.values())
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


def _with_guidance(
    store: Store, workspace: str, appended: Mapping[str, AppendResult], known: Sequence[ToolRecord]
) -> list[ToolRecord]:
    """The records after an append, with guidance. `known`: the records before it, with guidance."""
    records = [each.record for each in appended.values() if each.record is not None]
    before = {each.tool_name: (each.guidance_version, each.guidance) for each in known}
    found = []
    for record in records:
        version, guidance = before.get(record.tool_name, (0, None))
        if record.guidance_version != version:  # another writer changed it meanwhile
            return store.records(workspace, list(appended))
        found.append(replace(record, guidance=guidance))
    return found
