"""The user's sentences become rules: at once when they are typed, and again after the turn.

A demand becomes a critical rule on each tool that it names or means, else on the first tool that
the turn called. Two failures of a tool in a turn become a normal rule. What lets a rule bind less
(a sentence that takes it back) is a change like any other: `changes` decides.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from toolmem.errors import ToolMemError
from toolmem.models.rules import UNSCOPED, Said, ToolMemoryRule
from toolmem.rules.changes import Actor
from toolmem.rules.failures import count_uses, repeated_failures
from toolmem.rules.identity import SURROGATE
from toolmem.rules.replies import follow_reply, keep_aloud
from toolmem.rules.store import RuleInput, ToolMemoryStore
from toolmem.rules.turn import Turn
from toolmem.text.display import plain

if TYPE_CHECKING:  # the reader is loaded when a sentence is read
    from toolmem.rules.reader import Demand

log = logging.getLogger("toolmem.rules")

USER_EDICT = "user-edict"  # the tag of rules that the user's sentences made
_VARIABLES = (
    "TOOLMEM_LEARNING_TOOL_MEMORY_CAPTURE_ENABLED",
    "OPENHUMAN_LEARNING_TOOL_MEMORY_CAPTURE_ENABLED",
)
_OFF = frozenset(("0", "false", "no", "off"))
_SHOWN = 160  # characters of a rule in what the user is told


class Captured(Struct):
    """What became of a turn."""

    kept: list[ToolMemoryRule] = []
    lifted: list[ToolMemoryRule] = []
    told: list[str] = []  # for the user, a line each

    def add(self, other: Captured) -> None:
        self.kept += other.kept
        self.lifted += other.lifted
        self.told += other.told


class ToolMemoryCaptureHook:
    """Reads turns for one workspace. `actor`: who vouches that the user typed the messages.

    It never breaks a turn: what fails is logged, without the user's words. `enabled`: whether it
    reads at all; None: as the environment says.
    """

    def __init__(
        self, rules: ToolMemoryStore, *, actor: Actor | None = None, enabled: bool | None = None
    ) -> None:
        self.rules = rules
        self.actor = actor or Actor("user")
        said = next((os.environ[name] for name in _VARIABLES if name in os.environ), "1")
        self.enabled = said.strip().lower() not in _OFF if enabled is None else enabled

    def hear(self, turn: Turn) -> Captured:
        """What the user has just typed, before the agent acts on it."""
        return self._read(turn, self._follow, partial(self._keep, named_only=True))

    def after_turn(self, turn: Turn, *, heard: bool = False) -> Captured:
        """All of a turn that ended. `heard`: its message was handed to `hear`."""
        followed = () if heard else (self._follow,)
        return self._read(turn, *followed, self._keep, self._learn)

    def follow(self, turn: Turn) -> Captured:
        """Replies such as `undo`, and sentences that take a rule back, alone."""
        return self._read(turn, self._follow)

    def _read(self, turn: Turn, *steps: Callable[[Turn], Captured]) -> Captured:
        """Take the steps, each whether or not the one before failed."""
        captured = Captured()
        turn.user_message = SURROGATE.sub("\ufffd", turn.user_message)
        for step in steps if self.enabled else ():
            try:
                captured.add(step(turn))
            except ToolMemError as error:
                captured.told.append(f"not kept: {plain(str(error), 300)}")
                log.warning("a turn was not read: %s", type(error).__name__)
        return captured

    def _follow(self, turn: Turn) -> Captured:
        words, session = turn.user_message, turn.session_id
        actor = replace(self.actor, kind="user", words=words, session=session)
        return follow_reply(self.rules, turn, actor, Captured())

    def _keep(self, turn: Turn, *, named_only: bool = False) -> Captured:
        from toolmem.rules.reader import demands, too_long

        aloud, message = keep_aloud(turn.user_message)
        found = demands(message, [] if named_only else turn.ran, turn.tools)
        captured = Captured()
        for demand in found:
            if named_only and demand.tools == [UNSCOPED]:
                continue
            if demand.session and not turn.session_id:
                why = "as it holds for a session that is not named"
                captured.told.append(f"not kept, {why}: {plain(demand.sentence, _SHOWN)}")
                continue
            captured.kept += (self._put(turn, _rule_of(demand, t, turn)) for t in demand.tools)
        if aloud and not found:
            self._keep_reminder(turn, aloud, captured)
        if n := too_long(message):
            told = f"not kept: {n} sentence(s) of over 500 characters; say it shorter"
            captured.told.append(told)
        by_text: dict[str, list[ToolMemoryRule]] = {}
        for rule in captured.kept:
            if rule.status == "active":
                by_text.setdefault(rule.rule, []).append(rule)
        captured.told += map(_confirmation, by_text.values())
        return captured

    def _keep_reminder(self, turn: Turn, aloud: str, captured: Captured) -> None:
        """A message that begins with `never:` or `remember:` is kept, or refused aloud."""
        if refused := _refusal(aloud):
            captured.told.append(f"not kept: {refused}")
            return
        from toolmem.rules.reader.tools import catalogue_of, tools_meant

        meant = tools_meant(aloud, aloud.lower(), catalogue_of([], turn.tools))
        for tool in meant or [UNSCOPED]:
            given = RuleInput(tool_name=tool, rule=aloud.rstrip(".。!！"), unread=["its words"])
            captured.kept.append(self._put(turn, given))

    def _put(self, turn: Turn, given: RuleInput) -> ToolMemoryRule:
        given.priority, given.source = "critical", "user_explicit"
        given.tags = [USER_EDICT]
        given.said = Said("user", turn.session_id, (turn.mark,) if turn.mark else ())
        return self.rules.put_rule(given, Actor("user"), captured=True)

    def _learn(self, turn: Turn) -> Captured:
        count_uses(self.rules.store, self.rules.workspace, turn.tool_calls)
        found = repeated_failures(self.rules.workspace, turn.tool_calls)
        return Captured([self.rules.put_rule(each) for each in found])


def _refusal(text: str) -> str:
    """Why a text can be no reminder; "" where it can."""
    if not any(map(str.isalnum, text)):
        return "nothing follows that could be kept"
    if len(text) > 500:
        return "what follows is longer than 500 characters: say it in a sentence or two"
    if text.rstrip().endswith(("?", "？")):
        return "it is a question: say what is to be kept"
    return ""


def _rule_of(demand: Demand, tool: str, turn: Turn) -> RuleInput:
    found = demand.conditions.get(tool)
    return RuleInput(
        tool_name=tool,
        rule=demand.sentence,
        effect=demand.effect if found else "remind",
        when=found.when if found else [],
        unless=found.unless if found else [],
        unread=demand.unread,
        session=turn.session_id if demand.session else "",
    )


def _confirmation(rules: list[ToolMemoryRule]) -> str:
    """Of a sentence that was kept under some tools: what is held against it, and the way back."""
    from toolmem.rules.prompt import tool_shown

    first = rules[0]
    kept = "Kept for this session" if first.session else "Kept"
    checked = [tool_shown(rule.tool_name, "") for rule in rules if rule.is_checked]
    if checked:
        verb = "stops calls of" if first.effect == "deny" else "asks you before calls of"
        what = f"{verb} {', '.join(checked[:5])} that it means"
    elif first.unread:
        words = ", ".join(plain(each, 40) for each in first.unread[:3])
        what = f"a reminder: no call is checked, as this was not understood: {words}"
    else:
        what = "a reminder: no call is checked against it"
    return f"{kept}: “{plain(first.rule, _SHOWN)}” ({what}). undo, or just this time"
