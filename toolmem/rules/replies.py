"""Follow short replies that act on rules, and sentences that take a rule back.

`undo`, `just this time`, `yes, always stop it` and `keep them` are whole messages, and act on what
the message before did. `lift CODE`, `agree CODE` and `yes, this once` may be one sentence of many.

If a sentence might take a rule back, the next call that the rule stops asks the user.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from toolmem.models.rules import ToolMemoryRule
from toolmem.rules.changes import ONLY_ASKS, Actor, only_loosens, request_digest, way_to_agree
from toolmem.rules.identity import MIN_ID_LENGTH, code_of, session_key, text_key
from toolmem.rules.store import RuleInput, ToolMemoryStore
from toolmem.rules.turn import Captured, Turn
from toolmem.store.storable import read_or_new, swap
from toolmem.text.display import plain
from toolmem.text.forms import word_set
from toolmem.text.masking import Masker
from toolmem.text.patterns import late_pattern

MAX_QUESTIONS = 3  # in a session, whether to lift a rule; a message leads to one
_RECENT = ".replies"
_BACK = ". undo brings it back"
_OUTER = " \t\r\n.!。！*`\"'“”"
_THIS_SESSION = frozenset(("just this time", "just for now", "仅这次", "只这次"))
_AGREED = r"(?:yes|ok|okay|sure|go ahead|好|好的|可以|行)"
_POLITE = r"(?:(?:please|pls|请|麻烦|ok|okay|yes|no)[ ,.，]{1,3}|请)"
# By `Reply.kind`.
_FORMS = {
    "undo": r"undo(?: that| it)?|撤销|取消",
    "undo_rule": r"undo (?:that|the) rule|撤销(?:那条|这条)?规则",
    "lift": r"(?:lift|解除) (?P<id>[\w-]{1,36})",
    "agree": r"(?:agree|同意) (?P<request>[0-9a-f]{6,32})",
    "once": rf"{_AGREED}?[ ,，]{{0,3}}(?:(?:do it|just|only) )?this once(?:, {_AGREED})?"
    rf"|{_AGREED}?[ ,，]{{0,3}}就这一?次",
    "always": r"(?:yes,? )?always stop (?:it|them|that)|(?:是的?[,，]?)?总是拦(?:住|下)?",
    "keep": r"keep them(?: all)?|(?:都|全部)?(?:保留|记住)(?:它们)?",
}
_IN_SENTENCES = ("lift", "agree", "once")  # other kinds are whole messages
_ANY_FORM = "|".join(f"(?P<{name}>{form})" for name, form in _FORMS.items())
_REPLY = late_pattern(
    rf"(?:{_POLITE}){{0,2}}(?:{_ANY_FORM})(?:[ ,，]{{0,3}}(?:please|pls|thanks|吧|谢谢))?", re.I
)
_MADE_ID = late_pattern(rf"[0-9a-f-]{{{MIN_ID_LENGTH},36}}")  # the form of ids that toolmem makes
_MAY_REPLY = late_pattern(r"\b(?:undo|lift|agree|this\s+once)\b|撤销|解除|同意|就这", re.I)
_UNDO_IN = late_pattern(r"\bundo\b|撤销", re.I)
_CODE_IN = late_pattern(r"(?:\b(?:lift|agree)|解除|同意) (?P<id>[\w-]{6,36})(?![\w-])", re.I)
_WAY_OUT = r"\b(lift|agree) (?!(?:it|the|one|if|to|on|with|that)\b)[\w-]{1,36}"
_WAYS_OUT = late_pattern(
    r"\. undo(?: that rule)?, or just this time|\. undo brings it back| \([0-9a-f]{6}\)"
    r"|; to have them stopped, say: yes, always stop it"
    rf"|(?:[.:] To (?:lift|end|agree)\b[^.“]{{0,60}}|: ){_WAY_OUT}(?:, or agree[^.\n]*)?"
)
_ANY_WAY_OUT = late_pattern(_WAY_OUT)
_YES_IN = late_pattern(_AGREED, re.I)
_NO_IN = late_pattern(r"\bno\b", re.I)
_MAX_REPLY = 60  # characters
_WORD = late_pattern(r"[^\W_]+")
_CLAUSE = late_pattern(r"[,;，；]|\b(?:and|but|then|so)\b", re.I)
_DEMANDS = late_pattern(
    r"\b(?:never|not|don['’]?t|no|only|always|ask|must|stop|avoid|keep|under)\b|[不别禁只必]", re.I
)
_COURTESY = word_set(
    "thanks thank you please ok okay hi hello hey yes no good great sorry 谢谢 好的"
)
_LEADS_UP = word_set("from for in on at by as since because if when while remember note important")


class Reply(NamedTuple):
    """A short reply of the user that acts on rules, such as `undo` or `lift 3f09a2`."""

    kind: str  # a key of _FORMS
    rule_id: str = ""  # the start of the id, for `lift` and `agree`


class Recent(Struct, kw_only=True, omit_defaults=True):
    """What the user's last message in a session did, and the session's open questions."""

    made: list[str] = []  # ids of rules
    lifted: list[ToolMemoryRule] = []
    asks_more: bool = False  # it asked for something besides rules
    held: str = ""  # the message, if it had too many demands to be kept at once
    questions: list[str] = []  # the messages that led to one


def replies_in(message: str) -> list[Reply]:
    """Find replies such as `undo` or `lift CODE` in the user's own sentences, each once."""
    if whole := _reply(message.strip(_OUTER)):
        return [whole]
    if not _MAY_REPLY.search(message):
        return []
    found = (_reply(sentence, is_part=True) for sentence in _own_texts(message))
    return list(dict.fromkeys(reply for reply in found if reply is not None))


