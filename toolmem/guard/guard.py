"""The guard of one workspace: decide before a call, and learn from how it ended.

decision = guard.before("send_email", {"to": "sarah@example.com"}, conversation_id="c1")
if decision.action in ("allow", "advise"):
    ...
    guard.after(decision, {"to": "sarah@example.com"}, output="sent", failed=False)
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
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
    PlannedCall,
    WorkspaceRecord,
    count_call,
    count_stop,
)
from toolmem.guard.decision import (
    Finding,
    call_in_words,
    combine,
    log_outcome,
    rule_finding,
    schema_findings,
    shown_arguments,
    unreadable_call,
    unreadable_rules,
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
    from toolmem.guard.pending_demands import PendingDemands
    from toolmem.guard.shown_guidance import ShownCall

log = logging.getLogger("toolmem.guard")
Result = TypeVar("Result")

WORKSPACE_PLACE = (NAMESPACE, "forgiveness")
# Seconds that writing waits for other processes that write.
COUNT_WAIT = 1.0  # before a decision, where a count or a permission is written
MESSAGE_WAIT = 0.4  # on a message of the user
WRITE_WAIT = 0.2  # once a decision is made


class Guard:
    """Decides about the calls of a workspace. Threads may share it.

    `protected`: paths that only the user changes. `zone`: the user's time zone; None: the
    machine's. `serves_guests`: no decision says how the user can allow a call. `only_asks`: a name
    for the store, whose rules then never deny. `copies`: stores with copies of lost rules, which
    bind too, and which no reply lifts. `lost`: a message for the user about what was lost.
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
        self.pending: dict[str, PendingDemands] = {}  # by conversation id
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
        conversation_id: str = "",
        schema: ToolSchema | None = None,
        folder: str = "",
        force: bool | None = False,
        asks_user: bool = False,
        call_id: str = "",
    ) -> Decision:
        """Decide about a call. If the store fails, `guard.on_error` decides. Raises nothing.

        `force` allows a call that would be stopped as a *repeat*. None: the host cannot pass it, so
        the first unchanged repeat of a denied call counts as force. `asks_user`: a person is known
        to answer if the action is `ask`; only then may the answer lift a rule.
        """
        view = CallView(tool_name, arguments, schema.parameters if schema else None, folder)
        planned = PlannedCall(view, arguments, conversation_id, schema, force, asks_user, call_id)
        decision, remember = self.decide(planned)
        if remember is not None:
            try:
                with self.store.transaction(WRITE_WAIT):
                    remember()
            except StoreError as error:  # the decision holds nevertheless
                log.warning("a decision is not kept: %s", error)
        return decision

    def decide(self, call: PlannedCall) -> tuple[Decision, Callable[[], None] | None]:
        """Decide like `before`; return the decision and a function that stores it.

        The count of a rule with a limit, and the use of a `yes, this once`, are stored before it
        returns. The function is None if nothing was stored and nothing is left to store.
        """
        decision_id = os.urandom(16).hex()
        now = self.clock.now()
        is_read = False
        try:
            findings = self._findings(call, decision_id)
            is_read = True
        except StoreError as error:
            findings = self._without_store(call, error)
        except Exception as error:  # an odd call must not run because reading it failed
            log.warning("a call cannot be read: %s", type(error).__name__)  # it may hold secrets
            findings = [unreadable_call(error, self.modes.rules)]
        decision = combine(decision_id, now, call.view.tool, call.conversation_id, findings)
        if self.lost and not (decision.may_run or self._serves_guests):
            reason = f"{decision.reason} Also tell the user: {self.lost}"
            decision = replace(decision, reason=reason)
        if not findings or not is_read:  # there is nothing to log
            return decision, (lambda: None) if call.uses_up else None
        shown = shown_arguments(call.view.arguments, self._secret)
        notice = "" if self._serves_guests or call.conversation.is_guests else decision.notice
        decision = replace(decision, call=shown, call_id=plain(call.call_id, 100), notice=notice)

        def remember() -> None:
            self._remember_stop(decision, call)
            self.store.log_decision(self.workspace, decision)

        return decision, remember

    def preview(self, calls: Sequence[ShownCall], conversation_id: str = "") -> list[Action]:
        """Return the action for each call, as if it came first in a conversation. Logs nothing.

        A call whose text is cut short counts as breaking each rule that the lost part may break.
        Raises StoreError.
        """
        _, _, rule_set = self._read_state(conversation_id)
        now = self.rules.local_time()
        has_other_rules = conversation_id in self.pending or self._copied
        actions = {} if has_other_rules else rule_set.previewed(now)
        for each in calls:
            if astuple(each) not in actions:
                call = PlannedCall(each.view, each.view.arguments, conversation_id)
                findings, _ = self._broken_rules(call, rule_set)
                decision = combine("", now, each.tool, conversation_id, findings)
                actions[astuple(each)] = decision.action
        return [actions[astuple(each)] for each in calls]

    def load(self) -> None:
        """Read the rules now, so that they bind even if the store fails later."""
        self._read_state("")

    def _without_store(self, call: PlannedCall, error: StoreError) -> list[Finding]:
        """Return the finding that the store failed, and findings of rules that were read before."""
        log.warning("calls are not checked against the store's rules: %s", error)
        rule_set = self._rule_set = copied_rules(self.rules, self._rule_set)
        has_copy = bool(self.lost or (rule_set and rule_set.copied))
        findings = unreadable_rules(error, self.modes.on_error, has_copy)
        return findings + self._rule_findings(call, rule_set)

    def _findings(self, call: PlannedCall, decision_id: str) -> list[Finding]:
        view = call.view
        if folded_name(view.tool) in OWN_TOOLS:
            return []
        call.conversation, call.workspace, rule_set = self._read_state(call.conversation_id)
        call.identity = call_identity(view.tool, call.arguments, self._secret)
        call.once = call_identity(view.tool, [call.arguments, view.folder], self._secret)
        findings: list[Finding] = []
        is_permitted = bool(call.once) and call.once == call.conversation.once
        if not (is_permitted and self._use_once(call)):
            findings += self._rule_findings(call, rule_set)
        if self.modes.rules != "off":
            for each in (view, *view.nested):
                findings += check_self(each, self.protected, self.modes.rules)
        findings += self._repeat_findings(call)
        if self.modes.names != "off" and (statement := statement_in(call.arguments)):
            findings += call.conversation.names.check(statement, self.modes.names)
        findings += schema_findings(call.arguments, call.schema, self.modes.schema, self._secret)
        if not any(f.effective in ("ask", "deny") for f in findings):
            changed = call.conversation.failures.changed
            self._running.begin(decision_id, view, call.identity, changed)
        return findings

    def _rule_findings(self, call: PlannedCall, rule_set: RuleSet | None) -> list[Finding]:
        """Return what rules find. Rules with a limit count the call if it breaks no rule."""
        found, counted = self._broken_rules(call, rule_set)
        if found or not counted:
            return found
        call.uses_up = True
        try:
            with self.store.transaction(COUNT_WAIT):
                for rule, test in counted:
                    if not self._count(call.conversation_id, rule.id, test):
                        found.append(self._finding(rule, call, "", True))
        except StoreError:
            need = "It cannot be counted now."
            found = [self._finding(rule, call, need, False) for rule, _ in counted]
        return found

    def _broken_rules(
        self, call: PlannedCall, rule_set: RuleSet | None
    ) -> tuple[list[Finding], list[tuple[ToolMemoryRule, MoreThan]]]:
        """Return the findings of broken rules, and the rules with a limit that count the call."""
        if self.modes.rules == "off":
            return [], []
        view = call.view
        now = self.rules.local_time()
        counts = {**call.workspace.counted, **call.conversation.counted}
        history = KnownHistory(call.conversation.history, counts, now, call.conversation.agreed)
        found: list[Finding] = []
        counted: list[tuple[ToolMemoryRule, MoreThan]] = []
        pending = self.pending.get(call.conversation_id)
        unstored = [RuleSet(pending.rules, "")] if pending else []
        for rules in filter(None, (rule_set, *self._copied, *unstored)):
            for each, rule, conditions in rules.rules_for(view, call.conversation_id):
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
        nobody_answers = self._serves_guests or call.conversation.is_guests
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
        """Use up the user's `yes, this once` for a call; return False if that cannot be stored."""
        use = partial(consent.use_once, identity=call.once, now=self.clock.now())
        try:
            with self.store.transaction(COUNT_WAIT):
                call.uses_up = self._change(call.conversation_id, use)
        except StoreError as error:
            log.warning("`yes, this once` does not count: %s", error)
        return call.uses_up

    def _repeat_findings(self, call: PlannedCall) -> list[Finding]:
        failures = call.conversation.failures
        mode = self.modes.repeats
        if mode == "off" or call.identity not in failures.failures:
            return []
        forgiven = call.workspace.errors
        effects = CallEffects(call.view.tool, call.view.arguments)
        return check_repeat(failures, call.identity, forgiven, mode, effects, call.force)

    def _remember_stop(self, decision: Decision, call: PlannedCall) -> None:
        """Store that a call was stopped, because its repeat is decided on otherwise."""
        if not call.identity or not any(s.kind in ("repeat", "rule") for s in decision.sources):
            return
        shown = call_in_words(call.view, self._secret)
        self._change(call.conversation_id, lambda state: state.remember_stop(call, shown, decision))
        if not decision.may_run:
            for rule_id in decision.rule_ids:
                count_stop(self.store, self.workspace, rule_id, decision.time)

    def after(
        self,
        decision: Decision,
        arguments: Any,
        *,
        output: str = "",
        failed: bool | None,
        call_id: str = "",
    ) -> None:
        """Learn from the end of an allowed call. Raises StoreError.

        `failed`: None if the host does not know. Rules on earlier calls take a call whose output
        shows a failure for failed, whatever the host says.
        """
        running = self._running.end(decision.id)
        if was_stopped(output):
            return
        effects = CallEffects(decision.tool_name, arguments)
        if running is None:
            identity = call_identity(effects.tool, arguments, self._secret)
            view = effects.view
        else:
            identity = running.identity
            view = running.view
        outcome = outcome_of(effects, output, failed=failed)
        if outcome.failure is not None:
            outcome.failure.line = Masker(self._secret).text(outcome.failure.line)
        statement = "" if failed is None else statement_in(arguments)
        tests = self._read_state(decision.conversation_id)[2].earlier_tests

        def change(state: Conversation) -> str:
            is_outdated = running is not None and running.changed != state.failures.changed
            counted = "" if is_outdated and failed else identity  # something changed while it ran
            failures = state.failures
            error = record_outcome(failures, counted, outcome, failed=failed, call_id=call_id)
            if tests:
                record_call(state.history, view, effects, tests, output, failed=failed)
            if statement:
                state.names.learn(statement, output, failed=bool(failed))
            return error

        if error := self._change(decision.conversation_id, change):
            self._change_workspace(lambda record: record.forgive(error))
        if decision.sources:
            log_outcome(self.store, self.workspace, decision, failed)

    def answered(self, decision: Decision, agreed: bool) -> Captured:
        """Follow the user's answer to an `ask` decision: a yes lifts the rules it offered to lift.

        Returns the lifted rules, and lines for the user. Raises StoreError, and RequestError if a
        rule is gone.
        """
        change = partial(self._change, decision.conversation_id)
        return consent.follow_answer(self.rules, decision, agreed, change)

    def user_spoke(
        self,
        conversation_id: str,
        message: str = "",
        *,
        is_guests: bool = False,
        is_typed: bool = False,
    ) -> str:
        """Let failed calls be tried again after a message of the user, and follow `yes, this once`.

        `is_typed`: the host saw the user type it. In a store that a hook or proxy uses, only typed
        words let a call run. Returns a message for the user, or "".
        """
        follow = partial(
            consent.follow_message,
            message=message,
            now=self.clock.now(),
            is_guests=is_guests,
            is_trusted=is_typed or not message or not self.rules.is_guarded(),
        )
        return self._change(conversation_id, follow)

    def stopped_before(self, conversation_id: str) -> list[str]:
        """Return the ids of the rules that stopped calls between the user's last two messages."""
        return self._read_state(conversation_id)[0].stopped_before

    def _read_state(self, conversation_id: str) -> tuple[Conversation, WorkspaceRecord, RuleSet]:
        """Read the records and the rules in one snapshot."""
        place = (NAMESPACE, CONVERSATION + conversation_id)
        snapshot = self.store.get_many(self.workspace, [place, WORKSPACE_PLACE])
        conversation, learned = snapshot.records
        rule_set = self._rule_set
        if rule_set is None or rule_set.stamp != snapshot.rules_stamp:
            rule_set = self._rule_set = RuleSet(self.rules, snapshot.rules_stamp)
        workspace = read_or_new(learned, WorkspaceRecord)
        return read_or_new(conversation, Conversation), workspace, rule_set

    def _change(self, conversation_id: str, change: Callable[[Conversation], Result]) -> Result:
        place = (NAMESPACE, CONVERSATION + conversation_id)
        return swap(self.store, self.workspace, place, Conversation, change)

    def _change_workspace(self, change: Callable[[WorkspaceRecord], Result]) -> Result:
        return swap(self.store, self.workspace, WORKSPACE_PLACE, WorkspaceRecord, change)

    def _count(self, conversation_id: str, rule_id: str, test: MoreThan) -> bool:
        """Count a call; return False if other processes have reached the limit meanwhile."""
        now = self.rules.local_time()
        change = partial(count_call, key=count_key(rule_id, test), test=test, now=now)
        if test.per == "conversation":
            return self._change(conversation_id, change)
        return self._change_workspace(change)
