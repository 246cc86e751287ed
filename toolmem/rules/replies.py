"""Short messages that act on rules, and sentences that take one back.

A message that is just `undo`, `just this time`, `always` acts on what the message before it made;
`lift <id>` lifts a rule, or accepts what was asked for it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from toolmem.models.rules import ToolMemoryRule
from toolmem.rules.changes import Actor
from toolmem.rules.store import RuleInput, ToolMemoryStore
from toolmem.rules.turn import Turn
from toolmem.text.display import plain
from toolmem.text.patterns import late_pattern

if TYPE_CHECKING:
    from toolmem.rules.capture import Captured

LEAST_ID = 6  # characters of an id that `lift` takes
_AROUND = " \t\r\n.!。！*`\"'“”"
_UNDO = frozenset(("undo", "undo that", "undo it", "撤销", "取消"))
_THIS_SESSION = frozenset(("just this time", "just for now", "仅这次", "只这次"))
_ONCE = frozenset(("yes, this once", "yes this once", "this once", "就这一次", "就这次"))
_LIFT = late_pattern(rf"(?:lift|解除)\s+([0-9a-f-]{{{LEAST_ID},36}})")


def is_this_once(message: str) -> bool:
    """Whether the user lets the call that was stopped last through, once."""
    return message.strip(_AROUND).casefold() in _ONCE


def follow_reply(rules: ToolMemoryStore, turn: Turn, actor: Actor, captured: Captured) -> Captured:
    """Do what a reply says, or what a sentence takes back."""
    said = turn.user_message.strip(_AROUND).casefold()
    if said in _UNDO:
        for rule in _rules_of_last_message(rules, turn):
            _tell(captured, rule, rules.delete(rule, actor), "undone")
    elif said in _THIS_SESSION:
        _keep_for_session(rules, turn, actor, captured)
    elif found := _LIFT.fullmatch(said):
        _lift(rules, found[1], actor, captured)
    else:
        _take_back(rules, turn, actor, captured)
    return captured


def _keep_for_session(rules: ToolMemoryStore, turn: Turn, actor: Actor, captured: Captured) -> None:
    for rule in _rules_of_last_message(rules, turn):
        if not rule.session:
            given = {name: getattr(rule, name) for name in RuleInput.__struct_fields__}
            given |= {"id": "", "session": turn.session_id, "expires_at": None}
            rules.put_rule(RuleInput(**given), Actor("user"))
            _tell(captured, rule, rules.delete(rule, actor), "holds in this session")


def _rules_of_last_message(rules: ToolMemoryStore, turn: Turn) -> list[ToolMemoryRule]:
    """What the user's message before this one made, by reading or by a note."""
    if not turn.session_id:
        return []
    found = [
        rule
        for rule in rules.all_rules(turn.session_id).rules
        if rule.is_users and rule.said.session == turn.session_id and rule.said.turns
    ]
    newest = max((rule.updated_at for rule in found), default=None)
    marks = {rule.said.turns[-1] for rule in found if rule.updated_at == newest}
    if turn.number is not None:
        marks = {Turn(session_id=turn.session_id, number=turn.number - 1).mark}
    return [rule for rule in found if rule.said.turns[-1] in marks]


def _lift(rules: ToolMemoryStore, start: str, actor: Actor, captured: Captured) -> None:
    requests = [rule for rule in rules.requests() if rule.id.startswith(start)]
    meant = [rule for rule in rules.all_rules(actor.session).rules if rule.id.startswith(start)]
    for rule in requests:
        _tell(captured, rule, rules.accept(rule, actor), "done, as was asked")
    if not requests and len(meant) == 1:
        _tell(captured, meant[0], rules.delete(meant[0], actor), "lifted")
    elif not requests:
        captured.told.append(f"no single rule's id begins with {start!r}: `toolmem rules list`")


def _take_back(rules: ToolMemoryStore, turn: Turn, actor: Actor, captured: Captured) -> None:
    from toolmem.rules.reader import lifted

    known = [rule for rule in rules.all_rules(actor.session).rules if rule.is_users]
    meant = lifted(turn.user_message, list({rule.rule: rule for rule in known}.values()))
    for rule in known:
        if meant is not None and rule.rule == meant.rule:
            _tell(captured, rule, rules.delete(rule, actor), "lifted")


def _tell(captured: Captured, rule: ToolMemoryRule, after: ToolMemoryRule, what: str) -> None:
    if after.status == "deleted":
        captured.lifted.append(rule)
    elif after.request is not None:
        what = "not changed, it waits for the user"
    captured.told.append(f"{what.capitalize()}: “{plain(rule.rule, 160)}” ({rule.id[:LEAST_ID]})")


_BEGINS = late_pattern(r"\s*(always|never|remember|记住)\s*[:：]\s*(.*)", re.I | re.S)
_SAID_ALREADY = late_pattern(
    r"(?:always|never|do not|don['’]t|no|not|you|must|ask|only)\b|[\u3400-\u9fff]", re.I
)
_PARAGRAPH = late_pattern(r"\n[ \t]*\n")


def keep_aloud(message: str) -> tuple[str, str]:
    """What is to be kept, and the message without its mark; "" where the message has none.

    `never: push to main` says "Never push to main".
    """
    found = _BEGINS.match(message)
    if found is None:
        return "", message
    word, body = found[1].lower(), found[2].strip()
    if word in ("always", "never") and not _SAID_ALREADY.match(body):
        body = f"{word.capitalize()} {body[:1].lower()}{body[1:]}"
    first = " ".join(_PARAGRAPH.split(body, maxsplit=1)[0].split())
    return first or " ", body
