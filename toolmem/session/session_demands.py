"""What a user demands of one session, and of the turn under way, as the guard checks it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from toolmem.guard.decision import CheckedRule
from toolmem.protocols import Clock
from toolmem.rules.capture.hook import SessionRule, extract
from toolmem.rules.identity import folded_name
from toolmem.rules.rule_checks import checks_of
from toolmem.rules.turns import Turn

# Words that put off what is forbidden: it is asked about, because the user means to allow it.
_FOR_NOW = re.compile(
    r"\s*\b(?:just )?(?:yet|for now|right now|at the moment)\b|先(?=别|不要|不)|暂时|目前|现在(?=别|不要|不)"
)


class SessionDemands:
    """Demands that bind in one session, by the tool that they are made on; each is read once."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._of: tuple[object, ...] = ()
        self._checked: dict[str, list[CheckedRule]] = {}

    def on(self, tool_name: str, demands: Sequence[SessionRule], spoken: Turn) -> list[CheckedRule]:
        """Those on a tool: `demands`, and what `spoken`, the message that opened this turn, demands for good or not."""
        of = (tuple(demands), spoken.user_message)
        if of != self._of:
            self._checked = self._read([*demands, *said_in(spoken)], spoken)
            self._of = of
        return self._checked.get(folded_name(tool_name), [])

    def _read(self, demands: Sequence[SessionRule], spoken: Turn) -> dict[str, list[CheckedRule]]:
        found: dict[str, list[CheckedRule]] = {}
        bound: dict[str, list[str]] = {}
        for each in dict.fromkeys(demands):
            bound.setdefault(each.rule, []).append(each.tool_name)
        for sentence, names in bound.items():
            lasting = _FOR_NOW.sub("", sentence)
            for name, check in checks_of(lasting, names, spoken.tools).items():
                if check.when is not None:
                    effect = "ask" if lasting != sentence else check.effect
                    rule = CheckedRule("", sentence, effect, check.when, "user", self._clock.now())
                    found.setdefault(folded_name(name), []).append(rule)
        return found


def said_in(turn: Turn) -> list[SessionRule]:
    """All that the user's message demands, stored or not."""
    if not turn.user_message:
        return []
    found = extract(turn)
    standing = [SessionRule(each.tool_name, each.rule) for each in found.drafts if each.priority == "critical"]
    return [*standing, *found.session]