def _own_texts(message: str) -> list[str]:
    """Return the user's own sentences except questions, with pasted and quoted text masked."""
    from toolmem.rules.reader.own_text import own_sentences  # takes long to load

    own = own_sentences(message)
    return [each.masked.strip(_OUTER) for each in own if not each.question]


def _reply(text: str, *, is_part: bool = False) -> Reply | None:
    """Read a text as a reply, or return None. In a part of a message, `this once` needs a yes."""
    found = _REPLY.fullmatch(" ".join(text.split())) if len(text) <= _MAX_REPLY else None
    if found is None:
        return None
    kind = next(name for name in _FORMS if found[name])
    if is_part and kind not in _IN_SENTENCES:
        return None
    has_yes = not is_part or _YES_IN.search(text)
    if kind == "once" and (_NO_IN.search(text) or not has_yes):
        return None
    return Reply(kind, (found["id"] or found["request"] or "").casefold())


def is_this_once(message: str) -> bool:
    """Whether a message says `yes, this once`, by which the last stopped call may run once."""
    return any(reply.kind == "once" for reply in replies_in(message))


def _key_of(session: str) -> tuple[str, str]:
    return _RECENT, session_key(session)


def _recent(rules: ToolMemoryStore, session: str) -> Recent:
    record = rules.store.get(rules.workspace, *_key_of(session)) if session else None
    return read_or_new(record, Recent)


def remember(rules: ToolMemoryStore, session: str, change: Callable[[Recent], Any]) -> Any:
    """Let `change` edit the Recent of a session. Returns its result; None without a session."""
    key = _key_of(session)
    return swap(rules.store, rules.workspace, key, Recent, change) if session else None


def remember_made(
    rules: ToolMemoryStore, session: str, made: Sequence[ToolMemoryRule], message: str
) -> None:
    """Store which rules a message made, so that `undo` can delete them."""
    asks_more = _asks_more(message, {rule.rule for rule in made})

    def add(recent: Recent) -> None:
        recent.made = list(dict.fromkeys([*recent.made, *(rule.id for rule in made)]))
        recent.asks_more |= asks_more

    if made:
        remember(rules, session, add)


def remember_lifted(rules: ToolMemoryStore, session: str, lifted: Sequence[ToolMemoryRule]) -> None:
    """Store rules that were lifted since the user's last message, so that `undo` restores them."""
    if lifted:
        remember(rules, session, lambda recent: recent.lifted.extend(lifted))


def forget_session(rules: ToolMemoryStore, session: str) -> None:
    """Delete the record on the last message of a session that ended."""
    rules.store.delete(rules.workspace, *_key_of(session))


