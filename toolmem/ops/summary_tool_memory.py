"""SummaryToolMemoryOp: distils the recent calls of each tool into guidance, and skips a tool where nothing is new."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field, ValidationInfo, field_validator

from toolmem.flow.op import Context, Op, OpParams
from toolmem.guidance.policies import POLICY_REASONS, Plan, Policy, PolicyName
from toolmem.guidance.skip import Window
from toolmem.guidance.tool_memory import tool_memory
from toolmem.models import ToolRecord, Usage
from toolmem.ops.arguments import DataFrom, read_data_from, read_tool_names
from toolmem.ops.judging import announce, tell_stop
from toolmem.ops.summarizing import Outcome, Summarizing

_Work = tuple[ToolRecord, Window, Plan]


class SummaryToolMemoryOp(Op):
    """Summarize each tool's newest judged calls, unless guidance covers all of them already; unnamed, all tools.

    A skip sends nothing and writes nothing. A summary marks exactly the calls it read, so that a call which arrives
    meanwhile stays new. A summary that fails leaves the old guidance in place. `policy` says when a tool with new calls
    is summarized and what the prompt holds (`toolmem.guidance.policies`); each tool's reason is in the response's
    `metadata.tools`.
    """

    class Params(OpParams):
        recent_call_count: Annotated[int, Field(ge=1)] = 30  # newest calls analyzed; window of the skip check
        summary_sleep_interval: Annotated[float, Field(ge=0)] = 1.0  # seconds between two requests to a model
        force: bool = False  # summarize where nothing is new, too
        data_from: DataFrom = ""  # only calls created since then (ISO 8601); empty: all
        policy: PolicyName = "smart_skip"  # when a tool with new calls is summarized, and what its prompt holds
        min_new_calls: Annotated[int, Field(ge=1)] = 1  # a tool with guidance and fewer new calls is skipped
        full_every: Annotated[int, Field(ge=1)] = 25  # incremental: every so many summaries reads the whole window

        @field_validator("min_new_calls")
        @classmethod
        def _fits_the_window(cls, value: int, info: ValidationInfo) -> int:
            recent = info.data.get("recent_call_count")
            if recent is not None and value > recent:
                raise ValueError(f"at most recent_call_count ({recent}), got {value}: no more calls are read at once")
            return value

        @field_validator("policy", mode="before")
        @classmethod
        def _is_not_gone(cls, value: object) -> object:
            if value == "on_change":
                raise ValueError(
                    "'on_change' is gone, expected one of 'smart_skip' or 'incremental'; nearest to it is 'smart_skip' "
                    "with `min_new_calls`"
                )
            return value

        @field_validator("full_every")
        @classmethod
        def _belongs_to_the_policy(cls, value: int, info: ValidationInfo) -> int:
            chosen = info.data.get("policy")
            if chosen not in (None, "incremental"):
                raise ValueError(f"is a param of the policy 'incremental', and the policy is '{chosen}': leave it out")
            return value

    reads = ("workspace_id",)
    optional = ("tool_names", "force", "data_from")
    asks_model = True
    asks = "writer"
    params: Params

    async def execute(self, context: Context) -> None:
        asked = read_tool_names(context.get("tool_names"))
        services, params = context.services, self.params
        run = Summarizing(
            context,
            store=await services.store(self),
            writer=await services.writer(self),
            embedder=await services.embedder(self),
            policy=Policy(params.policy, params.min_new_calls, params.full_every),
            recent=params.recent_call_count,
            force=bool(context.get("force", False)) or params.force,
            since=read_data_from(context.get("data_from") or params.data_from, services.settings.time_zone),
        )
        records = {record.tool_name: record for record in await run.store.records(context.workspace, asked)}
        names = list(records) if asked is None else asked
        work: list[_Work] = []
        for name in names:
            if name not in records:
                run.outcomes[name] = Outcome(name, "not_found")
                continue
            window, plan = await run.decide(records[name])
            if plan.skip:
                run.outcomes[name] = run.skipped(records[name], window, plan)
            else:
                work.append((records[name], window, plan))
        await self._summarize_all(context, run, work)
        await self._answer(context, run, names)

    @staticmethod
    def _requests(run: Summarizing, work: Sequence[_Work]) -> int:
        """How many requests to a model the work is, if each summary is one."""
        backend = run.writer.author.partition("/")[0]
        return 0 if backend in ("offline", "dry_run") else len(work)

    async def _summarize_all(self, context: Context, run: Summarizing, work: Sequence[_Work]) -> None:
        announce(context, self._requests(run, work), "summaries", run.writer.author, None, "summary_sleep_interval")
        waiting = iter(work)
        done = 0

        async def worker() -> None:
            nonlocal done
            for record, window, plan in waiting:
                if run.stopped is not None:
                    outcome = Outcome(record.tool_name, "failed", error=f"not summarized: {run.stopped}")
                else:
                    outcome = await run.summarize(record, window, plan)
                run.outcomes[record.tool_name] = outcome
                done += 1
                context.progress(done, len(work), "summarized")

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(context.services.fan_out(self), len(work))):
                    group.create_task(worker())
        except BaseExceptionGroup as group_error:
            raise group_error.exceptions[0] from group_error

    async def _answer(self, context: Context, run: Summarizing, names: Sequence[str]) -> None:
        outcomes = [run.outcomes[name] for name in names]
        by_action: dict[str, list[str]] = {"summarized": [], "skipped": [], "failed": [], "not_found": []}
        for outcome in outcomes:
            by_action[outcome.action].append(outcome.tool_name)
        held = [o.tool_name for o in outcomes if o.action in ("summarized", "skipped")]  # in the order asked, as ReMe
        stored = await run.store.memories(context.workspace, held) if held else []
        metadata = context.response.metadata
        metadata["memory_list"] = [tool_memory(memory).reply() for memory in stored]
        metadata.update(by_action)
        metadata["not_analyzed"] = {o.tool_name: o.not_analyzed for o in outcomes if o.not_analyzed}
        metadata["stale_author"] = [o.tool_name for o in outcomes if o.stale_author and o.action == "skipped"]
        metadata["failures"] = [{"tool_name": o.tool_name, "error": o.error} for o in outcomes if o.action == "failed"]
        metadata["tools"] = [_tool_row(o) for o in outcomes]
        self._report(context, run, [o for o in outcomes if o.action != "not_found"])
        if run.without_vector:
            metadata["without_vector"] = run.without_vector
        tell_stop(metadata, run.stopped)
        done = len(by_action["summarized"]) + len(by_action["skipped"])
        context.response.success = done == len(names)
        metadata["partial"] = 0 < done < len(names)
        waiting = Counter(o.reason for o in outcomes if o.action == "skipped" and o.reason in POLICY_REASONS)
        context.response.answer = _answer_text(by_action, waiting, len(names), context.response.success)
        spared = [o.prompt_tokens for o in outcomes if o.action == "skipped" and o.prompt_tokens]
        context.save(Usage(saved_requests=len(spared), saved_prompt_tokens=sum(spared)))

    def _report(self, context: Context, run: Summarizing, outcomes: Sequence[Outcome]) -> None:
        """Leave what a report reads costs and staleness from.

        `not_analyzed`: kept calls that no guidance holds after this; `dropped`: those that no guidance held before it
        and that are kept no more.
        """
        model = run.writer.author.partition("/")[2]
        told = ("tool_name", "action", "reason", "new_calls", "not_analyzed", "dropped", "prompt_tokens", "prompt")
        for outcome in outcomes:
            row = {name: getattr(outcome, name) for name in told}
            context.detail("summary", policy=self.params.policy, model=model, **row)


def _tool_row(outcome: Outcome) -> dict[str, Any]:
    """`detail` and `prompt` are there where they say more than the policy's plain case."""
    row: dict[str, Any] = {
        "tool_name": outcome.tool_name,
        "action": outcome.action,
        "reason": outcome.reason,
        "new_calls": outcome.new_calls,
        "window_prompt_tokens": outcome.prompt_tokens,
    }
    if outcome.detail:
        row["detail"] = outcome.detail
    if outcome.prompt not in ("", "full"):
        row["prompt"] = outcome.prompt
    return row


def _answer_text(by_action: dict[str, list[Any]], waiting: Counter[str], asked: int, success: bool) -> str:
    """`waiting`: skipped tools that have new calls, by reason."""
    up_to_date = len(by_action["skipped"]) - waiting.total()
    counts = [f"{len(by_action['summarized'])} summarized", f"{up_to_date} skipped (already up-to-date)"]
    counts += [f"{waiting[reason]} skipped ({words})" for reason, words in POLICY_REASONS.items() if waiting[reason]]
    if by_action["failed"]:
        counts.append(f"{len(by_action['failed'])} failed")
    if by_action["not_found"]:
        counts.append(f"{len(by_action['not_found'])} not found")
    done = "Successfully processed" if success else "Processed"
    return f"{done} {asked} tool memories: {', '.join(counts)}"
