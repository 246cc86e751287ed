"""SummaryToolMemoryOp: distils the recent calls of each tool into guidance, and skips a tool where nothing is new."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

from toolmem.errors import Conflict, ModelError, RequestError
from toolmem.flow.context import Context
from toolmem.flow.op import Op, OpParams
from toolmem.guidance.memory import tool_memory
from toolmem.guidance.skip import Decision, Window, decide, window_of
from toolmem.ops.announcing import announce
from toolmem.ops.data_from import DataFrom, read_data_from
from toolmem.ops.judging import tell_stop
from toolmem.ops.tool_names import read_tool_names
from toolmem.ports import Document, Embedder, GuidanceWriter, MemoryStore
from toolmem.schema import ToolRecord, Usage

log = logging.getLogger("toolmem.ops")

_ATTEMPTS = 3  # how often a tool whose guidance somebody else writes meanwhile is decided anew


@dataclass
class _Outcome:
    """What became of one tool."""

    tool_name: str
    action: str  # summarized, skipped, failed, not_found
    reason: str = ""
    new_calls: int = 0
    not_analyzed: int = 0
    stale_author: bool = False
    prompt_tokens: int = 0  # of the window's prompt: sent, or saved where the tool was skipped
    error: str = ""


@dataclass
class _Run:
    """The adapters and the outcomes of one execution."""

    store: MemoryStore
    writer: GuidanceWriter
    embedder: Embedder
    force: bool
    since: datetime | None
    outcomes: dict[str, _Outcome] = field(default_factory=dict)
    without_vector: list[str] = field(default_factory=list)  # tools whose new guidance only the text leg finds
    stopped: ModelError | None = None


class SummaryToolMemoryOp(Op):
    """Summarize each tool's newest judged calls, unless guidance covers all of them already.

    A skip sends nothing and writes nothing. A summary marks exactly the calls it read, so that a call which arrives
    meanwhile stays new. A summary that fails leaves the old guidance in place.
    """

    class Params(OpParams):
        recent_call_count: Annotated[int, Field(ge=1)] = 30  # newest calls analyzed; window of the skip check
        summary_sleep_interval: Annotated[float, Field(ge=0)] = 1.0  # seconds between two requests to a model
        force: bool = False  # summarize where nothing is new, too
        data_from: DataFrom = ""  # only calls created since then (ISO 8601); empty: all

    reads = ("workspace_id", "tool_names")
    optional = ("force", "data_from")
    asks_model = True
    params: Params

    async def execute(self, context: Context) -> None:
        names = read_tool_names(context["tool_names"])
        if names is None:
            raise RequestError("tool_names is required", field="tool_names")
        services = context.services
        run = _Run(
            store=await services.store(self),
            writer=await services.writer(self),
            embedder=await services.embedder(self),
            force=bool(context.get("force", False)) or self.params.force,
            since=read_data_from(context.get("data_from") or self.params.data_from, services.settings.time_zone),
        )
        records = {record.tool_name: record for record in await run.store.records(context.workspace, names)}
        work: list[ToolRecord] = []
        for name in names:
            if name not in records:
                run.outcomes[name] = _Outcome(name, "not_found")
            elif (idle := self._idle(run, records[name])) is not None:
                run.outcomes[name] = idle
            else:
                work.append(records[name])
        await self._summarize_all(context, run, work)
        await self._answer(context, run, names)

    def _idle(self, run: _Run, record: ToolRecord) -> _Outcome | None:
        """The outcome of a tool that the record alone shows to be up to date; None where there is work."""
        if run.since is not None:
            return None
        window = window_of(record, self.params.recent_call_count)
        decision = self._decide(run, record, window)
        return self._skipped(record, window, decision) if decision.skip else None

    @staticmethod
    def _decide(run: _Run, record: ToolRecord, window: Window) -> Decision:
        return decide(
            record, window, author=run.writer.author, prompt_version=run.writer.prompt_version, force=run.force
        )

    @staticmethod
    def _skipped(record: ToolRecord, window: Window, decision: Decision) -> _Outcome:
        name = record.tool_name
        if decision.reason == "nothing_judged":
            return _Outcome(name, "failed", decision.reason, error="no call of this tool has a verdict to summarize")
        return _Outcome(
            name,
            "skipped",
            decision.reason,
            not_analyzed=window.not_analyzed,
            stale_author=decision.stale_author,
            prompt_tokens=record.guidance.prompt_tokens if record.guidance else 0,
        )

    @staticmethod
    def _requests(run: _Run, work: Sequence[ToolRecord]) -> int:
        """How many requests to a model the work is, if each summary is one."""
        backend = run.writer.author.partition("/")[0]
        return 0 if backend in ("offline", "dry_run") else len(work)

    async def _summarize_all(self, context: Context, run: _Run, work: Sequence[ToolRecord]) -> None:
        announce(context, self._requests(run, work), "summaries", run.writer.author, None, "summary_sleep_interval")
        waiting = iter(work)
        done = 0

        async def worker() -> None:
            nonlocal done
            for record in waiting:
                if run.stopped is not None:
                    outcome = _Outcome(record.tool_name, "failed", error=f"not summarized: {run.stopped}")
                else:
                    outcome = await self._summarize(context, run, record)
                run.outcomes[record.tool_name] = outcome
                done += 1
                context.progress(done, len(work), "summarized")

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(context.services.fan_out(self), len(work))):
                    group.create_task(worker())
        except BaseExceptionGroup as group_error:
            raise group_error.exceptions[0] from group_error

    async def _summarize(self, context: Context, run: _Run, record: ToolRecord) -> _Outcome:
        tool = record.tool_name
        for _ in range(_ATTEMPTS):
            window = await self._window(context, run, record)
            decision = self._decide(run, record, window)
            if decision.skip:
                return self._skipped(record, window, decision)
            read = await run.store.memories(context.workspace, [tool], calls=True, seqs={tool: window.seqs})
            if not read:
                return _Outcome(tool, "not_found")
            try:
                guidance = await run.writer.write(tool, read[0].calls, record.guidance, context.purpose(tool))
            except ModelError as error:
                if error.fatal:
                    run.stopped = error
                return _Outcome(tool, "failed", decision.reason, len(window.new), window.not_analyzed, error=str(error))
            guidance = guidance.model_copy(
                update={
                    "covered": [call.seq for call in read[0].calls if call.seq is not None],
                    "created_at": context.services.clock.now(),
                }
            )
            document = await self._document(run, tool, guidance.text)
            try:
                await run.store.put_guidance(
                    context.workspace, tool, guidance, document=document, guidance_version=record.guidance_version
                )
            except Conflict:
                again = await run.store.records(context.workspace, [tool])
                if not again:
                    return _Outcome(tool, "not_found")
                record = again[0]
                continue
            return _Outcome(
                tool,
                "summarized",
                decision.reason,
                len(window.new),
                window.not_analyzed,
                decision.stale_author,
                guidance.prompt_tokens,
            )
        return _Outcome(tool, "failed", error=f"others changed this tool {_ATTEMPTS} times meanwhile; run it again")

    @staticmethod
    async def _document(run: _Run, tool: str, guidance: str) -> Document:
        """The guidance's searchable side. Guidance that was paid for is kept even where it cannot be embedded."""
        text = f"{tool}\n{guidance}"
        try:
            return Document(text, (await run.embedder.embed([text]))[0])
        except ModelError as error:
            log.warning("the guidance of a tool is stored without its vector: %s", error)
            run.without_vector.append(tool)
            return Document(text)

    async def _window(self, context: Context, run: _Run, record: ToolRecord) -> Window:
        recent = self.params.recent_call_count
        if run.since is None:
            return window_of(record, recent)
        read = await run.store.memories(context.workspace, [record.tool_name], calls=True)
        calls = read[0].calls if read else ()
        eligible = [call.seq for call in calls if call.seq is not None and call.create_time >= run.since]
        return window_of(record, recent, eligible=eligible)

    async def _answer(self, context: Context, run: _Run, names: Sequence[str]) -> None:
        outcomes = [run.outcomes[name] for name in names]
        by_action: dict[str, list[str]] = {"summarized": [], "skipped": [], "failed": [], "not_found": []}
        for outcome in outcomes:
            by_action[outcome.action].append(outcome.tool_name)
        written = by_action["summarized"]  # only these: answering for a skipped tool must cost no more than its record
        stored = await run.store.memories(context.workspace, written) if written else []
        metadata = context.response.metadata
        metadata["memory_list"] = [tool_memory(memory).model_dump(mode="json") for memory in stored]
        metadata.update(by_action)
        metadata["not_analyzed"] = {o.tool_name: o.not_analyzed for o in outcomes if o.not_analyzed}
        metadata["stale_author"] = [o.tool_name for o in outcomes if o.stale_author and o.action == "skipped"]
        metadata["failures"] = [{"tool_name": o.tool_name, "error": o.error} for o in outcomes if o.action == "failed"]
        metadata["tools"] = [
            {
                "tool_name": o.tool_name,
                "action": o.action,
                "reason": o.reason,
                "new_calls": o.new_calls,
                "window_prompt_tokens": o.prompt_tokens,
            }
            for o in outcomes
        ]
        if run.without_vector:
            metadata["without_vector"] = run.without_vector
        tell_stop(metadata, run.stopped)
        done = len(by_action["summarized"]) + len(by_action["skipped"])
        context.response.success = done == len(names)
        metadata["partial"] = 0 < done < len(names)
        context.response.answer = _answer_text(by_action, len(names), context.response.success)
        spared = [o.prompt_tokens for o in outcomes if o.action == "skipped" and o.prompt_tokens]
        context.save(Usage(saved_requests=len(spared), saved_prompt_tokens=sum(spared)))


def _answer_text(by_action: dict[str, list[Any]], asked: int, success: bool) -> str:
    counts = [f"{len(by_action['summarized'])} summarized", f"{len(by_action['skipped'])} skipped (already up-to-date)"]
    if by_action["failed"]:
        counts.append(f"{len(by_action['failed'])} failed")
    if by_action["not_found"]:
        counts.append(f"{len(by_action['not_found'])} not found")
    done = "Successfully processed" if success else "Processed"
    return f"{done} {asked} tool memories: {', '.join(counts)}"
