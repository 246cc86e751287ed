"""SummaryToolMemoryOp: write guidance from the newest calls of each tool."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from toolmem.errors import Conflict, ModelError, RequestError
from toolmem.flow.op import Context, Op, register
from toolmem.guard.shown_guidance import permitted_records
from toolmem.guidance.shown import tool_memory, without_forgotten
from toolmem.guidance.skip import Plan, plan_summary
from toolmem.llm.pool import Request
from toolmem.llm.usage import Usage
from toolmem.models.calls import ToolCallResult, with_all_fields
from toolmem.models.guidance import Guidance
from toolmem.models.protocols import Store
from toolmem.models.records import Document
from toolmem.models.tools import ToolRecord
from toolmem.ops.dispatch import add_stop_reason, add_usage, dispatch, value_of

MAX_CONVERSATIONS = 20  # of a tool: the calls of all tools in them are read
MAX_LOG_CALLS = 400  # read from these conversations together
MAX_TRIES = 3  # attempts at a tool that another writer keeps changing
TOO_BUSY = f"others changed this tool {MAX_TRIES} times meanwhile; run it again"
Action = Literal["summarized", "skipped", "failed", "not_found"]


class SummaryOutcome(Struct, kw_only=True):
    """What SummaryToolMemoryOp did with one tool."""

    tool_name: str
    action: Action
    reason: str = ""  # why it was summarized or skipped
    new_calls: int = 0
    not_analyzed: int = 0
    prompt_tokens: int = 0  # of a skipped tool: what was not sent
    error: str = ""


@register
class SummaryToolMemoryOp(Op):
    """Summarize each tool's newest judged calls, unless its guidance covers them already.

    For a skipped tool, nothing is sent or written. A summary covers exactly the calls that it
    read: a call that arrives meanwhile stays new. If a summary fails, the old guidance stays.
    """

    class Params(Struct, frozen=True):
        recent_call_count: Annotated[int, Meta(ge=1)] = 30  # newest calls read; the skip's window
        summary_sleep_interval: Annotated[float, Meta(ge=0)] = 1.0  # seconds between requests
        force: bool = False  # summarize tools without new calls, too
        data_from: str = ""  # only calls created since then, ISO 8601; "": all
        # What a model reads: the window, or the guidance that it wrote before and the new calls.
        policy: Literal["smart_skip", "incremental"] = "smart_skip"
        min_new_calls: Annotated[int, Meta(ge=1)] = 1  # with fewer, guidance is kept
        full_every: Annotated[int, Meta(ge=1)] = 25  # one summary in 25 reads the window

        def __post_init__(self) -> None:
            _moment(self.data_from)

    reads = ("workspace",)
    optional = ("tool_names", "force", "data_from")
    params: Params

    def run(self, context: Context) -> None:
        params = self.params
        try:
            params = replace(
                params,
                force=context.get("force", False) or params.force,
                data_from=context.get("data_from", params.data_from),
            )
        except ValueError as error:
            raise RequestError(str(error), field="data_from") from None
        summary_run = _SummaryRun(context, params)
        summary_run.run(context.names("tool_names"))
        add_stop_reason(context, summary_run.stopped)
        self._answer(context, list(summary_run.outcomes.values()))

    def _answer(self, context: Context, outcomes: Sequence[SummaryOutcome]) -> None:
        actions: dict[str, list[str]] = {
            action: [each.tool_name for each in outcomes if each.action == action]
            for action in get_args(Action)
        }
        done = [o.tool_name for o in outcomes if o.action in ("summarized", "skipped")]
        store = context.services.store(self.settings)
        records = store.records(context.workspace, done) if done else []
        guards = [context.services.guard(context.workspace)]
        records = permitted_records(records, guards, context.language)
        context.response.metadata |= {
            "memory_list": [with_all_fields(tool_memory(each)) for each in records],
            **actions,
            "not_analyzed": {o.tool_name: o.not_analyzed for o in outcomes if o.not_analyzed},
            "failures": [
                {"tool_name": o.tool_name, "error": o.error}
                for o in outcomes
                if o.action == "failed"
            ],
            "outcomes": [msgspec.to_builtins(outcome) for outcome in outcomes],
            "partial": 0 < len(done) < len(outcomes),
        }
        counts = [
            f"{len(actions['summarized'])} summarized",
            f"{len(actions['skipped'])} skipped (already up-to-date)",
        ]
        for action, words in (("failed", "failed"), ("not_found", "not found")):
            if actions[action]:
                counts.append(f"{len(actions[action])} {words}")
        is_success = len(done) == len(outcomes)
        processed = "Successfully processed" if is_success else "Processed"  # ReMe's words
        context.response.success = is_success
        context.response.answer = f"{processed} {len(outcomes)} tool memories: {', '.join(counts)}"
        context.report.saved_requests += len(actions["skipped"])
        saved = sum(outcome.prompt_tokens for outcome in outcomes)
        add_usage(context, Usage(saved_prompt_tokens=saved))


def _moment(text: str) -> datetime | None:
    """Read a time, in UTC if it has no zone. None: the text is empty. Raises ValueError."""
    try:
        moment = datetime.fromisoformat(text) if text else None
    except ValueError:
        problem = f"data_from: {text[:60]!r} is not a time in ISO 8601, such as '2026-01-31'"
        raise ValueError(problem) from None
    return moment.replace(tzinfo=UTC) if moment and moment.tzinfo is None else moment


class _Task(Struct):
    """A tool to summarize."""

    record: ToolRecord
    plan: Plan
    calls: Sequence[ToolCallResult] = ()


class _SummaryRun:
    """One run of SummaryToolMemoryOp."""

    def __init__(self, context: Context, params: SummaryToolMemoryOp.Params) -> None:
        self.outcomes: dict[str, SummaryOutcome] = {}
        self.stopped: ModelError | None = None
        self._context = context
        self._store = context.services.store(context.op.settings)
        self._writer = context.services.writer(context.op.settings)
        self._params = params
        self._since = _moment(params.data_from)

    def run(self, names: Sequence[str] | None) -> None:
        """Fill `outcomes`, in the order of `names`, else sorted by name."""
        records: Sequence[ToolRecord] = self._store.records(self._context.workspace, names)
        known = dict.fromkeys(record.tool_name for record in records)
        for name in known if names is None else names:
            action: Action = "failed" if name in known else "not_found"
            self.outcomes[name] = SummaryOutcome(tool_name=name, action=action)
        for _ in range(MAX_TRIES):
            conflicting = self._summarize(self._plan_all(records))
            if not conflicting:
                return
            records = self._store.records(self._context.workspace, conflicting)
            for gone in {*conflicting} - {record.tool_name for record in records}:
                self.outcomes[gone] = SummaryOutcome(tool_name=gone, action="not_found")
        for record in records:
            self.outcomes[record.tool_name].error = TOO_BUSY

    def _plan_all(self, records: Iterable[ToolRecord]) -> dict[str, _Task]:
        """The tools to summarize, by name. Tools to skip get their outcome here."""
        tasks: dict[str, _Task] = {}
        for record in records:
            plan = plan_summary(
                record,
                self._params.recent_call_count,
                force=self._params.force,
                has_guidance=record.guidance is not None,
                min_new_calls=self._params.min_new_calls,
                among=self._seqs_since(record),
            )
            outcome = SummaryOutcome(
                tool_name=record.tool_name,
                action="failed",
                reason=plan.reason,
                new_calls=len(plan.new),
                not_analyzed=plan.not_analyzed,
            )
            self.outcomes[record.tool_name] = outcome
            if plan.reason == "nothing_judged":
                outcome.error = "no call of this tool has a verdict to summarize"
            elif plan.skip:
                outcome.action = "skipped"
                outcome.prompt_tokens = record.guidance.prompt_tokens if record.guidance else 0
            else:
                tasks[record.tool_name] = _Task(record, plan)
        seqs = {name: task.plan.seqs for name, task in tasks.items()}
        for window in self._store.windows(self._context.workspace, list(seqs), seqs=seqs):
            tasks[window.record.tool_name].calls = window.calls
        return tasks

    def _summarize(self, tasks: Mapping[str, _Task]) -> list[str]:
        """Summarize tools. Returns the names of those that another writer changed meanwhile."""
        if not tasks:
            return []
        writer = self._writer
        conflicting = []
        requests = [Request(name, self._request_for(task)) for name, task in tasks.items()]
        with dispatch(
            self._context,
            requests,
            str,
            asks_model=writer.asks_model,
            interval=self._params.summary_sleep_interval,
        ) as (replies, stop):
            for done, reply in enumerate(replies, 1):
                outcome = self.outcomes[reply.key]
                try:
                    written = value_of(reply, Guidance, f"the writer {writer.author}")
                    self._store_guidance(tasks[reply.key], written)
                    outcome.action = "summarized"
                except Conflict:
                    conflicting.append(reply.key)
                except ModelError as error:
                    outcome.error = str(error)
                    if error.fatal:
                        self.stopped = error
                        stop()
                self._context.progress(done, len(tasks), "summarized")
        if self.stopped is not None:
            for name in tasks:
                outcome = self.outcomes[name]
                if outcome.action == "failed" and not outcome.error:
                    outcome.error = f"not summarized: {self.stopped}"
        return conflicting if self.stopped is None else []

    def _seqs_since(self, record: ToolRecord) -> set[int] | None:
        """The seqs of the calls since `data_from`. None: there is no such limit."""
        if self._since is None:
            return None
        windows = self._store.windows(self._context.workspace, [record.tool_name])
        calls = (call for window in windows for call in window.calls)
        return {call.seq or 0 for call in calls if call.create_time >= self._since}

    def _request_for(self, task: _Task) -> Callable[[], Any]:
        """Ask the writer to update its earlier guidance, or to write a whole summary."""
        old = task.record.guidance
        name = task.record.tool_name
        calls = task.calls
        update = None
        writer = self._writer
        if among := getattr(writer, "among", None):  # the user's own writer may lack it
            writer = among(self._conversation_calls(calls))
        if self._params.policy == "incremental" and task.plan.reason == "new_calls":
            update = getattr(writer, "update", None)
        if (
            update is not None
            and old is not None
            and (old.written or not self._writer.asks_model)
            and old.author == self._writer.author
            and old.updates + 1 < self._params.full_every
        ):
            new = [call for call in calls if call.seq in set(task.plan.new)]
            return partial(update, name, calls, new, old)
        return partial(writer.write, name, calls, old)

    def _conversation_calls(self, calls: Sequence[ToolCallResult]) -> list[ToolCallResult]:
        """The calls of all tools in the conversations of these calls."""
        ordered = sorted(reversed(calls), key=lambda call: not call.failed)  # failures first
        names = dict.fromkeys(filter(None, (call.conversation_id for call in ordered)))
        if not names:
            return []
        log = self._store.call_log(
            self._context.workspace,
            conversation_id=list(names)[:MAX_CONVERSATIONS],
            newest=True,
            limit=MAX_LOG_CALLS,
        )
        return [each.call for each in log]

    def _store_guidance(self, task: _Task, guidance: Guidance) -> None:
        """Raises Conflict where the guidance or a verdict changed since it was read."""
        old = task.record.guidance
        complete = replace(
            guidance,
            covered=[call.seq for call in task.calls if call.seq is not None],
            created_at=self._context.services.clock.now(),
            forgotten=old.forgotten if old else [],
        )
        store_guidance(self._store, task.record, complete)


def store_guidance(store: Store, record: ToolRecord, guidance: Guidance) -> None:
    """Store guidance without forgotten lines. Raises Conflict if it changed since `record`."""
    guidance = without_forgotten(guidance)
    store.put_guidance(
        record.workspace,
        record.tool_name,
        guidance,
        document=Document(f"{record.tool_name}\n{guidance.text}"),
        expected_version=record.guidance_version,
    )
