"""Judge a recording of tool calls, summarize every tool in it, and ask for the summary again."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext, suppress
from datetime import UTC, datetime
from operator import attrgetter
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

import toolmem
from toolmem.config.names import hint
from toolmem.config.sections import BudgetSection
from toolmem.errors import RequestError
from toolmem.flow.report import Event
from toolmem.formats.chat import UserMessage
from toolmem.formats.recording import BadRecord, Recording, read_recording
from toolmem.formats.records import read_schemas
from toolmem.guard.rule_copies import drop_copy
from toolmem.guidance.card import CardWriter
from toolmem.guidance.model_writer import ModelWriter
from toolmem.llm.budget import Budget
from toolmem.llm.models import DryRunModel
from toolmem.llm.usage import LedgerRow, Usage, read_ledger
from toolmem.memory.toolmem import ToolMem
from toolmem.models.calls import ToolCallResult
from toolmem.models.records import RULE_PREFIX, TOOL_PREFIX
from toolmem.models.rules import ToolMemoryRule
from toolmem.models.tools import CallFailure, LoggedCall, ToolRecord, ToolSchema
from toolmem.operations import results
from toolmem.operations.guidance import records_shown
from toolmem.operations.results import Added, Summarized
from toolmem.ops import ParseToolCallResultOp, SummaryToolMemoryOp
from toolmem.research.backtest import LaterRepairs, later_repairs
from toolmem.research.rates import MIN_LABELS, kappa, known_pairs
from toolmem.rules.capture import ToolMemoryCaptureHook
from toolmem.rules.replies import without_ways_out
from toolmem.rules.turn import ToolUse, Turn
from toolmem.store.copying import logged_calls
from toolmem.text.display import counted, plain
from toolmem.text.masking import Masker
from toolmem.text.stopped_calls import was_stopped

WORKSPACE = "evaluate"
BATCH = 1000  # calls added at once
MAX_UNKEPT = 5  # demands that the notes quote
MAX_GROUP = 200  # characters of a value that calls are grouped by
Progress = Callable[[int, int], None]  # (calls done, calls in all)
_About = tuple[bool | None, bool | None]  # what is known of a call beside what the judge sees


class EvaluatedCall(Struct, frozen=True):
    """A call of the recording, as it was judged and stored: secrets are masked.

    A call that was not judged has no input and output: the guard stopped it, or its id was known.
    """

    row: int  # in the recording, from 0
    call: ToolCallResult
    flag: bool | None = None  # as recorded, also where it was withheld from the judge
    label: bool | None = None  # whether it worked, as somebody found who looked at it
    group: str = ""  # the value of the field that the calls are grouped by

    @property
    def worked(self) -> bool | None:
        """The judge's word: no flag that it saw, and no answer, shows a failure.

        None: the call was not judged, whatever its flag says.
        """
        return None if self.call.score is None else not self.call.failed

    @property
    def outcome(self) -> bool | None:
        """Whether it worked: its label, else the judge's word."""
        return self.worked if self.label is None else self.label

    @property
    def in_dispute(self) -> bool:
        """Whether the recorded flag and the judge say different things."""
        return None not in (self.flag, self.worked) and self.flag is not self.worked

    @property
    def failed_silently(self) -> bool:
        """Whether the recorded flag says success, and the call failed."""
        return self.flag is True and self.outcome is False


class Evaluation(Struct, kw_only=True):
    """The result of an evaluation."""

    source: str  # the file's name
    calls: list[EvaluatedCall]  # in the order of the recording
    tools: list[ToolRecord]  # with their guidance, by name
    summary: Summarized
    second_summary: Summarized  # asked for again, without new calls
    later_repairs: LaterRepairs  # of the judged calls: what guidance of the older half names
    bad_records: list[BadRecord]
    failed_evaluations: list[int]  # rows of stored calls whose judge failed
    notes: list[str]  # of the reader
    duplicates: int  # calls whose id was known
    stopped: str  # why calls were left out; "" where none were
    budget_reached: bool
    summary_tokens: dict[str, int]  # by tool: of the prompt that its summary is, or would be
    rules: list[ToolMemoryRule]  # from demands of users, and from repeated failures
    requests: list[LedgerRow]  # to models
    usage: Usage  # of the requests, or of those that a dry run would have sent
    ignore_success: bool
    by: str  # the field that the calls are grouped by; "": none
    started_at: datetime
    seconds: float


