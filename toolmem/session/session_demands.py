"""What a user demands of a session, and demands or takes back in the message being answered, as the guard checks it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

from toolmem.engine.demanded_rules import checked_demands, demanded
from toolmem.guard.decision import CheckedRule
from toolmem.guard.tool_classes import scopes_of
from toolmem.models import ToolMemoryRule
from toolmem.rules.capture.hook import SaidStep, SessionRule, extract
from toolmem.rules.capture.taking_back import RulesInForce, session_lifted
from toolmem.rules.identity import folded_name
from toolmem.rules.rule_store import RuleStore
from toolmem.rules.turns import Turn

log = logging.getLogger("toolmem.session")


@dataclass(slots=True)
class Binding:
    """What binds calls beside the stored rules, and which of these bind no more."""

    demands: list[SessionRule] = field(default_factory=list)
    lifted: set[str] = field(default_factory=set)  # ids
    checked: dict[str, list[CheckedRule]] = field(default_factory=dict)  # by the tool's name in lower case

    def on(self, tool_name: str) -> list[CheckedRule]:
        places = (folded_name(tool_name), *scopes_of(tool_name))
        return [rule for place in dict.fromkeys(places) for rule in self.checked.get(place, ())]


class SessionDemands:
    """Reads the message of a turn, and the demands of a session, once."""

    def __init__(self, rules: RuleStore) -> None:
        self._rules = rules
        self._known: tuple[object, Binding] = ((), Binding())

    def now(self, demands: Sequence[SessionRule], spoken: Turn, holding: Sequence[ToolMemoryRule]) -> Binding:
        """`demands`: of this session; `spoken`: the message being answered; `holding`: the rules known."""
        of = (tuple(demands), spoken.user_message, tuple(rule.id for rule in holding))
        if self._known[0] != of:
            binding = Binding(list(demands))
            try:
                self._hear(spoken, holding, binding)
            except Exception as error:  # what was demanded before goes on to bind
                log.error("the message could not be read: %s", type(error).__name__)
            binding.checked = checked_demands(binding.demands, spoken.tools, self._rules.clock.now())
            self._known = of, binding
        return self._known[1]

    def _hear(self, spoken: Turn, holding: Sequence[ToolMemoryRule], binding: Binding) -> None:
        """One sentence after the other, as capture does when the turn is over."""
        if not spoken.user_message:
            return
        force = RulesInForce(self._rules, spoken)
        for step in extract(spoken).said:
            taken = self._takes_back(step, force, holding, binding)
            if not taken or step.replaces:
                binding.demands += demanded(step)

    def _takes_back(
        self, step: SaidStep, force: RulesInForce, holding: Sequence[ToolMemoryRule], binding: Binding
    ) -> bool:
        if not step.lifts:
            return False
        gone = session_lifted(step.lifts, binding.demands)
        rules = force.surely_meant(step.lifts, holding)
        binding.demands = [each for each in binding.demands if each not in gone]
        binding.lifted |= {rule.id for rule in rules}
        return bool(gone or rules)
