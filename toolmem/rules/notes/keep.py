"""Make rules of a verified note, one for each of its tools, or lift the rules of a demand."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from toolmem.models.rules import UNSCOPED, Evidence, Said, Speaker, ToolMemoryRule
from toolmem.rules.capture import USER_EDICT
from toolmem.rules.changes import NOTED, ONLY_ASKS, Actor
from toolmem.rules.identity import MIN_ID_LENGTH, folded_name, text_key
from toolmem.rules.notes.note import NoteProblem, NoteRefused, read_note
from toolmem.rules.notes.numbers import TIME, TODAY, mentions, read_numbers
from toolmem.rules.notes.quotes import newest_message_with
from toolmem.rules.notes.verify import NoteContext, Verified, check_quote, shown_call, verify
from toolmem.rules.notes.width import content_words
from toolmem.rules.replies import (
    excerpt,
    kept_message,
    lifted_message,
    open_question,
    remember_lifted,
    remember_made,
    still_holds_message,
    undo_words,
    waiting_message,
)
from toolmem.rules.store import RuleInput, ToolMemoryStore
from toolmem.text.display import plain

MAX_IN_SESSION = 10  # notes that are kept; further ones become requests
MAX_IN_FORCE = 200  # likewise, of all sessions
MAX_REFUSALS = 3  # of one quote in a session; then the quote is kept as a reminder
_REFUSALS = ".note-refusals"
_TODAY = ("today", "今天")
_DATED = re.compile(
    r"\b(?:to(?:day|morrow|night)|days?|weeks?|months?|years?|(?:jan|feb|mar|apr|may|jun|jul|aug"
    r"|sep|oct|nov|dec)[a-z]{0,6})\b|[今明后月年号日]"
)
_OPEN_END = re.compile(r"\b(?:until|till|as long as)\b|直到|为止")
_MIN_FIT = 0.34  # share of the words of a description that the rule must contain

Outcome = Literal["kept", "request", "refused"]


class NoteResult(Struct, kw_only=True):
    """What `note_demand` or `lift_demand` did. `kept` from `lift_demand`: the demand is lifted."""

    outcome: Outcome
    rules: list[ToolMemoryRule] = []
    told: str = ""  # for the user, one line
    problems: list[NoteProblem] = []


def note_demand(rules: ToolMemoryStore, given: Any, context: NoteContext) -> NoteResult:
    """Verify a note as a model wrote it, and keep it or say why not. Raises StoreError."""
    now = rules.local_time()
    try:
        note = read_note(given)
        if context.is_guests and note.replaces:
            raise NoteRefused(("replaces", "the words of a guest replace no rule: leave it out"))
        if context.is_guests:
            note = replace(note, lasting="session")
        if note.lasting == "session" and not note.until and mentions(note.quote, TODAY):
            note = replace(note, lasting="always", until=_TODAY[0])  # a session is not a day
        if note.lasting == "session" and not context.session:
            raise NoteRefused(("lasting", "no session is known here: say always"))
        verified = verify(note, context, now)
        replaced = _replaced(rules, verified, context) if note.replaces else []
        verified.ends = _end_of(note.until, rules)
        if verified.why_only_asks and not context.session:
            raise NoteRefused(("when", f"{verified.why_only_asks}: narrow it"))
    except NoteRefused as error:
        return _refused(rules, error, given, context, now)
    pending = verified.pending or _limit_reached(rules, context)
    made = _put(rules, verified, pending, context, replaced[0].rule if replaced else "")
    if any(rule.status != "active" or rule.request is not None for rule in made):
        why = pending or "only the user may loosen a rule here"
        return NoteResult(outcome="request", rules=made, told=waiting_message(made[0], why))
    if pending:  # by an agent: where nothing is asked, nothing is new
        told = f"“{excerpt(note.quote)}” is kept already"
        return NoteResult(outcome="kept", rules=made, told=told)
    message = _message_of(note.quote, context)
    messages = context.user_messages or ()
    is_newest = newest_message_with(note.quote, messages) == len(messages) - 1
    new = [rule for rule in made if is_newest or rule.created_at == rule.updated_at]
    remember_made(rules, context.session, new, message)  # `undo` does not delete old rules
    told = _confirmation(rules, verified, undo_words(message, {note.quote}))
    problems = []
    if verified.why_only_asks:
        problem = f"{verified.why_only_asks}: it only asks; note it again with a narrower `when`"
        problems.append(NoteProblem("when", problem))
    if verified.conditions and made[0].when != msgspec.to_builtins(verified.conditions.when):
        told = f"“{excerpt(note.quote)}” holds on as it was kept before: no note loosens it"
        problems.append(NoteProblem("when", "it would loosen that demand: nothing changed"))
    ids = {rule.id for rule in made}
    if others := [rule for rule in replaced if rule.id not in ids]:
        by = Actor("user", context.evidence, note.quote, context.session, context.noted_by)
        is_open = open_question(rules, others, by, "replaced", message)
        told += f". {still_holds_message(others[0], is_open=is_open)}"
    return NoteResult(outcome="kept", rules=made, told=told, problems=problems)


def _end_of(until: str, rules: ToolMemoryStore) -> datetime | None:
    """Return when a note ends: at the end of a date, or at a time. Raises NoteRefused.

    Returns None if the end is no time, such as "the release".
    """
    text = until.strip()
    now = rules.local_time()
    if not (mentions(text, TIME) or read_numbers(text) or _DATED.search(text.lower())):
        return None
    if text.lower() in _TODAY:
        return rules.end_of_day()
    try:
        found = datetime.fromisoformat(text)
        if "T" not in text and ":" not in text and " " not in text:  # a date
            found = rules.end_of_day(found.date())
        elif found.tzinfo is None:
            found = found.replace(tzinfo=rules.zone).astimezone(rules.zone)
    except ValueError:
        raise NoteRefused(("until", "expected today, or a date or time as 2026-12-24")) from None
    except OverflowError:
        raise NoteRefused(("until", f"{text} is too far away: leave until out")) from None
    if found <= now:
        raise NoteRefused(("until", f"{text} is over: now it is {now:%Y-%m-%d %H:%M}"))
    return found


def _message_of(quote: str, context: NoteContext) -> str:
    messages = context.user_messages or ()
    at = newest_message_with(quote, messages)
    return messages[at] if at >= 0 else quote


def _is_older(rule: ToolMemoryRule, quote: str, context: NoteContext) -> bool:
    """Whether a rule was last said before the message that holds a quote: the newest wins."""
    messages = context.user_messages or ()
    at = newest_message_with(quote, messages)
    if at < 0:
        return True
    if len(context.said_at) == len(messages) and rule.updated_at > context.said_at[at]:
        return False
    return newest_message_with(rule.rule, messages) < at


def _replaced(
    rules: ToolMemoryStore, verified: Verified, context: NoteContext
) -> list[ToolMemoryRule]:
    """Return the rules, on a note's tools, that the note says it replaces. Raises NoteRefused."""
    note = verified.note
    in_force = rules.all_rules(context.session).rules
    meant = _rules_meant(note.replaces, in_force, "replaces")
    new = [note.quote, note.rule, *_values_of(verified.conditions)]
    old = [meant[0].rule, meant[0].said.understood, *_values_of(meant[0].when)]
    if not {folded_name(rule.tool_name) for rule in meant} & set(verified.scopes):
        problem = "that demand is on other tools"
    elif not content_words(" ".join(new)) & content_words(" ".join(old)):
        problem = "that demand has no word in common with this note"
    elif not all(_is_older(rule, note.quote, context) for rule in meant):
        problem = "that demand is newer than these words"
    else:
        return _with_parts(meant, in_force)
    raise NoteRefused(("replaces", f"{problem}: name the one that the user corrects, or none"))


