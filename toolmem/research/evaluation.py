"""Judge a recording of tool calls, summarize every tool in it, and ask for the summary again."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

import toolmem
from toolmem.errors import RequestError
from toolmem.flow.report import Event
from toolmem.formats.recording import BadRecord, Format, Recording, read_recording
from toolmem.formats.records import read_schemas
from toolmem.llm.usage import LedgerRow, Usage, read_ledger
from toolmem.memory.toolmem import ToolMem
from toolmem.models.calls import ToolCallResult
from toolmem.models.protocols import Store
from toolmem.models.rules import ToolMemoryRule
from toolmem.models.tools import CallFailure, ToolRecord
from toolmem.operations.results import Summarized
from toolmem.ops import ParseToolCallResultOp, SummaryToolMemoryOp
from toolmem.rules.capture import ToolMemoryCaptureHook
from toolmem.rules.turn import ToolUse, Turn
from toolmem.text.stopped_calls import was_stopped

WORKSPACE = "evaluate"
BATCH = 1000  # calls added at once
Progress = Callable[[int, int], None]  # (calls done, calls in all)


class EvaluatedCall(Struct, frozen=True):
    """A call of the recording, as it was judged and stored: secrets are masked.

    A call that was not judged has no input and output: it was stopped before it ran, or its id was
    known before this evaluation.
    """

    row: int  # its place in the recording, from 0
    call: ToolCallResult


class Evaluation(Struct, kw_only=True):
    """What an evaluation found."""

    source: str  # the file's name
    calls: list[EvaluatedCall]  # in the order of the recording
    tools: list[ToolRecord]  # with their guidance, by name
    summary: Summarized
    second_summary: Summarized  # asked for with nothing new
    bad_records: list[BadRecord]
    failed_evaluations: list[int]  # rows of kept calls that the judge could not be asked about
    notes: list[str]  # of the reader
    duplicates: int  # calls whose id was known
    stopped: str  # why calls were left out; "" where none were
    budget_reached: bool
    rules: list[ToolMemoryRule]  # of the user, and of what kept failing
    requests: list[LedgerRow]  # to models
    usage: Usage  # of the requests, or of those that a dry run would have sent
    ignore_success: bool
    started_at: datetime
    seconds: float


class Agreement(Struct, kw_only=True):
    """The judge beside labels."""

    labelled: int  # calls with a label and a score
    agreed: int
    balanced_accuracy: float | None  # the mean of the shares of both labels


def sample() -> tuple[list[Path], list[Any]]:
    """The packaged recording, and the schemas of its tools."""
    folder = Path(toolmem.__file__).parent / "data"
    tools = json.loads((folder / "tools.json").read_bytes())
    return [folder / "recording.calls.jsonl.gz"], tools


def evaluate(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    memory: ToolMem | None = None,
    format: Format | None = None,
    tools: Sequence[Any] = (),
    ignore_success: bool = False,
    limit: int | None = None,
    progress: Progress | None = None,
    begin_anew: bool = False,
) -> Evaluation:
    """Judge the calls of recordings, keep them in `memory`, and summarize their tools twice.

    `memory` None: one that is forgotten afterwards. `tools`: their schemas. `ignore_success`
    withholds the recorded flag from the judge. `limit`: records that are read. `begin_anew`: as
    `clear`, once the recording is read. Raises RequestError.
    """
    files = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    started_at = datetime.now(UTC)
    recorded = read_recording(files, started_at, format=format, limit=limit)
    for call in recorded.calls:
        call.id = call.id or os.urandom(12).hex()  # by which its row is found again
        call.success = None if ignore_success else call.success
    own = ToolMem(":memory:", workspace=WORKSPACE) if memory is None else nullcontext(memory)
    with own as used:
        if begin_anew:
            clear(used)
        started = used.services.clock.monotonic()
        kept = used.services.store()
        newest = kept.call_log(used.workspace_id, newest=True, limit=1)
        added = _add(used, recorded, [*tools, *recorded.tools] or None, progress)
        stored = _logged(kept, used.workspace_id, newest[-1].position if newest else 0)
        calls, failed, refused = _results(recorded, stored, added.failures)
        names = sorted({call.tool_name for call in recorded.calls})
        if memory is None or begin_anew:
            _capture(used, recorded)
        summary = used.summarize(names) if names and not added.stopped else Summarized()
        second = used.summarize(names) if names and not added.stopped else Summarized()
        usage = added.usage.plus(summary.usage).plus(second.usage)
        requests = read_ledger(kept, used.workspace_id, usage.requests)
        return Evaluation(
            source=", ".join(os.path.basename(path) for path in files),
            calls=calls,
            tools=kept.records(used.workspace_id, names),
            summary=summary,
            second_summary=second,
            bad_records=sorted([*recorded.bad, *refused], key=lambda bad: bad.line),
            failed_evaluations=failed,
            notes=recorded.notes,
            duplicates=added.duplicates,
            stopped=added.stopped,
            budget_reached=added.budget_reached,
            usage=usage,
            rules=used.rules.all_rules().rules,
            requests=[row for row in requests if row.time >= started_at],
            ignore_success=ignore_success,
            started_at=started_at,
            seconds=used.services.clock.monotonic() - started,
        )


def _capture(memory: ToolMem, recorded: Recording) -> None:
    """Keep what the recording's users demanded, and what failed twice in one of their turns."""
    turns: dict[tuple[str, str], Turn] = {}
    tools = list(read_schemas(recorded.tools).values())
    for call in recorded.calls:
        if call.conversation_id:
            place = call.conversation_id, call.context
            turn = turns.setdefault(
                place, Turn(user_message=call.context, session_id=place[0], tools=tools)
            )
            use = ToolUse(name=call.tool_name, success=call.success, output_summary=call.output)
            turn.tool_calls.append(use)
    hook = ToolMemoryCaptureHook(memory.rules, enabled=True)
    for turn in turns.values():
        hook.after_turn(turn)


