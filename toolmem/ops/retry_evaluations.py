"""RetryEvaluationsOp: judge the calls again whose evaluation failed, and only those."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import Field

from toolmem.errors import ModelError
from toolmem.flow.context import Context
from toolmem.flow.op import Op, OpParams
from toolmem.models import ToolCallResult, ToolSchema
from toolmem.ops.judging import Judged, judge_calls, read_schemas, tell_stop
from toolmem.ops.tool_names import read_tool_names
from toolmem.readers.plain_text import counted
from toolmem.store.masked import as_given


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


@dataclass
class KeptCalls:
    """Kept calls of several tools, one after the other, to be judged again."""

    calls: list[ToolCallResult] = field(default_factory=list)

    @classmethod
    async def read(cls, context: Context, seqs: Mapping[str, Sequence[int]]) -> KeptCalls:
        """`seqs`: tool -> which of its calls."""
        wanted = {tool: picked for tool, picked in seqs.items() if picked}
        if not wanted:
            return cls()
        store = await context.services.store(context.op)
        memories = await store.memories(context.workspace, list(wanted), calls=True, seqs=wanted)
        return cls(as_given(store, context.workspace, [call for memory in memories for call in memory.calls]))

    @classmethod
    async def without_verdict(cls, context: Context, tools: Sequence[str] | None) -> KeptCalls:
        """Those of these tools (None: of all) that have none."""
        store = await context.services.store(context.op)
        records = await store.records(context.workspace, tools)
        return await cls.read(context, {record.tool_name: record.unjudged for record in records})

    async def commit(self, context: Context, judged: Judged) -> JudgedAgain:
        """Replace the verdicts, one commit per tool. A call whose new evaluation failed keeps the verdict it has."""
        store = await context.services.store(context.op)
        verdicts: dict[str, dict[int, ToolCallResult]] = defaultdict(dict)
        for call in judged.calls:
            if call.seq is not None and call.evaluation_status == "ok":
                verdicts[call.tool_name][call.seq] = call
        for tool, of_tool in verdicts.items():
            await store.update_verdicts(context.workspace, tool, of_tool)
        return JudgedAgain(
            calls=len(judged.calls),
            evaluated=sum(len(of_tool) for of_tool in verdicts.values()),
            failures=[
                {"id": self.calls[f.index].id, "tool_name": f.tool_name, "error": f.error} for f in judged.failures
            ],
            stopped=judged.stopped,
        )


async def judge_again(
    context: Context, kept: KeptCalls, schemas: Mapping[str, ToolSchema], *, force: bool
) -> JudgedAgain:
    """Judge kept calls again, those of all tools as one batch, and commit the new verdicts."""
    return await kept.commit(context, await judge_calls(context, kept.calls, schemas, force=force))


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
        parts.append(f"{counted(len(not_found), 'tool')} not found")
    done = "Successfully processed" if response.success else "Processed"
    response.answer = f"{done} {counted(again.calls, 'tool call')}: {', '.join(parts)}"


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
        again = await judge_again(context, await KeptCalls.without_verdict(context, names), schemas, force=False)
        answer_again(context, again, [name for name in names or () if name not in found])