def _with_parts(
    meant: Sequence[ToolMemoryRule], rules: Sequence[ToolMemoryRule]
) -> list[ToolMemoryRule]:
    """Add the user's rules whose sentence contains the sentence of a rule, or is a part of it.

    The reader keeps a whole sentence of a message; a model's note may quote a part of the sentence.
    """
    texts = {text_key(rule.rule) for rule in meant}
    ids = {rule.id for rule in meant}
    found = []
    for rule in rules:
        own = text_key(rule.rule)
        overlaps = rule.is_users and any(text in own or own in text for text in texts)
        if overlaps or rule.id in ids:
            found.append(rule)
    return found


def _values_of(value: Any) -> list[str]:
    """Return the texts in a condition, without the names of its tests."""
    built = msgspec.to_builtins(value)
    if isinstance(built, dict):
        return [text for each in built.values() for text in _values_of(each)]
    if isinstance(built, list):
        return [text for each in built for text in _values_of(each)]
    return [re.sub(r"[\W_]+", " ", built)] if isinstance(built, str) else []


def _refused(
    rules: ToolMemoryStore, error: NoteRefused, given: Any, context: NoteContext, now: datetime
) -> NoteResult:
    """Refuse a note; after three refusals of a quote that the user said, keep a reminder."""
    refused = NoteResult(outcome="refused", problems=error.problems)
    quote = given.get("quote") if isinstance(given, Mapping) else None
    if not isinstance(quote, str) or not context.session or error.field == "quote":
        return refused
    key = f"{context.session}/{text_key(quote)}"[:500]
    record = rules.store.get(rules.workspace, _REFUSALS, key)
    number = 1 if record is None else record.read(int) + 1
    rules.store.put(rules.workspace, _REFUSALS, key, number)
    if number < MAX_REFUSALS:
        return refused
    reminder = {"quote": quote, "effect": "remind", "tools": given.get("tools") or []}
    try:
        lasting = "session" if context.is_guests else "always"
        note = read_note({**reminder, "lasting": lasting})
        verified = verify(note, context, now)
    except NoteRefused:
        return refused
    rules.store.delete(rules.workspace, _REFUSALS, key)
    made = _put(rules, verified, verified.pending, context)
    kept = _confirmation(rules, verified, "undo that rule")
    told = f"{kept} (its condition was refused {number} times)"
    outcome: Outcome = "request" if verified.pending else "kept"
    return NoteResult(outcome=outcome, rules=made, told=told, problems=error.problems)


