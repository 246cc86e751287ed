"""What a store decides of a tool, whatever it writes to. Pure: nothing here reads, writes or asks for the time.

Each write is a request. A store reads what it asks for, lets it decide, and carries the step out in one commit:

    request.prepare()                               checks and encodes; needs no lock
    found = Found(row, known, calls, taken)         what the store holds: `request.ids`, `.seqs`, `.memory_id`
    step = request.decide(found)                    raises Conflict or RequestError: then nothing is written
    ... write `step.row`, `step.entering` and so on, unless `step.row` is None
    answer with `step.answer()`
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from toolmem.errors import Conflict, RequestError
from toolmem.late_dataclasses import dataclass, field, replace
from toolmem.light_models import LifetimeCounters, merge_ranges
from toolmem.store.codec import (
    PreparedCall,
    Ranges,
    clip,
    guidance_json,
    lacks_verdict,
    members,
    micros,
    moment,
    prepare,
    prepared,
    require_keep,
    require_names,
    storable,
    without,
)
from toolmem.store.counters import counted, recounted
from toolmem.stored import Appended, CallFailure, Document

if TYPE_CHECKING:
    from toolmem.models import Guidance, ToolCallResult, ToolRecord

T = TypeVar("T")

MAX_SEQ = 2**32 - 1
JUDGEMENT = ("summary", "evaluation", "score", "evaluation_status", "execution_failed", "error_class", "judge")


# -- the state of a tool


@dataclass(slots=True)
class ToolRow:
    """All that a store knows of one tool beside its calls; times in microseconds since 1970."""

    name: str
    memory_id: str
    id_stem: str
    version: int
    guidance_version: int
    first_seq: int
    last_seq: int
    covered: Ranges
    unjudged: Ranges
    counters: LifetimeCounters = field(repr=False)
    time_created: int
    time_modified: int
    id: int = 0  # the backend's own number; 0: not stored yet
    guidance: Guidance | None = field(default=None, repr=False)

    @property
    def kept(self) -> int:
        return self.last_seq - self.first_seq + 1

    def assigned_id(self, seq: int) -> str:
        """The id that the store gives to a call that came without one."""
        return f"{self.id_stem}-{seq}"

    def assigned(self, call_id: str) -> bool:
        """Whether this is an id that the store itself has given away."""
        stem, dash, number = call_id.rpartition("-")
        if not dash or stem != self.id_stem or not number.isascii() or not number.isdecimal():
            return False
        return number[0] != "0" and len(number) <= 12 and int(number) <= self.last_seq

    def changed(self, now: int, **fields: Any) -> ToolRow:
        """As the next commit leaves it."""
        return replace(self, **{"version": self.version + 1, "time_modified": now, **fields})

    def record(self, workspace: str) -> ToolRecord:
        from toolmem.models import ToolRecord

        return ToolRecord(
            workspace=workspace,
            tool_name=self.name,
            memory_id=self.memory_id,
            version=self.version,
            guidance_version=self.guidance_version,
            first_seq=self.first_seq,
            last_seq=self.last_seq,
            covered=list(self.covered),
            unjudged=sorted(members(self.unjudged)),
            counters=self.counters,
            guidance=self.guidance,
            time_created=moment(self.time_created),
            time_modified=moment(self.time_modified),
        )

    def shown_seqs(self, recent: int | None, picked: Sequence[int] | None) -> Sequence[int]:
        """The kept calls that a reader asks for, oldest first; see `MemoryStore.memories`."""
        if picked is not None:
            return [seq for seq in sorted(set(picked)) if self.first_seq <= seq <= self.last_seq]
        first = self.first_seq if recent is None else max(self.first_seq, self.last_seq - max(recent, 0) + 1)
        return range(first, self.last_seq + 1)


def fresh(name: str, now: int, memory_id: str | None = None) -> ToolRow:
    """A tool that the store does not know yet. `id_stem` is never taken over from elsewhere: two stores that hold
    the same tool must not give the same id to two calls."""
    import uuid  # late, with what it brings along: few hooks see a new tool

    stem = uuid.uuid4().hex[:16]
    return ToolRow(name, memory_id or uuid.uuid4().hex, stem, 0, 0, 1, 0, [], [], LifetimeCounters(), now, now)


# -- calls on their way in


def admit(row: ToolRow, new: Sequence[PreparedCall], keep: int) -> tuple[ToolRow, dict[int, PreparedCall]]:
    """Give each call its seq, count it, and move the window to the newest `keep`: the calls that enter it, by seq.
    Coverage and missing verdicts speak of kept calls only, so that the row never grows with the history."""
    last = row.last_seq + len(new)
    if last > MAX_SEQ:
        raise RequestError(f"tool {row.name!r}: more than {MAX_SEQ:,} calls in one memory")
    first = max(row.first_seq, last - keep + 1)
    entering = {seq: item for seq, item in enumerate(new, row.last_seq + 1) if seq >= first}
    unjudged = merge_ranges([seq for seq, item in entering.items() if lacks_verdict(item.call)], row.unjudged)
    admitted = replace(
        row,
        first_seq=first,
        last_seq=last,
        covered=clip(row.covered, first, last),
        unjudged=clip(unjudged, first, last),
        counters=counted(row.counters, [item.call for item in new]),
    )
    return admitted, entering


# -- requests and steps


@dataclass(frozen=True, slots=True)
class Found:
    """What a request is decided on."""

    row: ToolRow | None = None  # None: the tool is unknown
    known: Collection[str] = ()  # those of the request's `ids` that came with a call of this tool before
    calls: Mapping[int, ToolCallResult] = field(default_factory=dict)  # kept and readable ones of its `seqs`
    taken: bool = False  # another tool of the workspace has its `memory_id`

    def knows(self, call_id: str) -> bool:
        return call_id in self.known or (self.row is not None and self.row.assigned(call_id))


@dataclass(frozen=True, slots=True)
class Step(Generic[T]):
    """What one commit writes. `row` None: nothing."""

    answer: Callable[[], T]  # for who wants it
    row: ToolRow | None = None  # as it is to be
    leaving: tuple[int, int] | None = None  # first and last of the seqs that the window drops
    new: Mapping[int, PreparedCall] = field(default_factory=dict)  # calls to log, by seq
    entering: Mapping[int, PreparedCall] = field(default_factory=dict)  # those of them that the window has
    replaced: Mapping[int, PreparedCall] = field(default_factory=dict)  # kept calls with another judgement, by seq
    ids: Sequence[str] = ()  # that are known from now on
    guidance: str | None = None  # JSON of the guidance in `row`, where it is new
    document: Document | None = None  # its searchable side

    def window(self, kept: Mapping[int, ToolCallResult]) -> dict[int, ToolCallResult]:
        """The kept calls after this step, by seq, as a store without rows holds them."""
        assert self.row is not None
        calls = {seq: call for seq, call in kept.items() if seq >= self.row.first_seq}
        for seq, item in {**self.entering, **self.replaced}.items():
            calls[seq] = self._as_stored(seq, item).model_copy(update={"seq": seq})
        return calls

    def logged(self) -> dict[int, ToolCallResult]:
        """The calls to log, by seq, as `MemoryStore.call_log` answers them."""
        return {seq: self._as_stored(seq, item) for seq, item in self.new.items()}

    def _as_stored(self, seq: int, item: PreparedCall) -> ToolCallResult:
        assert self.row is not None
        own: dict[str, Any] = {"seq": None, "id": item.call.id or self.row.assigned_id(seq), "is_summarized": False}
        own["create_time"] = item.call.create_time.astimezone(UTC)
        return item.call.model_copy(update=own, deep=True)


class Request(Generic[T]):
    """A write to one tool."""

    ids: Sequence[str] = ()  # of calls: which of them does the store know?
    seqs: Sequence[int] = ()  # of kept calls that are to be read
    memory_id: str = ""  # does another tool have it?
    brings_guidance: bool = False  # perhaps

    def __init__(self, now: datetime, workspace: str, tool: str) -> None:
        self.now = micros(now)
        self.workspace = workspace
        self.tool = tool

    @property
    def addressable(self) -> bool:
        """Whether there can be such a tool; where not, a request is decided on nothing found."""
        return storable(self.workspace) and storable(self.tool)

    def prepare(self) -> None:
        """Check and encode what is handed over."""

    def decide(self, found: Found) -> Step[T]:
        """May be asked again, on something else found. Raises Conflict or RequestError."""
        raise NotImplementedError


class Intake(NamedTuple):
    """A tool before and after it takes in calls."""

    before: ToolRow
    row: ToolRow
    entering: Mapping[int, PreparedCall]  # of the calls those that the window has, by seq
    document: Document | None = None  # of the guidance that comes with them
    guidance: str | None = None  # JSON


class AppendCalls(Request[Appended]):
    makes_tools = False  # also without a call

    def __init__(
        self, now: datetime, workspace: str, tool: str, calls: Callable[[], Sequence[ToolCallResult]], keep: int
    ) -> None:
        require_keep(keep)
        super().__init__(now, workspace, tool)
        self._calls = calls
        self._keep = keep
        self._good: list[PreparedCall] = []
        self._failures: dict[int, CallFailure] = {}

    def prepare(self) -> None:
        self._good, bad = prepare(self.tool, self._calls())
        self._failures = {failure.index: failure for failure in bad}
        self.ids = list(dict.fromkeys(item.call.id for item in self._good if item.call.id is not None))

    def refuse(self, item: PreparedCall, why: str) -> None:
        """The backend will not take this call: it is named, the others go on without it."""
        self._good = [each for each in self._good if each is not item]
        self._failures[item.index] = CallFailure(item.index, self.tool, why)

    def decide(self, found: Found) -> Step[Appended]:
        new, duplicates = self._unseen(found)
        if not new and (found.row is not None or not self.makes_tools):
            return Step(lambda: self._answer(found.row, 0, duplicates, 0))
        require_names(self.workspace, self.tool)
        before, row, entering, document, guidance = self._intake(found, new)
        last_gone = min(row.first_seq - 1, before.last_seq)
        return Step(
            lambda: self._answer(row, len(new), duplicates, before.kept + len(new) - row.kept),
            row,
            leaving=(before.first_seq, last_gone) if last_gone >= before.first_seq else None,
            new=dict(enumerate(new, before.last_seq + 1)),
            entering=entering,
            ids=[item.call.id for item in new if item.call.id is not None],
            guidance=guidance,
            document=document,
        )

    def _intake(self, found: Found, new: Sequence[PreparedCall]) -> Intake:
        before = found.row or fresh(self.tool, self.now)
        row, entering = admit(before, new, self._keep)
        return Intake(before, row.changed(self.now), entering)

    def _unseen(self, found: Found) -> tuple[list[PreparedCall], tuple[int, ...]]:
        """The calls that are new, and the positions of those whose id is known, from before or from earlier here."""
        new: list[PreparedCall] = []
        duplicates: list[int] = []
        seen: set[str] = set()
        for item in self._good:
            call_id = item.call.id
            if call_id is not None and (call_id in seen or found.knows(call_id)):
                duplicates.append(item.index)
                continue
            new.append(item)
            if call_id is not None:
                seen.add(call_id)
        return new, tuple(duplicates)

    def _answer(self, row: ToolRow | None, stored: int, duplicates: tuple[int, ...], trimmed: int) -> Appended:
        failures = tuple(self._failures[index] for index in sorted(self._failures))
        record = None if row is None else row.record(self.workspace)
        return Appended(record, stored, duplicates, trimmed, failures)


class PutGuidance(Request["ToolRecord"]):
    brings_guidance = True

    def __init__(
        self,
        now: datetime,
        workspace: str,
        tool: str,
        guidance: Guidance,
        document: Document,
        guidance_version: int,
    ) -> None:
        super().__init__(now, workspace, tool)
        self._guidance = guidance if guidance.created_at else guidance.model_copy(update={"created_at": now})
        self._document = document
        self._version = guidance_version

    def prepare(self) -> None:
        from toolmem.models import Guidance

        self._json = guidance_json(self._guidance)
        self._guidance = Guidance.model_validate_json(self._json)

    def decide(self, found: Found) -> Step[ToolRecord]:
        row = found.row
        if row is None:
            raise Conflict(f"workspace {self.workspace!r}: tool {self.tool!r} is gone; read again and decide again")
        if row.guidance_version != self._version:
            raise Conflict(
                f"workspace {self.workspace!r}: the guidance of tool {self.tool!r} is at version "
                f"{row.guidance_version}, not at {self._version}; read again and decide again"
            )
        covered = clip(merge_ranges(self._guidance.covered), row.first_seq, row.last_seq)
        new = row.changed(
            self.now,
            guidance_version=row.guidance_version + 1,
            covered=merge_ranges([], [*row.covered, *covered]),
            guidance=self._guidance,
        )
        return Step(lambda: new.record(self.workspace), new, guidance=self._json, document=self._document)


class UpdateVerdicts(Request["ToolRecord | None"]):
    def __init__(self, now: datetime, workspace: str, tool: str, verdicts: Mapping[int, ToolCallResult]) -> None:
        super().__init__(now, workspace, tool)
        self._verdicts = dict(verdicts)
        self.seqs = sorted(self._verdicts)

    def decide(self, found: Found) -> Step[ToolRecord | None]:
        row = found.row
        if row is None:
            return Step(lambda: None)
        replaced = {seq: self._judged(row, seq, call) for seq, call in found.calls.items()}
        if not replaced:
            return Step(lambda: row.record(self.workspace))
        lacking = [seq for seq, item in replaced.items() if lacks_verdict(item.call)]
        new = row.changed(
            self.now,
            guidance_version=row.guidance_version + 1,
            covered=without(row.covered, replaced),
            unjudged=merge_ranges(lacking, without(row.unjudged, replaced)),
            counters=recounted(row.counters, ((call, replaced[seq].call) for seq, call in found.calls.items())),
        )
        return Step(lambda: new.record(self.workspace), new, replaced=replaced)

    def _judged(self, row: ToolRow, seq: int, call: ToolCallResult) -> PreparedCall:
        judged = call.model_copy(update={name: getattr(self._verdicts[seq], name) for name in JUDGEMENT})
        try:
            return prepared(seq, judged, self.tool, None if call.id == row.assigned_id(seq) else call.id)
        except ValueError as error:
            raise RequestError(f"verdicts[{seq}]: {error}", field="verdicts") from error
