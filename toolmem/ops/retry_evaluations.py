"""RetryEvaluationsOp: judge the calls again whose evaluation failed, and only those."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from toolmem.flow.op import Context, Op, OpParams
from toolmem.ops.arguments import read_schemas, read_tool_names
from toolmem.ops.judging import KeptCalls, answer_again, judge_again


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