def _limit_reached(rules: ToolMemoryStore, context: NoteContext) -> str:
    noted = [r for r in rules.all_rules(context.session).rules if NOTED in r.tags]
    quotes = {(rule.rule, rule.said.session) for rule in noted}
    here = sum(session == context.session for _, session in quotes) if context.session else 0
    why = f"there are more than {MAX_IN_SESSION} notes in a session, or {MAX_IN_FORCE} in force"
    return why if here >= MAX_IN_SESSION or len(quotes) >= MAX_IN_FORCE else ""


def _put(
    rules: ToolMemoryStore,
    verified: Verified,
    pending: str,
    context: NoteContext,
    replaces: str = "",
) -> list[ToolMemoryRule]:
    """Put one rule for each scope. `pending`: why the rules are only requests; "": they hold."""
    note = verified.note
    conditions = verified.conditions
    by: Speaker = "agent" if pending else context.by
    tags = [NOTED, USER_EDICT] if by == "user" else [NOTED]
    if verified.why_only_asks:
        tags.append(ONLY_ASKS)
    given = RuleInput(
        tool_name=UNSCOPED,
        rule=note.quote.strip(),
        priority="critical",
        source="user_explicit" if by == "user" else "programmatic",
        tags=tags,
        effect=note.effect,
        when=[] if conditions is None else msgspec.to_builtins(conditions.when),
        unless=[] if conditions is None else msgspec.to_builtins(conditions.unless),
        stops=msgspec.to_builtins(note.stops),
        passes=msgspec.to_builtins(note.passes),
        replaces=plain(replaces, 500),
        session=context.session if note.lasting == "session" else "",
        expires_at=verified.ends,
        said=Said(
            by,
            context.session,
            (context.turn,) if context.turn else (),
            plain(context.noted_by, 80),
            plain(note.rule, 500),
        ),
    )
    evidence: Evidence = "" if pending else context.evidence
    actor = Actor(by, evidence, session=context.session, name=context.noted_by)
    return [
        rules.put_rule(replace(given, tool_name=scope), actor, captured=not pending)
        for scope in verified.scopes or [UNSCOPED]
    ]


def _confirmation(rules: ToolMemoryStore, verified: Verified, undo: str) -> str:
    """Tell the user of a kept note: a call that it stops, a call that passes, how to undo it."""
    note = verified.note
    checks = ""
    details = ""
    if note.effect != "remind":
        stops, passes = (shown_call(e.tool, e.arguments) for e in (note.stops[0], note.passes[0]))
        verb = "stops" if note.effect == "deny" else "asks you before"
        checks = f"{verb} `{excerpt(stops)}`, not `{excerpt(passes)}`"
    if verified.would_stop[0]:
        stopped, total = verified.would_stop
        example = excerpt(verified.example)
        details = f"; it would have stopped {stopped} of your last {total} calls, as `{example}`"
    if verified.ends is not None:
        details += f", {rules.until(verified.ends)}"
    elif note.until.strip() or _OPEN_END.search(note.quote.lower()):
        details += ", until you say so"
    for_session = note.lasting == "session"
    message = kept_message(note.quote, checks, details, for_session=for_session, undo=undo)
    if verified.why_only_asks:
        message += f". It only asks, as {verified.why_only_asks}; to have them stopped, say: "
        message += "yes, always stop it"
    return message


