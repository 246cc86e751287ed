"""Follow short replies that act on rules, and sentences that take a rule back.

A message that is just `undo` or `just this time` acts on the rules of the message before it.
`lift <id>` lifts a rule, or accepts a request to change it.
"""

from __future__ import annotations

import re

from toolmem.models.rules import ToolMemoryRule
from toolmem.rules.changes import Actor
from toolmem.rules.store import RuleInput, ToolMemoryStore
from toolmem.rules.turn import Captured, Turn
from toolmem.text.display import plain
from toolmem.text.patterns import late_pattern

MIN_ID_LENGTH = 6  # characters of an id that `lift` takes
_OUTER = " \t\r\n.!。！*`\"'“”"
_UNDO = frozenset(("undo", "undo that", "undo it", "撤销", "取消"))
_THIS_SESSION = frozenset(("just this time", "just for now", "仅这次", "只这次"))
_ONCE = frozenset(("yes, this once", "yes this once", "this once", "就这一次", "就这次"))
_LIFT = late_pattern(rf"(?:lift|解除)\s+([0-9a-f-]{{{MIN_ID_LENGTH},36}})")


def is_this_once(message: str) -> bool:
    """Whether the user allows the call that was stopped last, once."""
    return message.strip(_OUTER).casefold() in _ONCE


def follow_reply(rules: ToolMemoryStore, turn: Turn, actor: Actor) -> Captured:
    """Do what a reply asks for, or lift the rule that a sentence takes back."""
    captured = Captured()
    reply = turn.user_message.strip(_OUTER).casefold()
    if reply in _UNDO:
        for rule in _rules_of_last_message(rules, turn):
            _tell(captured, rule, rules.delete(rule, actor), "undone")
    elif reply in _THIS_SESSION:
        _keep_for_session(rules, turn, actor, captured)
    elif found := _LIFT.fullmatch(reply):
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
    """The rules that the user's message before this one made, read from it or noted by a model."""
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
    captured.told.append(f"{what.capitalize()}: “{excerpt(rule.rule)}” ({rule.id[:MIN_ID_LENGTH]})")


def excerpt(text: str) -> str:
    """A sentence or a call in one line of a message to the user."""
    return plain(text, 160)


def kept_message(sentence: str, checks: str, history: str = "", *, for_session: bool) -> str:
    """Tell the user that a sentence was kept, which calls it checks, and how to take it back."""
    kept = "Kept for this session" if for_session else "Kept"
    checks = checks or "a reminder: no call is checked against it"
    return f"{kept}: “{excerpt(sentence)}” ({checks}){history}. undo, or just this time"


_KEEP_PREFIX = late_pattern(r"\s*(always|never|remember|记住)\s*[:：]\s*(.*)", re.I | re.S)
_IS_DEMAND = late_pattern(
    r"(?:always|never|do not|don['’]t|no|not|you|must|ask|only)\b|[\u3400-\u9fff]", re.I
)
_PARAGRAPH = late_pattern(r"\n[ \t]*\n")


def split_keep_prefix(message: str) -> tuple[str, str]:
    """The text to keep after `never:` or `remember:` ("" without one), and the whole message.

    `never: push to main` says "Never push to main".
    """
    found = _KEEP_PREFIX.match(message)
    if found is None:
        return "", message
    word, body = found[1].lower(), found[2].strip()
    if word in ("always", "never") and not _IS_DEMAND.match(body):
        body = f"{word.capitalize()} {body[:1].lower()}{body[1:]}"
    first = " ".join(_PARAGRAPH.split(body, maxsplit=1)[0].split())
    return first or " ", body
