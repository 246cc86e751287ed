"""Judge a recording of tool calls, and summarize every tool in it, twice."""

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
from toolmem.errors import RequestError, wrong
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
MAX_QUOTED = 5  # demands or rows that a note quotes
MAX_GROUP = 200  # characters of a value that calls are grouped by
Progress = Callable[[int, int], None]  # (calls done, calls in all)
_FlagAndLabel = tuple[bool | None, bool | None]  # of a call


class EvaluatedCall(Struct, frozen=True):
    """A call of the recording, as it was judged and stored: secrets are masked.

    A call is not judged if the guard stopped it or its id was known: it has no input and output.
    """

    row: int  # in the recording, from 0
    call: ToolCallResult
    flag: bool | None = None  # as recorded, even if it was withheld from the judge
    label: bool | None = None  # whether it worked, by a person who looked at it
    group: str = ""  # the value of the field that the calls are grouped by

    @property
    def worked(self) -> bool | None:
        """Whether the call worked: the judge found no failure in its output or, if shown, its flag.

        None: the call was not judged, whatever its flag says.
        """
        return None if self.call.score is None else not self.call.failed

    @property
    def outcome(self) -> bool | None:
        """Whether the call worked, by its label; without a label, by its verdict."""
        return self.worked if self.label is None else self.label

    @property
    def in_dispute(self) -> bool:
        """Whether the recorded flag and the judge disagree."""
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
    second_summary: Summarized  # the same without new calls
    later_repairs: LaterRepairs  # of the judged calls
    bad_records: list[BadRecord]
    failed_evaluations: list[int]  # rows of stored calls whose judge failed
    notes: list[str]  # of the reader
    duplicates: int  # calls whose id was known
    stopped: str  # why calls were left out; "" where none were
    budget_reached: bool
    summary_tokens: dict[str, int]  # by tool: of the prompt of its summary, sent or not
    rules: list[ToolMemoryRule]  # from demands of users, and from repeated failures
    requests: list[LedgerRow]  # to models
    usage: Usage  # of the requests that were sent, or in a dry run would be
    ignore_success: bool
    by: str  # the field that the calls are grouped by; "": none
    started_at: datetime
    seconds: float


class Agreement(Struct, kw_only=True):
    """How verdicts agree with labels. A share is None if there are no calls to divide by."""

    labelled: int  # calls with a label and a verdict
    agreed: int
    both_worked: int
    both_failed: int
    judge_failed: int  # failed by the judge, worked by the label
    judge_worked: int  # worked by the judge, failed by the label
    balanced_accuracy: float | None  # the mean of the shares of agreement of both labels
    precision: float | None  # the share of failed labels among the judge's failed calls
    recall: float | None  # the share of the judge's failed calls among failed labels
    kappa: float | None  # agreement beyond chance (J. Cohen 1960)


