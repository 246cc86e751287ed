"""Calls that have ended, as the guard learns from them."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from toolmem.engine.guard_records import in_folder
from toolmem.guard.call_lessons import ended_as
from toolmem.guard.conversation import CheckedCall, ConversationGuard, Watch, identity_of
from toolmem.guard.decision import CallMark, GuardDecision
from toolmem.guard.effects import names_text
from toolmem.guard.repeats import Ended, Forgiveness
from toolmem.late_dataclasses import dataclass, field
from toolmem.light_models import ToolCall, ToolSchema, conversation_told
from toolmem.readers.denied_calls import is_denied

if TYPE_CHECKING:
    from toolmem.protocols import Clock

_MOST_TAUGHT = 10_000
_UNLIKE_ANY = -1  # a state that no conversation has
_LET_THROUGH = GuardDecision("", "allow")
_UNMARKED = CallMark("", "")


@dataclass(frozen=True, slots=True)
class EndedCall:
    """A call as it ended. What is learned of it is without its secrets; its identity is of the input as it came."""

    checked: CheckedCall
    ended: Ended
    failed: bool | None
    output: str
    call_id: str
    names: tuple[str, str] | None  # tool and context
    statement: str  # whose names may be known not to exist
    cwd: str
    decision: str = ""  # the id of the decision about it, where it is told


@dataclass(slots=True)
class Lesson:
    """What calls teach beside what their conversation remembers."""

    folders: dict[str, str] = field(default_factory=dict)  # as a failure remembers each
    forgiveness: Forgiveness = field(default_factory=Forgiveness)
    watch: Watch = field(default_factory=Watch)
    wrote: set[str] = field(default_factory=set)  # folders
    failed: set[str] = field(default_factory=set)
    moved: bool = False  # something was changed
    token: str = field(default_factory=lambda: new_id())

    def take(self, guard: ConversationGuard, call: EndedCall) -> None:
        standing = guard.standing
        standing.folder, state = self.folders.get(call.cwd, ""), standing.state
        guard.learn(call.checked, call.ended, failed=call.failed, call_id=call.call_id)
        wrote = standing.state != state
        self.moved |= wrote
        if call.cwd and wrote:
            self.wrote.add(call.cwd)
            self.folders[call.cwd] = in_folder(call.cwd, self.token)
        elif call.cwd and call.failed:
            self.failed.add(call.cwd)


class TaughtCalls:
    """The newest calls that taught the guards of a process: none does so twice, whichever ways it is told."""

    def __init__(self) -> None:
        self._ids: OrderedDict[str, None] = OrderedDict()

    def is_first(self, call_id: str | None) -> bool:
        """Is it new? A call without an id always is."""
        if not call_id:
            return True
        known = call_id in self._ids
        self._ids[call_id] = None
        if len(self._ids) > _MOST_TAUGHT:
            self._ids.popitem(last=False)
        return not known

    def forget(self, ids: Iterable[str | None]) -> None:
        """They were not kept after all."""
        for call_id in ids:
            self._ids.pop(call_id or "", None)


def ended_call(
    call: Any,
    kept: Any,
    mark: CallMark | None,
    *,
    key: bytes,
    context_key: str,
    moved: int,
    known: dict[tuple[Any, ...], tuple[CheckedCall, Ended]],
    decision: str = "",
) -> EndedCall:
    """`kept`: as the store keeps it. `mark`: of its decision, where that is known; `moved`: how often its conversation
    was seen to change by now. `known`: equal calls without a decision, as they were read before.
    """
    mark = mark or _UNMARKED
    identity = mark.identity or identity_of(call.tool_name, call.input, key)
    began = mark.state if mark is _UNMARKED or mark.moved == moved else _UNLIKE_ANY
    context = mark.context or field_of(call, context_key)
    cwd = mark.cwd or field_of(call, "metadata.cwd")
    failed = recorded_failure(call)
    shown = kept if failed or context else call
    alike = (identity, failed, shown.output) if identity and mark is _UNMARKED else None
    found = known.get(alike) if alike else None
    if found is None:
        checked = CheckedCall(_LET_THROUGH, call.tool_name, shown.input, identity, mark.forced, began, mark.hints)
        found = checked, ended_as(call.tool_name, shown.input, failed=failed, output=shown.output, hints=mark.hints)
        if alike:
            known[alike] = found
    checked, ended = found
    names = (call.tool_name, context) if context else None
    statement = names_text(shown.input, call.tool_name) if names else ""
    return EndedCall(checked, ended, failed, shown.output, shown.id or "", names, statement, cwd, decision)


def call_of(given: Any, clock: Clock) -> Any:
    """A call as stores take it, from whatever a host has. Raises RecordError, RequestError."""
    if isinstance(given, ToolCall):
        given = given.record()
    if isinstance(given, Mapping):
        from toolmem.formats.call_records import RecordNotes, read_record

        given = read_record(given, 0, clock=clock, notes=RecordNotes())
    return given


def with_names(call: Any, decision: GuardDecision | str | None) -> Any:
    """The call with what the guard speaks of later: its conversation, and an id where it failed or was found fault
    with. A store gives ids as well, and tells nobody.
    """
    mark = decision.mark if isinstance(decision, GuardDecision) else None
    update: dict[str, Any] = {}
    conversation = conversation_told(call.metadata)
    if conversation is None and mark is not None and mark.conversation_id:
        update["metadata"] = {**call.metadata, "conversation_id": mark.conversation_id}
        conversation = mark.conversation_id
    doubted = isinstance(decision, str) or (decision is not None and bool(decision.sources))
    if not call.id and (doubted or (conversation and call.success is False)):
        update["id"] = new_id()
    return call.model_copy(update=update) if update else call


def recorded_failure(call: Any) -> bool | None:
    """As recorded: what a judge says of a call only advises."""
    return None if call.success is None else not call.success


def was_not_run(call: Any) -> bool:
    """Was it stopped before it ran, as its outcome says?"""
    return isinstance(call.output, str) and is_denied(call.output)


def field_of(call: Any, dotted: str) -> str:
    """The value of a dotted field of a record; empty where it has none."""
    value: Any = call if dotted else None
    for part in dotted.split("."):
        value = value.get(part) if isinstance(value, Mapping) else getattr(value, part, None)
    return str(value) if isinstance(value, str | int) else ""


def new_id() -> str:
    """Of a decision, or of a call that came without one."""
    return os.urandom(16).hex()


def problems_of(arguments: Any, schema: ToolSchema | None) -> list[str]:
    """What speaks against the arguments of a call, as its tool is declared."""
    from toolmem.judge.parameters import check

    return [each.message for each in check(arguments, schema)]