def _asks_more(message: str, kept: set[str]) -> bool:
    """Whether a message asks for something besides the sentences that were kept."""
    from toolmem.rules.reader.own_text import split_sentences

    texts = [text_key(each) for each in kept]
    for sentence in split_sentences(message):
        said = text_key(sentence.text)
        if any(said in each for each in texts):
            said = _CLAUSE.split(said)[0]  # "fix the tests, but never push"
            if said in texts or _DEMANDS.search(said):
                continue
        elif any(each in said for each in texts):
            continue
        words = _WORD.findall(said)
        if words and words[0] not in _LEADS_UP and len(set(words) - _COURTESY) > 1:
            return True
    return False


def follow_reply(rules: ToolMemoryStore, turn: Turn, actor: Actor) -> Captured:
    """Do what the replies in a message ask for; else lift the rule that a sentence takes back."""
    recent = _recent(rules, turn.conversation_id)
    captured = Captured()
    replies = replies_in(turn.user_message)
    for reply in list(replies):
        if reply.kind in ("undo", "undo_rule"):
            _undo(rules, recent, reply, actor, captured)
        elif reply.kind in ("lift", "agree"):
            if not _follow_code(rules, reply, actor, captured):
                replies.remove(reply)  # "Lift everything." is no reply
        elif reply.kind == "always":
            _stop_always(rules, recent, actor, captured)
        elif reply.kind == "keep":
            turn.held = recent.held
    if turn.user_message.strip(_OUTER).casefold() in _THIS_SESSION:
        _keep_for_session(rules, recent, turn, actor, captured)
    elif not replies:
        _explain_unfollowed(rules, recent, turn, captured)
        _take_back(rules, turn, actor, captured)

    if not turn.conversation_id:  # the next message cannot undo anything
        captured.told = [line.removesuffix(_BACK) for line in captured.told]

    def begin(now: Recent) -> None:
        now.made = []
        now.lifted = captured.lifted
        now.held = ""
        now.asks_more = False

    if captured.lifted or recent.made or recent.lifted or recent.held:
        remember(rules, turn.conversation_id, begin)
    return captured


def _undo(
    rules: ToolMemoryStore, recent: Recent, reply: Reply, actor: Actor, captured: Captured
) -> None:
    """Delete the rules that the last message made, and bring back those that it lifted."""
    made = [rule for rule in _every_rule_of(rules, actor.session) if rule.id in recent.made]
    if made and recent.asks_more and reply.kind == "undo":
        captured.told.append(_not_undone(actor.words, made[0]))
        return
    for rule in made:
        _tell(captured, rule, rules.delete(rule, actor), "undone")
    for rule in recent.lifted:
        now = rules.restore(rule, actor)
        captured.told.append(f"Restored, it holds again: “{excerpt(now.rule)}” ({code_of(now)})")


def _every_rule_of(rules: ToolMemoryStore, session: str) -> list[ToolMemoryRule]:
    """Return all rules that are not deleted, except those of other sessions."""
    return [rule for rule in rules.every_rule() if rule.session in ("", session)]


def _explain_unfollowed(
    rules: ToolMemoryStore, recent: Recent, turn: Turn, captured: Captured
) -> None:
    """Tell the user that `undo`, `lift` or `agree` among other words was not followed."""
    message = turn.user_message
    if recent.made and _UNDO_IN.search(message):
        for rule in _every_rule_of(rules, turn.conversation_id):
            if rule.id in recent.made:
                said = next(filter(_UNDO_IN.search, _own_texts(message)), "")
                captured.told += [_not_undone(said, rule)] if said else []
                return
    elif _CODE_IN.search(message):
        for said in _own_texts(message):
            found = _CODE_IN.search(said)
            if found is None:
                continue
            code = found["id"]
            every = _every_rule_of(rules, turn.conversation_id)
            if named := [r for r in every if _names(code, r) or _names(code, r, request=True)]:
                how = f"For “{excerpt(named[0].rule)}”, type as a sentence of its own: {found[0]}"
                captured.told.append(f"Not followed: “{excerpt(said)}”. {how}")


def _not_undone(said: str, rule: ToolMemoryRule) -> str:
    meant = f"If you meant the rule “{excerpt(rule.rule)}”: lift {code_of(rule)}"
    return f"Not undone: “{excerpt(said)}”. {meant}"


