"""The guard of one workspace: decides before a call, and learns from how it ended.

    decision = guard.before("send_email", {"to": "sarah@example.com"}, conversation="c1")
    if decision.action in ("allow", "advise"):
        ...
        guard.after(decision, {"to": "sarah@example.com"}, output="sent", failed=False)

What a conversation learned is one record of the store, changed by compare-and-swap.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from toolmem.config.sections import GuardSection
from toolmem.errors import StoreError
from toolmem.guard.decision import Finding, decide, of_rule, quoted
from toolmem.guard.history import CallHistory, KnownHistory, count_key, micros, record, test_begins
from toolmem.guard.known_names import KnownNames, statement_in
from toolmem.guard.repeats import (
    MAX_FORGIVEN,
    ConversationFailures,
    check_repeat,
    ended_as,
    identity,
    take,
)
from toolmem.guard.rule_cache import CheckedRule, RuleSet
from toolmem.guard.self_protection import check_self
from toolmem.models.decisions import Action, Decision
from toolmem.models.protocols import Clock, Store
from toolmem.models.records import Record
from toolmem.models.tools import ToolSchema
from toolmem.rules.identity import folded_name
from toolmem.rules.replies import is_this_once
from toolmem.rules.store import ToolMemoryStore, retry_on_conflict
from toolmem.text.masking import Masker
from toolmem.text.stopped_calls import was_stopped
from toolmem.view.conditions import Match, MoreThan
from toolmem.view.effects import CallEffects
from toolmem.view.view import CallView

log = logging.getLogger("toolmem.guard")
Decoded = TypeVar("Decoded")

NAMESPACE = ".guard"
FORGIVENESS = (NAMESPACE, "forgiveness")
# Calls that are never stopped: through them demands are kept, lifted and read.
OWN_TOOLS = frozenset(
    ["note_demand", "lift_demand", "memory_tools_put", "memory_tools_list", "memory_recall"]
)
MAX_OPEN = 1_000  # calls under way in this process


class Conversation(Struct, kw_only=True, omit_defaults=True):
    """What one conversation learned."""

    failures: ConversationFailures = field(default_factory=ConversationFailures)
    history: CallHistory = field(default_factory=CallHistory)
    names: KnownNames = field(default_factory=KnownNames)
    counted: dict[str, list[int]] = {}  # by `more_than` per conversation: when, in microseconds
    stopped: str = ""  # the identity of the call that a rule stopped last
    once: str = ""  # the call that the user lets through once


class Forgiveness(Struct, kw_only=True, omit_defaults=True):
    """Errors of which an unchanged repeat has once worked, and calls that are counted per time."""

    errors: list[str] = []
    counted: dict[str, list[int]] = {}


class _Open(Struct):
    """A call that was let through and has not ended."""

    view: CallView
    call: str  # its identity
    changed: int  # how often the conversation had changed anything


class Guard:
    """Safe to use from several threads. `protected`: paths that only the user changes."""

    def __init__(
        self,
        store: Store,
        workspace: str,
        clock: Clock,
        modes: GuardSection | None = None,
        *,
        protected: Sequence[str] = (),
    ) -> None:
        self.store, self.workspace, self.clock = store, workspace, clock
        self.modes = modes or GuardSection()
        self.protected = protected
        self._rules = ToolMemoryStore(store, workspace, clock)
        self._rule_set: RuleSet | None = None
        self._open: dict[str, _Open] = {}
        self._lock = threading.Lock()
        self._key = b""

    # ------------------------------------------------------------ before

    def before(
        self,
        tool_name: str,
        arguments: Any,
        *,
        conversation: str = "",
        schema: ToolSchema | None = None,
        folder: str = "",
        force: bool | None = False,
    ) -> Decision:
        """What is to become of a call. Never raises for a store that fails: `guard.on_error` says.

        `force` lets a call through that a *repeat* stops; None: the host cannot say it, and the
        unchanged repeat of a call that was denied counts as force, once.
        """
        given = arguments if isinstance(arguments, Mapping) else {"": arguments}
        view = CallView(tool_name, given, schema.parameters if schema else None, folder)
        decision_id, now = os.urandom(16).hex(), self.clock.now()
        try:
            findings = self._findings(view, arguments, decision_id, conversation, schema, force)
        except StoreError as error:
            findings = [self._without_store(error), *self._of_known_rules(view, conversation)]
            return decide(decision_id, now, tool_name, conversation, findings)
        decision = decide(decision_id, now, tool_name, conversation, findings)
        if findings:
            self._remember_stop(decision, view, arguments, conversation)
            self.store.log_decision(self.workspace, decision)
        return decision

    def load(self) -> None:
        """Read the rules now: they go on to bind where the store is gone later."""
        self._read("")

    def _of_known_rules(self, view: CallView, conversation: str) -> list[Finding]:
        if self._rule_set is None:
            return []
        try:
            known = Conversation(), Forgiveness()
            return self._of_rules(view, self._rule_set, *known, conversation)
        except StoreError:  # calls cannot be counted
            return []

    def _without_store(self, error: StoreError) -> Finding:
        log.warning("calls are not held against rules: %s", error)
        text = f"The user's rules could not be read ({type(error).__name__})."
        action: Action = "deny" if self.modes.on_error == "closed" else "advise"
        return Finding(kind="self", action=action, text=text, remedy="Tell the user.")

    def _findings(
        self,
        view: CallView,
        arguments: Any,
        decision_id: str,
        conversation: str,
        schema: ToolSchema | None,
        force: bool | None,
    ) -> list[Finding]:
        if folded_name(view.tool) in OWN_TOOLS:
            return []
        known, forgiven, rule_set = self._read(conversation)
        call = identity(view.tool, arguments, self._secret())
        findings = (
            []
            if known.once and known.once == call
            else self._of_rules(view, rule_set, known, forgiven, conversation)
        )
        if self.modes.rules != "off":
            findings += check_self(view, self.protected, self.modes.rules)
        findings += self._of_repeats(view, call, known, forgiven, force)
        statement = "" if self.modes.names == "off" else statement_in(arguments)
        if statement:
            findings += known.names.check(statement, self.modes.names)
        if self.modes.schema != "off":
            findings += self._of_schema(arguments, schema)
        if not any(f.effective in ("ask", "deny") for f in findings):
            with self._lock:
                self._open[decision_id] = _Open(view, call, known.failures.changed)
                while len(self._open) > MAX_OPEN:
                    del self._open[next(iter(self._open))]
            if known.once == call and call:
                self._change(conversation, lambda held: replace(held, once=""))
        return findings

    def _of_rules(
        self,
        view: CallView,
        rule_set: RuleSet,
        known: Conversation,
        forgiven: Forgiveness,
        conversation: str,
    ) -> list[Finding]:
        mode = self.modes.rules
        if mode == "off":
            return []
        now = self.clock.now().astimezone()
        history = KnownHistory(known.history, {**forgiven.counted, **known.counted}, now)
        found: list[Finding] = []
        counted: list[tuple[CheckedRule, MoreThan]] = []
        for each in rule_set.of(view, conversation):
            if not each.rule.holds_at(now):
                continue
            history.rule_id = each.rule.id
            match = each.conditions.check(view, now, history)
            if match is not Match.NO:
                is_sure = match is Match.YES
                first = _what_is_missing(each) if is_sure else ""
                action = _effect_of(each) if is_sure else "ask"
                found.append(of_rule(each.rule, action, mode, first))
            else:
                counted += [(each, test) for test in each.conditions.counted(view, now, history)]
        for each, test in counted if not found else ():
            if not self._take(conversation, each.rule.id, test, now):
                found.append(of_rule(each.rule, _effect_of(each), mode))
        return found

    def _of_repeats(
        self,
        view: CallView,
        call: str,
        known: Conversation,
        forgiven: Forgiveness,
        force: bool | None,
    ) -> list[Finding]:
        mode = self.modes.repeats
        if mode == "off" or not call or call not in known.failures.failures:
            return []
        outside = CallEffects(view.tool, view.arguments).asks_outside()
        found = check_repeat(
            known.failures, call, set(forgiven.errors), mode, outside, force is not None
        )
        failure = known.failures.failures[call]
        is_forced = force or (force is None and failure.is_denied and not failure.is_forced)
        return [replace(f, is_forced=bool(is_forced and f.action == "deny")) for f in found]

    def _of_schema(self, arguments: Any, schema: ToolSchema | None) -> list[Finding]:
        if schema is None:
            return []
        from toolmem.judge.schema import check

        problems = check(arguments, schema)
        if not problems:
            return []
        told = "; ".join(problem.message for problem in problems[:3])
        text = f"The arguments do not fit the tool: {quoted(Masker(self._secret()).text(told))}."
        return [Finding(kind="schema", action="deny", text=text, mode=self.modes.schema)]

    def _remember_stop(
        self, decision: Decision, view: CallView, arguments: Any, conversation: str
    ) -> None:
        """What a decision leaves for the next one."""
        call = identity(view.tool, arguments, self._secret())
        kinds = {source.kind for source in decision.sources}
        is_stopped = decision.action in ("ask", "deny")
        if not call or not (kinds & {"repeat", "rule"}):
            return

        def change(held: Conversation) -> Conversation:
            failure = held.failures.failures.get(call)
            if failure is not None and "repeat" in kinds:
                failure.is_denied |= is_stopped
                failure.is_forced |= failure.is_denied and not is_stopped
            return replace(held, stopped=call) if is_stopped and "rule" in kinds else held

        self._change(conversation, change)

    # ------------------------------------------------------------ after

    def after(
        self,
        decision: Decision,
        arguments: Any,
        *,
        output: str = "",
        failed: bool | None,
        call_id: str = "",
        hints: Mapping[str, Any] | None = None,
    ) -> None:
        """How a call ended that was let through. `failed` None: unknown. Raises StoreError."""
        with self._lock:
            opened = self._open.pop(decision.id, None)
        if was_stopped(output):
            return
        given = arguments if isinstance(arguments, Mapping) else {"": arguments}
        view = opened.view if opened else CallView(decision.tool_name, given)
        call = opened.call if opened else identity(decision.tool_name, arguments, self._secret())
        effects = CallEffects(decision.tool_name, given, hints)
        ended = ended_as(effects, output, failed=failed)
        ended.line = Masker(self._secret()).text(ended.line)
        statement = "" if failed is None else statement_in(arguments)
        asked = self._read(decision.conversation_id)[2].asked
        repeated: list[str] = []

        def change(held: Conversation) -> Conversation:
            moved = opened is not None and opened.changed != held.failures.changed
            known = "" if moved and failed else call  # something changed while it ran
            found = take(held.failures, known, ended, failed=failed, call_id=call_id)
            repeated[:] = [found] if found and failed is False else []
            if asked:
                record(held.history, view, effects, asked, failed=failed)
            if statement:
                held.names.learn(statement, output, failed=bool(failed))
            return held

        self._change(decision.conversation_id, change)
        if repeated:
            self._forgive(repeated[0])
        if decision.sources:
            ran = "failed" if failed else "unknown" if failed is None else "worked"
            self.store.log_decision(self.workspace, replace(decision, outcome=ran))

    def user_spoke(self, conversation: str, message: str = "") -> str:
        """A message of the user: what failed may be tried again, and `yes, this once` is heard.

        What the user is to be told of it; "" where that is nothing.
        """
        is_once = is_this_once(message)
        told: list[str] = []

        def change(held: Conversation) -> Conversation:
            once = held.stopped if is_once else ""
            told[:] = ["The call that was stopped last may run once."] if once else []
            failures = ConversationFailures(
                changed=held.failures.changed + 1, here=held.failures.here
            )
            return replace(held, failures=failures, once=once, stopped="")

        self._change(conversation, change)
        return told[0] if told else ""

    # ------------------------------------------------------------ records

    def _read(self, conversation: str) -> tuple[Conversation, Forgiveness, RuleSet]:
        """What is known, and the rules, of one moment."""
        places = [(NAMESPACE, _key_of(conversation)), FORGIVENESS]
        snapshot = self.store.get_many(self.workspace, places)
        known, forgiven = snapshot.records
        rule_set = self._rule_set
        if rule_set is None or rule_set.stamp != snapshot.rules_stamp:
            rule_set = self._rule_set = RuleSet(self._rules, snapshot.rules_stamp)
        return _decoded(known, Conversation), _decoded(forgiven, Forgiveness), rule_set

    def _change(self, conversation: str, change: Callable[[Conversation], Conversation]) -> None:
        self._swap((NAMESPACE, _key_of(conversation)), Conversation, change)

    def _forgive(self, error: str) -> None:
        def change(held: Forgiveness) -> Forgiveness:
            others = [each for each in held.errors if each != error]
            return replace(held, errors=[*others, error][-MAX_FORGIVEN:])

        if not error.startswith("here:"):
            self._swap(FORGIVENESS, Forgiveness, change)

    def _take(self, conversation: str, rule_id: str, test: MoreThan, now: datetime) -> bool:
        """Count a call; False where others have taken the last place meanwhile."""
        key, since = count_key(rule_id, test), micros(test_begins(test, now))
        has_room: list[bool] = []

        def change(held: Any) -> Any:
            taken = [at for at in held.counted.get(key, ()) if at >= since]
            has_room[:] = [len(taken) < test.calls]
            taken = [*taken, micros(now)][: test.calls]
            return replace(held, counted={**held.counted, key: taken})

        if test.per == "conversation":
            self._change(conversation, change)
        else:
            self._swap(FORGIVENESS, Forgiveness, change)
        return has_room[0]

    def _swap(
        self, place: tuple[str, str], kind: type[Decoded], change: Callable[[Decoded], Decoded]
    ) -> None:
        def write() -> None:
            record = self.store.get(self.workspace, *place)
            held = _decoded(record, kind)
            version = 0 if record is None else record.version
            self.store.put(self.workspace, *place, change(held), expected_version=version)

        retry_on_conflict(write)

    def _secret(self) -> bytes:
        self._key = self._key or self.store.secret_key()
        return self._key


def _key_of(conversation: str) -> str:
    return f"conversation/{conversation}"


def _decoded(record: Record | None, kind: type[Decoded]) -> Decoded:
    """A damaged record teaches nothing."""
    try:
        return kind() if record is None else record.read(kind)
    except ValueError:
        return kind()


def _effect_of(each: CheckedRule) -> Action:
    return "deny" if each.rule.effect == "deny" else "ask"


def _what_is_missing(each: CheckedRule) -> str:
    """Which earlier call would let this one through."""
    tests = [a.earlier for a in each.conditions.unless if a.earlier is not None]
    if not tests:
        return ""
    first = tests[0]
    what = next((v for n in ("command", "tool", "target") if (v := getattr(first, n))), "that call")
    since = " after the last change of files" if first.since else ""
    return f"First a call that matches {what!r} has to {'work' if first.worked else 'run'}{since}."
