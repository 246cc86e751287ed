"""Compile the rules of a workspace, and again when their stamp (their version) changes."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime

from toolmem.errors import RequestError, StoreError
from toolmem.models.decisions import Action
from toolmem.models.protocols import KeepsRuleCopies
from toolmem.models.rules import UNSCOPED, ToolMemoryRule
from toolmem.rules.identity import folded_name
from toolmem.rules.store import ToolMemoryStore
from toolmem.view.conditions import Conditions, EarlierTest, read_conditions
from toolmem.view.view import CallView

log = logging.getLogger("toolmem.guard")
MAX_EARLIER_TESTS = 100
MAX_PREVIEWED = 10_000
_NEVER = datetime.max.replace(tzinfo=UTC)
CheckedRule = tuple[ToolMemoryRule, Conditions]
RuleOnCall = tuple[CallView, ToolMemoryRule, Conditions]


class RuleSet:
    """The compiled rules that calls are checked against. `stamp`: the version of the rules.

    It includes rules that the store lost, from their copy. `is_readable` False: it has only these.
    """

    def __init__(self, rules: ToolMemoryStore, stamp: str, *, is_readable: bool = True) -> None:
        self.stamp = stamp
        stored = (*rules.all_rules().rules, *rules.every_session_rule()) if is_readable else ()
        copied = _lost_rules(rules)
        self.copied = {rule.id for rule in copied}
        self._by_tool: dict[str, list[CheckedRule]] = {}
        self.earlier_tests: dict[str, EarlierTest] = {}  # of all rules, by key
        self._previewed: dict[tuple[str, ...], Action] = {}
        now = rules.local_time()
        ends = (r.expires_at for r in (*stored, *copied) if r.expires_at and r.holds_at(now))
        self._steady_until = min(ends, default=_NEVER)  # until then they mean the same calls
        for rule in (*stored, *copied):
            if not rule.is_checked:
                continue
            try:
                conditions = read_conditions(rule.when, rule.unless)
            except RequestError as error:
                message = "rule %r only reminds: its condition cannot be read: %s"
                log.warning(message, rule.id, error)
                continue
            of_tool = self._by_tool.setdefault(folded_name(rule.tool_name), [])
            of_tool.append((rule, conditions))
            for each in conditions.alternatives:
                if each.clock is not None:
                    self._steady_until = now
                if each.earlier is not None and len(self.earlier_tests) < MAX_EARLIER_TESTS:
                    self.earlier_tests[each.earlier.key] = each.earlier

    def previewed(self, now: datetime) -> dict[tuple[str, ...], Action]:
        """Return the cache that `Guard.preview` fills: actions by the fields of a `ShownCall`."""
        if now >= self._steady_until or len(self._previewed) > MAX_PREVIEWED:
            self._previewed = {}
        return self._previewed

    def rules_for(self, view: CallView, conversation_id: str) -> Iterator[RuleOnCall]:
        """Yield (call, rule, conditions) for each rule on a call, and on each call inside it."""
        for each in (view, *view.nested) if self._by_tool else ():
            for place in tools_and_classes(each):
                for rule, conditions in self._by_tool.get(place, ()):
                    if rule.session in ("", conversation_id):
                        yield each, rule, conditions


def tools_and_classes(view: CallView) -> Iterable[str]:
    """Return the tools and classes whose rules are about a call, such as `bash` and `@shell`."""
    return dict.fromkeys((folded_name(view.tool), *view.classes, UNSCOPED))


def copied_rules(rules: ToolMemoryStore, before: RuleSet | None) -> RuleSet | None:
    """Return what binds if a store cannot be read: rules of its copy, or those read `before`."""
    if before is not None and before.copied:
        return before
    found = RuleSet(rules, "none", is_readable=False)
    return found if found.copied else before


def _lost_rules(rules: ToolMemoryStore) -> list[ToolMemoryRule]:
    """Return the binding rules that a store lost and that have a copy; a failure is logged."""
    found: list[ToolMemoryRule] = []
    if isinstance(rules.store, KeepsRuleCopies):
        try:
            for record in rules.store.lost_rules(rules.workspace):
                with suppress(ValueError):
                    found.append(record.read(ToolMemoryRule))
        except StoreError as error:
            message = "the rules cannot be compared with their copy: %s"
            logging.getLogger("toolmem.operator").error(message, error)
    return [rule for rule in found if rule.status == "active"]