def _names(typed: str, rule: ToolMemoryRule, *, request: bool = False) -> bool:
    """Whether the user typed the id of a rule, or the digest of its request; its start is enough"""
    name = request_digest(rule) if request else rule.id.casefold()
    given = typed.casefold()
    return name == given or (len(given) >= MIN_ID_LENGTH and name.startswith(given))


def _stop_always(rules: ToolMemoryStore, recent: Recent, actor: Actor, captured: Captured) -> None:
    """Make the last message's bans stop calls, if they only ask now."""
    for rule in rules.all_rules(actor.session).rules:
        if rule.id in recent.made and ONLY_ASKS in rule.tags:
            tags = [tag for tag in rule.tags if tag != ONLY_ASKS]
            _tell(captured, rule, rules.change(rule, actor, effect="deny", tags=tags), "stops")


def _keep_for_session(
    rules: ToolMemoryStore, recent: Recent, turn: Turn, actor: Actor, captured: Captured
) -> None:
    for rule in rules.all_rules(turn.conversation_id).rules:
        if rule.id in recent.made and not rule.session:
            given = {name: getattr(rule, name) for name in RuleInput.__struct_fields__}
            given |= {"id": "", "session": turn.conversation_id, "expires_at": None}
            rules.put_rule(RuleInput(**given), actor)
            _tell(captured, rule, rules.delete(rule, actor), "holds in this session")


def _follow_code(rules: ToolMemoryStore, reply: Reply, actor: Actor, captured: Captured) -> bool:
    """Carry out requests that the user agrees to, or that only loosen a rule; else lift a rule.

    Returns False if there is no code in the reply.
    """
    start = reply.rule_id
    every = rules.all_rules(actor.session).rules
    agrees = reply.kind == "agree"
    meant = [] if agrees else [rule for rule in every if _names(start, rule)]
    open_requests = [rule for rule in rules.requests() if not _question_on(rules, rule)]
    asked = [rule for rule in open_requests if _names(start, rule, request=agrees)]
    if wanted := [rule for rule in asked if agrees or only_loosens(rule)]:
        for rule in wanted:
            _tell(captured, rule, rules.accept(rule, actor), "done, as was asked")
    elif len(meant) == 1:
        for rule in _of_one_sentence(meant[0], every):
            _tell(captured, rule, rules.delete(rule, actor), "lifted")
    elif asked and not meant:  # none of them holds: there is nothing to lift
        for rule in asked:
            _tell(captured, rule, rules.reject(rule, actor), "dropped")
    elif meant or _MADE_ID.fullmatch(start):
        if agrees:
            problem = f"no request that waits has the code {start!r}: `toolmem rules review`"
        else:
            problem = f"no single rule's id begins with {start!r}: `toolmem rules list`"
        captured.told.append(problem)
    return bool(asked or meant or _MADE_ID.fullmatch(start))


def _of_one_sentence(rule: ToolMemoryRule, rules: Sequence[ToolMemoryRule]) -> list[ToolMemoryRule]:
    """Return a rule, and the rules that the same words of the user made on other tools."""
    same = text_key(rule.rule)
    return [r for r in rules if r.id == rule.id or (r.is_users and text_key(r.rule) == same)]


def _question_on(rules: ToolMemoryStore, rule: ToolMemoryRule) -> bool:
    return rule.question_at(rules.local_time()) is not None


def _take_back(rules: ToolMemoryStore, turn: Turn, actor: Actor, captured: Captured) -> None:
    """Lift the rule that a sentence surely takes back. If it only may, a later call asks."""
    from toolmem.rules.reader import lifted, possibly_lifted

    known = [rule for rule in rules.all_rules(actor.session).rules if rule.is_users]
    known = [rule for rule in known if not turn.mark or turn.mark not in rule.said.turns]
    texts = list({rule.rule: rule for rule in known}.values())
    stopped = {rule.rule for rule in known if rule.id in turn.stopped_by}
    if meant := lifted(turn.user_message, texts):
        for rule in known:
            if rule.rule == meant.rule:
                _tell(captured, rule, rules.delete(rule, actor), "lifted")
    elif found := possibly_lifted(
        turn.user_message, texts, frozenset(rule.id for rule in texts if rule.rule in stopped)
    ):
        candidates, sentence = found
        if len(candidates) > 1:
            named = ", ".join(f"“{excerpt(r.rule)}” (lift {code_of(r)})" for r in candidates[:5])
            captured.told.append(
                f"This may mean several rules, so all of them hold: {named}. "
                "To lift one, type the words in its brackets"
            )
            return
        asking = replace(actor, words=sentence, session=turn.conversation_id)
        asked = [r for r in known if r.rule == candidates[0].rule and r.is_checked]
        if asked:
            is_open = open_question(rules, asked, asking, "deleted", turn.user_message)
            captured.told.append(still_holds_message(asked[0], is_open=is_open))


