"""Follow short replies that act on rules, and sentences that take a rule back.

`undo`, `just this time` and `yes` act on the rules of the message before. `lift <id>` lifts a rule,
or accepts a request to change it. `undo`, `lift <id>` and `yes, this once` are followed where they
are a sentence of the user's own, or stand at either end of the message.

Where a sentence only may take a rule back, the next call that the rule stops asks the user.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from msgspec.structs import replace

from toolmem.models.rules import ToolMemoryRule
from toolmem.rules.changes import ONLY_ASKS, Actor
from toolmem.rules.store import RuleInput, ToolMemoryStore
from toolmem.rules.turn import Captured, Turn
from toolmem.text.display import plain
from toolmem.text.patterns import late_pattern

MIN_ID_LENGTH = 6  # characters of an id that `lift` takes; of a shorter one all
_OUTER = " \t\r\n.!。！*`\"'“”"
_THIS_SESSION = frozenset(("just this time", "just for now", "仅这次", "只这次"))
_YES = frozenset(("yes", "yes please", "yes, always", "always stop it", "是", "是的", "好的"))
_AGREED = r"(?:yes|ok|okay|sure|go ahead|好|好的|可以|行)"
_POLITE = r"(?:(?:please|pls|请|麻烦|ok|okay|yes|no)[ ,，]{1,3}|请)"
# Names are those of `Reply.kind`.
_FORMS = {
    "undo": r"undo(?: that| it)?|撤销",
    "lift": r"(?:lift|解除) (?P<id>[\w-]{1,36})",
    "once": rf"{_AGREED}?[ ,，]{{0,3}}(?:(?:do it|just|only) )?this once(?:, {_AGREED})?"
    rf"|{_AGREED}?[ ,，]{{0,3}}就这一?次",
}
_ANY_FORM = "|".join(f"(?P<{name}>{form})" for name, form in _FORMS.items())
_REPLY = late_pattern(
    rf"(?:{_POLITE}){{0,2}}(?:{_ANY_FORM})(?:[ ,，]{{0,3}}(?:please|pls|thanks|吧|谢谢))?", re.I
)
_MADE_ID = late_pattern(rf"[0-9a-f-]{{{MIN_ID_LENGTH},36}}")  # as ids are that toolmem makes
_MAY_REPLY = late_pattern(r"\b(?:undo|lift|this\s+once)\b|撤销|解除|就这", re.I)
_YES_IN = late_pattern(_AGREED, re.I)
_NO_IN = late_pattern(r"\bno\b", re.I)
_MAX_REPLY = 60  # characters


class Reply(NamedTuple):
    """What the user asks for in a few words."""

    kind: str  # undo, lift or once
    rule_id: str = ""  # the start of the id, for `lift`


def replies_in(message: str) -> list[Reply]:
    """The replies among the user's own sentences, each once."""
    if message.strip(_OUTER) == "取消":  # beside other words it cancels something else
        return [Reply("undo")]
    if whole := _reply(message.strip(_OUTER)):
        return [whole]
    if not _MAY_REPLY.search(message):
        return []
    from toolmem.rules.reader.own_text import own_sentences  # takes long to load

    own = own_sentences(message, lambda _: False)
    sentences = [each.masked.strip(_OUTER) for each in own if not each.question]
    parts = list(sentences)
    if sentences:
        parts.append(sentences[0].replace("，", ",").rpartition(",")[0])
        parts.append(sentences[-1].replace("，", ",").partition(",")[2])
    found = (_reply(part.strip(_OUTER), is_part=True) for part in parts)
    return list(dict.fromkeys(reply for reply in found if reply is not None))


def _reply(text: str, *, is_part: bool = False) -> Reply | None:
    """Read a message, or a part of one, as a reply; `this once` in a part needs a yes."""
    found = _REPLY.fullmatch(" ".join(text.split())) if len(text) <= _MAX_REPLY else None
    if found is None:
        return None
    kind = next(name for name in _FORMS if found[name])
    is_said = not is_part or _YES_IN.search(text)
    if kind == "once" and (_NO_IN.search(text) or not is_said):
        return None
    return Reply(kind, (found["id"] or "").casefold())


def is_this_once(message: str) -> bool:
    """Whether the user allows the call that was stopped last, once."""
    return any(reply.kind == "once" for reply in replies_in(message))


