"""RetryEvaluationsOp and RejudgeOp: judge calls again that the store keeps."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Annotated

from msgspec import Meta, Struct

from toolmem.flow.op import Context, Op
from toolmem.flow.registry import register
from toolmem.formats.records import read_schemas
from toolmem.models.tools import CallFailure, ToolRecord
from toolmem.ops.judging import judge_calls, replace_verdicts, tell_evaluation


class _Params(Struct, frozen=True):
    evaluation_sleep_interval: Annotated[float, Meta(ge=0)] = 1.0  # seconds between requests
    force: bool = False  # ask again what the verdict cache knows


@register
class RetryEvaluationsOp(Op):
    """Judge the kept calls that have no verdict because their evaluation failed."""

    Params = _Params
    reads = ("workspace_id",)
    optional = ("tool_names", "tools", "force")
    params: _Params

    def run(self, context: Context) -> None:
        _judge_again(context, self.params, lambda record: record.unjudged)


@register
class RejudgeOp(Op):
    """Judge every kept call with the judge as it is configured now.

    A call whose verdict is replaced counts as new for the next summary. Without `force`, what this
    judge said of the call before is taken from the cache. A call whose evaluation fails keeps the
    verdict that it had.
    """

    Params = _Params
    reads = ("workspace_id",)
    optional = ("tool_names", "tools", "force")
    params: _Params

    def run(self, context: Context) -> None:
        def every(record: ToolRecord) -> Iterable[int]:
            return range(record.first_seq, record.last_seq + 1)

        _judge_again(context, self.params, every)


def _judge_again(
    context: Context, params: _Params, choose: Callable[[ToolRecord], Iterable[int]]
) -> None:
    """`choose`: seqs of a tool's kept calls."""
    store = context.services.store(context.op.settings)
    names = context.names("tool_names")
    records = store.records(context.workspace, names, guidance=False)
    seqs = {record.tool_name: list(choose(record)) for record in records}
    seqs = {tool: chosen for tool, chosen in seqs.items() if chosen}
    windows = store.windows(context.workspace, list(seqs), seqs=seqs) if seqs else []
    calls = [call for window in windows for call in window.calls]
    judged = judge_calls(
        context,
        calls,
        read_schemas(context.get("tools")),
        force=context.get("force", False) or params.force,
        interval=params.evaluation_sleep_interval,
    )
    replace_verdicts(store, context.workspace, judged.calls)
    known = {record.tool_name for record in records}
    missing = [name for name in names or [] if name not in known]
    failures = [CallFailure(each.index, each.tool_name, each.error) for each in judged.failures]
    tell_evaluation(context, len(calls), judged, 0, failures)
    response, done = context.response, len(calls) - len(failures)
    response.metadata["not_found"] = missing
    response.success = response.success and not missing
    response.answer = f"Judged {done} of {len(calls)} kept calls again"
    if failures:
        response.answer += f", {len(failures)} failed"
