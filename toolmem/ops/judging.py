"""Judging a batch of calls: identical calls once, verdicts already known not at all, failures named.

What the ops that judge have in common. Nothing here keeps a call: that is the store's commit, afterwards.
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from toolmem.errors import BudgetReached, ConfigError, ModelError, StoreError
from toolmem.models import ToolCallResult, ToolRecord, ToolSchema, Verdict
from toolmem.ops.arguments import read_schemas, read_tool_names
from toolmem.ops.tool_descriptions import note_descriptions
from toolmem.protocols import Judge
from toolmem.readers.denied_calls import is_denied
from toolmem.readers.masking import SecretMask
from toolmem.readers.plain_text import counted, plain
from toolmem.store.masked import as_given, masked_calls, masked_text, masked_verdict
from toolmem.stored import CallFailure

if TYPE_CHECKING:
    from toolmem.flow.op import Context

T = TypeVar("T")

_BATCH = 256  # unpaid verdicts between two looks at the event loop
_LONGEST = 500  # characters that an error says of itself


@dataclass
class Judged:
    """The calls in the order given, each with a verdict or the reason why it has none; denied ones have neither."""

    calls: list[ToolCallResult] = field(default_factory=list)
    made: list[bool] = field(default_factory=list)  # per call: its verdict was made now, and not for an identical one
    failures: list[CallFailure] = field(default_factory=list)  # index: position in `calls`
    stopped: ModelError | None = None  # why no further request was made; None where all were

    @property
    def evaluated(self) -> int:
        """Calls whose verdict was made now."""
        return sum(self.made)

    @property
    def reused(self) -> int:
        """Calls whose verdict was known already (identical call)."""
        return len(self.calls) - self.evaluated - len(self.failures) - self.denied

    @property
    def denied(self) -> int:
        """Calls that were stopped before they ran: nobody was asked about them."""
        return sum(call.evaluation_status == "denied" for call in self.calls)

    def part(self, start: int, stop: int) -> Judged:
        """The calls from `start` to before `stop`, their failures counted from `start`."""
        return Judged(
            self.calls[start:stop],
            self.made[start:stop],
            [CallFailure(f.index - start, f.tool_name, f.error) for f in self.failures if start <= f.index < stop],
            self.stopped,
        )


def tell_stop(metadata: dict[str, Any], stopped: ModelError | None) -> None:
    """Say in a response that a run was stopped, and by what."""
    if stopped is not None:
        metadata["stopped"] = str(stopped)
        metadata["stopped_by"] = "budget" if isinstance(stopped, BudgetReached) else "errors"


def verdict_key(call: ToolCallResult, schema: ToolSchema | None, judge: Judge) -> str:
    """Equal for calls that must get the same verdict from this judge, and for no others."""
    parts = [
        call.tool_name,
        call.input,
        call.output,
        call.success,
        call.context,
        None if schema is None else [schema.description, schema.parameters],
        judge.identity.backend,
        judge.identity.model,
        judge.identity.prompt_version,
    ]
    text = json.dumps(parts, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode("ascii"), digest_size=16).hexdigest()


async def judge_calls(
    context: Context, calls: Sequence[ToolCallResult], schemas: Mapping[str, ToolSchema], *, force: bool = False
) -> Judged:
    """Judge `calls`; `force` makes every verdict anew instead of reusing one from the cache.

    The judge sees them as they are; what is answered, and cached, has its secrets masked. Nobody is asked about a call
    that was stopped before it ran.
    """
    judge = await context.services.judge(context.op)
    store = await context.services.store(context.op)
    workspace = context.workspace
    # Verdicts are known by the masked calls: a call that is read again from the store has the one that it was given.
    hidden = await masked_calls(store, calls)
    keys = [
        "" if is_denied(call.output) else verdict_key(call, schemas.get(call.tool_name), judge) for call, _ in hidden
    ]
    known = {} if force else await store.verdicts(workspace, list(dict.fromkeys(filter(None, keys))))
    first_of: dict[str, ToolCallResult] = {}
    masks: dict[str, SecretMask] = {}
    for key, call, (_, mask) in zip(keys, calls, hidden, strict=True):
        if key and key not in known:
            first_of.setdefault(key, call)
            masks.setdefault(key, mask)

    count: Callable[[Any, Any], int] | None = getattr(judge, "prompt_tokens", None)  # of a judge that has prompts
    if judge.paid and count is not None:
        announce(
            context,
            len(first_of),
            "evaluations",
            f"{judge.identity.backend}/{judge.identity.model}",
            lambda: [count(call, schemas.get(call.tool_name)) for call in first_of.values()],
            "evaluation_sleep_interval",
        )
    batch = _Batch(context, judge, schemas, masks, Counter(key for key in keys if key in first_of))
    try:
        await batch.run(first_of)
    finally:
        if not judge.paid and batch.verdicts:
            await store.put_verdicts(workspace, batch.verdicts)

    judged = Judged(stopped=batch.stopped)
    made_now = set(batch.verdicts)
    for index, (key, (call, _)) in enumerate(zip(keys, hidden, strict=True)):
        verdict = known.get(key) or batch.verdicts.get(key)
        judged.made.append(key in made_now)
        made_now.discard(key)
        if not key:
            judged.calls.append(call.denied())
        elif verdict is not None:
            judged.calls.append(call.judged(verdict))
        else:
            reason = batch.errors.get(key, f"not evaluated: {batch.stopped}")
            judged.calls.append(call.unjudged(reason))
            judged.failures.append(CallFailure(index, call.tool_name, reason))
    return judged


class _Batch:
    """The distinct calls of one batch on their way through the judge."""

    def __init__(
        self,
        context: Context,
        judge: Judge,
        schemas: Mapping[str, ToolSchema],
        masks: Mapping[str, SecretMask],
        counts: Counter[str],
    ) -> None:
        self.context = context
        self.judge = judge
        self.schemas = schemas
        self.masks = masks
        self.verdicts: dict[str, Verdict] = {}
        self.errors: dict[str, str] = {}
        self.stopped: ModelError | None = None
        self._counts = counts  # of each distinct call
        self._done, self._total = 0, counts.total()

    async def run(self, calls: Mapping[str, ToolCallResult]) -> None:
        waiting = iter(calls.items())

        async def worker() -> None:
            for key, call in waiting:
                if self.stopped is not None:
                    return
                await self._judge_one(key, call)

        width = min(self.context.services.fan_out(self.context.op), len(calls)) if self.judge.paid else 1
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(max(width, 1)):
                    group.create_task(worker())
        except BaseExceptionGroup as group_error:  # a store that fails, not a model: the caller wants the cause
            raise group_error.exceptions[0] from group_error

    async def _judge_one(self, key: str, call: ToolCallResult) -> None:
        store = await self.context.services.store(self.context.op)
        try:
            given = (call, self.schemas.get(call.tool_name), self.context.purpose(call.tool_name))
            who = f"the judge {self.judge.identity}"
            verdict = await answer_of(who, Verdict, lambda: self.judge.judge(*given))
        except ModelError as error:
            self.errors[key] = await masked_text(store, str(error), self.masks[key])
            self._stop_where_hopeless(error)
        else:
            verdict = await masked_verdict(store, verdict, self.masks[key])
            self.verdicts[key] = verdict
            if self.judge.paid:  # a crash between judging and storing must pay nothing again
                await store.put_verdicts(self.context.workspace, {key: verdict})
        self._done += self._counts[key]
        made = len(self.verdicts) + len(self.errors)
        if self.judge.paid or made % _BATCH == 0 or self._done == self._total:
            self.context.progress(self._done, self._total, "judged")
            await asyncio.sleep(0)

    def _stop_where_hopeless(self, error: ModelError) -> None:
        limit = self.context.services.settings.max_errors
        if error.fatal:
            self.stopped = error
        elif limit is not None and len(self.errors) > limit:
            self.stopped = ModelError(
                f"{counted(len(self.errors), 'evaluation')} failed, more than max_errors={limit}; the last: {error}",
                fatal=True,
            )


# ---------------------------------------------------------------- what a judge or a writer of one's own answers


async def answer_of(who: str, kind: type[T], work: Callable[[], Any]) -> T:
    """What `work` answers, awaited where it must be: an instance of `kind`.

    Raises ModelError that names `who` for anything else, so that it costs one call or one tool and not the batch; a
    store or a configuration that fails is none of its own errors, and stays what it is.
    """
    try:
        answer = work()
        if inspect.isawaitable(answer):
            answer = await answer
    except (ModelError, ConfigError, StoreError):
        raise
    except Exception as error:
        raise ModelError(
            f"{who} raised {type(error).__name__}: {plain(str(error)[: 2 * _LONGEST], _LONGEST)}"
        ) from error
    if not isinstance(answer, kind):
        raise ModelError(f"{who} answered {type(answer).__name__}, not {kind.__name__}")
    return answer


# ---------------------------------------------------------------- what a long paid run will cost


LONG_RUN = 20  # requests; a run of more is announced


def announce(
    context: Context,
    requests: int,
    asked: str,
    model: str,
    count_tokens: Callable[[], Iterable[int]] | None,
    interval_param: str,
) -> None:
    """A notice: how many requests, how long at this interval, how many tokens, what price, and what changes it.

    `asked`: "evaluations", "summaries". `count_tokens`: prompt tokens of each request; None where a prompt will hold
    text that only the model can write.
    """
    if requests <= LONG_RUN:
        return
    services, op = context.services, context.op
    interval = services.interval(op)
    parts = [f"{requests:,} {asked} by {model}"]
    if interval:
        parts.append(
            f"at least {_duration((requests - 1) * interval)} at one request per {interval:g} s "
            f"(op.{op.key}.params.{interval_param}=0 turns it off)"
        )
    if count_tokens is not None:
        tokens = sum(count_tokens())
        cost, currency = services.price(model.partition("/")[2], tokens, 0, 0)
        price = "no price is configured" if cost is None else f"{cost:.4g} {currency} without the replies"
        parts.append(f"{tokens:,} prompt tokens, {price}")
    parts.append("budget.max_tokens and budget.max_cost limit it")
    context.notice("; ".join(parts))


def _duration(seconds: float) -> str:
    whole = round(seconds)
    hours, minutes = divmod(whole // 60, 60)
    parts = [f"{hours} h"] * bool(hours) + [f"{minutes} min"] * bool(minutes) + [f"{whole % 60} s"]
    return " ".join(parts)


# ---------------------------------------------------------------- judging kept calls again


@dataclass
class JudgedAgain:
    """What judging kept calls again came to, over all tools asked for."""

    calls: int = 0
    evaluated: int = 0
    failures: list[dict[str, Any]] = field(default_factory=list)

    def summary(self) -> dict[str, Any]:
        return {
            "requested": self.calls,
            "evaluated": self.evaluated,
            "failed": len(self.failures),
            "failures": self.failures,
        }


async def kept_calls(context: Context, seqs: Mapping[str, Sequence[int]]) -> list[ToolCallResult]:
    """Calls that the store keeps, as they were given. `seqs`: tool -> which of its calls."""
    wanted = {tool: list(picked) for tool, picked in seqs.items() if picked}
    if not wanted:
        return []
    store = await context.services.store(context.op)
    memories = await store.memories(context.workspace, list(wanted), calls=True, seqs=wanted)
    return as_given(store, context.workspace, [call for memory in memories for call in memory.calls])


async def commit_again(context: Context, kept: Sequence[ToolCallResult], judged: Judged) -> JudgedAgain:
    """Replace the verdicts, one commit per tool. A call whose new evaluation failed keeps the verdict it has."""
    store = await context.services.store(context.op)
    verdicts: dict[str, dict[int, ToolCallResult]] = defaultdict(dict)
    for call in judged.calls:
        if call.seq is not None and call.evaluation_status == "ok":
            verdicts[call.tool_name][call.seq] = call
    for tool, of_tool in verdicts.items():
        await store.update_verdicts(context.workspace, tool, of_tool)
    failures = [{"id": kept[f.index].id, "tool_name": f.tool_name, "error": f.error} for f in judged.failures]
    return JudgedAgain(len(judged.calls), sum(map(len, verdicts.values())), failures)


async def judge_again(context: Context, picked: Callable[[ToolRecord], Sequence[int]], *, force: bool = False) -> None:
    """Judge kept calls of the tools asked for again, as one batch, and answer what came of it.

    `picked`: which calls of a tool.
    """
    names = read_tool_names(context.get("tool_names"))
    schemas = read_schemas(context.get("tools"))
    store = await context.services.store(context.op)
    await note_descriptions(store, context.workspace, schemas.values())
    seqs = {record.tool_name: picked(record) for record in await store.records(context.workspace, names)}
    kept = await kept_calls(context, seqs)
    judged = await judge_calls(context, kept, schemas, force=force)
    again = await commit_again(context, kept, judged)
    not_found = [name for name in names or () if name not in seqs]
    response = context.response
    response.success = not (again.failures or not_found or judged.stopped)
    response.metadata["evaluation"] = again.summary()
    response.metadata["not_found"] = not_found
    response.metadata["partial"] = not response.success and again.evaluated > 0
    tell_stop(response.metadata, judged.stopped)
    parts = [f"{again.evaluated} judged"]
    if again.failures:
        parts.append(f"{len(again.failures)} failed")
    if not_found:
        parts.append(f"{counted(len(not_found), 'tool')} not found")
    done = "Successfully processed" if response.success else "Processed"
    response.answer = f"{done} {counted(again.calls, 'tool call')}: {', '.join(parts)}"
