"""A verified note becomes rules, one under each of its tools; a note may also lift a demand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from toolmem.models.rules import UNSCOPED, Said, ToolMemoryRule
from toolmem.rules.capture import USER_EDICT
from toolmem.rules.changes import Actor
from toolmem.rules.identity import text_key
from toolmem.rules.notes.note import NoteProblem, NoteRefused, read_note
from toolmem.rules.notes.verify import NoteContext, Verified, shown_call, verify, why_unheard
from toolmem.rules.notes.width import telling_words
from toolmem.rules.replies import MIN_ID_LENGTH, excerpt, kept_message
from toolmem.rules.store import RuleInput, ToolMemoryStore
from toolmem.text.display import plain

NOTED = "noted"  # the tag of rules that came of a note
MAX_IN_SESSION = 10  # notes that bind; further ones wait for the user
MAX_IN_FORCE = 200
MAX_REFUSALS = 3  # of one quote in a session; then it is kept as a reminder
_REFUSALS = ".note-refusals"
_LEAST_FIT = 0.34  # share of the words naming a rule that it holds

Outcome = Literal["kept", "request", "refused"]


class NoteResult(Struct, kw_only=True):
    """What became of a note, or of a demand that was taken back (kept: it is lifted)."""

    outcome: Outcome
    rules: list[ToolMemoryRule] = []
    told: str = ""  # for the user, one line
    problems: list[NoteProblem] = []


def note_demand(rules: ToolMemoryStore, given: Any, context: NoteContext) -> NoteResult:
    """Verify a note and keep it. Raises StoreError."""
    now = rules.clock.now().astimezone()
    try:
        note = read_note(given)
        if note.lasting == "session" and not context.session:
            raise NoteRefused(("lasting", "no session is known here: say always"))
        verified = verify(note, context, now)
        if verified.narrowed and not context.session:
            raise NoteRefused(("when", f"{verified.narrowed}: narrow it"))
    except NoteRefused as error:
        return _refused(rules, error, given, context, now)
    waits = verified.waits or _too_many(rules, context)
    made = _put(rules, verified, waits, context)
    if any(rule.status != "active" or rule.request is not None for rule in made):
        told = f"Heard, and waits for you: “{excerpt(note.quote)}”"
        why = waits or "it would let a rule bind less"
        return NoteResult(
            outcome="request", rules=made, told=f"{told} ({why}): lift {made[0].id[:MIN_ID_LENGTH]}"
        )
    return NoteResult(outcome="kept", rules=made, told=_confirmation(verified))


def _refused(
    rules: ToolMemoryStore, error: NoteRefused, given: Any, context: NoteContext, now: datetime
) -> NoteResult:
    """After three refusals of a quote that the user said, it is kept as a reminder."""
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
        verified = verify(read_note(reminder), context, now)
    except NoteRefused:
        return refused
    rules.store.delete(rules.workspace, _REFUSALS, key)
    made = _put(rules, verified, verified.waits, context)
    told = f"{_confirmation(verified)} (its condition was refused {number} times)"
    outcome: Outcome = "request" if verified.waits else "kept"
    return NoteResult(outcome=outcome, rules=made, told=told, problems=error.problems)


def _too_many(rules: ToolMemoryStore, context: NoteContext) -> str:
    noted = [r for r in rules.all_rules(context.session).rules if NOTED in r.tags]
    quotes = {(rule.rule, rule.said.session) for rule in noted}
    here = sum(session == context.session for _, session in quotes) if context.session else 0
    if here >= MAX_IN_SESSION or len(quotes) >= MAX_IN_FORCE:
        many = f"more than {MAX_IN_SESSION} notes in a session, or {MAX_IN_FORCE} in force"
        return f"there are {many}"
    return ""


def _put(
    rules: ToolMemoryStore, verified: Verified, waits: str, context: NoteContext
) -> list[ToolMemoryRule]:
    """One rule under each place. `waits`: why they are requests."""
    note, conditions = verified.note, verified.conditions
    by: Literal["agent", "user"] = "agent" if waits else "user"
    given = RuleInput(
        tool_name=UNSCOPED,
        rule=note.quote.strip(),
        priority="critical",
        source="programmatic" if waits else "user_explicit",
        tags=[NOTED] if waits else [NOTED, USER_EDICT],
        effect=note.effect,
        when=[] if conditions is None else msgspec.to_builtins(conditions.when),
        unless=[] if conditions is None else msgspec.to_builtins(conditions.unless),
        stops=msgspec.to_builtins(note.stops),
        passes=msgspec.to_builtins(note.passes),
        session=context.session if note.lasting == "session" else "",
        expires_at=note.ends,
        said=Said(
            by,
            context.session,
            (context.turn,) if context.turn else (),
            plain(context.noted_by, 80),
            plain(note.rule, 500),
        ),
    )
    actor = Actor(by, name=context.noted_by, session=context.session)
    return [
        rules.put_rule(replace(given, tool_name=place), actor, captured=not waits)
        for place in verified.places or [UNSCOPED]
    ]


def _confirmation(verified: Verified) -> str:
    """One line for the user: a call that is stopped, one that is not, and the way back."""
    note, checks, history = verified.note, "", ""
    if note.effect != "remind":
        stops, passes = (shown_call(e.tool, e.arguments) for e in (note.stops[0], note.passes[0]))
        verb = "stops" if note.effect == "deny" else "asks you before"
        checks = f"{verb} `{excerpt(stops)}`, not `{excerpt(passes)}`"
    if verified.would_stop[0]:
        stopped, of = verified.would_stop
        example = excerpt(verified.for_example)
        history = f"; it would have stopped {stopped} of your last {of} calls, as `{example}`"
    return kept_message(note.quote, checks, history, for_session=note.lasting == "session")


def lift_demand(
    rules: ToolMemoryStore, quote: str, lifted: str, context: NoteContext, actor: Actor
) -> NoteResult:
    """`lifted`: the earlier demand in a few words, or its id. `actor`: who vouches for the user.

    Only words of the user that surely take back that rule lift it; else it is a request.
    """
    from toolmem.rules.reader import lifted as lifted_by  # takes long to load

    try:
        waits = why_unheard(quote, context)
        meant = _rules_meant(lifted, rules.all_rules(context.session).rules)
    except NoteRefused as error:
        return NoteResult(outcome="refused", problems=error.problems)
    messages = context.user_messages or ()
    if not waits and not any(lifted_by(message, meant[:1]) for message in messages):
        waits = "the user's words do not say so for sure"
    by = Actor("agent", "", quote, context.session, context.noted_by) if waits else actor
    done = [rules.delete(rule, by) for rule in meant]
    shown, code = excerpt(meant[0].rule), meant[0].id[:MIN_ID_LENGTH]
    if all(rule.status == "deleted" for rule in done):
        return NoteResult(outcome="kept", rules=done, told=f"Lifted: “{shown}”")
    why = waits or "only its user lets it bind less here"
    told = f"“{shown}” still holds ({why}); the message `lift {code}` lifts it"
    return NoteResult(outcome="request", rules=done, told=told)


def _rules_meant(words: str, rules: Sequence[ToolMemoryRule]) -> list[ToolMemoryRule]:
    """The rules of one sentence that fit best, under whichever tools. Raises NoteRefused."""
    named = [r for r in rules if len(words) >= MIN_ID_LENGTH and r.id.startswith(words)]
    if named:
        return named
    sought = telling_words(words)
    by_text: dict[str, list[ToolMemoryRule]] = {}
    for rule in rules:
        if rule.is_users or rule.is_checked:
            by_text.setdefault(text_key(rule.rule), []).append(rule)
    fits = sorted(((_fit(sought, of[0]), text) for text, of in by_text.items()), reverse=True)
    if not fits or fits[0][0] < _LEAST_FIT:
        raise NoteRefused(("lifted", "no rule fits these words: name it by its id"))
    if len(fits) > 1 and fits[1][0] == fits[0][0]:
        ids = ", ".join(f"{by_text[t][0].id[:8]} “{by_text[t][0].rule[:60]}”" for _, t in fits[:3])
        raise NoteRefused(("lifted", f"several rules fit: name one by its id: {ids}"))
    return by_text[fits[0][1]]


def _fit(sought: frozenset[str], rule: ToolMemoryRule) -> float:
    own = telling_words(f"{rule.rule} {rule.said.understood}")
    shared = len(sought & own)
    return shared / max(len(sought), 1) + shared / (10 * max(len(own), 1))