def lift_demand(
    rules: ToolMemoryStore, quote: str, lifted: str, context: NoteContext, actor: Actor
) -> NoteResult:
    """Lift a demand that the user took back by `quote`. `lifted`: words or id of the demand.

    `actor`: who vouches for the user. If the quote surely takes the demand back, it is lifted at
    once. If it only may, the user is asked at the next call that the demand stops.
    """
    from toolmem.rules.reader import lifted as lifted_by  # takes long to load

    try:
        if context.is_guests:
            raise NoteRefused(("lifted", "the words of a guest lift no rule"))
        pending = check_quote(quote, context)
        every = rules.all_rules(context.session).rules
        meant = _rules_meant(lifted, every, "lifted")
        message = _message_of(quote, context)
        if not all(_is_older(rule, quote, context) for rule in meant):
            raise NoteRefused(("quote", "the user said that demand after these words: it holds"))
        texts = list({rule.rule: rule for rule in every if rule.is_users}.values())
        found = None if pending else lifted_by(message, texts)
        if not pending and (found is None or found.rule != meant[0].rule):
            _require_meant(quote, message, meant[0], every, context)
            is_open = open_question(rules, meant, actor, "deleted", message)
            told = still_holds_message(meant[0], is_open=is_open)
            return NoteResult(outcome="request", rules=meant, told=told)
    except NoteRefused as error:
        return NoteResult(outcome="refused", problems=error.problems)
    by = Actor("agent", "", quote, context.session, context.noted_by) if pending else actor
    done = [rules.delete(rule, by) for rule in meant]
    if all(rule.status == "deleted" for rule in done):
        remember_lifted(rules, context.session, meant)
        return NoteResult(outcome="kept", rules=done, told=lifted_message(meant[0]))
    told = still_holds_message(meant[0], pending or "only the user may loosen it here")
    return NoteResult(outcome="request", rules=done, told=told)


def _require_meant(
    quote: str,
    message: str,
    meant: ToolMemoryRule,
    every: Sequence[ToolMemoryRule],
    context: NoteContext,
) -> None:
    """Require that the user's words may mean this rule, and no other. Raises NoteRefused."""
    from toolmem.rules.reader import may_mean, possibly_lifted

    texts = {rule.rule: rule for rule in every if rule.is_users} | {meant.rule: meant}
    named = {rule.rule for rule in every if rule.id in context.stopped_by}
    stopped = frozenset(rule.id for rule in texts.values() if rule.rule in named)
    found = possibly_lifted(message, list(texts.values()), stopped)
    fits = found[0] if found else []
    if not fits and may_mean(quote, message, meant, stopped):
        return
    if len(fits) > 1:
        raise NoteRefused(("lifted", _name_one(fits)))
    if not fits or fits[0].rule != meant.rule:
        problem = "these words do not take that demand back: ask the user which one they mean"
        raise NoteRefused(("quote", problem))


def _rules_meant(words: str, rules: Sequence[ToolMemoryRule], field: str) -> list[ToolMemoryRule]:
    """Find the demand that fits words best; return its rules on all tools. Raises NoteRefused."""
    by_id = [r for r in rules if len(words) >= MIN_ID_LENGTH and r.id.startswith(words)]
    if len(by_id) > 1:
        raise NoteRefused((field, _name_one(by_id)))
    if by_id:
        return by_id
    described = content_words(words)
    by_text: dict[str, list[ToolMemoryRule]] = {}
    for rule in rules:
        if rule.is_users or rule.is_checked:
            by_text.setdefault(text_key(rule.rule), []).append(rule)
    scores = {text: _fit(described, found[0]) for text, found in by_text.items()}
    fits = sorted(((score, text) for text, score in scores.items()), reverse=True)
    if not fits or fits[0][0] < _MIN_FIT:
        raise NoteRefused((field, "no rule fits these words: name it by its id"))
    if len(fits) > 1 and fits[1][0] == fits[0][0]:
        raise NoteRefused((field, _name_one([by_text[text][0] for _, text in fits])))
    return by_text[fits[0][1]]


def _name_one(rules: Sequence[ToolMemoryRule]) -> str:
    shown = ", ".join(f"“{plain(rule.rule, 60)}”" for rule in rules[:3])
    return f"several rules fit: use more words of one, or ask the user which they mean: {shown}"


def _fit(described: frozenset[str], rule: ToolMemoryRule) -> float:
    """Return the share of described words that the rule has, a bit higher for a short rule."""
    own = content_words(f"{rule.rule} {rule.said.understood}")
    shared = len(described & own)
    return shared / max(len(described), 1) + shared / (10 * max(len(own), 1))
