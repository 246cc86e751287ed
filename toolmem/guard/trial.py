"""Try a rule on one call, or on the newest calls of the log, as if it bound."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Literal

from msgspec import Struct

from toolmem.guard.conversation import OWN_TOOLS
from toolmem.guard.guard import Guard
from toolmem.guard.rule_cache import tools_and_classes
from toolmem.models.calls import OUTCOMES, ToolCallResult
from toolmem.models.rules import UNSCOPED, ToolMemoryRule
from toolmem.rules.identity import folded_name
from toolmem.store.base import CALLS_AT_ONCE
from toolmem.view.conditions import Conditions, Match, read_conditions
from toolmem.view.tool_classes import example_tool
from toolmem.view.view import CallView


class RuleTrial(Struct, kw_only=True):
    """What a rule would do to calls."""

    rule: ToolMemoryRule  # as it was tried
    calls: int = 0  # logged calls that it was tried on
    stopped: list[ToolCallResult] = []  # calls that it would stop or ask about, oldest first
    worked: int = 0  # of the stopped calls, those that worked
    is_partial: bool = False  # it tests earlier calls, and none were known
    match: Literal["", "no", "maybe", "yes"] = ""  # whether it means the call that was given


class Trial:
    """Checks calls against a rule. `done`: the result. Raises RequestError for bad conditions."""

    def __init__(self, guard: Guard, rule: ToolMemoryRule) -> None:
        self.guard = guard
        self.name = folded_name(rule.tool_name)
        self.done = RuleTrial(rule=rule)
        self.conditions: Conditions | None = None  # None: the rule only reminds
        if rule.is_checked:
            self.conditions = found = read_conditions(rule.when, rule.unless)
            self.done.is_partial = any(e.earlier or e.more_than for e in found.alternatives)

    def try_call(self, call: Any) -> None:
        """Try the rule on one call, given as its arguments or as a command line."""
        tool = example_tool(self.done.rule.tool_name)
        now = self.guard.rules.local_time()
        if isinstance(call, str):
            tool = "bash" if self.name.startswith("@") else tool
            call = {"command": call}
        view = CallView(tool, call)
        names: dict[Match, Literal["no", "maybe", "yes"]]
        names = {Match.NO: "no", Match.MAYBE: "maybe", Match.YES: "yes"}
        self.done.match = names[self._match(view, now)]

    def try_recorded(self, number: int) -> None:
        """Try the newest `number` calls of the rule's tool; for a class of tools, of all tools."""
        guard = self.guard
        lets_maybe = guard.modes.unknown == "allow" and not guard.rules.is_guarded()
        for call in self._recorded(number):
            view = CallView(call.tool_name, call.input)
            if self.done.rule.session not in ("", call.conversation_id) or not self._meant(view):
                continue
            self.done.calls += 1
            match = self._match(view, call.create_time.astimezone(guard.rules.zone))
            if match is Match.YES or (match is Match.MAYBE and (view.is_cut or not lets_maybe)):
                self.done.stopped.append(call)
                self.done.worked += OUTCOMES["worked"](call)
        self.done.stopped.reverse()

    def _match(self, view: CallView, now: datetime) -> Match:
        if self.conditions is None:
            return Match.NO
        checks = (self.conditions.check(each, now) for each in self._meant(view))
        return max(checks, default=Match.NO)

    def _meant(self, view: CallView) -> list[CallView]:
        """Return the call and the calls inside it, if they are of the rule's tool or class."""
        if folded_name(view.tool) in OWN_TOOLS:
            return []
        return [each for each in (view, *view.nested) if self.name in tools_and_classes(each)]

    def _recorded(self, number: int) -> Iterator[ToolCallResult]:
        """Yield the newest calls of the log, newest first, read page by page."""
        store = self.guard.store
        workspace = self.guard.workspace
        names: list[str] | None = None  # all tools
        if not self.name.startswith("@") and self.name != folded_name(UNSCOPED):
            names = [each for each in store.tool_names(workspace) if folded_name(each) == self.name]
        before: int | None = None
        while number > 0:
            size = min(number, CALLS_AT_ONCE)
            where: Any = {"tool_names": names, "before": before, "newest": True}
            page = store.call_log(workspace, **where, limit=size)
            yield from (logged.call for logged in reversed(page))
            if len(page) < size:
                break
            number -= size
            before = page[0].position