class Agreement(Struct, kw_only=True):
    """How the judge's word agrees with labels. A share of nothing is None."""

    labelled: int  # calls with a label and a verdict
    agreed: int
    both_worked: int
    both_failed: int
    judge_failed: int  # the judge says that it failed, and the label that it worked
    judge_worked: int  # the other way round
    balanced_accuracy: float | None  # the mean of the shares of agreement of both labels
    precision: float | None  # of the calls that the judge calls failed, the share that did
    recall: float | None  # of the calls that failed, the share that the judge calls failed
    kappa: float | None  # agreement beyond chance (J. Cohen 1960)


def sample() -> tuple[list[Path], list[Any]]:
    """The packaged recording, and the schemas of its tools."""
    folder = Path(toolmem.__file__).parent / "data"
    tools = json.loads((folder / "tools.json").read_bytes())
    return [folder / "recording.calls.jsonl.gz"], tools


def evaluate(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    memory: ToolMem | None = None,
    format: str | None = None,
    mapping: Mapping[str, str] | None = None,
    tools: Sequence[Any] = (),
    ignore_success: bool = False,
    labels: Mapping[int, bool] | None = None,
    by: str = "",
    limit: int | None = None,
    progress: Progress | None = None,
    begin_anew: bool = False,
) -> Evaluation:
    """Judge the calls of recordings, keep them in `memory`, and summarize their tools twice.

    `memory` None: a temporary one. `tools`: their schemas. `ignore_success` withholds the recorded
    flag from the judge. `labels`: whether calls worked, by row. `by`: `day` (UTC) or a field of the
    calls' metadata to group them by. `limit`: records that are read. `begin_anew`: `clear` the
    memory first, but after the recording was read. Raises RequestError.
    """
    files = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    started_at = datetime.now(UTC)
    recorded = read_recording(files, started_at, format=format, mapping=mapping, limit=limit)
    about = _about(recorded, labels or {}, by)
    _prepare(recorded.calls, ignore_success)
    opened = ToolMem(":memory:", workspace=WORKSPACE) if memory is None else nullcontext(memory)
    with opened as used:
        if begin_anew:
            clear(used)
        added, logged = _add(used, recorded, [*tools, *recorded.tools] or None, progress)
        calls, failed, refused = _results(recorded, about, by, logged, added.evaluation.failures)
        recorded.notes += _capture(used, recorded, tools) if memory is None or begin_anew else []
        names = sorted({call.tool_name for call in recorded.calls})
        asked = [] if added.stopped else names
        summary, second = (used.summarize(asked) if asked else Summarized() for _ in range(2))
        usage = added.usage.plus(summary.usage).plus(second.usage)
        requests = read_ledger(used.services.store(), used.workspace_name, usage.requests)
        return Evaluation(
            source=", ".join(os.path.basename(path) for path in files),
            calls=calls,
            tools=records_shown(used, names),
            summary=summary,
            second_summary=second,
            later_repairs=_later_repairs(calls),
            summary_tokens=_summary_tokens(used, names),
            bad_records=sorted([*recorded.bad, *refused], key=attrgetter("file", "line")),
            failed_evaluations=failed,
            notes=recorded.notes,
            duplicates=added.evaluation.duplicates,
            stopped=added.stopped,
            budget_reached=added.budget_reached,
            usage=usage,
            rules=used.rules.all_rules().rules,
            requests=[row for row in requests if row.time >= started_at],
            ignore_success=ignore_success,
            by=by,
            started_at=started_at,
            seconds=(datetime.now(UTC) - started_at).total_seconds(),
        )


def _prepare(calls: Sequence[ToolCallResult], ignore_success: bool) -> None:
    """Give each call an id, by which its row is found again, and withhold its flag if asked."""
    for call in calls:
        call.id = call.id or os.urandom(12).hex()
        call.success = None if ignore_success else call.success


def _about(recorded: Recording, labels: Mapping[int, bool], by: str) -> list[_About]:
    """The flag and the label of each call. Raises RequestError where labels or field fit none."""
    if not (recorded.calls or recorded.bad):
        raise RequestError("input: the recording holds no call; name another by --input", "input")
    if labels and not labels.keys() & set(recorded.rows):
        raise RequestError(
            f"labels: none of the {len(labels)} rows is a call of the recording; `index` counts "
            f"its records from 0 ({len(recorded.calls)} calls here)",
            field="labels",
        )
    if 0 < len(labels) < MIN_LABELS:
        few = f"fewer than {MIN_LABELS} labels ({len(labels)}): they tell nothing of the judge's"
        recorded.notes.append(f"{few} errors, and count for their own calls alone")
    if left := sorted(labels.keys() - set(recorded.rows)):
        rows = ", ".join(map(str, left[:MAX_UNKEPT]))
        recorded.notes.append(f"labels of no call that could be read ({len(left)}): rows {rows}")
    tools = {call.tool_name for call in recorded.calls}
    of = {
        c.tool_name for c, row in zip(recorded.calls, recorded.rows, strict=True) if row in labels
    }
    if len(of) == 1 and len(tools) > 1 and len(labels) >= MIN_LABELS:
        recorded.notes.append(f"all labels are of 1 of {len(tools)} tools, and no random draw")
    if by and recorded.calls and not any(_group(call, by) for call in recorded.calls):
        known = {"day", *(name for call in recorded.calls for name in call.metadata)}
        raise RequestError(f"by: no call has a field {by!r} ({hint(by, known)})", "by")
    pairs = zip(recorded.rows, recorded.calls, strict=True)
    return [(call.success, labels.get(row)) for row, call in pairs]


