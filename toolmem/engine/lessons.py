"""What calls that have ended teach the guard of a workspace: which of its records change, one after the other.

Where a store can do it, the records change in the commit that keeps the calls: a crash leaves neither or both.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from toolmem.engine.ended_calls import EndedCall, Lesson, TaughtCalls, ended_call, recorded_failure, was_not_run
from toolmem.engine.guard_records import (
    FORGIVENESS,
    WATCH,
    Folder,
    GuardRecords,
    Places,
    RecordChange,
    in_folder,
)
from toolmem.engine.held_histories import HeldHistory
from toolmem.guard.conversation import CheckedCall, ConversationGuard, Watch
from toolmem.guard.known_names import KnownNames
from toolmem.guard.repeats import Ended, Forgiveness, StandingFailures
from toolmem.late_dataclasses import dataclass, replace

if TYPE_CHECKING:
    from toolmem.guard.decision import CallMark
    from toolmem.protocols import MemoryStore
    from toolmem.stored import Appended, LoggedDecision, Outcome, RecordsOfCommit


_LONGEST_ID = 256
_OUTCOMES: dict[bool | None, Outcome] = {True: "failed", False: "worked", None: "unknown"}


@dataclass(frozen=True, slots=True)
class ToldCall:
    """A call that the guard is told of."""

    index: int  # among the calls that are kept with it
    call: Any  # as it came
    mark: CallMark | None  # of the decision about it
    conversation: str
    entry: LoggedDecision | None = None  # the decision's
    moved: int = 0  # how often its conversation was seen to change by now
    decision: str = ""  # the id of the decision about it


class Lessons:
    """What calls teach; `BesideCalls` for the store that keeps them.

    `told`: those of them that the guard is told of. `taught`: where given, a call that taught already teaches nothing.
    `first`: the indices of those that do; `moved`: the conversations in which they changed something.
    """

    def __init__(
        self,
        calls: Sequence[Any],
        told: Sequence[ToldCall],
        records: GuardRecords,
        key: bytes,
        context_key: str,
        taught: TaughtCalls | None,
    ) -> None:
        self.calls = calls
        self._told = told
        self._records = records
        self._key = key
        self._context_key = context_key
        self._taught = taught
        self._kept: Sequence[Any] = ()
        self._known: dict[tuple[Any, ...], tuple[CheckedCall, Ended]] = {}
        self._ended: dict[int, EndedCall] = {}  # by index
        self.first: set[int] = set()
        self.moved: list[str] = []
        self.error: Exception | None = None  # why they taught nothing: no reason not to keep them

    def prepare(self, kept: Sequence[Any]) -> None:
        self._kept = kept
        try:
            self._ended = {told.index: self._end_of(told) for told in self._told if not was_not_run(told.call)}
        except Exception as error:
            self.error = error

    def _end_of(self, told: ToldCall) -> EndedCall:
        return ended_call(
            told.call,
            self._kept[told.index],
            told.mark,
            key=self._key,
            context_key=self._context_key,
            moved=told.moved,
            known=self._known,
            decision=told.decision,
        )

    def change(self, records: RecordsOfCommit, appended: Mapping[str, Appended]) -> None:
        if self.error is not None:
            return
        try:
            conversations = self.changes(left_out(self._kept, appended))
            write = self._records.changed(chain.from_iterable(conversations), records)
        except Exception as error:
            self.error = error
            self.take_back()
        else:
            write()

    def changes(self, left_out: Collection[int] = ()) -> Iterator[Iterator[RecordChange]]:
        """Of one conversation after the other, each to be made before the next one is asked for. `left_out`: indices
        of calls that were not kept.
        """
        by_conversation: dict[str, list[EndedCall]] = {}
        for told in self._told:
            if told.index in left_out or not (self._taught is None or self._taught.is_first(told.call.id)):
                continue
            self.first.add(told.index)
            if told.index in self._ended:
                by_conversation.setdefault(told.conversation, []).append(self._ended[told.index])
        for conversation, ended in by_conversation.items():
            yield self._of_conversation(conversation, ended)

    def ended_entries(self) -> Iterator[LoggedDecision]:
        """The decisions about these calls, with what became of them."""
        for told in self._told:
            entry, not_run = told.entry, was_not_run(told.call)
            if entry is None or told.index not in self.first:
                continue
            if not entry.outcome or (entry.outcome == "not_run" and not not_run):
                outcome: Outcome = "not_run" if not_run else _OUTCOMES[recorded_failure(told.call)]
                yield replace(entry, outcome=outcome, call_id=(told.call.id or "")[:_LONGEST_ID])

    def take_back(self) -> None:
        """The calls were not kept, so they taught nothing."""
        if self._taught is not None:
            self._taught.forget(told.call.id for told in self._told if told.index in self.first)
        self.first.clear()
        self.moved.clear()

    def _of_conversation(self, conversation: str, ended: Sequence[EndedCall]) -> Iterator[RecordChange]:
        if conversation:
            yield from self._failures(conversation, ended)
            yield _of_history(conversation, ended)
        for each in ended:
            failed = each.failed
            if each.names is not None and failed is not None and each.statement:
                yield _of_names(each.names, each.statement, each.output, failed=failed)

    def _failures(self, conversation: str, ended: Sequence[EndedCall]) -> Iterator[RecordChange]:
        folders: dict[str, str] = {}
        for cwd in dict.fromkeys(each.cwd for each in ended if each.cwd):
            yield _reading_folder(cwd, folders)
        lesson = Lesson()

        def change(standing: StandingFailures) -> None:
            nonlocal lesson
            lesson = Lesson(dict(folders))
            standing.forgiveness = lesson.forgiveness
            guard = ConversationGuard(standing=standing, watch=lesson.watch)
            for each in ended:
                lesson.take(guard, each)

        place = Places(conversation).of_conversation
        assert place is not None
        yield RecordChange(place, StandingFailures.from_json, StandingFailures, change)
        if lesson.moved:
            self.moved.append(conversation)
        yield from _counted(lesson.forgiveness, lesson.watch)
        for cwd in lesson.wrote | lesson.failed:
            yield _note_folder(cwd, lesson.token if cwd in lesson.wrote else "", cwd in lesson.failed)


def _of_history(conversation: str, ended: Sequence[EndedCall]) -> RecordChange:
    """A conversation none of whose calls met what rules ask for has no such record, and costs a look at it."""
    place = Places(conversation).of_history
    assert place is not None

    def change(history: HeldHistory) -> None:
        for each in ended:
            history.end(each.decision, each.checked.tool_name, each.checked.arguments, failed=each.failed)

    return RecordChange(place, HeldHistory.from_json, HeldHistory, change)


async def append_each(store: MemoryStore, workspace: str, calls: Sequence[Any], keep: int) -> dict[str, Appended]:
    """One commit per tool, for a store without commits of several; by tool."""
    by_tool: dict[str, list[Any]] = {}
    for call in calls:
        by_tool.setdefault(call.tool_name, []).append(call)
    return {tool: await store.append_calls(workspace, tool, given, keep) for tool, given in by_tool.items()}


def left_out(calls: Sequence[Any], appended: Mapping[str, Appended]) -> set[int]:
    """The positions of those that were not kept, or were kept before."""
    if not appended:
        return set()
    out = {tool: {*each.duplicates, *(failure.index for failure in each.failures)} for tool, each in appended.items()}
    seen: dict[str, int] = {}
    positions: set[int] = set()
    for position, call in enumerate(calls):
        at = seen.get(call.tool_name, 0)
        seen[call.tool_name] = at + 1
        if at in out[call.tool_name]:
            positions.add(position)
    return positions


def _counted(forgiveness: Forgiveness, watch: Watch) -> Iterator[RecordChange]:
    if forgiveness.repeats:
        yield RecordChange(FORGIVENESS, Forgiveness.from_json, Forgiveness, lambda held: held.add(forgiveness))
    if watch.forced:
        yield RecordChange(WATCH, Watch.from_json, Watch, lambda held: held.add(watch))


def _of_names(names: tuple[str, str], statement: str, output: str, *, failed: bool) -> RecordChange:
    place = Places(names=names).of_names
    assert place is not None
    return RecordChange(
        place, KnownNames.from_json, KnownNames, lambda held: held.learn(statement, output, failed=failed)
    )


def _reading_folder(cwd: str, into: dict[str, str]) -> RecordChange:
    """How a failure remembers this working folder."""
    place = Places(cwd=cwd).of_folder
    assert place is not None
    return RecordChange(
        place, Folder.from_json, Folder, lambda folder: into.__setitem__(cwd, in_folder(cwd, folder.wrote))
    )


def _note_folder(cwd: str, wrote: str, failed: bool) -> RecordChange:
    """What happened in a working folder. `wrote`: a new token where somebody did, which resets what stands."""
    place = Places(cwd=cwd).of_folder
    assert place is not None

    def change(folder: Folder) -> None:
        if wrote and (folder.held or failed):
            folder.wrote, folder.held = wrote, failed
        folder.held = folder.held or failed

    return RecordChange(place, Folder.from_json, Folder, change)
