"""The user's few words after a note or a denial, as a hook hears them: undo, just this time, yes, this once, ...

What was kept just before is what bears the session and the number of the message before; the call that is let through
is the one that was stopped last in this session by the user's rules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from toolmem.engine import DEFAULT_WORKSPACE
from toolmem.hosts.receipts import ONCE, SaidHere

_MOST_ASKED = 3  # sentences that a model is asked about at a turn's end

if TYPE_CHECKING:
    from toolmem.engine.store_file import StoreFile
    from toolmem.guard.decision import GuardDecision
    from toolmem.hosts.event_stores import EventStores
    from toolmem.hosts.events import HookEvent
    from toolmem.hosts.receipts import Receipts
    from toolmem.rules.capture.hook import Captured
    from toolmem.rules.evidence import UserEvidence
    from toolmem.rules.words_after import Before, Word


def replied(
    stores: EventStores, event: HookEvent, turn: int | None, evidence: UserEvidence | None, receipts: Receipts
) -> list[str] | None:
    """What came of the message, line by line; None where it is no such word, or there is nothing that it is about."""
    from toolmem.rules.words_after import word_after

    end_passes(receipts, event.session_id)
    word = word_after(event.prompt)
    if not word:
        return None
    if word == ONCE:
        return _let_through(stores, event, turn, evidence, receipts)
    return _act(word, stores, event, evidence, receipts)


# ---------------------------------------------------------------- what was kept just before


def _act(
    word: Word, stores: EventStores, event: HookEvent, evidence: UserEvidence | None, receipts: Receipts
) -> list[str] | None:
    from toolmem.readers.weight import at_once
    from toolmem.rules.rule_store import RuleStore
    from toolmem.rules.stored_rules import THIS_SESSION
    from toolmem.rules.words_after import Before, act_on, has_chinese, kept_of, told, told_of

    began, note = receipts.last_prompt(event.session_id)
    if not isinstance(note, Mapping):
        return None
    before = Before(event.session_id, note.get("turn"), datetime.fromtimestamp(began, UTC))
    kept = []
    for store in stores.all:
        rules = RuleStore(store.protocol, DEFAULT_WORKSPACE, clock=store.clock, evidence=evidence)
        kept.append((rules, at_once(kept_of(rules, before))))
    here = _demands_of(before, receipts) if word != "always" else []  # which the reader of demands keeps
    if word == "always" and not any(THIS_SESSION in rule.tags for _, found in kept for rule in found):
        return None
    if not here and not any(found for _, found in kept):
        return None
    chinese = has_chinese(event.prompt)
    if evidence is None:
        return [told_of("unseen", event.prompt)]
    lines = []
    for rules, found in kept:
        lines += at_once(act_on(word, rules, found, before, chinese=chinese))
    if word == "undo":
        _forget(here, event.session_id, receipts)
    return [*lines, *told("undo" if word == "undo" else "already", [each.rule for each in here], chinese=chinese)]


def _demands_of(before: Before, receipts: Receipts) -> list[SaidHere]:
    """Of the session alone."""
    return [each for each in receipts.demands(before.session) if not each.effect and each.turn == before.turn]


def _forget(undone: Sequence[SaidHere], session: str, receipts: Receipts) -> None:
    """With what is checked of them."""
    texts = {each.rule for each in undone}
    if texts:
        receipts.set_demands(session, [each for each in receipts.demands(session) if each.rule not in texts])


# ---------------------------------------------------------------- one call, once


def _let_through(
    stores: EventStores, event: HookEvent, turn: int | None, evidence: UserEvidence | None, receipts: Receipts
) -> list[str] | None:
    from toolmem.readers.weight import at_once
    from toolmem.rules.words_after import call_in, told_of

    note = receipts.stopped_last(event.session_id)
    if stores.main is None or not isinstance(note, Mapping) or not note.get("identity"):
        return None
    logged = at_once(stores.main.protocol.decisions(DEFAULT_WORKSPACE, ids=[str(note.get("id"))], limit=1))
    if not logged:
        return None
    kinds = {str(each["kind"]) for each in logged[0].sources}
    shown = call_in(logged[0])
    if "self" in kinds:
        return [told_of("own", event.prompt, shown)]
    if "rule" not in kinds:
        return None
    if evidence is None:
        return [told_of("unseen", event.prompt)]
    ids = sorted({str(each["rule_id"]) for each in logged[0].sources if each["kind"] == "rule"})
    what = {"identity": note["identity"], "rules": ids}
    one = SaidHere(turn or 0, logged[0].tool_name, "", ONCE, what)
    receipts.add_demand(event.session_id, one)
    return [told_of("once", event.prompt, shown)]


def end_passes(receipts: Receipts, session: str) -> None:
    """What was let through once is let through until the user's next message."""
    held = receipts.demands(session)
    if any(each.effect == ONCE for each in held):
        receipts.set_demands(session, [each for each in held if each.effect != ONCE])


def once_offered_in(event: HookEvent, decision: GuardDecision) -> str:
    """What the agent is told beside a reason: the message by which its user lets the call run; "" where none would,
    as this is a subagent, or runs below another agent, whose words are not taken for the user's.
    """
    from toolmem.hosts.ancestry import agent_of_hook, started_by_agent
    from toolmem.rules.words_after import once_offered

    offered = "" if event.subagent else once_offered(decision)
    agent = agent_of_hook().process if offered else None
    return "" if agent is not None and started_by_agent(agent) else offered


class CallPass(NamedTuple):
    """By which one call runs once, though a rule had stopped it."""

    session: str
    said: SaidHere
    lifts: frozenset[str]  # ids of the rules that had stopped it; "" for the session's demands

    def give_back(self, receipts: Receipts) -> None:
        """Something else stopped the call: it has not run."""
        receipts.add_demand(self.session, self.said)


def taken_pass(event: HookEvent, store: StoreFile, demands: Sequence[SaidHere], receipts: Receipts) -> CallPass | None:
    """The pass of this very call, which no other process can take any more; None where there is none."""
    from toolmem.engine import identity_in

    identity = identity_in(store, event.tool, {} if event.arguments is None else event.arguments)
    for each in demands:
        told = each.when if isinstance(each.when, Mapping) else {}
        fits = each.effect == ONCE and each.tool == event.tool and identity and told.get("identity") == identity
        if fits and receipts.take_demand(event.session_id, each):
            return CallPass(event.session_id, each, frozenset(map(str, told.get("rules", ()))))
    return None


# ---------------------------------------------------------------- what is noted of a message


def note_of_prompt(message: str, turn: int | None, captured: Captured | None) -> dict[str, Any]:
    """For the words of the next message, the turn's end and the status line. `captured` None: it was such a word.

    `unchecked`: sentences that demand something, and that no call is checked against; `lost`: something was demanded,
    and nothing of it was kept.
    """
    if captured is None:
        return {"turn": turn}
    from toolmem.rules.capture.kept_aloud import IN_WORDS, said_aloud

    aloud = said_aloud(message)
    only_said = IN_WORDS if aloud is not None and aloud.word == "remember" else None  # it need not demand anything
    checked = {rule.rule for rule in captured.rules if rule.checked}
    open_ = [each.rule for each in captured.rules if each.rule not in checked and each.unchecked != only_said]
    lost = bool(captured.too_long or captured.failures) and not (captured.rules or captured.session)
    return {"turn": turn, "unchecked": list(dict.fromkeys(open_))[:_MOST_ASKED], "lost": lost}
