"""The guard of one conversation: decides before a call, learns from how it ended, and keeps count of its own mistakes.

    guard = ConversationGuard(rules)
    decision = guard.before("send_email", {"to": "sarah@example.com"})
    if not decision.stops:
        ...
        guard.after(decision, failed=False)

Plain Python in memory, for one thread. Who keeps failures, forgiveness and names for longer hands them in, and writes
down what became of them: each of them is JSON.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolmem.guard.call_lessons import ended_as, take
from toolmem.guard.decision import (
    MODES,
    CheckedRule,
    Finding,
    GuardDecision,
    Mode,
    against_names,
    against_repeat,
    against_rules,
    decide,
    quoted,
)
from toolmem.guard.effects import asks_outside, names_text
from toolmem.guard.known_names import KnownNames
from toolmem.guard.repeats import Ended, Forgiveness, StandingFailures, identity
from toolmem.guard.self_protection import against_self, may_touch
from toolmem.guard.tool_classes import scopes_of
from toolmem.guard.view import View, view_of
from toolmem.late_dataclasses import dataclass, field, replace
from toolmem.light_models import ToolSchema
from toolmem.readers.denied_calls import is_denied
from toolmem.readers.written_arguments import opened_arguments

if TYPE_CHECKING:
    from toolmem.guard.histories import History

FORCED_LEAST = 5  # forced flags of a source before it is doubted
FORCED_WORKED = 0.05  # share of these that worked from which on it only advises
_FORCIBLE = ("repeat", "known_name", "schema")

Problems = Callable[[Any, ToolSchema | None], Sequence[str]]


@dataclass(slots=True)
class Watch:
    """How often flags of a source were forced, and how often the call then worked: of a workspace."""

    forced: Counter[str] = field(default_factory=Counter)
    worked: Counter[str] = field(default_factory=Counter)

    def doubts(self, kind: str) -> bool:
        """Is a source wrong too often to stop calls?"""
        forced = self.forced[kind]
        return forced >= FORCED_LEAST and self.worked[kind] > FORCED_WORKED * forced

    def count(self, kinds: Sequence[str], *, worked: bool) -> None:
        """How a call ended that was forced."""
        if not kinds:
            return
        self.forced.update(kinds)
        if worked:
            self.worked.update(kinds)

    def add(self, other: Watch) -> None:
        self.forced.update(other.forced)
        self.worked.update(other.worked)

    def as_json(self) -> dict[str, Any]:
        return {kind: [self.forced[kind], self.worked[kind]] for kind in _FORCIBLE if self.forced[kind]}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Watch:
        """Raises TypeError or ValueError where it is none."""
        told = {kind: value[kind] for kind in _FORCIBLE if kind in value}
        pairs = {kind: (int(forced), int(worked)) for kind, (forced, worked) in told.items()}
        return cls(Counter({k: n for k, (n, _) in pairs.items()}), Counter({k: n for k, (_, n) in pairs.items()}))


@dataclass(frozen=True, slots=True)
class CheckedCall:
    """A call and what was decided about it; `after` is handed it back."""

    decision: GuardDecision
    tool_name: str
    arguments: Any
    identity: str
    forced: tuple[str, ...] = ()  # the sources that would have stopped it
    began: int | None = None  # the state of the conversation
    hints: Mapping[str, Any] = field(default_factory=dict)  # at what the tool does, as it declares

    @property
    def stops(self) -> bool:
        return self.decision.stops


class ConversationGuard:
    """Holds the calls of one conversation against rules, failures and names.

    `rules`: by tool, "" for those of every tool. `tools`: as they were declared. `modes`: as in the configuration's
    section `guard`. `standing`: the conversation's failures. `names`: of the context that calls run against.
    `problems`: what violates a tool's schema. `key`: of the store, so that identities tell nothing about inputs.
    `protected`: files, folders and addresses that, with every `.toolmem`, only the user changes. `history`: which
    earlier calls of the conversation rules ask for; None: nothing is known of them.
    """

    def __init__(
        self,
        rules: Mapping[str, Sequence[CheckedRule]] | None = None,
        *,
        tools: Sequence[ToolSchema] = (),
        modes: Mapping[str, Mode] = MODES,
        standing: StandingFailures | None = None,
        names: KnownNames | None = None,
        problems: Problems | None = None,
        watch: Watch | None = None,
        key: bytes = b"",
        protected: Sequence[str] = (),
        history: History | None = None,
    ) -> None:
        self.rules = rules or {}
        self._tools = {tool.name: tool for tool in tools}
        self._modes = {**MODES, **modes}
        self.standing = standing or StandingFailures(Forgiveness())
        self._names = names
        self._problems = problems
        self.watch = watch or Watch()
        self._key = key
        self._protected = protected
        self._history = history
        self.view: View | None = None  # of the call that was weighed last, where rules looked at it

    def before(
        self, tool_name: str, arguments: Any, *, force: bool | None = False, directory: Path | None = None
    ) -> CheckedCall:
        """What is to become of a call, remembered. `force` None: the host cannot say it, so that the unchanged repeat
        of a call that a repeat denied counts as forced, once. A rule is never forced."""
        checked = self.weigh(tool_name, arguments, force=force, directory=directory)
        self.remember(checked)
        return checked

    def weigh(
        self, tool_name: str, arguments: Any, *, force: bool | None = False, directory: Path | None = None
    ) -> CheckedCall:
        """What is to become of a call. Changes nothing."""
        arguments = opened_arguments(arguments)
        call = identity_of(tool_name, arguments, self._key)
        found = self._repeat_against(tool_name, arguments, call, force) + self._names_against(tool_name, arguments)
        found += self._problems_of(tool_name, arguments)
        lifted = self._lifted(call, force, found)
        found = [
            replace(each, forced=True) if each.kind in lifted and each.action == "deny" else each for each in found
        ]
        rules = self._rules_against(tool_name, arguments, directory)
        decision = decide(os.urandom(16).hex(), rules + found)
        kinds = () if decision.stops else tuple(sorted(lifted))
        return CheckedCall(decision, tool_name, arguments, call, kinds, self.standing.state, self._hints(tool_name))

    def remember(self, checked: CheckedCall) -> bool:
        """What a decision leaves for the next one; False where it leaves nothing."""
        if "repeat" in checked.forced:
            return self.standing.forced(checked.identity)
        stopped = any(each.kind == "repeat" and each.effective == "deny" for each in checked.decision.sources)
        return stopped and self.standing.denied(checked.identity)

    def after(self, checked: CheckedCall, *, failed: bool | None, output: str = "", call_id: str = "") -> None:
        """How a call ended that was let through. `failed` None: not known, which teaches only that it may have
        written; a call that did not run teaches nothing."""
        if is_denied(output):
            return
        ended = ended_as(checked.tool_name, checked.arguments, failed=failed, output=output, hints=checked.hints)
        self.learn(checked, ended, failed=failed, call_id=call_id)
        if self._names is None or failed is None:
            return
        if statement := names_text(checked.arguments, checked.tool_name):
            self._names.learn(statement, output, failed=failed)

    def learn(self, checked: CheckedCall, ended: Ended, *, failed: bool | None, call_id: str) -> None:
        """As `after`, of a call that ran, but for names."""
        if failed is not None:
            self.watch.count(checked.forced, worked=not failed)
        take(self.standing, checked.identity, ended, failed=failed, call_id=call_id, began=checked.began)

    def user_spoke(self) -> None:
        """A message of the user: what failed before may be tried again."""
        self.standing.user_spoke()

    # -- sources

    def _rules_against(self, tool_name: str, arguments: Any, directory: Path | None) -> list[Finding]:
        declared = self._tools.get(tool_name)
        scopes = scopes_of(tool_name, declared.parameters if declared else None, arguments)
        bound = [rule for place in dict.fromkeys((tool_name, *scopes, "")) for rule in self.rules.get(place, ())]
        mode = self._modes["rules"]
        given = arguments if isinstance(arguments, Mapping) else {"": arguments}
        own = may_touch(given, self._protected, directory)
        if mode == "off" or not (own or any(rule.checkable for rule in bound)):
            return []
        view = self.view = view_of(tool_name, given, declared.parameters if declared else None, directory=directory)
        found = against_rules(bound, view, mode, history=self._history)
        if own:
            hints = self._hints(tool_name)
            found += against_self(tool_name, given, view, self._protected, directory=directory, hints=hints, mode=mode)
        return found

    def _repeat_against(self, tool_name: str, arguments: Any, call: str, force: bool | None) -> list[Finding]:
        mode = self._mode("repeat", "repeats")
        if mode == "off" or (held := self.standing.before(call)) is None:
            return []
        asks = self.standing.unwatched or held.failure.may_differ
        asks = asks or asks_outside(tool_name, arguments, self._hints(tool_name))
        return self._said_if_doubted(against_repeat(held, mode, only_advise=asks, force=force))

    def _names_against(self, tool_name: str, arguments: Any) -> list[Finding]:
        mode = self._mode("known_name", "names")
        if mode == "off" or self._names is None or not (statement := names_text(arguments, tool_name)):
            return []
        return self._said_if_doubted(against_names(self._names.against(statement), mode))

    def _problems_of(self, tool_name: str, arguments: Any) -> list[Finding]:
        mode = self._mode("schema", "schema")
        if mode == "off" or self._problems is None:
            return []
        told = self._problems(arguments, self._tools.get(tool_name))
        if not told:
            return []
        text = f"The arguments do not fit the tool: {quoted('; '.join(told[:3]))}."
        return self._said_if_doubted([Finding("schema", "deny", text, mode)])

    def _mode(self, kind: str, setting: str) -> Mode:
        mode = self._modes[setting]
        return "advise" if mode == "enforce" and self.watch.doubts(kind) else mode

    def _said_if_doubted(self, found: list[Finding]) -> list[Finding]:
        return [
            replace(each, text=f"{each.text} {self._doubt(each.kind)}") if self.watch.doubts(each.kind) else each
            for each in found
        ]

    def _doubt(self, kind: str) -> str:
        forced, worked = self.watch.forced[kind], self.watch.worked[kind]
        return f"(This source only advises: {worked} of {forced} calls that were forced against it worked.)"

    def _hints(self, tool_name: str) -> Mapping[str, Any]:
        declared = self._tools.get(tool_name)
        return declared.annotations if declared is not None else {}

    def _lifted(self, call: str, force: bool | None, found: Sequence[Finding]) -> set[str]:
        """The kinds of sources that are forced."""
        if force is None:
            stopped = any(each.kind == "repeat" and each.effective == "deny" for each in found)
            return {"repeat"} if stopped and self.standing.unchanged_repeat_is_force(call) else set()
        return {each.kind for each in found if each.action == "deny"} if force else set()


def identity_of(tool_name: str, arguments: Any, key: bytes) -> str:
    """The identity of a call; "" where its arguments are nothing that two calls could share."""
    try:
        return identity(tool_name, arguments, key)
    except (RecursionError, ValueError, TypeError):
        return ""
