"""The rules of a workspace, compiled, until the stamp of its rules changes."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from toolmem.errors import RequestError
from toolmem.guard.history import asked_tests
from toolmem.models.rules import UNSCOPED, ToolMemoryRule
from toolmem.rules.identity import folded_name
from toolmem.rules.store import ToolMemoryStore
from toolmem.view.conditions import Conditions, EarlierTest, read_conditions
from toolmem.view.view import CallView

log = logging.getLogger("toolmem.guard")


class CheckedRule(NamedTuple):
    """A rule that calls are held against."""

    rule: ToolMemoryRule
    conditions: Conditions


class RuleSet:
    """The rules of one moment, by tool or class."""

    def __init__(self, rules: ToolMemoryStore, stamp: str) -> None:
        self.stamp = stamp
        self._by_tool: dict[str, list[CheckedRule]] = {}
        every = [*rules.all_rules().rules, *rules.every_session_rule()]
        for rule in every:
            try:
                conditions = read_conditions(rule.when, rule.unless) if rule.is_checked else None
            except RequestError as error:
                log.warning(
                    "rule %r only reminds: its condition cannot be read: %s", rule.id, error
                )
                continue
            if conditions is not None:
                of_tool = self._by_tool.setdefault(folded_name(rule.tool_name), [])
                of_tool.append(CheckedRule(rule, conditions))
        checked = [each.conditions for of_tool in self._by_tool.values() for each in of_tool]
        self.asked: Mapping[str, EarlierTest] = asked_tests(checked)

    def of(self, view: CallView, session: str) -> Iterator[CheckedRule]:
        """Those that hold for a call in this session."""
        if not self._by_tool:
            return
        for place in dict.fromkeys((folded_name(view.tool), *view.classes, UNSCOPED)):
            for each in self._by_tool.get(place, ()):
                if each.rule.session in ("", session):
                    yield each
