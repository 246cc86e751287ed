"""RetryEvaluationsOp: judge the calls again whose evaluation failed, and only those."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import Field

from toolmem.errors import ModelError
from toolmem.flow.context import Context
from toolmem.flow.op import Op, OpParams
from toolmem.ops.judging import judge_calls, read_schemas, tell_stop
from toolmem.ops.tool_names import read_tool_names
from toolmem.schema import ToolCallResult, ToolSchema


@dataclass
class JudgedAgain:
    """What judging kept calls again came to, over all tools asked for."""

    calls: int = 0
    evaluated: int = 0
    failures: list[dict[str, Any]] = field(default_factory=list)
    stopped: ModelError | None = None

    def summary(self) -> dict[str, Any]:
        return {
            "requested": self.calls,
            "evaluated": self.evaluated,
            "failed": len(self.failures),
            "failures": self.failures,
        }


async def judge_kept_calls(
    context: Context,
    seqs: Mapping[str, Sequence[int]],
    schemas: Mapping[str, ToolSchema],
    *,
    force: bool,
) -> JudgedAgain:
    """Judge kept calls (tool -> seqs) again and commit the new verdicts, one commit per tool.

    A call whose new evaluation fails keeps the verdict it has.
    """
    store = await context.services.store(context.op)
    again = JudgedAgain()
    wanted = {tool: picked for tool, picked in seqs.items() if picked}
    if not wanted:
        return again
    for memory in await store.memories(context.workspace, list(wanted), calls=True, seqs=wanted):
        tool = memory.record.tool_name
        judged = await judge_calls(context, memory.calls, schemas, force=force)
        verdicts: dict[int, ToolCallResult] = {
            call.seq: call for call in judged.calls if call.seq is not None and call.evaluation_status == "ok"
        }
        if verdicts:
            await store.update_verdicts(context.workspace, tool, verdicts)
        again.calls += len(judged.calls)
        again.evaluated += len(verdicts)
        again.failures += [
            {"id": memory.calls[f.index].id, "tool_name": tool, "error": f.error} for f in judged.failures
        ]
        if judged.stopped is not None:
            again.stopped = judged.stopped
            break
    return again


async def retry_unjudged(
    context: Context, tools: Sequence[str] | None, schemas: Mapping[str, ToolSchema]
) -> JudgedAgain:
    """Judge again the kept calls of these tools (None: of all) that have no verdict."""
    store = await context.services.store(context.op)
    records = await store.records(context.workspace, tools)
    return await judge_kept_calls(
        context, {record.tool_name: record.unjudged for record in records}, schemas, force=False
    )


def answer_again(context: Context, again: JudgedAgain, not_found: Sequence[str]) -> None:
    """Fill the response of a flow that judges kept calls again."""
    response = context.response
    failed = len(again.failures) + len(not_found)
    response.success = not failed and again.stopped is None
    response.metadata["evaluation"] = again.summary()
    response.metadata["not_found"] = list(not_found)
    response.metadata["partial"] = not response.success and again.evaluated > 0
    tell_stop(response.metadata, again.stopped)
    parts = [f"{again.evaluated} judged"]
    if again.failures:
        parts.append(f"{len(again.failures)} failed")
    if not_found:
        parts.append(f"{len(not_found)} tools not found")
    done = "Successfully processed" if response.success else "Processed"
    response.answer = f"{done} {again.calls} tool calls: {', '.join(parts)}"


class RetryEvaluationsOp(Op):
    """Judge the kept calls that have no verdict, because a model failed or judging was deferred."""

    class Params(OpParams):
        evaluation_sleep_interval: Annotated[float, Field(ge=0)] = 1.0  # seconds between two requests to a model

    reads = ("workspace_id",)
    optional = ("tool_names", "tools")
    asks_model = True
    params: Params

    async def execute(self, context: Context) -> None:
        names = read_tool_names(context.get("tool_names"))
        schemas = read_schemas(context.get("tools"))
        store = await context.services.store(self)
        records = await store.records(context.workspace, names)
        found = {record.tool_name for record in records}
        again = await retry_unjudged(context, names, schemas)
        answer_again(context, again, [name for name in names or () if name not in found])
