"""The guard of one workspace: decide before a call, and learn from how it ended.

decision = guard.before("send_email", {"to": "sarah@example.com"}, conversation="c1")
if decision.action in ("allow", "advise"):
    ...
    guard.after(decision, {"to": "sarah@example.com"}, output="sent", failed=False)
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from datetime import tzinfo
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec.structs import astuple, replace

from toolmem.config.sections import GuardSection
from toolmem.errors import StoreError
from toolmem.guard import consent
from toolmem.guard.conversation import (
    CONVERSATION,
    NAMESPACE,
    OWN_TOOLS,
    Conversation,
    Forgiveness,
    PlannedCall,
    count_call,
    count_stop,
)
from toolmem.guard.decision import (
    Finding,
    call_in_words,
    decide,
    log_outcome,
    rule_finding,
    schema_findings,
    shown_arguments,
    unreadable_call,
    unreadable_findings,
)
from toolmem.guard.history import (
    KnownHistory,
    RunningCalls,
    count_key,
    doubt_key,
    record_call,
    required_call,
)
from toolmem.guard.known_names import statement_in
from toolmem.guard.repeats import call_identity, check_repeat, outcome_of, record_outcome
from toolmem.guard.rule_cache import RuleSet, copied_rules
from toolmem.guard.self_protection import check_self
from toolmem.models.decisions import Action, Decision
from toolmem.models.protocols import Clock, Store
from toolmem.models.rules import ToolMemoryRule
from toolmem.models.tools import ToolSchema
from toolmem.rules.identity import folded_name
from toolmem.rules.store import ToolMemoryStore
from toolmem.rules.turn import Captured
from toolmem.store.storable import read_or_new, swap
from toolmem.text.display import plain
from toolmem.text.masking import Masker
from toolmem.text.stopped_calls import was_stopped
from toolmem.view.conditions import Match, MoreThan
from toolmem.view.effects import CallEffects
from toolmem.view.view import CallView

if TYPE_CHECKING:
    from toolmem.guard.aside import Aside
    from toolmem.guard.shown_guidance import ShownCall

log = logging.getLogger("toolmem.guard")
Result = TypeVar("Result")

FORGIVENESS = (NAMESPACE, "forgiveness")
USE_WAIT = 1.0  # seconds that writing waits for others, where a decision uses something up
HEAR_WAIT = 0.4  # seconds that a message of the user waits for others that write
WRITE_WAIT = 0.2  # seconds that writing waits for others, once a decision is made


class Guard:
    """Decides about calls, from several threads. `protected`: paths that only the user changes.

    `zone`: the user's time zone; None: the machine's. `serves_guests`: no denial names a way out.
    `only_asks`: what the store is, if it is not trusted to deny anything. `copies`: of rules that
    stores lost; they bind too, and no reply lifts them. `lost`: what to tell the user about them.
    """

    def __init__(
        self,
        store: Store,
        workspace: str,
        clock: Clock,
        modes: GuardSection | None = None,
        *,
        protected: Sequence[str] = (),
        zone: tzinfo | None = None,
        serves_guests: bool = False,
        only_asks: str = "",
        copies: Sequence[Store] = (),
        lost: str = "",
    ) -> None:
        self.store = store
        self.workspace = workspace
        self.clock = clock
        self.modes = modes or GuardSection()
        self.protected = protected
        self._serves_guests = serves_guests
        self._only_asks = only_asks
        self.lost = lost
        self.asides: dict[str, Aside] = {}  # by conversation: demands that the store did not take
        self._copied = [RuleSet(ToolMemoryStore(c, workspace, clock, zone), "") for c in copies]
        self.rules = ToolMemoryStore(store, workspace, clock, zone)
        self._rule_set: RuleSet | None = None
        self._running = RunningCalls()

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
        asks_user: bool = False,
        call_id: str = "",
    ) -> Decision:
        """Decide about a call. Where the store fails, `guard.on_error` decides; nothing is raised.

        `force` allows a call that would be stopped as a *repeat*. None: the host cannot pass it, so
        the first unchanged repeat of a denied call counts as force. `asks_user`: a person is known
        to answer where the action is `ask`; only then may the answer lift a rule.
        """
        decision, remember = self.decide(
            tool_name,
            arguments,
            conversation=conversation,
            schema=schema,
            folder=folder,
            force=force,
            asks_user=asks_user,
            call_id=call_id,
        )
        if remember is not None:
            try:
                with self.store.transaction(WRITE_WAIT):
                    remember()
            except StoreError as error:  # the decision holds nevertheless
                log.warning("a decision is not kept: %s", error)
        return decision

    def decide(
        self,
        tool_name: str,
        arguments: Any,
        *,
        conversation: str = "",
        schema: ToolSchema | None = None,
        folder: str = "",
        force: bool | None = False,
        asks_user: bool = False,
        call_id: str = "",
    ) -> tuple[Decision, Callable[[], None] | None]:
        """Like `before`, but without writing the decision; also returns a function that does.

        Only what a decision uses up is written at once: the count of a rule with a limit, and the
        user's `yes, this once`. None: there is nothing to write.
        """
        view = CallView(tool_name, arguments, schema.parameters if schema else None, folder)
        call = PlannedCall(view, arguments, conversation, schema, force, asks_user)
        decision_id = os.urandom(16).hex()
        now = self.clock.now()
        is_read = False
        try:
            findings = self._findings(call, decision_id)
            is_read = True
        except StoreError as error:
            findings = self._without_store(call, error)
        except Exception as error:  # an odd call must not pass for want of an answer
            log.warning("a call cannot be read: %s", type(error).__name__)  # it may hold secrets
            findings = [unreadable_call(error, self.modes.rules)]
        decision = decide(decision_id, now, tool_name, conversation, findings)
        if self.lost and not (decision.may_run or self._serves_guests):
            reason = f"{decision.reason} Also tell the user: {self.lost}"
            decision = replace(decision, reason=reason)
        if not findings or not is_read:  # what it uses up is written already
            return decision, (lambda: None) if call.uses_up else None
        shown = shown_arguments(view.arguments, self._secret)
        notice = "" if self._serves_guests or call.known.is_guests else decision.notice
        decision = replace(decision, call=shown, call_id=plain(call_id, 100), notice=notice)

        def remember() -> None:
            self._remember_stop(decision, call)
            self.store.log_decision(self.workspace, decision)

        return decision, remember

    def foreseen(self, calls: Sequence[ShownCall], conversation: str = "") -> list[Action]:
        """What becomes of each of these calls, were it the first. Nothing is logged or counted.

        A rule that may mean what is cut off counts as broken. Raises StoreError.
        """
        _, _, rule_set = self._read_state(conversation)
        now = self.rules.local_time()
        others = conversation in self.asides or self._copied
        known = {} if others else rule_set.foreseen(now)
        for each in calls:
            if astuple(each) not in known:
                call = PlannedCall(each.view, each.view.arguments, conversation, None, False)
                findings, _ = self._broken_rules(call, rule_set)
                known[astuple(each)] = decide("", now, each.tool, conversation, findings).action
        return [known[astuple(each)] for each in calls]

    def load(self) -> None:
        """Read the rules now, so that they bind even if the store fails later."""
        self._read_state("")

    def _without_store(self, call: PlannedCall, error: StoreError) -> list[Finding]:
        """Report that the store failed, and check the rules that were read before."""
        log.warning("calls are not held against rules: %s", error)
        rule_set = self._rule_set = copied_rules(self.rules, self._rule_set)
        has_copy = bool(self.lost or (rule_set and rule_set.copied))
        findings = unreadable_findings(error, self.modes.on_error, has_copy)
        return findings + self._rule_findings(call, rule_set)

    def _findings(self, call: PlannedCall, decision_id: str) -> list[Finding]:
        view = call.view
        if folded_name(view.tool) in OWN_TOOLS:
            return []
        call.known, call.forgiven, rule_set = self._read_state(call.conversation)
        call.identity = call_identity(view.tool, call.arguments, self._secret)
        call.once = call_identity(view.tool, [call.arguments, view.folder], self._secret)
        is_once = bool(call.known.once) and call.known.once == call.once and self._use_once(call)
        findings = [] if is_once else self._rule_findings(call, rule_set)
        if self.modes.rules != "off":
            for each in (view, *view.nested):
                findings += check_self(each, self.protected, self.modes.rules)
        findings += self._repeat_findings(call)
        if self.modes.names != "off" and (statement := statement_in(call.arguments)):
            findings += call.known.names.check(statement, self.modes.names)
        findings += schema_findings(call.arguments, call.schema, self.modes.schema, self._secret)
        if not any(f.effective in ("ask", "deny") for f in findings):
            self._running.begin(decision_id, view, call.identity, call.known.failures.changed)
        return findings

    def _rule_findings(self, call: PlannedCall, rule_set: RuleSet | None) -> list[Finding]:
        found, counted = self._broken_rules(call, rule_set)
        if found or not counted:
            return found
        call.uses_up = True
        try:
            with self.store.transaction(USE_WAIT):
                for rule, test in counted:
                    if not self._count(call.conversation, rule.id, test):
                        found.append(self._finding(rule, call, "", True))
        except StoreError:
            need = "It cannot be counted now."
            found = [self._finding(rule, call, need, False) for rule, _ in counted]
        return found

    def _broken_rules(
        self, call: PlannedCall, rule_set: RuleSet | None
    ) -> tuple[list[Finding], list[tuple[ToolMemoryRule, MoreThan]]]:
        """The rules that a call breaks, and the tests that count it where it breaks none."""
        if self.modes.rules == "off":
            return [], []
        view = call.view
        now = self.rules.local_time()
        counts = {**call.forgiven.counted, **call.known.counted}
        history = KnownHistory(call.known.history, counts, now, call.known.agreed)
        found: list[Finding] = []
        counted: list[tuple[ToolMemoryRule, MoreThan]] = []
        aside = self.asides.get(call.conversation)
        held = [RuleSet(aside.rules, "")] if aside else []
        for rules in filter(None, (rule_set, *self._copied, *held)):
            for each, rule, conditions in rules.rules_for(view, call.conversation):
                if not rule.holds_at(now):
                    continue
                match = history.match(rule, conditions, each)
                is_unknown = match is Match.MAYBE and not (history.is_unsure or view.is_cut)
                unknown = doubt_key(rule.id, each.doubt) if is_unknown else ""
                if unknown and self.modes.unknown == "allow" and not self.rules.is_guarded():
                    continue
                if match is not Match.NO:
                    sure = match is Match.YES or view.is_cut
                    is_copy = rules is not rule_set or rule.id in rules.copied
                    need = required_call(conditions)
                    found.append(self._finding(rule, call, need, sure, unknown, is_copy=is_copy))
                elif rules is rule_set:
                    tests = conditions.counting_tests(each, now, history)
                    counted += [(rule, test) for test in tests]
        return found, counted

    def _finding(
        self,
        rule: ToolMemoryRule,
        call: PlannedCall,
        need: str,
        sure: bool,
        unknown: str = "",
        *,
        is_copy: bool = False,
    ) -> Finding:
        nobody_answers = self._serves_guests or call.known.is_guests
        return rule_finding(
            rule,
            self.modes.rules,
            call.question_about(rule, self.rules.local_time()),
            need,
            sure=sure,
            is_copy=is_copy,
            only_asks=self._only_asks,
            unknown=unknown,
            is_denied=bool(unknown) and (nobody_answers or self.modes.unknown == "deny"),
            asks_user=call.asks_user,
        )

    def _use_once(self, call: PlannedCall) -> bool:
        """Whether the user's `yes, this once` lets a call through. It is used up before the answer.

        Where that cannot be written it does not count.
        """
        use = partial(consent.use_once, identity=call.once, now=self.clock.now())
        try:
            with self.store.transaction(USE_WAIT):
                call.uses_up = self._change(call.conversation, use)
        except StoreError as error:
            log.warning("`yes, this once` does not count: %s", error)
        return call.uses_up

    def _repeat_findings(self, call: PlannedCall) -> list[Finding]:
        failures = call.known.failures
        mode = self.modes.repeats
        if mode == "off" or call.identity not in failures.failures:
            return []
        forgiven = call.forgiven.errors
        effects = CallEffects(call.view.tool, call.view.arguments)
        return check_repeat(failures, call.identity, forgiven, mode, effects, call.force)

    def _remember_stop(self, decision: Decision, call: PlannedCall) -> None:
        """Store that a call was stopped, for the decision on its repeat."""
        if not call.identity or not any(s.kind in ("repeat", "rule") for s in decision.sources):
            return
        shown = call_in_words(call.view, self._secret)
        self._change(call.conversation, lambda state: state.remember_stop(call, shown, decision))
        for rule_id in [] if decision.may_run else decision.rule_ids:
            count_stop(self.store, self.workspace, rule_id, decision.time)

    def after(
        self,
        decision: Decision,
        arguments: Any,
        *,
        output: str = "",
        failed: bool | None,
        call_id: str = "",
        hints: Mapping[str, Any] | None = None,
        worked: bool | None = None,
    ) -> None:
        """Learn from the end of an allowed call. `failed`: None = unknown. Raises StoreError.

        `worked`: where the host does not know, what the output says; it proves a failure alone.
        """
        running = self._running.end(decision.id)
        if was_stopped(output):
            return
        effects = CallEffects(decision.tool_name, arguments, hints)
        call = running.identity if running else call_identity(effects.tool, arguments, self._secret)
        view = running.view if running else effects.view
        outcome = outcome_of(effects, output, failed=failed)
        if outcome.failure is not None:
            outcome.failure.line = Masker(self._secret).text(outcome.failure.line)
        statement = "" if failed is None else statement_in(arguments)
        tests = self._read_state(decision.conversation_id)[2].earlier_tests

        def change(state: Conversation) -> str:
            overtaken = running is not None and running.changed != state.failures.changed
            known = "" if overtaken and failed else call  # something changed while it ran
            error = record_outcome(state.failures, known, outcome, failed=failed, call_id=call_id)
            if tests:
                judged = True if failed is None and worked is False else failed
                record_call(state.history, view, effects, tests, failed=judged)
            if statement:
                state.names.learn(statement, output, failed=bool(failed))
            return error

        if error := self._change(decision.conversation_id, change):
            swap(self.store, self.workspace, FORGIVENESS, Forgiveness, lambda f: f.forgive(error))
        if decision.sources:
            log_outcome(self.store, self.workspace, decision, failed)

    def answered(self, decision: Decision, agreed: bool) -> Captured:
        """Lift the rules that a question named, if the user agreed to it; else they hold again.

        `decision`: an `ask` as the user saw it. Raises RequestError where a rule is gone, and
        StoreError.
        """
        change = partial(self._change, decision.conversation_id)
        return consent.follow_answer(self.rules, decision, agreed, change)

    def user_spoke(
        self,
        conversation: str,
        message: str = "",
        *,
        is_guests: bool = False,
        is_typed: bool = False,
    ) -> str:
        """Let failed calls be tried again after a message of the user, and follow `yes, this once`.

        `is_typed`: the host saw them type it. In a guarded store no other words let a call run.
        Returns a message for the user; "" where there is nothing to say.
        """
        is_heard = is_typed or not message or not self.rules.is_guarded()
        hear = partial(consent.hear, message=message, now=self.clock.now())
        return self._change(conversation, partial(hear, is_guests=is_guests, is_heard=is_heard))

    def stopped_before(self, conversation: str) -> list[str]:
        """The rules that stopped calls just before the user's last message. Raises StoreError."""
        return self._read_state(conversation)[0].stopped_before

    def _read_state(self, conversation: str) -> tuple[Conversation, Forgiveness, RuleSet]:
        """Read the records and the rules in one snapshot."""
        place = (NAMESPACE, CONVERSATION + conversation)
        snapshot = self.store.get_many(self.workspace, [place, FORGIVENESS])
        known, forgiven = snapshot.records
        rule_set = self._rule_set
        if rule_set is None or rule_set.stamp != snapshot.rules_stamp:
            rule_set = self._rule_set = RuleSet(self.rules, snapshot.rules_stamp)
        return read_or_new(known, Conversation), read_or_new(forgiven, Forgiveness), rule_set

    def _change(self, conversation: str, change: Callable[[Conversation], Result]) -> Result:
        place = (NAMESPACE, CONVERSATION + conversation)
        return swap(self.store, self.workspace, place, Conversation, change)

    def _count(self, conversation: str, rule_id: str, test: MoreThan) -> bool:
        """Count a call; False where other processes reached the limit meanwhile."""
        now = self.rules.local_time()
        change = partial(count_call, key=count_key(rule_id, test), test=test, now=now)
        if test.per == "conversation":
            return self._change(conversation, change)
        return swap(self.store, self.workspace, FORGIVENESS, Forgiveness, change)
