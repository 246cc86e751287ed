"""RetryEvaluationsOp: judge the calls again whose evaluation failed, and only those."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from toolmem.flow.op import Context, Op, OpParams
from toolmem.ops.judging import judge_again


class RetryEvaluationsOp(Op):
    """Judge the kept calls that have no verdict, because a model failed or judging was deferred."""

    class Params(OpParams):
        evaluation_sleep_interval: Annotated[float, Field(ge=0)] = 1.0  # seconds between two requests to a model

    reads = ("workspace_id",)
    optional = ("tool_names", "tools")
    asks_model = True
    params: Params

    async def execute(self, context: Context) -> None:
        await judge_again(context, lambda record: record.unjudged)
