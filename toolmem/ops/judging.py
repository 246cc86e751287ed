"""Judging a batch of calls: identical calls once, verdicts already known not at all, failures named.

What the ops that judge have in common. Nothing here keeps a call: that is the store's commit, afterwards.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from toolmem.errors import BudgetReached, ModelError, RequestError
from toolmem.models import ToolCallResult, ToolSchema, Verdict
from toolmem.ops.announcing import announce, tokens_of
from toolmem.protocols import Judge
from toolmem.readers.plain_text import counted
from toolmem.readers.secrets import SecretMask
from toolmem.store.masked import masked_calls, masked_verdict
from toolmem.stored import CallFailure

if TYPE_CHECKING:
    from toolmem.flow.context import Context

_BATCH = 256  # unpaid verdicts between two looks at the event loop


@dataclass
class Judged:
    """The calls in the order given, each with a verdict or the reason why it has none."""

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
        return len(self.calls) - self.evaluated - len(self.failures)

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


def read_schemas(tools: Any) -> dict[str, ToolSchema]:
    """Tool declarations of a request, by name. Raises RequestError."""
    if tools is None:
        return {}
    if not isinstance(tools, Sequence) or isinstance(tools, str):
        raise RequestError(f"tools: expected a list of tool schemas, got {type(tools).__name__}", field="tools")
    read = [
        tool if isinstance(tool, ToolSchema) else ToolSchema.read(tool, f"tools[{index}]")
        for index, tool in enumerate(tools)
    ]
    return {schema.name: schema for schema in read}


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

    The judge sees them as they are; what is answered, and cached, has its secrets masked.
    """
    judge = await context.services.judge(context.op)
    store = await context.services.store(context.op)
    workspace = context.workspace
    # Verdicts are known by the masked calls: a call that is read again from the store has the one that it was given.
    hidden = await masked_calls(store, calls)
    keys = [verdict_key(call, schemas.get(call.tool_name), judge) for call, _ in hidden]
    known = {} if force else await store.verdicts(workspace, list(dict.fromkeys(keys)))
    first_of: dict[str, ToolCallResult] = {}
    masks: dict[str, SecretMask] = {}
    for key, call, (_, mask) in zip(keys, calls, hidden, strict=True):
        if key not in known:
            first_of.setdefault(key, call)
            masks.setdefault(key, mask)

    count = tokens_of(judge)
    if judge.paid and count is not None:
        announce(
            context,
            len(first_of),
            "evaluations",
            f"{judge.identity.backend}/{judge.identity.model}",
            lambda: [count(call, schemas.get(call.tool_name)) for call in first_of.values()],
            "evaluation_sleep_interval",
        )
    batch = _Batch(context, judge, schemas, masks, Counter(key for key in keys if key not in known))
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
        if verdict is not None:
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
        try:
            verdict = await self.judge.judge(
                call, self.schemas.get(call.tool_name), self.context.purpose(call.tool_name)
            )
        except ModelError as error:
            self.errors[key] = str(error)
            self._stop_where_hopeless(error)
        else:
            store = await self.context.services.store(self.context.op)
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
