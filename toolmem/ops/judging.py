"""Judge a batch of calls: identical calls once, and calls with a cached verdict not at all.

`RetryEvaluationsOp` and `RejudgeOp` judge stored calls again. `UpdateVectorStoreOp` stores new
calls.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from hashlib import blake2b
from typing import Annotated

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from toolmem.errors import ModelError
from toolmem.flow.op import Context, Op, register
from toolmem.formats.records import read_schemas
from toolmem.llm.pool import Request
from toolmem.llm.usage import Usage
from toolmem.models.calls import ToolCallResult, Verdict
from toolmem.models.protocols import Store
from toolmem.models.tools import CallFailure, ToolRecord, ToolSchema
from toolmem.ops.dispatch import add_stop_reason, add_usage, dispatch, value_of
from toolmem.text.masking import mask_call

_PROGRESS_EVERY = 256  # calls, where no model is asked

_encode_sorted = msgspec.json.Encoder(order="deterministic").encode


class JudgedBatch(Struct):
    """The calls in the order given, each with a verdict or the reason why it has none."""

    calls: list[ToolCallResult]
    evaluated: int  # verdicts that were made; others were cached, or are of an identical call
    failures: list[CallFailure]  # `index`: position in `calls`
    stopped: ModelError | None = None  # why sending stopped


def add_evaluation(
    context: Context, total: int, judged: JudgedBatch, duplicates: int, failures: list[CallFailure]
) -> None:
    """Put into the response what became of `total` calls: counts, failures, why it stopped."""
    done = total - len(failures)
    context.response.success = not failures
    context.response.metadata |= {
        "evaluation": {
            "requested": total,
            "evaluated": judged.evaluated,
            "reused": len(judged.calls) - judged.evaluated - len(judged.failures),
            "duplicates": duplicates,
            "failed": len(failures),
            "failures": msgspec.to_builtins(sorted(failures, key=lambda each: each.index)),
        },
        "partial": bool(failures) and done > 0,
    }
    add_usage(context, Usage())
    add_stop_reason(context, judged.stopped)


def replace_verdicts(store: Store, workspace: str, calls: Sequence[ToolCallResult]) -> None:
    """Store new verdicts of stored calls. A call whose evaluation failed keeps its old verdict."""
    verdicts: defaultdict[str, dict[int, ToolCallResult]] = defaultdict(dict)
    for call in calls:
        if call.seq is not None and call.evaluation_status == "ok":
            verdicts[call.tool_name][call.seq] = call
    for tool, judged in verdicts.items():
        store.update_verdicts(workspace, tool, judged)


def calls_at(
    store: Store, workspace: str, seqs: Mapping[str, Sequence[int]]
) -> list[ToolCallResult]:
    """Read kept calls. `seqs`: the sequence numbers of the calls to read, by tool."""
    wanted = {tool: list(each) for tool, each in seqs.items() if each}
    windows = store.windows(workspace, list(wanted), seqs=wanted) if wanted else []
    return [call for window in windows for call in window.calls]


def judge_calls(
    context: Context, calls: Sequence[ToolCallResult], schemas: Mapping[str, ToolSchema]
) -> JudgedBatch:
    """Judge calls with the judge and params of the op. `schemas`: of the tools, by name.

    `force` in the request or the params ignores cached verdicts. A call whose evaluation failed
    has no score. A model's verdicts are cached one by one: after a crash none is paid for twice.
    """
    params = context.op.params
    judge_run = _BatchJudge(context, schemas)
    asks_model = judge_run.judge.asks_model
    keys = [judge_run.key(position, call) for position, call in enumerate(calls)]
    known: dict[str, Verdict] = {}
    if asks_model and not (context.get("force") or params.force):
        known = judge_run.store.verdicts(context.workspace, list(dict.fromkeys(keys)))
    distinct: dict[str, ToolCallResult] = {}
    for key, call in zip(keys, calls, strict=True):
        if key not in known:
            distinct.setdefault(key, call)
    if distinct:
        judge_run.ask(distinct, Counter(keys), params.evaluation_sleep_interval)
    context.report.saved_requests += len(calls) - len(distinct) if asks_model else 0
    verdicts = known | judge_run.verdicts
    judged = JudgedBatch([], len(judge_run.verdicts), [], judge_run.stopped)
    for position, (key, call) in enumerate(zip(keys, calls, strict=True)):
        verdict = verdicts.get(key)
        if verdict is not None:
            judged.calls.append(call.judged(verdict))
            continue
        reason = judge_run.errors.get(key, f"not evaluated: {judge_run.stopped or 'interrupted'}")
        judged.calls.append(replace(call, evaluation=reason, evaluation_status="failed"))
        judged.failures.append(CallFailure(position, call.tool_name, reason))
    return judged


class _BatchJudge:
    """Judges distinct calls, and collects verdicts and errors by key."""

    def __init__(self, context: Context, schemas: Mapping[str, ToolSchema]) -> None:
        services = context.services
        settings = context.op.settings
        self.judge = services.judge(settings)
        self.store = services.store(settings)
        self.verdicts: dict[str, Verdict] = {}
        self.errors: dict[str, str] = {}
        self.stopped: ModelError | None = None
        self._context = context
        self._schemas = schemas
        masks = self.judge.asks_model and services.settings.secrets.mask
        self._mask_key = self.store.secret_key() if masks else None

    def key(self, position: int, call: ToolCallResult) -> str:
        """The cache key of a call: equal exactly where this judge must give the same verdict.

        Keys are stored with the verdicts of models, so secrets are masked before hashing.
        """
        try:
            call = call if self._mask_key is None else mask_call(call, self._mask_key)
            parts = (call.tool_name, call.input, call.output, call.success, call.context)
            schema = self._schemas.get(call.tool_name)
            encoded = _encode_sorted((*parts, schema, self.judge.identity))
            return blake2b(encoded, digest_size=16).hexdigest()
        except (TypeError, ValueError, RecursionError):  # the store reports the problem
            return f"no JSON, call {position}"

    def ask(
        self, calls: Mapping[str, ToolCallResult], counts: Counter[str], interval: float
    ) -> None:
        """Judge calls, each under its key. `counts`: the calls per key, for the progress."""
        judge = self.judge
        done = 0
        requests = [
            Request(key, partial(judge.judge, call, self._schemas.get(call.tool_name)))
            for key, call in calls.items()
        ]
        who = f"the judge {judge.identity}"
        with dispatch(
            self._context,
            requests,
            lambda key: calls[key].tool_name,
            asks_model=judge.asks_model,
            interval=interval,
        ) as (replies, stop):
            for number, reply in enumerate(replies, 1):
                try:
                    self._keep(reply.key, calls[reply.key], value_of(reply, Verdict, who))
                except ModelError as error:
                    self.errors[reply.key] = str(error)
                    self._stop_if_hopeless(error, stop)
                done += counts[reply.key]
                if judge.asks_model or number % _PROGRESS_EVERY == 0 or number == len(requests):
                    self._context.progress(done, counts.total(), "judged")

    def _keep(self, key: str, call: ToolCallResult, verdict: Verdict) -> None:
        self.verdicts[key] = verdict
        if not self.judge.asks_model:
            return
        if self._mask_key is not None:
            masked = mask_call(call.judged(verdict), self._mask_key)
            verdict = replace(verdict, summary=masked.summary, evaluation=masked.evaluation)
        self.store.put_verdicts(self._context.workspace, {key: verdict})

    def _stop_if_hopeless(self, error: ModelError, stop: Callable[[], None]) -> None:
        limit = self._context.services.settings.max_errors
        if not error.fatal:
            if limit is None or len(self.errors) <= limit:
                return
            message = f"{len(self.errors)} evaluations failed, more than max_errors={limit}"
            error = ModelError(f"{message}; the last: {error}", fatal=True)
        self.stopped = self.stopped or error
        stop()


class _JudgeAgainOp(Op):
    """Judge kept calls again; `_seqs` chooses them."""

    class Params(Struct, frozen=True):
        evaluation_sleep_interval: Annotated[float, Meta(ge=0)] = 1.0  # seconds between requests
        force: bool = False  # do not use cached verdicts

    reads = ("workspace",)
    optional = ("tool_names", "tools", "force")
    params: Params

    def _seqs(self, record: ToolRecord) -> Sequence[int]:
        raise NotImplementedError

    def run(self, context: Context) -> None:
        store = context.services.store(self.settings)
        names = context.names("tool_names")
        records = store.records(context.workspace, names, guidance=False)
        chosen = {record.tool_name: self._seqs(record) for record in records}
        calls = calls_at(store, context.workspace, chosen)
        judged = judge_calls(context, calls, read_schemas(context.get("tools")))
        replace_verdicts(store, context.workspace, judged.calls)
        add_evaluation(context, len(calls), judged, 0, judged.failures)
        missing = [name for name in names or [] if name not in chosen]
        response = context.response
        failed = len(judged.failures)
        response.metadata["not_found"] = missing
        response.success = response.success and not missing
        response.answer = f"Judged {len(calls) - failed} of {len(calls)} kept calls again"
        if failed:
            response.answer += f", {failed} failed"


@register
class RetryEvaluationsOp(_JudgeAgainOp):
    """Judge the kept calls that have no verdict because their evaluation failed."""

    def _seqs(self, record: ToolRecord) -> Sequence[int]:
        return record.unjudged


@register
class RejudgeOp(_JudgeAgainOp):
    """Judge every kept call with the judge as it is configured now.

    A call whose verdict is replaced counts as new for the next summary. Without `force`, cached
    verdicts of this judge are used. A call whose evaluation fails keeps its old verdict.
    """

    def _seqs(self, record: ToolRecord) -> Sequence[int]:
        return range(record.first_seq, record.last_seq + 1)
