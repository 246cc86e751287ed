"""From the calls of a recording to their verdicts and guidance, through the flows that an agent's calls take."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolmem.app import ToolMemApp
from toolmem.config.extras import missing
from toolmem.flow.op import Node
from toolmem.flow.report import Event, Listener, total
from toolmem.guidance.tool_memory import tool_memory
from toolmem.models import FlowResponse, ToolCallResult, ToolMemory, Usage
from toolmem.ops import ParseToolCallResultOp, SummaryToolMemoryOp
from toolmem.protocols import LedgerEntry
from toolmem.readers.masking import masks_in
from toolmem.readers.plain_text import counted
from toolmem.research.evaluation.folder import WORKSPACE
from toolmem.research.recordings import Recording
from toolmem.research.report.findings import BadRecord, Evaluation, SummaryRun, ToolUsage
from toolmem.store.masked import masked_calls

if TYPE_CHECKING:
    from toolmem.app import FlowRun


class JudgedCalls:
    """Hands the events on to `listener`; while calls are judged, `done` and `total` are those of the whole evaluation.

    A flow counts what is new to it, and what it judges again; the steps after judging count tools. Of these figures
    only one is told, and it never goes backwards: how many of the recording's calls have been through the judge.
    """

    def __init__(self, listener: Listener, total: int) -> None:
        self._listener = listener
        self._total = total
        self._told = 0
        self._end = 0  # what will have been judged when the current phase is over
        self._judging = False

    @contextmanager
    def judging(self, calls: int) -> Iterator[None]:
        """So many more calls are judged meanwhile."""
        self._told, self._end, self._judging = self._end, self._end + calls, True
        self._tell(Event("progress", "", message="judged"))
        yield
        self._judging = False

    def __call__(self, event: Event) -> None:
        if event.kind != "progress" or not self._judging:
            self._listener(event)
        elif event.message == "judged":
            self._told = max(self._told, self._end - (event.total - event.done))
            self._tell(event)

    def _tell(self, event: Event) -> None:
        self._listener(replace(event, done=self._told, total=self._total))


HELD_BACK = 0.05  # of each tool's calls, the newest: they arrive before the third summary

_MEANINGS = {
    "offline": (
        "A score of 1.0 means that the call ran and answered; usefulness was not judged. 0.0 means that it failed, "
        "or answered nothing to a question."
    ),
    "dry_run": (
        "Nothing was sent to a model: prompts were built, counted and priced. The scores are those of the rule-based "
        "check: 1.0 means that the call ran and answered; usefulness was not judged."
    ),
}
_MODEL_MEANING = (
    "A score of 1.0 means that the model found the call successful and useful for what was asked; 0.0 means that it "
    "did not."
)


def hold_back(calls: Sequence[tuple[int, ToolCallResult]]) -> set[int]:
    """Rows of the newest 5 % of each tool's calls, at least one of each."""
    by_tool: dict[str, list[tuple[Any, int]]] = defaultdict(list)
    for row, call in calls:
        by_tool[call.tool_name].append((call.create_time, row))
    held: set[int] = set()
    for items in by_tool.values():
        items.sort()
        held.update(row for _, row in items[-max(1, round(HELD_BACK * len(items))) :])
    return held


def _nothing_to_summarize() -> FlowResponse:
    empty: dict[str, Any] = {
        key: [] for key in ("memory_list", "summarized", "skipped", "failed", "not_found", "tools")
    }
    return FlowResponse(answer="No tool has a call yet", metadata={**empty, "failures": [], "not_analyzed": {}})


def _sent_by_tool(entries: Sequence[LedgerEntry]) -> dict[str, Usage]:
    """What the requests booked for each tool add up to; prompts that were only counted are not among them."""
    sent: dict[str, Usage] = defaultdict(Usage)
    for entry in entries:
        usage = sent[entry.tool]
        usage.requests += entry.outcome != "not_sent"
        usage.prompt_tokens += entry.prompt_tokens
        usage.completion_tokens += entry.completion_tokens
        usage.estimated = usage.estimated or entry.estimated
    return sent