def require_models(memory: ToolMem) -> None:
    """Raises ConfigError where the judge or the writer cannot be made as it is configured."""
    ops = memory.engine.configuration.settings.op
    memory.services.judge(ops[ParseToolCallResultOp.name])
    memory.services.writer(ops[SummaryToolMemoryOp.name])


def clear(memory: ToolMem) -> None:
    """Forget the calls of earlier evaluations; verdicts that were paid for are kept.

    Raises RequestError where the store holds anything else.
    """
    kept = memory.services.store()
    others = [name for name in kept.workspaces() if name != memory.workspace_id]
    if others:
        raise RequestError(
            f"{kept.location} holds the workspace {others[0]!r} and is not cleared; name it by "
            "--store to add to it, or choose another folder by --out",
            field="out",
        )
    kept.delete_tools(memory.workspace_id)
    for record in kept.list_records(memory.workspace_id, prefix="tool-", key_prefix="rule/"):
        kept.delete(memory.workspace_id, record.namespace, record.key)


class _Added(Struct):
    """What became of the calls that were handed over."""

    duplicates: int = 0  # calls whose id was known
    failures: list[CallFailure] = msgspec.field(default_factory=list)  # by position
    stopped: str = ""  # why the others were not asked about
    budget_reached: bool = False
    usage: Usage = msgspec.field(default_factory=Usage)


def _add(
    memory: ToolMem, recorded: Recording, tools: list[Any] | None, progress: Progress | None
) -> _Added:
    """Judge and store the calls. After a stop the rest is neither judged nor stored."""
    done, total = _Added(), len(recorded.calls)
    for start in range(0, total, BATCH):

        def tell(event: Event, start: int = start) -> None:
            if progress is not None and event.message == "judged":
                progress(start + event.done, total)

        memory.engine.listeners.append(tell)
        try:
            added = memory.add(recorded.calls[start : start + BATCH], tools=tools)
        finally:
            memory.engine.listeners.remove(tell)
        done.usage = done.usage.plus(added.usage)
        done.duplicates += added.evaluation.duplicates
        done.failures += [
            replace(each, index=start + each.index) for each in added.evaluation.failures
        ]
        if added.stopped:
            done.stopped, done.budget_reached = added.stopped, added.budget_reached
            break
    return done


_Stored = Mapping[tuple[str, str | None], ToolCallResult]


def _logged(store: Store, workspace: str, after: int) -> _Stored:
    """The calls that were stored since a position, by tool and id."""
    found: dict[tuple[str, str | None], ToolCallResult] = {}
    while page := store.call_log(workspace, after=after, limit=BATCH):
        found |= {(each.call.tool_name, each.call.id): each.call for each in page}
        after = page[-1].position
    return found


def _results(
    recorded: Recording, stored: _Stored, failures: Sequence[CallFailure]
) -> tuple[list[EvaluatedCall], list[int], list[BadRecord]]:
    """The calls, the rows of kept ones whose evaluation failed, and records that were refused."""
    calls: list[EvaluatedCall] = []
    failed: list[int] = []
    refused: list[BadRecord] = []
    by_index = {each.index: each for each in failures}
    for index, (row, call) in enumerate(zip(recorded.rows, recorded.calls, strict=True)):
        known, failure = stored.get((call.tool_name, call.id)), by_index.get(index)
        if failure is not None and known is None:
            refused.append(BadRecord(recorded.lines[index], failure.tool_name, failure.error))
            continue
        if failure is not None:
            failed.append(row)
        if known is None:
            status: Any = "denied" if was_stopped(call.output) else "pending"
            known = replace(
                call, input={}, output="", context="", metadata={}, evaluation_status=status
            )
        calls.append(EvaluatedCall(row, known))
    return calls, failed, refused


def agreement(found: Evaluation, labels: Mapping[int, bool]) -> Agreement:
    """How often the judge's score agrees with labels, by row."""
    pairs = [
        (labels[each.row], each.call.score >= 0.5)
        for each in found.calls
        if each.row in labels and each.call.score is not None
    ]
    rates = [
        sum(label == said for label, said in pairs if label is kind) / count
        for kind in (True, False)
        if (count := sum(label is kind for label, _ in pairs))
    ]
    return Agreement(
        labelled=len(pairs),
        agreed=sum(label == said for label, said in pairs),
        balanced_accuracy=sum(rates) / len(rates) if rates else None,
    )