def sample() -> tuple[list[Path], list[Any]]:
    """Return the path of the packaged recording, and the schemas of its tools."""
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

    The second summary shows what is saved if nothing is new. `memory` None: a temporary one.
    `format`, `mapping`: of the files. `tools`: their schemas. `ignore_success`: withhold the
    recorded flag from the judge. `labels`: whether calls worked, by row. `by`: group the calls by
    `day` (UTC) or by a field of their metadata. `limit`: read at most so many records.
    `begin_anew`: `clear` the memory after the recording was read. Raises RequestError.
    """
    files = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    started_at = datetime.now(UTC)
    recorded = read_recording(files, started_at, format=format, mapping=mapping, limit=limit)
    known = _flags_and_labels(recorded, labels or {}, by)
    _prepare(recorded.calls, ignore_success)
    opened = ToolMem(":memory:", workspace=WORKSPACE) if memory is None else nullcontext(memory)
    with opened as used:
        if begin_anew:
            clear(used)
        added, logged = _add(used, recorded, [*tools, *recorded.tools] or None, progress)
        calls, failed, refused = _results(recorded, known, by, logged, added.evaluation.failures)
        recorded.notes += _capture(used, recorded, tools) if memory is None or begin_anew else []
        names = sorted({call.tool_name for call in recorded.calls})
        summary, second = _summarize_twice(used, [] if added.stopped else names)
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
    """Give each call an id, by which its row is found later, and remove its flag if asked."""
    for call in calls:
        call.id = call.id or os.urandom(12).hex()
        call.success = None if ignore_success else call.success


def _flags_and_labels(
    recorded: Recording, labels: Mapping[int, bool], by: str
) -> list[_FlagAndLabel]:
    """Return each call's flag and label. Raises RequestError if labels or `by` fit no call."""
    if not (recorded.read or recorded.bad):
        raise RequestError("input: the recording holds no call; name another by --input", "input")
    rows = {each.row for each in recorded.read}
    if labels and rows.isdisjoint(labels):
        counted = f"`index` counts its records from 0 ({len(rows)} calls here)"
        problem = f"none of the {len(labels)} rows is a call of the recording; {counted}"
        raise wrong("labels", problem)
    if 0 < len(labels) < MIN_LABELS:
        few = f"fewer than {MIN_LABELS} labels ({len(labels)}): they say nothing of the judge's"
        recorded.notes.append(f"{few} errors, and count for their own calls alone")
    if left := sorted(labels.keys() - rows):
        shown = ", ".join(map(str, left[:MAX_QUOTED]))
        recorded.notes.append(f"labels of no call that could be read ({len(left)}): rows {shown}")
    tools = {each.call.tool_name for each in recorded.read}
    labelled = {each.call.tool_name for each in recorded.read if each.row in labels}
    if len(labelled) == 1 and len(tools) > 1 and len(labels) >= MIN_LABELS:
        recorded.notes.append(f"all labels are of 1 of {len(tools)} tools, and no random draw")
    if by and recorded.read and not any(_group(each.call, by) for each in recorded.read):
        known = {"day", *(name for call in recorded.calls for name in call.metadata)}
        raise RequestError(f"by: no call has a field {by!r} ({hint(by, known)})", "by")
    return [(each.call.success, labels.get(each.row)) for each in recorded.read]


def _group(call: ToolCallResult, by: str) -> str:
    """Return the value of a call's field `by` as text; "" if the call has none."""
    if by == "day":
        return f"{call.create_time.astimezone(UTC):%Y-%m-%d}"
    value = call.metadata.get(by)
    return "" if value is None else plain(str(value), MAX_GROUP)


def _summarize_twice(memory: ToolMem, names: list[str]) -> tuple[Summarized, Summarized]:
    if not names:
        return Summarized(), Summarized()
    return memory.summarize(names), memory.summarize(names)


def _later_repairs(calls: Sequence[EvaluatedCall]) -> LaterRepairs:
    judged = [each.call for each in calls if each.worked is not None]
    return later_repairs(sorted(judged, key=attrgetter("create_time")))