def open_question(
    rules: ToolMemoryStore, meant: Sequence[ToolMemoryRule], actor: Actor, what: str, message: str
) -> bool:
    """Have the user asked, at the next call that these rules stop, whether to lift them.

    `meant`: the rules of one sentence. `actor.words`: what `message` says that may take them back.
    `what`: "deleted" or "replaced". Returns False if nothing will be asked, as the rules stop no
    call, the session had three questions, or a guarded store has no proof that the user typed it.
    """
    vouches = bool(actor.session) and (actor.evidence == "typed" or not rules.is_guarded())
    checked = [rule for rule in meant if rule.is_checked]
    if checked and all(_question_on(rules, rule) for rule in checked):
        return True  # the question is open already
    said = text_key(Masker(rules.store.secret_key()).text(message))[:200]

    def may_ask(recent: Recent) -> bool:
        asks = said not in recent.questions and len(recent.questions) < MAX_QUESTIONS
        recent.questions += [said] if asks else []
        return asks

    if not checked or not vouches or not remember(rules, actor.session, may_ask):
        return False
    for rule in checked:
        rules.delete(rule, replace(actor, kind="agent", evidence="typed"), what)
    return True


def still_holds_message(rule: ToolMemoryRule, why: str = "", *, is_open: bool = False) -> str:
    """Tell the user how to lift a rule that still holds. `is_open`: its next stop will ask."""
    because = f" ({why})" if why else ""
    how = f"To lift it, type: lift {code_of(rule)}"
    how += ", or agree if a call that it stops asks you" if is_open else ""
    return f"“{excerpt(rule.rule)}” still holds{because}. {how}"


def without_ways_out(text: str) -> str:
    """Leave out of a message what the user can type to lift a rule: a model reads it, too."""
    return _ANY_WAY_OUT.sub(r"\1 …", _WAYS_OUT.sub("", text))


def lifted_message(rule: ToolMemoryRule) -> str:
    """Tell the user that a rule was lifted, and how to restore it."""
    return f"Lifted: “{excerpt(rule.rule)}” ({code_of(rule)}){_BACK}"


def waiting_message(rule: ToolMemoryRule, why: str) -> str:
    """Tell the user that a rule binds only once they agree, and how to agree."""
    return f"Heard, and waits for you: “{excerpt(rule.rule)}” ({why}): {way_to_agree(rule)}"


def _tell(captured: Captured, rule: ToolMemoryRule, after: ToolMemoryRule, what: str) -> None:
    """Tell the user what became of a rule. `after`: the rule after the change `what`."""
    back = ""
    if after.status == "deleted" and rule.status == "active":
        captured.lifted.append(rule)
        back = _BACK if "session" not in what else ""
    elif after.request is not None:
        what = "not changed, it waits for the user"
    code = "" if "session" in what else f" ({code_of(rule)})"
    captured.told.append(f"{what.capitalize()}: “{excerpt(rule.rule)}”{code}{back}")


def excerpt(text: str) -> str:
    """Put a text on one line of at most 160 characters, to quote it in a message to the user."""
    return plain(text, 160)


def undo_words(message: str, kept: set[str]) -> str:
    """Return `undo`, or `undo that rule` if a message asks for more than the sentences `kept`."""
    return "undo that rule" if _asks_more(message, kept) else "undo"


def kept_message(sentence: str, checks: str, details: str, *, for_session: bool, undo: str) -> str:
    """Tell the user that a sentence was kept, what it does to calls, and how to `undo` that."""
    kept = "Kept for this session" if for_session else "Kept"
    checks = checks or "a reminder: no call is checked against it"
    return f"{kept}: “{excerpt(sentence)}” ({checks}){details}. {undo}, or just this time"
