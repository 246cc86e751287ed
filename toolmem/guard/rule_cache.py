"""The rules of a workspace, compiled, until the stamp of its rules changes."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from toolmem.errors import RequestError
from toolmem.models.rules import UNSCOPED, ToolMemoryRule
from toolmem.rules.identity import folded_name
from toolmem.rules.store import ToolMemoryStore
from toolmem.view.conditions import Conditions, EarlierTest, read_conditions
from toolmem.view.view import CallView

log = logging.getLogger("toolmem.guard")
MAX_TESTS = 100  # earlier calls that rules ask for
CheckedRule = tuple[ToolMemoryRule, Conditions]  # that calls are held against


class RuleSet:
    """The rules of one moment, by tool or class."""

    def __init__(self, rules: ToolMemoryStore, stamp: str) -> None:
        self.stamp = stamp
        self._by_tool: dict[str, list[CheckedRule]] = {}
        self.asked: dict[str, EarlierTest] = {}  # earlier calls that rules ask for, by key
        for rule in (*rules.all_rules().rules, *rules.every_session_rule()):
            if not rule.is_checked:
                continue
            try:
                conditions = read_conditions(rule.when, rule.unless)
            except RequestError as error:
                told = "rule %r only reminds: its condition cannot be read: %s"
                log.warning(told, rule.id, error)
                continue
            of_tool = self._by_tool.setdefault(folded_name(rule.tool_name), [])
            of_tool.append((rule, conditions))
            for each in (*conditions.when, *conditions.unless):
                if each.earlier is not None and len(self.asked) < MAX_TESTS:
                    self.asked[each.earlier.key] = each.earlier

    def of(self, view: CallView, session: str) -> Iterator[CheckedRule]:
        """Those that hold for a call in this session."""
        if not self._by_tool:
            return
        for place in dict.fromkeys((folded_name(view.tool), *view.classes, UNSCOPED)):
            for rule, conditions in self._by_tool.get(place, ()):
                if rule.session in ("", session):
                    yield rule, conditions