def _group(call: ToolCallResult, by: str) -> str:
    """The value of a call's field as text; "" where it has none."""
    if by == "day":
        return f"{call.create_time.astimezone(UTC):%Y-%m-%d}"
    value = call.metadata.get(by)
    return "" if value is None else plain(str(value), MAX_GROUP)


def _later_repairs(calls: Sequence[EvaluatedCall]) -> LaterRepairs:
    judged = [each.call for each in calls if each.worked is not None]
    return later_repairs(sorted(judged, key=attrgetter("create_time")))


def _summary_tokens(memory: ToolMem, names: Sequence[str]) -> dict[str, int]:
    """The tokens of the prompt of each tool's summary; where no model is asked, of the one that a
    model would have got.
    """
    store = memory.services.store()
    records = store.records(memory.workspace_name, names)
    guidance = {each.tool_name: each.guidance for each in records if each.guidance}
    sent = {name: each.prompt_tokens for name, each in guidance.items()}
    seqs = {name: each.covered for name, each in guidance.items() if not each.prompt_tokens}
    windows = store.windows(memory.workspace_name, list(seqs), seqs=seqs)
    model = DryRunModel("", Budget(BudgetSection(), {}))
    language = memory.engine.configuration.settings.language
    writer = ModelWriter(model, CardWriter(), language, max_tokens=0)
    for window in windows:
        name = window.record.tool_name
        sent[name] = model.count(writer.prompt(name, window.calls))
    return sent


def _capture(memory: ToolMem, recorded: Recording, tools: Sequence[Any]) -> list[str]:
    """Make rules of the users' demands, and of what failed twice in one turn.

    Returns what was not kept, as notes.
    """
    known = read_schemas([*tools, *recorded.tools])
    for call in recorded.calls:
        known.setdefault(call.tool_name, ToolSchema(call.tool_name))
    schemas = list(known.values())
    turns = {
        each: Turn(user_message=each.text, conversation_id=each.conversation, tools=schemas)
        for each in recorded.messages
        if each.conversation
    }
    for call in recorded.calls:
        if turn := turns.get(UserMessage(call.conversation_id, call.context)):
            use = ToolUse(name=call.tool_name, success=call.success, output_summary=call.output)
            turn.tool_calls.append(use)
    hook = ToolMemoryCaptureHook(memory.rules, enabled=True)
    told = [line for turn in turns.values() for line in hook.after_recorded(turn).told]
    unkept = [line for line in told if line.lower().startswith("not kept")]
    if not unkept:
        return []
    masker = Masker(memory.services.store().secret_key())
    count = f"{len(unkept)} demands of users were not kept, such as:"
    lines = (plain(without_ways_out(line), 300) for line in unkept[:MAX_UNKEPT])
    return [count, *map(masker.text, lines)]


def require_models(memory: ToolMem) -> None:
    """Raises ConfigError if the configured judge or writer of guidance cannot be made."""
    ops = memory.engine.configuration.settings.op
    memory.services.judge(ops[ParseToolCallResultOp.name])
    memory.services.writer(ops[SummaryToolMemoryOp.name])


def clear(memory: ToolMem) -> None:
    """Delete the calls and rules of earlier evaluations; cached verdicts of judges stay.

    Raises RequestError if the store has another workspace.
    """
    store, own = memory.services.store(), memory.workspace_name
    others = [name for name in store.workspaces() if name != own]
    if others:
        raise RequestError(
            f"{store.location} holds the workspace {others[0]!r} and is not cleared; name it by "
            "--store to add to it, or choose another folder by --out",
            field="out",
        )
    with suppress(FileNotFoundError):
        drop_copy(store.location, own)  # these rules are deleted on purpose
    store.delete_tools(own)
    for record in store.list_records(own, prefix=TOOL_PREFIX, key_prefix=RULE_PREFIX):
        store.delete(own, record.namespace, record.key)


