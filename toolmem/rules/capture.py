"""Turn the user's sentences into rules: at once when they are typed, and again after the turn.

A demand becomes a critical rule on each tool that it names or means. If it means none, the rule is
on the first tool that the turn called; in a recording, such a demand is not kept. Two failures of a
tool in a turn become a normal rule. A sentence that takes a rule back lifts it if `changes` allows.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec import UNSET
from msgspec.structs import replace

from toolmem.errors import ToolMemError
from toolmem.models.rules import UNSCOPED, Said, ToolMemoryRule
from toolmem.rules.changes import Actor
from toolmem.rules.failures import repeated_failures
from toolmem.rules.identity import SURROGATE, text_key
from toolmem.rules.replies import (
    excerpt,
    follow_reply,
    kept_message,
    remember,
    remember_made,
    undo_words,
    waiting_message,
)
from toolmem.rules.store import MAX_SESSION, RuleInput, ToolMemoryStore
from toolmem.rules.turn import Captured, Turn, tell_operator
from toolmem.store.storable import read_or_new
from toolmem.text.display import plain, shown_time
from toolmem.text.forms import OFF_WORDS
from toolmem.text.masking import Masker
from toolmem.text.patterns import late_pattern

if TYPE_CHECKING:  # the reader is loaded when a sentence is read
    from toolmem.rules.reader import Demand

log = logging.getLogger("toolmem.rules")

USER_EDICT = "user-edict"  # the tag of rules that the user's sentences made
_VARIABLES = (
    "TOOLMEM_LEARNING_TOOL_MEMORY_CAPTURE_ENABLED",
    "OPENHUMAN_LEARNING_TOOL_MEMORY_CAPTURE_ENABLED",
)
MAX_MESSAGE = 60_000  # characters that are read
MAX_DEMANDS = 10  # in one message; more are kept only once the user confirms them


class ToolMemoryCaptureHook:
    """Makes rules of what the user says in a turn, and of failures that repeat in it.

    `actor`: who vouches that the user typed the messages. `enabled`: if None, the hook is on
    unless an environment variable (`_VARIABLES`) is off. `may_lift`: if False, messages can only
    request to loosen rules of a guarded store. A ToolMemError is logged, and never raised.
    """

    def __init__(
        self,
        rules: ToolMemoryStore,
        *,
        actor: Actor | None = None,
        enabled: bool | None = None,
        may_lift: bool = True,
    ) -> None:
        self.rules = rules
        self.actor = actor or Actor("user")
        self.may_lift = may_lift
        setting = next((os.environ[name] for name in _VARIABLES if name in os.environ), "1")
        self.enabled = setting.strip().lower() not in OFF_WORDS if enabled is None else enabled

    def hear(self, turn: Turn) -> Captured:
        """Read a message before the agent acts. Demands that mean no tool are not kept yet."""
        return self._read(turn, self._follow, partial(self._keep, named_only=True))

    def after_turn(self, turn: Turn, *, heard: bool = False) -> Captured:
        """Read a turn that ended. `heard`: its message was already handed to `hear`."""
        followed = () if heard else (self._follow,)
        return self._read(turn, *followed, self._keep, self._learn)

    def after_recorded(self, turn: Turn) -> Captured:
        """Read a turn of a recording. A demand that names or means no tool is not kept."""
        keep = partial(self._keep, named_only=True, is_last=True)
        return self._read(turn, self._follow, keep, self._learn)

    def follow(self, turn: Turn) -> Captured:
        """Follow replies such as `undo`, and sentences that take a rule back. Keep no demand."""
        return self._read(turn, self._follow)

    def _read(self, turn: Turn, *steps: Callable[[Turn], Captured]) -> Captured:
        """Take every step, even if an earlier step failed."""
        captured = Captured()
        turn.user_message = SURROGATE.sub("\ufffd", turn.user_message)
        if self.enabled and len(turn.user_message) > MAX_MESSAGE:
            turn.user_message = turn.user_message[:MAX_MESSAGE]
            captured.told.append(
                f"only the first {MAX_MESSAGE:,} characters of this message were read for demands"
            )
        if turn.is_guests:  # following replies would loosen rules
            steps = tuple(step for step in steps if step != self._follow)
        for step in steps if self.enabled else ():
            try:
                captured.add(step(turn))
            except ToolMemError as error:
                captured.told.append(f"not kept: {plain(str(error), 300)}")
                log.warning("a turn was not read: %s", type(error).__name__)
        if turn.is_guests:
            tell_operator(turn.conversation_id, captured.told)
            captured.told = []
        return captured

    def _follow(self, turn: Turn) -> Captured:
        words = turn.user_message
        session = turn.conversation_id
        actor = replace(self.actor, kind="user", words=words, session=session)
        if not self.may_lift:
            actor = replace(actor, evidence="")
        return follow_reply(self.rules, turn, actor)

    def _keep(self, turn: Turn, *, named_only: bool = False, is_last: bool = False) -> Captured:
        """Keep demands. `named_only`: only on tools they name; `is_last`: no later step follows."""
        from toolmem.rules.reader.demands import demands, unkept

        reminder, message = split_keep_prefix(turn.held or turn.user_message)
        named_only = named_only and not turn.held
        found = demands(message, [] if named_only else turn.ran, turn.tools)
        captured = Captured()
        if len(found) > MAX_DEMANDS and not turn.held:
            return self._hold_back(turn, len(found))
        for demand in found:
            if named_only and demand.tools == [UNSCOPED]:
                if is_last:
                    why = "it means none of the tools"
                    captured.told.append(f"Not kept: “{excerpt(demand.sentence)}”: {why}")
                continue
            is_limited = turn.is_guests or (demand.session and not demand.today)
            if is_limited and not turn.conversation_id:
                why = "as it holds for a session that is not named"
                captured.told.append(f"not kept, {why}: {excerpt(demand.sentence)}")
                continue
            for tool in demand.tools:
                captured.kept.append(self._put(turn, self._rule_input(demand, tool, turn)))
        if reminder and not found:
            self._keep_reminder(turn, reminder, captured)
        if not reminder:
            reasons = unkept(message, [demand.sentence for demand in found])
            captured.told += (f"Not kept: “{excerpt(said)}”: {why}" for said, why in reasons)
        by_text: dict[str, list[ToolMemoryRule]] = {}
        for rule in captured.kept:
            if rule.status == "active":
                by_text.setdefault(rule.rule, []).append(rule)
        undo = undo_words(message, set(by_text))
        captured.told += (_confirmation(self.rules, each, undo) for each in by_text.values())
        remember_made(self.rules, turn.conversation_id, captured.kept, message)
        waits = {rule.rule: rule for rule in captured.kept if rule.status == "request"}
        unseen = "nobody saw you type it"
        captured.told += (waiting_message(rule, unseen) for rule in waits.values())
        captured.kept = [rule for rule in captured.kept if rule.status != "request"]
        return captured

    def _hold_back(self, turn: Turn, number: int) -> Captured:
        """Keep none of many demands until the user confirms: others may have written them."""
        held = Masker(self.rules.store.secret_key()).text(turn.user_message)
        remember(self.rules, turn.conversation_id, lambda recent: setattr(recent, "held", held))
        told = f'{number} demands in one message: say "keep them" to have them read'
        return Captured(told=[told])

    def _rule_input(self, demand: Demand, tool: str, turn: Turn) -> RuleInput:
        found = demand.conditions.get(tool)
        return RuleInput(
            tool_name=tool,
            rule=demand.sentence,
            effect=demand.effect if found else "remind",
            when=found.when if found else [],
            unless=found.unless if found else [],
            unread=demand.unread,
            session=turn.conversation_id if demand.session and not demand.today else "",
            expires_at=self.rules.end_of_day() if demand.today else UNSET,
        )

    def _keep_reminder(self, turn: Turn, text: str, captured: Captured) -> None:
        """Keep a message that begins with `never:` or `remember:`, or say why not."""
        if problem := _reminder_problem(text):
            captured.told.append(f"not kept: {problem}")
            return
        from toolmem.rules.reader.tools import catalogue_of, tools_meant

        meant = tools_meant(text, text.lower(), catalogue_of([], turn.tools))
        for tool in meant or [UNSCOPED]:
            given = RuleInput(tool_name=tool, rule=text.rstrip(".。!！"), unread=["its words"])
            captured.kept.append(self._put(turn, given))

    def _put(self, turn: Turn, given: RuleInput) -> ToolMemoryRule:
        is_users = self.actor.kind == "user"
        given.priority = "critical"
        given.source = "user_explicit" if is_users else "programmatic"
        given.tags = [USER_EDICT] if is_users else []
        given.session = turn.conversation_id if turn.is_guests else given.session
        given.said = Said(self.actor.kind, turn.conversation_id, (turn.mark,) if turn.mark else ())
        return self.rules.put_rule(given, self.actor, captured=True)

    def _learn(self, turn: Turn) -> Captured:
        if not turn.tool_calls:
            return Captured()
        found = repeated_failures(self.rules.workspace, turn.tool_calls)
        return Captured([self.rules.put_rule(each) for each in found])


def ended_since(rules: ToolMemoryStore, turn: Turn) -> list[str]:
    """Return one message, once, for each rule of the user that ended. Raises StoreError.

    A guest is told nothing, so that the user still is.
    """
    if turn.is_guests:
        return []
    session = turn.conversation_id
    now = rules.clock.now()
    ended: dict[str, list[tuple[datetime, ToolMemoryRule]]] = {}  # by the session of the rule
    for rule in rules.every_rule():
        is_theirs = rule.is_users and rule.status == "active" and rule.session in ("", session)
        is_withdrawn = bool(rule.changes) and rule.changes[-1].what == "withdrawn"
        ends = None if is_withdrawn or not is_theirs else rule.expires_at
        if ends is not None and now - MAX_SESSION < ends <= now:
            ended.setdefault(rule.session, []).append((ends, rule))
    lines: dict[str, str] = {}
    for of_session, found in ended.items():
        # Other sessions do not tell of a session's rules, so it remembers for itself what was told.
        place = (rules.workspace, ".ended", f"told:{of_session}" if of_session else "told")
        last = read_or_new(rules.store.get(*place), float)  # seconds since 1970
        for ends, rule in found:
            if ends.timestamp() > last:
                what = "ban" if rule.is_checked else "reminder"
                at = shown_time(ends, rules.zone, now)
                lines[rule.rule] = f"The {what} “{plain(rule.rule, 160)}” ended on {at}."
                rules.store.put(*place, now.timestamp())
    return [*lines.values()]


def read_new_rule(rules: ToolMemoryStore, tool: str, text: str) -> dict[str, Any]:
    """Read the text of a new rule as a demand. Returns its `effect`, `when` and `unless`.

    If no condition can be made, returns only `unread`: the words that were not understood. Returns
    {} for a text that is no demand, is too long, has a secret or is that of a rule on the tool.
    """
    from toolmem.rules.reader.demands import demands
    from toolmem.rules.reader.own_text import MAX_SENTENCE

    if len(text) > MAX_SENTENCE:
        return {}
    is_known = text_key(text) in {text_key(rule.rule) for rule in rules.list_rules(tool)}
    if is_known or Masker(rules.store.secret_key()).text(text) != text:
        return {}
    found = demands(text, [tool], [tool])
    if len(found) != 1 or tool not in found[0].conditions:
        return {"unread": found[0].unread} if found else {}
    tests = found[0].conditions[tool]
    return {"effect": found[0].effect, "when": tests.when, "unless": tests.unless}


def _reminder_problem(text: str) -> str:
    """Say why a text cannot be a reminder; return "" if it can."""
    if not any(map(str.isalnum, text)):
        return "nothing follows that could be kept"
    if len(text) > 500:
        return "what follows is longer than 500 characters: say it in a sentence or two"
    if text.rstrip().endswith(("?", "？")):
        return "it is a question: say what is to be kept"
    return ""


def describe_effect(rules: Sequence[ToolMemoryRule]) -> str:
    """Say what the rules of one sentence do, as in "stops such calls of `Bash`"; "" if nothing."""
    from toolmem.rules.prompt import tool_heading

    first = rules[0]
    checked = [tool_heading(rule.tool_name, "") for rule in rules if rule.is_checked]
    if checked:
        verb = "stops such calls of" if first.effect == "deny" else "asks you before such calls of"
        return f"{verb} {', '.join(checked[:5])}"
    if first.unread:
        words = ", ".join(plain(each, 40) for each in first.unread[:3])
        return f"a reminder: no call is checked, as this was not understood: {words}"
    return ""


def _confirmation(store: ToolMemoryStore, rules: list[ToolMemoryRule], undo: str) -> str:
    """Say that the rules of one sentence are kept, and how to take them back."""
    first = rules[0]
    ends = None if first.session else first.expires_at
    until = "" if ends is None else f", {store.until(ends)}"
    checks = describe_effect(rules)
    return kept_message(first.rule, checks, until, for_session=bool(first.session), undo=undo)


_KEEP_PREFIX = late_pattern(r"\s*(always|never|remember|记住)\s*[:：]\s*(.*)", re.I | re.S)
_IS_DEMAND = late_pattern(
    r"(?:always|never|do not|don['’]t|no|not|you|must|ask|only)\b|[\u3400-\u9fff]", re.I
)
_PARAGRAPH = late_pattern(r"\n[ \t]*\n")


def split_keep_prefix(message: str) -> tuple[str, str]:
    """Read a message that begins with `always:`, `never:`, `remember:` or `记住:`.

    Returns (its first paragraph, its whole text), without the prefix: `never: push to main` gives
    "Never push to main" for both. Returns ("", message) if it begins with none of these.
    """
    found = _KEEP_PREFIX.match(message)
    if found is None:
        return "", message
    word = found[1].lower()
    body = found[2].strip()
    if word in ("always", "never") and not _IS_DEMAND.match(body):
        body = f"{word.capitalize()} {body[:1].lower()}{body[1:]}"
    first = " ".join(_PARAGRAPH.split(body, maxsplit=1)[0].split())
    return first or " ", body
