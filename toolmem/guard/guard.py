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
from contextlib import suppress
from datetime import datetime
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from toolmem.config.sections import GuardSection
from toolmem.errors import StoreError
from toolmem.guard.decision import Finding, decide, of_rule, quoted
from toolmem.guard.history import CallHistory, KnownHistory, count_key, record, still_counted
from toolmem.guard.known_names import KnownNames, statement_in
from toolmem.guard.repeats import ConversationFailures, check_repeat, ended_as, identity, take
from toolmem.guard.rule_cache import RuleSet
from toolmem.guard.self_protection import check_self
from toolmem.models.decisions import Action, Decision, DecisionSource
from toolmem.models.protocols import Clock, Store
from toolmem.models.rules import ToolMemoryRule
from toolmem.models.tools import ToolSchema
from toolmem.rules.identity import folded_name
from toolmem.rules.replies import is_this_once
from toolmem.rules.store import ToolMemoryStore, read_or_new, swap
from toolmem.store.storable import micros
from toolmem.text.masking import Masker
from toolmem.text.stopped_calls import was_stopped
from toolmem.view.conditions import Conditions, Match, MoreThan
from toolmem.view.effects import CallEffects
from toolmem.view.view import CallView

log = logging.getLogger("toolmem.guard")
Told = TypeVar("Told")

NAMESPACE = ".guard"
FORGIVENESS = (NAMESPACE, "forgiveness")
# Calls that are never stopped: through them demands are kept, lifted and read.
OWN_TOOLS = frozenset(
    ["note_demand", "lift_demand", "memory_tools_put", "memory_tools_list", "memory_recall"]
)
MAX_FORGIVEN = 500  # errors
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

    def forgive(self, error: str) -> None:
        others = [each for each in self.errors if each != error]
        self.errors = [*others, error][-MAX_FORGIVEN:]


class _Open(NamedTuple):
    """A call that was let through and has not ended."""

    view: CallView
    identity: str
    changed: int  # how often the conversation had changed anything