def follow_reply(rules: ToolMemoryStore, turn: Turn, actor: Actor) -> Captured:
    """Do what a reply asks for, or lift the rule that a sentence takes back."""
    captured = Captured()
    replies = [r for r in replies_in(turn.user_message) if _is_meant(rules, r, actor)]
    for reply in replies:
        if reply.kind == "undo":
            for rule in _rules_of_last_message(rules, turn):
                _tell(captured, rule, rules.delete(rule, actor), "undone")
        elif reply.kind == "lift":
            _lift(rules, reply.rule_id, actor, captured)
    whole = turn.user_message.strip(_OUTER).casefold()
    if whole in _THIS_SESSION:
        _keep_for_session(rules, turn, actor, captured)
    elif whole in _YES:
        _stop_always(rules, turn, captured)
    elif not replies:
        _take_back(rules, turn, actor, captured)
    return captured


def _is_meant(rules: ToolMemoryStore, reply: Reply, actor: Actor) -> bool:
    """Whether a reply is one: a plain word after `lift` has to be the id of a rule."""
    if reply.kind != "lift" or _MADE_ID.fullmatch(reply.rule_id):
        return True
    known = (*rules.requests(), *rules.all_rules(actor.session).rules)
    return any(_has_id(rule, reply.rule_id) for rule in known)


def _has_id(rule: ToolMemoryRule, typed: str) -> bool:
    """Whether the user typed the id of a rule, or enough of its start."""
    rule_id = rule.id.casefold()
    return rule_id == typed or (len(typed) >= MIN_ID_LENGTH and rule_id.startswith(typed))


def _stop_always(rules: ToolMemoryStore, turn: Turn, captured: Captured) -> None:
    """Let the bans of the last message that only ask stop calls, as the user agrees."""
    for rule in _rules_of_last_message(rules, turn):
        if ONLY_ASKS in rule.tags:
            tags = [tag for tag in rule.tags if tag != ONLY_ASKS]
            after = rules.change(rule, Actor("user"), effect="deny", tags=tags)
            _tell(captured, rule, after, "stops")


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
    requests = [r for r in rules.requests() if _has_id(r, start) and not r.is_replaced]
    meant = [rule for rule in rules.all_rules(actor.session).rules if _has_id(rule, start)]
    for rule in requests:
        what = "lifted" if rule.is_asked_about else "done, as was asked"
        _tell(captured, rule, rules.accept(rule, actor), what)
    if not requests and len(meant) == 1:
        _tell(captured, meant[0], rules.delete(meant[0], actor), "lifted")
    elif not requests:
        captured.told.append(f"no single rule's id begins with {start!r}: `toolmem rules list`")


def _take_back(rules: ToolMemoryStore, turn: Turn, actor: Actor, captured: Captured) -> None:
    """Lift the rule that a sentence surely takes back; one that it may take back asks later."""
    from toolmem.rules.reader import lifted, possibly_lifted

    known = [rule for rule in rules.all_rules(actor.session).rules if rule.is_users]
    texts = list({rule.rule: rule for rule in known}.values())
    if meant := lifted(turn.user_message, texts):
        for rule in known:
            if rule.rule == meant.rule:
                _tell(captured, rule, rules.delete(rule, actor), "lifted")
    elif may_ask_to_lift(rules, actor) and (found := possibly_lifted(turn.user_message, texts)):
        meant, sentence = found
        asking = replace(actor, words=sentence, session=turn.session_id)
        for rule in known:
            if rule.rule == meant.rule and rule.is_checked:
                captured.told.append(ask_to_lift(rules, rule, asking, "deleted"))


def may_ask_to_lift(rules: ToolMemoryStore, actor: Actor) -> bool:
    """Whether an actor may vouch in this store for words that the user typed in a session.

    In a guarded store a program may not: it could make the words up.
    """
    return bool(actor.session) and (actor.evidence == "typed" or not rules.is_guarded())


def ask_to_lift(rules: ToolMemoryStore, rule: ToolMemoryRule, actor: Actor, what: str) -> str:
    """Have the next call that a rule stops ask the user whether to lift it. Returns what to say.

    `actor`: its words are what the user typed in its session. `what`: deleted or replaced.
    """
    rules.delete(rule, replace(actor, kind="agent", evidence="typed"), what)
    return f"{still_holds(rule)}, or agree if a call that it stops asks you"


def still_holds(rule: ToolMemoryRule) -> str:
    """Tell the user that a rule holds on, and how to lift it."""
    return f"“{excerpt(rule.rule)}” still holds. To lift it, say: lift {rule.id[:MIN_ID_LENGTH]}"


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
