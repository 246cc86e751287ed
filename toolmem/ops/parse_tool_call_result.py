"""ParseToolCallResultOp: records in, judged calls out."""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field

from toolmem.errors import RequestError
from toolmem.flow.op import Context, Op, OpParams
from toolmem.formats.call_records import RecordsRead, misspelt_in_words, read_records
from toolmem.models import ToolCallResult
from toolmem.ops.arguments import DataFrom, read_data_from, read_schemas
from toolmem.ops.judging import Judged, commit_again, judge_calls, kept_calls, tell_stop
from toolmem.ops.tool_descriptions import note_descriptions
from toolmem.readers.weight import aside
from toolmem.stored import CallFailure

log = logging.getLogger("toolmem.ops")


class ParseToolCallResultOp(Op):
    """Judge each tool call: summary, evaluation, score 0.0 or 1.0.

    A bad record is named and the others go on; a call whose id is known is counted as a duplicate and not judged;
    a call whose evaluation failed is kept without a score and named. Calls of the same tools whose evaluation had
    failed earlier are judged again first.
    """

    class Params(OpParams):
        max_history_tool_call_cnt: Annotated[int, Field(ge=1)] = 100  # calls kept per tool, FIFO
        evaluation_sleep_interval: Annotated[float, Field(ge=0)] = 1.0  # seconds between two requests to a model
        force: bool = False  # judge again what the verdict cache already knows
        data_from: DataFrom = ""  # only calls created since then (ISO 8601); empty: all

    reads = ("workspace_id", "tool_call_results")
    optional = ("tools", "force")
    leaves = ("judged_calls", "keep_calls")
    asks_model = True
    params: Params

    async def execute(self, context: Context) -> None:
        records = context["tool_call_results"]
        if isinstance(records, str) or not isinstance(records, Sequence):
            raise RequestError(
                f"tool_call_results: expected a list of objects, got {type(records).__name__}",
                field="tool_call_results",
            )
        schemas = read_schemas(context.get("tools"))
        settings = context.services.settings
        clock = context.services.clock
        read = await aside(records, lambda: read_records(records, clock=clock, time_zone=settings.time_zone))
        self._tell_repairs(read)
        since = read_data_from(self.params.data_from, settings.time_zone)
        recent = [item for item in read.calls if since is None or item[1].create_time >= since]
        if len(recent) < len(read.calls):
            context.response.metadata["older_than_data_from"] = len(read.calls) - len(recent)
        fresh, duplicates = await self._without_duplicates(context, recent)
        force = bool(context.get("force", False)) or self.params.force

        store = await context.services.store(self)
        await note_descriptions(store, context.workspace, schemas.values())
        tools = await store.records(context.workspace, list({call.tool_name for _, call in fresh}))
        kept = await kept_calls(context, {tool.tool_name: tool.unjudged for tool in tools})
        fresh.sort(key=lambda item: (item[1].create_time, item[0]))
        # One batch: one announcement, and what stops it stops all of it.
        batch = await judge_calls(context, [*kept, *(call for _, call in fresh)], schemas, force=force)
        retried = await commit_again(context, kept, batch.part(0, len(kept)))
        judged = batch.part(len(kept), len(batch.calls))

        positions = [index for index, _ in fresh]
        failures = list(read.failures)
        failures += [CallFailure(positions[f.index], f.tool_name, f.error) for f in judged.failures]
        failures.sort(key=lambda failure: failure.index)
        context["judged_calls"] = list(zip(positions, judged.calls, strict=True))
        context["keep_calls"] = self.params.max_history_tool_call_cnt
        self._answer(context, len(records), judged, duplicates, failures)
        await self._detail_costs(context, [call for _, call in recent], judged)
        if retried.calls:
            context.response.metadata["retried"] = retried.summary()
        tell_stop(context.response.metadata, batch.stopped)

    @staticmethod
    def _tell_repairs(read: RecordsRead) -> None:
        if read.repaired_surrogates:
            log.warning("lone surrogates in the records that became U+FFFD: %d", read.repaired_surrogates)
        for sentence in misspelt_in_words(read.misspelt):
            log.warning("%s", sentence)

    @staticmethod
    async def _without_duplicates(
        context: Context, calls: Sequence[tuple[int, ToolCallResult]]
    ) -> tuple[list[tuple[int, ToolCallResult]], int]:
        """Leave out the calls whose id this tool has seen, in the store or earlier in this request."""
        store = await context.services.store(context.op)
        ids: dict[str, list[str]] = defaultdict(list)
        for _, call in calls:
            if call.id is not None:
                ids[call.tool_name].append(call.id)
        seen = {tool: await store.known_ids(context.workspace, tool, given) for tool, given in ids.items()}
        fresh = []
        for index, call in calls:
            if call.id is not None:
                if call.id in seen[call.tool_name]:
                    continue
                seen[call.tool_name].add(call.id)
            fresh.append((index, call))
        return fresh, len(calls) - len(fresh)

    @staticmethod
    async def _detail_costs(context: Context, handed_over: Sequence[ToolCallResult], judged: Judged) -> None:
        """Per tool: calls with a verdict, verdicts made now and known already, calls of a known id."""
        judge = await context.services.judge(context.op)
        given = Counter(call.tool_name for call in handed_over if call.evaluation_status != "denied")
        fresh = Counter(call.tool_name for call in judged.calls if call.evaluation_status != "denied")
        made = Counter(call.tool_name for call, now in zip(judged.calls, judged.made, strict=True) if now)
        failed = Counter(failure.tool_name for failure in judged.failures)
        for tool in sorted(given):
            context.detail(
                "judged",
                tool_name=tool,
                calls=fresh[tool] - failed[tool],
                evaluated=made[tool],
                reused=fresh[tool] - failed[tool] - made[tool],
                duplicates=given[tool] - fresh[tool],
                asks_model=judge.identity.backend != "offline",
                model=judge.identity.model,
            )

    @staticmethod
    def _answer(context: Context, requested: int, judged: Judged, duplicates: int, failures: list[CallFailure]) -> None:
        done = requested - len(failures)
        metadata: dict[str, Any] = context.response.metadata
        metadata["evaluation"] = {
            "requested": requested,
            "evaluated": judged.evaluated,
            "reused": judged.reused,
            "duplicates": duplicates,
            "failed": len(failures),
            "failures": [{"index": f.index, "tool_name": f.tool_name, "error": f.error} for f in failures],
        }
        metadata["partial"] = bool(failures) and done > 0
        context.response.success = not failures
        context.response.answer = (
            f"Evaluated {done} of {requested} tool calls, {len(failures)} failed"
            if failures
            else f"Successfully evaluated {requested - duplicates - judged.denied} tool calls"
        )
        if duplicates:
            context.response.answer += f", {duplicates} of a known id left as they are"
        if judged.denied:
            metadata["evaluation"]["denied"] = judged.denied
            context.response.answer += f", {judged.denied} denied before they ran: not judged, counted nowhere"