class _Call(Struct):
    """A call that is asked about, with what its conversation knew then."""

    view: CallView
    arguments: Any
    conversation: str
    schema: ToolSchema | None
    force: bool | None
    identity: str = ""
    known: Conversation = field(default_factory=Conversation)
    forgiven: Forgiveness = field(default_factory=Forgiveness)


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
        self._open: dict[str, _Open] = {}  # by decision
        self._lock = threading.Lock()

    @cached_property
    def _secret(self) -> bytes:
        return self.store.secret_key()

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
        view = CallView(tool_name, arguments, schema.parameters if schema else None, folder)
        call = _Call(view, arguments, conversation, schema, force)
        decision_id, now = os.urandom(16).hex(), self.clock.now()
        try:
            findings = self._findings(call, decision_id)
        except StoreError as error:
            findings = self._without_store(call, error)
            return decide(decision_id, now, tool_name, conversation, findings)
        decision = decide(decision_id, now, tool_name, conversation, findings)
        if findings:
            try:
                self._remember_stop(decision, call)
                self.store.log_decision(self.workspace, decision)
            except StoreError as error:  # it holds all the same
                log.warning("a decision is not kept: %s", error)
        return decision

    def load(self) -> None:
        """Read the rules now: they go on to bind where the store is gone later."""
        self._read("")

    def _without_store(self, call: _Call, error: StoreError) -> list[Finding]:
        """That the rules cannot be read, and what stands in those that were read before."""
        log.warning("calls are not held against rules: %s", error)
        text = f"The user's rules could not be read ({type(error).__name__})."
        action: Action = "deny" if self.modes.on_error == "closed" else "advise"
        findings = [Finding(DecisionSource(kind="self"), action, text, "Tell the user.")]
        if self._rule_set is not None:
            with suppress(StoreError):  # calls cannot be counted
                findings += self._of_rules(call, self._rule_set)
        return findings

    def _findings(self, call: _Call, decision_id: str) -> list[Finding]:
        view, modes = call.view, self.modes
        if folded_name(view.tool) in OWN_TOOLS:
            return []
        known, call.forgiven, rule_set = self._read(call.conversation)
        call.known, call.identity = known, identity(view.tool, call.arguments, self._secret)
        is_once = bool(known.once) and known.once == call.identity
        findings = [] if is_once else self._of_rules(call, rule_set)
        if modes.rules != "off":
            findings += check_self(view, self.protected, modes.rules)
        findings += self._of_repeats(call)
        if modes.names != "off" and (statement := statement_in(call.arguments)):
            findings += known.names.check(statement, modes.names)
        findings += self._of_schema(call)
        if not any(f.effective in ("ask", "deny") for f in findings):
            with self._lock:
                self._open[decision_id] = _Open(view, call.identity, known.failures.changed)
                while len(self._open) > MAX_OPEN:
                    del self._open[next(iter(self._open))]
            if is_once:
                self._change(call.conversation, _forget_once)
        return findings

    def _of_rules(self, call: _Call, rule_set: RuleSet) -> list[Finding]:
        mode = self.modes.rules
        if mode == "off":
            return []
        view, known, now = call.view, call.known, self.clock.now().astimezone()
        history = KnownHistory(known.history, {**call.forgiven.counted, **known.counted}, now)
        found: list[Finding] = []
        counted: list[tuple[ToolMemoryRule, MoreThan]] = []
        for rule, conditions in rule_set.of(view, call.conversation):
            if not rule.holds_at(now):
                continue
            history.rule_id = rule.id
            match = conditions.check(view, now, history)
            if match is Match.YES:
                found.append(of_rule(rule, mode, _what_is_missing(conditions)))
            elif match is Match.MAYBE:
                found.append(of_rule(rule, mode, is_sure=False))
            else:
                counted += [(rule, test) for test in conditions.counted(view, now, history)]
        for rule, test in counted if not found else ():
            if not self._take(call.conversation, rule.id, test, now):
                found.append(of_rule(rule, mode))
        return found

    def _of_repeats(self, call: _Call) -> list[Finding]:
        held, forgiven, mode = call.known.failures, call.forgiven.errors, self.modes.repeats
        if mode == "off" or call.identity not in held.failures:
            return []
        effects = CallEffects(call.view.tool, call.view.arguments)
        return check_repeat(held, call.identity, forgiven, mode, effects, call.force)

    def _of_schema(self, call: _Call) -> list[Finding]:
        if call.schema is None or self.modes.schema == "off":
            return []
        from toolmem.judge.schema import check

        problems = check(call.arguments, call.schema)
        if not problems:
            return []
        told = "; ".join(problem.message for problem in problems[:3])
        text = f"The arguments do not fit the tool: {quoted(Masker(self._secret).text(told))}."
        return [Finding(DecisionSource(kind="schema"), "deny", text, mode=self.modes.schema)]

    def _remember_stop(self, decision: Decision, call: _Call) -> None:
        """What a decision leaves for the next one."""
        kinds = {source.kind for source in decision.sources}
        is_stopped = decision.action in ("ask", "deny")
        if not call.identity or not (kinds & {"repeat", "rule"}):
            return

        def change(held: Conversation) -> None:
            failure = held.failures.failures.get(call.identity)
            if failure is not None and "repeat" in kinds:
                failure.is_denied |= is_stopped
                failure.is_forced |= failure.is_denied and not is_stopped
            if is_stopped and "rule" in kinds:
                held.stopped = call.identity

        self._change(call.conversation, change)

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
        call = opened.identity if opened else identity(decision.tool_name, arguments, self._secret)
        effects = CallEffects(decision.tool_name, arguments, hints)
        view = opened.view if opened else effects.view
        ended = ended_as(effects, output, failed=failed)
        if ended.failure is not None:
            ended.failure.line = Masker(self._secret).text(ended.failure.line)
        statement = "" if failed is None else statement_in(arguments)
        asked = self._read(decision.conversation_id)[2].asked

        def change(held: Conversation) -> str:
            moved = opened is not None and opened.changed != held.failures.changed
            known = "" if moved and failed else call  # something changed while it ran
            passing = take(held.failures, known, ended, failed=failed, call_id=call_id)
            if asked:
                record(held.history, view, effects, asked, failed=failed)
            if statement:
                held.names.learn(statement, output, failed=bool(failed))
            return passing

        passing = self._change(decision.conversation_id, change)
        if passing:
            forgiveness = (self.workspace, FORGIVENESS, Forgiveness)
            swap(self.store, *forgiveness, lambda held: held.forgive(passing))
        if decision.sources:
            ran = "failed" if failed else "unknown" if failed is None else "worked"
            self.store.log_decision(self.workspace, replace(decision, outcome=ran))

    def user_spoke(self, conversation: str, message: str = "") -> str:
        """A message of the user: what failed may be tried again, and `yes, this once` is heard.

        What the user is to be told of it; "" where that is nothing.
        """
        is_once = is_this_once(message)

        def change(held: Conversation) -> str:
            old = held.failures
            held.failures = ConversationFailures(changed=old.changed + 1, here=old.here)
            held.once, held.stopped = held.stopped if is_once else "", ""
            return "The call that was stopped last may run once." if held.once else ""

        return self._change(conversation, change)

    def _read(self, conversation: str) -> tuple[Conversation, Forgiveness, RuleSet]:
        """What is known, and the rules, of one moment."""
        snapshot = self.store.get_many(self.workspace, [_place_of(conversation), FORGIVENESS])
        known, forgiven = snapshot.records
        rule_set = self._rule_set
        if rule_set is None or rule_set.stamp != snapshot.rules_stamp:
            rule_set = self._rule_set = RuleSet(self._rules, snapshot.rules_stamp)
        return read_or_new(known, Conversation), read_or_new(forgiven, Forgiveness), rule_set

    def _change(self, conversation: str, change: Callable[[Conversation], Told]) -> Told:
        return swap(self.store, self.workspace, _place_of(conversation), Conversation, change)

    def _take(self, conversation: str, rule_id: str, test: MoreThan, now: datetime) -> bool:
        """Count a call; False where others have taken the last place meanwhile."""
        key = count_key(rule_id, test)

        def change(held: Conversation | Forgiveness) -> bool:
            taken = still_counted(held.counted.get(key, ()), test, now)
            held.counted[key] = [*taken, micros(now)][: test.calls]
            return len(taken) < test.calls

        if test.per == "conversation":
            return self._change(conversation, change)
        return swap(self.store, self.workspace, FORGIVENESS, Forgiveness, change)


def _place_of(conversation: str) -> tuple[str, str]:
    return NAMESPACE, f"conversation/{conversation}"


def _forget_once(held: Conversation) -> None:
    held.once = ""


def _what_is_missing(conditions: Conditions) -> str:
    """Which earlier call would let this one through."""
    first = next((each.earlier for each in conditions.unless if each.earlier is not None), None)
    if first is None:
        return ""
    what = next((v for n in ("command", "tool", "target") if (v := getattr(first, n))), "that call")
    since = " after the last change of files" if first.since else ""
    return f"First a call that matches {what!r} has to {'work' if first.worked else 'run'}{since}."