def _add(
    memory: ToolMem, recorded: Recording, tools: list[Any] | None, progress: Progress | None
) -> tuple[Added, Iterable[LoggedCall]]:
    """Judge and store the calls, and return them from the log.

    After a stop the rest is neither judged nor stored.
    """
    store = memory.services.store()
    workspace = memory.workspace_name
    newest = store.call_log(workspace, newest=True, limit=1)
    logged = list[LoggedCall]()
    total = len(recorded.calls)
    counts = results.Evaluation(requested=total, evaluated=0, reused=0, duplicates=0, failed=0)
    done = Added(evaluation=counts)
    for start in range(0, total, BATCH):

        def report(event: Event, start: int = start) -> None:
            if progress is not None and event.message == "judged":
                progress(start + event.done, total)

        memory.engine.listeners.append(report)
        try:
            added = memory.add(recorded.calls[start : start + BATCH], tools=tools)
        finally:
            memory.engine.listeners.remove(report)
        done.usage = done.usage.plus(added.usage)
        # At once: the log keeps the newest calls of a tool alone.
        logged += logged_calls(store, workspace, after=newest[-1].position if newest else 0)
        newest = logged[-1:] or newest
        for name in ("evaluated", "reused", "duplicates", "failed"):
            setattr(counts, name, getattr(counts, name) + getattr(added.evaluation, name))
        failures = added.evaluation.failures
        counts.requested -= len(recorded.calls[start : start + BATCH]) - added.evaluation.requested
        counts.failures += [replace(each, index=start + each.index) for each in failures]
        if added.stopped:
            done.stopped = added.stopped
            done.budget_reached = added.budget_reached
            break
    if (left_out := total - counts.requested) > 0:
        recorded.notes.append(f"an op left out {counted(left_out, 'call')} before the judge saw it")
    return done, logged


def _results(
    recorded: Recording,
    about: Sequence[_About],
    by: str,
    logged: Iterable[LoggedCall],
    failures: Sequence[CallFailure],
) -> tuple[list[EvaluatedCall], list[int], list[BadRecord]]:
    """The calls, the rows of stored ones whose evaluation failed, and records that were refused."""
    calls: list[EvaluatedCall] = []
    failed: list[int] = []
    refused: list[BadRecord] = []
    by_index = {each.index: each for each in failures}
    stored = {(each.call.tool_name, each.call.id): each.call for each in logged}
    for index, (row, call) in enumerate(zip(recorded.rows, recorded.calls, strict=True)):
        # An id that comes again was not judged again.
        judged = stored.pop((call.tool_name, call.id), None)
        failure = by_index.get(index)
        if judged is None and failure is not None and failure.tool_name == call.tool_name:
            refused.append(BadRecord(recorded.lines[index], failure.tool_name, failure.error))
            continue
        if judged is not None and judged.evaluation_status == "failed":
            failed.append(row)
        if judged is None:
            status: Any = "denied" if was_stopped(call.output) else "pending"
            judged = replace(
                call, input={}, output="", context="", metadata={}, evaluation_status=status
            )
        group = _group(judged, by)  # of what was stored: secrets are masked
        calls.append(EvaluatedCall(row, judged, *about[index], group))
    return calls, failed, refused


def agreement(found: Evaluation, labels: Mapping[int, bool] | None = None) -> Agreement:
    """How the judge's score agrees with labels, by row; None: those of the evaluation."""
    told = ((each.label if labels is None else labels.get(each.row), each) for each in found.calls)
    return _agreement(
        (bool(label), each.call.score >= 0.5)
        for label, each in told
        if label is not None and each.call.score is not None
    )


def agreement_of_worked(found: Evaluation) -> Agreement:
    """How `worked`, by which rates count, agrees with the labels of the evaluation."""
    return _agreement((each.label, each.worked) for each in found.calls)


def _agreement(told: Iterable[tuple[bool | None, bool | None]]) -> Agreement:
    """Of pairs: what a label says, and what the judge says."""
    pairs = known_pairs(told)
    counts = Counter(pairs)
    good, bad = counts[True, True], counts[False, False]
    missed, praised = counts[True, False], counts[False, True]
    shares = _share(good, good + missed), _share(bad, bad + praised)
    return Agreement(
        labelled=len(pairs),
        agreed=good + bad,
        both_worked=good,
        both_failed=bad,
        judge_failed=missed,
        judge_worked=praised,
        balanced_accuracy=None if None in shares else sum(filter(None, shares)) / 2,
        precision=_share(bad, bad + missed),
        recall=shares[1],
        kappa=kappa(pairs),
    )


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole else None
