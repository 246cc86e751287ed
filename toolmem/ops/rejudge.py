"""RejudgeOp: judge stored calls again, with the model and prompt that this op is configured with."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from toolmem.flow.op import Context, Op, OpParams
from toolmem.ops.judging import judge_again


class RejudgeOp(Op):
    """Replace the verdicts of the kept calls. A call judged anew counts as new for the next summary.

    Without `force`, a verdict that this very judge has given before is taken from the cache.
    """

    class Params(OpParams):
        evaluation_sleep_interval: Annotated[float, Field(ge=0)] = 1.0  # seconds between two requests to a model
        force: bool = False

    reads = ("workspace_id",)
    optional = ("tool_names", "tools", "force")
    asks_model = True
    params: Params

    async def execute(self, context: Context) -> None:
        force = bool(context.get("force", False)) or self.params.force
        await judge_again(context, lambda record: range(record.first_seq, record.last_seq + 1), force=force)