class Evaluator:
    """One evaluation on one app. `say` is told what is going on, a line at a time, `listener` how far it is (see
    `JudgedCalls`); into `reports` (a folder) goes the RunReport of each flow.
    """

    def __init__(
        self,
        app: ToolMemApp,
        recording: Recording,
        *,
        workspace: str = WORKSPACE,
        ignore_success: bool = False,
        reports: str | Path | None = None,
        say: Callable[[str], None] = lambda _: None,
        listener: Listener = lambda _: None,
    ) -> None:
        self.app = app
        self.recording = recording
        self.workspace = workspace
        self.ignore_success = ignore_success
        self.reports = reports
        self.say = say
        self.progress = JudgedCalls(listener, len(recording.calls))
        self.phases: dict[str, float] = {}
        self.stopped_by = ""  # "budget", "errors"
        self._judged: dict[int, ToolCallResult] = {}
        self._spent: dict[str, Usage] = defaultdict(Usage)
        self._failed: dict[int, BadRecord] = {}  # rows that have no verdict, or could not be stored
        self._tools = sorted({call.tool_name for _, call in recording.calls})

    async def run(self) -> Evaluation:
        """All phases, within one budget. What a budget or `max_errors` stopped is kept and named."""
        self.app.listeners.append(self.progress)
        try:
            with self.app.services.one_budget():
                return await self._run()
        finally:
            self.app.listeners.remove(self.progress)

    async def _run(self) -> Evaluation:
        started = self.app.clock.now()
        calls = [(row, self._handed_over(row, call)) for row, call in self.recording.calls]
        held = hold_back(calls)
        summaries: list[SummaryRun] = []
        await self._add("judge and store", [item for item in calls if item[0] not in held])
        summaries.append(await self._summarize("all new"))
        summaries.append(await self._summarize("nothing new"))
        await self._add("judge and store the newest 5 %", [item for item in calls if item[0] in held])
        summaries.append(await self._summarize("newest 5 %"))
        with self._phase("retrieve"):
            store = await self.app.services.store_named()
            stored = await store.memories(self.workspace, self._tools, calls=True)
        memories = [tool_memory(memory, include_calls=True, upkeep=True) for memory in stored]
        self._take_later_verdicts(memories)
        return await self._evaluation(started, summaries, memories)

    async def _flow(self, flow: str | Node, **request: Any) -> FlowRun:
        run = await self.app.run_detailed(flow, workspace_id=self.workspace, **request)
        for op in run.report.ops:
            if op.usage.requests:
                self._spent[op.op] = total([self._spent[op.op], op.usage])
        if self.reports is not None:
            run.report.save(self.reports)
        return run

    def _handed_over(self, row: int, call: ToolCallResult) -> ToolCallResult:
        """A call as the flows get it: with an id that leads back to its row, without the flag where it is withheld."""
        update: dict[str, Any] = {}
        if call.id is None:
            update["id"] = f"row-{row}"
        if self.ignore_success:
            update["success"] = None
        return call.model_copy(update=update) if update else call

    @contextmanager
    def _phase(self, name: str) -> Iterator[None]:
        self.say(name)
        begun = time.perf_counter()
        yield
        self.phases[name] = time.perf_counter() - begun

    async def _add(self, phase: str, calls: Sequence[tuple[int, ToolCallResult]]) -> None:
        if not calls:
            return
        with self._phase(phase), self.progress.judging(len(calls)):
            tools = list(self.recording.tools.values())
            run = await self._flow("add_tool_call_result", tools=tools, tool_call_results=[call for _, call in calls])
            self._take(run, calls)
            self._note_stop(run)
            if known := run.response.metadata["evaluation"]["duplicates"]:
                self.recording.notes.append(
                    f"{counted(known, 'call')} {'has' if known == 1 else 'have'} an id that an earlier call of the "
                    "tool has: in the memory and its guidance each id counts once"
                )
            again = [(row, call) for row, call in calls if row not in self._judged]
            if again:  # known ids: stored before, so not judged now; their verdicts are in the cache
                without_ids = [call.model_copy(update={"id": None}) for _, call in again]
                verdicts = await self._flow(ParseToolCallResultOp(), tools=tools, tool_call_results=without_ids)
                self._take(verdicts, again)
                self._note_stop(verdicts)

    def _note_stop(self, run: FlowRun) -> None:
        metadata = run.response.metadata
        if "stopped" in metadata and not self.stopped_by:
            self.stopped_by = metadata["stopped_by"]
            self.recording.notes.append(f"stopped: {metadata['stopped']}")

    def _take(self, run: FlowRun, calls: Sequence[tuple[int, ToolCallResult]]) -> None:
        for position, judged in run.context["judged_calls"]:
            row, call = calls[position]
            self._judged[row] = judged.model_copy(update={"id": call.id})
        for failure in run.response.metadata["evaluation"]["failures"]:
            row, call = calls[failure["index"]]
            self._failed[row] = BadRecord(where=f"row {row}", tool_name=call.tool_name, error=failure["error"])

    def _take_later_verdicts(self, memories: Sequence[ToolMemory]) -> None:
        """A call whose evaluation failed is judged again with the newest ones: then that is its verdict."""
        kept = {(m.when_to_use, call.id): call for m in memories for call in m.tool_call_results}
        for row in list(self._failed):
            judged = self._judged.get(row)
            found = None if judged is None else kept.get((judged.tool_name, judged.id))
            if found is not None and found.evaluation_status == "ok":
                self._judged[row] = found
                del self._failed[row]

    async def _summarize(self, label: str) -> SummaryRun:
        with self._phase(f"summarize ({label})"):
            known = await self._known_tools()
            begun = time.perf_counter()
            if not known:  # tools of one call each: that call is the newest one, and still held back
                return SummaryRun(label=label, response=_nothing_to_summarize(), seconds=0.0)
            run = await self._flow("summary_tool_memory", tool_names=known)
            seconds = time.perf_counter() - begun
            self._note_stop(run)
        sent = _sent_by_tool(run.report.entries)
        errors = {failure["tool_name"]: failure["error"] for failure in run.response.metadata["failures"]}
        tools = [self._tool_usage(row, sent[row["tool_name"]], errors) for row in run.response.metadata["tools"]]
        return SummaryRun(label=label, response=run.response, seconds=seconds, tools=tools)

    def _tool_usage(self, row: Mapping[str, Any], usage: Usage, errors: Mapping[str, str]) -> ToolUsage:
        skipped = row["action"] == "skipped"
        return ToolUsage(
            tool=row["tool_name"],
            action=row["action"],
            reason=errors.get(row["tool_name"], row["reason"]),
            requests=usage.requests,
            prompt_tokens=usage.prompt_tokens,
            completion_tokens=usage.completion_tokens,
            saved_requests=int(skipped and row["window_prompt_tokens"] > 0),
            saved_prompt_tokens=row["window_prompt_tokens"] if skipped else 0,
            estimated=usage.estimated or self.app.settings.llm["default"].backend in ("offline", "dry_run"),
        )

    async def _known_tools(self) -> list[str]:
        store = await self.app.services.store_named("default")
        known = {record.tool_name for record in await store.records(self.workspace, self._tools)}
        return [tool for tool in self._tools if tool in known]

    async def _evaluation(self, started: Any, summaries: list[SummaryRun], memories: list[ToolMemory]) -> Evaluation:
        from toolmem import __version__

        app = self.app
        add = app.op_of("add_tool_call_result", ParseToolCallResultOp)
        summary = app.op_of("summary_tool_memory", SummaryToolMemoryOp)
        judge = await app.services.judge(add)
        writer = await app.services.writer(summary)
        embedder = await app.services.embedder(summary)
        store = app.settings.vector_store[add.settings.vector_store]
        backend = judge.identity.backend
        return Evaluation(
            toolmem_version=__version__,
            inputs=self.recording.names,
            notes=self.recording.notes,
            rows=[row for row, _ in self.recording.calls],
            input_format=", ".join(self.recording.formats),
            ignore_success=self.ignore_success,
            workspace=self.workspace,
            store=f"{store.backend} ({store.params.path})" if store.backend == "sqlite" else store.backend,
            backend=backend,
            judge=str(judge.identity),
            judge_meaning=_MEANINGS.get(backend, _MODEL_MEANING),
            writer=writer.author,
            embedder=f"{embedder.identity.name} ({embedder.identity.model}, {embedder.identity.dimension} dimensions)",
            settings={**add.params.model_dump(mode="json"), **summary.params.model_dump(mode="json")},
            time_zone=app.settings.time_zone,
            started=started,
            phases=self.phases,
            calls=await self._shown_calls(),
            denied=await self._shown_denied(),
            memories=memories,
            summaries=summaries,
            failures=[*self.recording.failures, *(self._failed[row] for row in sorted(self._failed))],
            spent=dict(self._spent),
            tokens_by="estimate" if missing("dashscope") else "tokenizer",
            stopped_by=self.stopped_by,
        )

    async def _shown_denied(self) -> list[tuple[int, ToolCallResult]]:
        """The calls that were denied before they ran, without their secrets."""
        store, denied = await self.app.services.store_named("default"), self.recording.denied
        hidden = await masked_calls(store, [call for _, call in denied])
        return [(row, call) for (row, _), (call, _) in zip(denied, hidden, strict=True)]

    async def _shown_calls(self) -> list[ToolCallResult]:
        """The calls as the report shows them; how many secrets are masked in them stands in its notes."""
        hidden = await masked_calls(
            await self.app.services.store_named("default"),
            [self._shown(row, call) for row, call in self.recording.calls],
        )
        shown = [call for call, _ in hidden]
        counts = [masks_in(call) for call in shown]
        if any(counts):
            self.recording.notes.append(
                f"{counted(sum(counts), 'value')} in {sum(map(bool, counts)):,} of {counted(len(shown), 'call')} "
                f"{'looks like a secret' if sum(counts) == 1 else 'look like secrets'}: masked as [masked:xxxxxx], "
                "equal ones alike"
            )
        return shown

    def _shown(self, row: int, call: ToolCallResult) -> ToolCallResult:
        """The judged call with the flag as it was recorded."""
        judged = self._judged.get(row)
        if judged is None:
            return call.unjudged("not evaluated")
        return judged.model_copy(update={"success": call.success}) if self.ignore_success else judged