def _summary_tokens(memory: ToolMem, names: Sequence[str]) -> dict[str, int]:
    """Count the tokens of each tool's summary prompt, even if no model was asked."""
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
    """Make rules of the users' demands, and of failures that were repeated in one turn.

    Returns notes on demands that were not kept.
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
    messages = [line for turn in turns.values() for line in hook.after_recorded(turn).told]
    unkept = [line for line in messages if line.lower().startswith("not kept")]
    if not unkept:
        return []
    masker = Masker(memory.services.store().secret_key())
    count = f"Not kept, of what users said: {counted(len(unkept), 'demand')}, such as:"
    lines = (plain(without_ways_out(line), 300) for line in unkept[:MAX_QUOTED])
    return [count, *map(masker.text, lines)]


def require_models(memory: ToolMem) -> None:
    """Raises ConfigError if the configured judge or writer of guidance cannot be used."""
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
        problem = f"{store.location} holds the workspace {others[0]!r} and is not cleared"
        remedy = "name it by --store to add to it, or choose another folder by --out"
        raise RequestError(f"{problem}; {remedy}", "out")
    with suppress(FileNotFoundError):
        drop_copy(store.location, own)  # these rules are deleted on purpose
    store.delete_tools(own)
    for record in store.list_records(own, prefix=TOOL_PREFIX, key_prefix=RULE_PREFIX):
        store.delete(own, record.namespace, record.key)


def _add(
    memory: ToolMem, recorded: Recording, tools: list[Any] | None, progress: Progress | None
) -> tuple[Added, Iterable[LoggedCall]]:
    """Judge and store the calls, and return them as logged.

    If the judge stops, the remaining calls are neither judged nor stored.
    """
    store = memory.services.store()
    workspace = memory.workspace_name
    newest = store.call_log(workspace, newest=True, limit=1)
    logged = list[LoggedCall]()
    calls = recorded.calls
    total = len(calls)
    counts = results.Evaluation(requested=total, evaluated=0, reused=0, duplicates=0, failed=0)
    done = Added(evaluation=counts)
    for start in range(0, total, BATCH):

        def report(event: Event, start: int = start) -> None:
            if progress is not None and event.message == "judged":
                progress(start + event.done, total)

        memory.engine.listeners.append(report)
        try:
            added = memory.add(calls[start : start + BATCH], tools=tools)
        finally:
            memory.engine.listeners.remove(report)
        done.usage = done.usage.plus(added.usage)
        # Read after each batch: the log keeps only the newest calls of a tool.
        logged += logged_calls(store, workspace, after=newest[-1].position if newest else 0)
        newest = logged[-1:] or newest
        for name in ("evaluated", "reused", "duplicates", "failed"):
            setattr(counts, name, getattr(counts, name) + getattr(added.evaluation, name))
        failures = added.evaluation.failures
        counts.requested -= len(calls[start : start + BATCH]) - added.evaluation.requested
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
    known: Sequence[_FlagAndLabel],
    by: str,
    logged: Iterable[LoggedCall],
    failures: Sequence[CallFailure],
) -> tuple[list[EvaluatedCall], list[int], list[BadRecord]]:
    """The calls, the rows of calls whose evaluation failed, and the records that were refused."""
    calls: list[EvaluatedCall] = []
    failed: list[int] = []
    refused: list[BadRecord] = []
    by_index = {each.index: each for each in failures}
    stored = {(each.call.tool_name, each.call.id): each.call for each in logged}
    for index, read in enumerate(recorded.read):
        call = read.call
        # A repeated id was judged once.
        judged = stored.pop((call.tool_name, call.id), None)
        failure = by_index.get(index)
        if judged is None and failure is not None and failure.tool_name == call.tool_name:
            refused.append(BadRecord(read.line, failure.tool_name, failure.error, read.file))
            continue
        if judged is not None and judged.evaluation_status == "failed":
            failed.append(read.row)
        if judged is None:
            status: Any = "denied" if was_stopped(call.output) else "pending"
            judged = replace(
                call, input={}, output="", context="", metadata={}, evaluation_status=status
            )
        group = _group(judged, by)  # by the stored call: secrets are masked
        calls.append(EvaluatedCall(read.row, judged, *known[index], group))
    return calls, failed, refused


def agreement(evaluation: Evaluation, labels: Mapping[int, bool] | None = None) -> Agreement:
    """Compare the judge's scores with `labels`, by row; None: the labels of the evaluation."""
    pairs = []
    for each in evaluation.calls:
        label = each.label if labels is None else labels.get(each.row)
        if label is not None and each.call.score is not None:
            pairs.append((bool(label), each.call.score >= 0.5))
    return _agreement(pairs)


def agreement_of_worked(evaluation: Evaluation) -> Agreement:
    """Compare `EvaluatedCall.worked`, which rates are counted from, with the labels."""
    return _agreement((each.label, each.worked) for each in evaluation.calls)


def _agreement(labels_and_verdicts: Iterable[tuple[bool | None, bool | None]]) -> Agreement:
    pairs = known_pairs(labels_and_verdicts)
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
