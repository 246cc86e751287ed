"""What the guard stores of a conversation and of a workspace, and the call that it decides on."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from msgspec import Struct, field

from toolmem.guard.history import CallHistory, still_counted
from toolmem.guard.known_names import KnownNames
from toolmem.guard.repeats import Failures
from toolmem.models.calls import Moment
from toolmem.models.decisions import Decision
from toolmem.models.protocols import Store
from toolmem.models.rules import RuleChange, ToolMemoryRule
from toolmem.models.tools import ToolSchema
from toolmem.store.storable import micros, read_or_new, swap
from toolmem.view.conditions import MoreThan
from toolmem.view.view import CallView

NAMESPACE = ".guard"
# Tools of toolmem that keep, lift and read demands: their calls are never stopped.
OWN_TOOLS = frozenset(
    ["note_demand", "lift_demand", "memory_tools_put", "memory_tools_list", "memory_recall"]
)
CONVERSATION = "conversation/"  # prefix of the keys of `Conversation` records
STOPS = "stops/"  # prefix of the keys of `RuleStops` records
MAX_FORGIVEN = 500  # errors
MAX_STOPS = 20  # of a conversation, since the user's last message
MAX_AGREED = 200  # of a conversation, the newest


class Conversation(Struct, kw_only=True, omit_defaults=True):
    """What the guard stores of one conversation: failed and stopped calls, counts, permissions."""

    failures: Failures = field(default_factory=Failures)
    history: CallHistory = field(default_factory=CallHistory)
    names: KnownNames = field(default_factory=KnownNames)
    counted: dict[str, list[int]] = {}  # times in microseconds since 1970, by `count_key`
    stops: dict[str, str] = {}  # calls stopped since the user's last message: `once` -> whole text
    stopped_by: list[str] = []  # ids of the rules that stopped them
    stopped_before: list[str] = []  # ids of the rules that stopped calls before that message
    once: str = ""  # `PlannedCall.once` of the call that the user permitted to run once
    once_until: int = 0  # microseconds since 1970
    agreed: list[str] = []  # `DecisionSource.unknown` of the questions that the user agreed to
    lift_declined: list[str] = []  # ids of rules that the user was asked to lift, and kept
    is_guests: bool = False  # a guest speaks in it: no denial names a way out

    def remember_stop(self, call: PlannedCall, shown: str, decision: Decision) -> None:
        """Remember a stopped call for a repeat or `yes, this once`. `shown`: the call as text."""
        is_stopped = decision.action in ("ask", "deny")
        failure = self.failures.failures.get(call.identity)
        if failure is not None and any(s.kind == "repeat" for s in decision.sources):
            if is_stopped:
                failure.is_denied = True
            elif failure.is_denied:
                failure.is_forced = True
        rules = decision.rule_ids if is_stopped else []
        if rules and len(self.stops) < MAX_STOPS:
            self.stops[call.once] = shown
            self.stopped_by = list(dict.fromkeys([*self.stopped_by, *rules]))


class WorkspaceRecord(Struct, kw_only=True, omit_defaults=True):
    """What the guard stores of a workspace: forgiven errors (`forgive`), and counts of calls."""

    errors: list[str] = []  # `FailedCall.error` of each
    counted: dict[str, list[int]] = {}  # as in `Conversation`

    def forgive(self, error: str) -> None:
        """Let calls that failed with this error be repeated from now on."""
        others = [each for each in self.errors if each != error]
        self.errors = [*others, error][-MAX_FORGIVEN:]


def count_call(
    state: Conversation | WorkspaceRecord, key: str, test: MoreThan, now: datetime
) -> bool:
    """Count a call for a rule with a limit; return False if the limit was already reached."""
    counted = still_counted(state.counted.get(key, ()), test, now)
    state.counted[key] = [*counted, micros(now)][: test.calls]
    return len(counted) < test.calls


class RuleStops(Struct):
    """How often a rule stopped a call, and when it last did."""

    number: int = 0
    last: Moment | None = None


def count_stop(store: Store, workspace: str, rule_id: str, now: datetime) -> None:
    """Count that a rule stopped a call."""

    def change(stops: RuleStops) -> None:
        stops.number += 1
        stops.last = now

    swap(store, workspace, (NAMESPACE, f"{STOPS}{rule_id}"), RuleStops, change)


def rule_stops(store: Store, workspace: str) -> dict[str, RuleStops]:
    """Return how often each rule stopped a call, by the rule's id."""
    records = store.list_records(workspace, NAMESPACE, key_prefix=STOPS)
    return {r.key.removeprefix(STOPS): read_or_new(r, RuleStops) for r in records}


class PlannedCall(Struct):
    """A call to decide about, with the records of its conversation and workspace."""

    view: CallView
    arguments: Any
    conversation_id: str
    schema: ToolSchema | None = None
    force: bool | None = False  # as in `Guard.before`
    asks_user: bool = False  # a person is known to answer a question about it
    call_id: str = ""  # the agent's
    identity: str = ""
    once: str = ""  # its identity with the folder that it runs in
    uses_up: bool = False  # a count or a permission was written before the decision
    conversation: Conversation = field(default_factory=Conversation)
    workspace: WorkspaceRecord = field(default_factory=WorkspaceRecord)

    def question_about(self, rule: ToolMemoryRule, now: datetime) -> RuleChange | None:
        """Return the open question to the user whether to lift a rule; None if there is none."""
        asked = rule.question_at(now)
        if asked is None or asked.session != self.conversation_id:
            return None
        return None if rule.id in self.conversation.lift_declined else asked
