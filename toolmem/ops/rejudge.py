"""RejudgeOp: judge stored calls again, with the model and prompt that this op is configured with."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from toolmem.flow.op import Context, Op, OpParams
from toolmem.ops.arguments import read_schemas, read_tool_names
from toolmem.ops.judging import KeptCalls, answer_again, judge_again


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
        names = read_tool_names(context.get("tool_names"))
        schemas = read_schemas(context.get("tools"))
        store = await context.services.store(self)
        records = await store.records(context.workspace, names)
        seqs = {record.tool_name: list(range(record.first_seq, record.last_seq + 1)) for record in records}
        force = bool(context.get("force", False)) or self.params.force
        again = await judge_again(context, await KeptCalls.read(context, seqs), schemas, force=force)
        answer_again(context, again, [name for name in names or () if name not in seqs])
