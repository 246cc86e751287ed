"""The guard of one conversation: decides before a call, learns from how it ended, and keeps count of its own mistakes.

    guard = ConversationGuard(rules)
    decision = guard.before("send_email", {"to": "sarah@example.com"})
    if not decision.stops:
        ...
        guard.after(decision, failed=False)

Plain Python in memory, for one thread. Who keeps rules, forgiveness and names for longer hands them in.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

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
)
from toolmem.guard.effects import asks_outside, may_write, statement_in
from toolmem.guard.known_names import KnownNames
from toolmem.guard.repeats import Forgiveness, StandingFailures, identity, is_transient
from toolmem.guard.view import view_of
from toolmem.light_models import ToolSchema
from toolmem.readers.denied_calls import is_denied
from toolmem.readers.error_messages import mask, telling_line

FORCED_LEAST = 5  # forced flags of a source before it is doubted
FORCED_WORKED = 0.05  # share of these that worked from which on it only advises

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


@dataclass(frozen=True, slots=True)
class CheckedCall:
    """A call and what was decided about it; `after` is handed it back."""

    decision: GuardDecision
    tool_name: str
    arguments: Any
    identity: str
    forced: bool = False  # it runs though a repeat was found

    @property
    def stops(self) -> bool:
        return self.decision.stops


class ConversationGuard:
    """Holds the calls of one conversation against rules, failures and names.

    `rules`: by tool, "" for those of every tool. `tools`: as they were declared,
    `annotations`: what MCP calls so, by tool. `modes`: as in the configuration's
    section `guard`. `problems`: what violates a tool's schema. `names`: of the context that calls run against. `key`:
    of the store, so that identities tell nothing about inputs.
    """

    def __init__(
        self,
        rules: Mapping[str, Sequence[CheckedRule]] | None = None,
        *,
        tools: Sequence[ToolSchema] = (),
        annotations: Mapping[str, Mapping[str, Any]] | None = None,
        modes: Mapping[str, Mode] = MODES,
        forgiveness: Forgiveness | None = None,
        names: KnownNames | None = None,
        problems: Problems | None = None,
        watch: Watch | None = None,
        key: bytes = b"",
    ) -> None:
        self.rules = rules or {}
        self._tools = {tool.name: tool for tool in tools}
        self._annotations = annotations or {}
        self._modes = {**MODES, **modes}
        self._standing = StandingFailures(forgiveness or Forgiveness())
        self._names = names
        self._problems = problems
        self._watch = watch or Watch()
        self._key = key
        self._denied: dict[str, int] = {}  # identity -> state in which a repeat was denied
        self._forced: dict[str, int] = {}  # identity -> state in which one was forced

    def before(self, tool_name: str, arguments: Any, *, force: bool | None = False) -> CheckedCall:
        """What is to become of a call. `force` None: the host cannot say it, so that the unchanged repeat of a call
        that a repeat denied counts as forced, once. A rule is never forced."""
        call = identity(tool_name, arguments, self._key)
        found = self._rules_against(tool_name, arguments)
        repeats = self._repeat_against(tool_name, arguments, call)
        forced = bool(repeats) and self._is_forced(call, force)
        found += [] if forced else repeats
        found += self._names_against(arguments) + self._problems_of(tool_name, arguments)
        decision = decide(uuid.uuid4().hex, found)
        if any(each.kind == "repeat" and each.effective == "deny" for each in found):
            self._denied[call] = self._standing.state
        if forced:
            self._forced[call] = self._standing.state
        return CheckedCall(decision, tool_name, arguments, call, forced)

    def after(self, checked: CheckedCall, *, failed: bool | None, output: str = "", call_id: str = "") -> None:
        """How a call ended that was let through. `failed` None: not known, which teaches nothing; neither does a call
        that did not run."""
        if failed is None or is_denied(output):
            return
        if checked.forced:
            self._watch.forced["repeat"] += 1
            self._watch.worked["repeat"] += not failed
        line = telling_line(output) if failed else ""
        declared = self._annotations.get(checked.tool_name)
        writes = not failed and may_write(checked.tool_name, checked.arguments, declared)
        self._standing.after(
            checked.identity,
            failed=failed,
            writes=writes,
            call_id=call_id,
            message=(checked.tool_name, mask(line)),
            line=line,
            transient=is_transient(line),
        )
        statement = statement_in(checked.arguments)
        if self._names is not None and statement:
            self._names.learn(statement, output, failed=failed)

    def user_spoke(self) -> None:
        """A message of the user: what failed before may be tried again."""
        self._standing.user_spoke()

    # -- sources

    def _rules_against(self, tool_name: str, arguments: Any) -> list[Finding]:
        bound = [*self.rules.get(tool_name, ()), *self.rules.get("", ())]
        mode = self._modes["rules"]
        if mode == "off" or not any(rule.checkable for rule in bound):
            return []
        declared = self._tools.get(tool_name)
        given = arguments if isinstance(arguments, Mapping) else {"": arguments}
        return against_rules(bound, view_of(tool_name, given, declared.parameters if declared else None), mode)

    def _repeat_against(self, tool_name: str, arguments: Any, call: str) -> list[Finding]:
        mode = self._mode("repeat", "repeats")
        if mode == "off":
            return []
        asks = asks_outside(tool_name, arguments, self._annotations.get(tool_name))
        return against_repeat(self._standing.before(call), mode, only_advise=asks)

    def _names_against(self, arguments: Any) -> list[Finding]:
        mode = self._mode("known_name", "names")
        if mode == "off" or self._names is None or not (statement := statement_in(arguments)):
            return []
        return against_names(self._names.against(statement), mode)

    def _problems_of(self, tool_name: str, arguments: Any) -> list[Finding]:
        mode = self._mode("schema", "schema")
        if mode == "off" or self._problems is None:
            return []
        told = self._problems(arguments, self._tools.get(tool_name))
        return (
            [Finding("schema", "deny", f"The arguments do not fit the tool: {'; '.join(told[:3])}.", mode)]
            if told
            else []
        )

    def _mode(self, kind: str, setting: str) -> Mode:
        mode = self._modes[setting]
        return "advise" if mode == "enforce" and self._watch.doubts(kind) else mode

    def _is_forced(self, call: str, force: bool | None) -> bool:
        state = self._standing.state
        if force is not None or self._forced.get(call) == state:
            return bool(force)
        return self._denied.get(call) == state
