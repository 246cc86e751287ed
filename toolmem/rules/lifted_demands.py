"""The user takes an earlier demand back, as a model noted it: which rule is meant, and whether the words say so.

The memory lifts only what the user's own words surely take back; whatever the model alone understood so is proposed,
and the user accepts it by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from toolmem.demands.quotes import standing_of
from toolmem.demands.verification import RECORDED_ALONE
from toolmem.demands.width import telling_words
from toolmem.errors import LiftProposed, NoteRefused, RequestError
from toolmem.light_models import ToolMemoryRule
from toolmem.readers.plain_text import plain_line
from toolmem.rules.capture.hook import extract
from toolmem.rules.capture.pasted import mask_pasted
from toolmem.rules.capture.taking_back import RulesInForce
from toolmem.rules.evidence import evidence_here
from toolmem.rules.identity import rule_key, same_text
from toolmem.rules.noted_demands import DemandContext, NotedDemand, note_demand, stores_of
from toolmem.rules.rule_store import RuleStore
from toolmem.rules.turns import Turn
from toolmem.rules.words_after import has_chinese
from toolmem.store.holding import holds_agents

_LEAST_FIT = 0.34  # share of the words by which a rule is named that it holds
_SHORTEST_ID = 4  # characters
_SHOWN, _ID = 160, 8  # characters of a rule, of its id


async def answer_call(rules: RuleStore, name: str, given: Any, context: DemandContext) -> NotedDemand:
    """A call of `note_demand` or `lift_demand`, as a model wrote it. Raises StoreError."""
    if name == "note_demand":
        return await note_demand(rules, given, context)
    told = given if isinstance(given, Mapping) else {}
    quote, lifted = str(told.get("quote") or ""), str(told.get("lifted") or "")
    if not quote or not lifted:
        return NotedDemand("refused", problems=[("lifted" if quote else "quote", "expected text")])
    return await lift_demand(rules, quote, lifted, context)


async def lift_demand(
    rules: RuleStore,
    quote: str,
    lifted: str,
    context: DemandContext,
    ask: Callable[[Sequence[ToolMemoryRule]], bool] | None = None,
) -> NotedDemand:
    """`lifted`: the earlier demand in a few words, or its id. Raises StoreError.

    `ask`: is the user asked about these rules of one demand? Then nothing changes before they answer.
    """
    try:
        waits = _not_heard(quote, context)
        known = [(rule, own) for own in stores_of(rules, context) for rule in (await own.all_rules())[0]]
        meant = rule_meant(lifted, [rule for rule, _ in known])
    except NoteRefused as error:
        return NotedDemand("refused", problems=error.problems)
    shown, first = plain_line(meant[0].rule, _SHOWN), meant[0].id[:_ID]
    sure = not waits and rules.speaker != "agent" and surely(rules, meant, context)
    kept_in = {id(rule): own for rule, own in known}
    held = all(holds_agents(kept_in[id(rule)].store) for rule in meant)
    if not sure and not held:
        why = waits or "the user's words do not say so for sure"
        by_word = context.hears_words and meant[0].is_users
        told = _line("asked" if by_word else "holds", quote, rule=shown, id=first, why=why, code=_code(meant[0]))
        return NotedDemand("proposed", meant, told, why=why)
    wanted = sure and (rules.evidence or evidence_here()) is not None
    if not wanted and ask is not None and ask(meant):
        return NotedDemand("asked", meant, f"“{shown}” holds on until the user answers yes: they are asked now")
    try:
        gone = []
        for rule in meant:
            own = kept_in[id(rule)]
            gone.append(await (own if sure else own.with_evidence(None)).withdraw(rule))
    except LiftProposed as error:
        waits = _line("asked", quote, rule=shown, code=error.code) if error.code else str(error)
        return NotedDemand("proposed", meant, waits)
    except RequestError as error:
        return NotedDemand("proposed", meant, str(error))
    lifted_rules = [rule for rule in gone if rule is not None]
    return NotedDemand("kept", lifted_rules, _line("lifted", quote, rule=shown, id=first))


_LINES = {
    "holds": (
        "“{rule}” still holds ({why}): `toolmem rules reject {id}` lifts it",
        "“{rule}”仍然有效（无法确定您要撤销它）：`toolmem rules reject {id}` 可撤销",
    ),
    "asked": (
        "“{rule}” holds on: only its user lets it bind less, by the message `lift {code}`",
        "“{rule}”仍然有效，只有您本人可以撤销：回复“撤销 {code}”即可撤销",
    ),
    "lifted": (
        "Lifted: “{rule}”; `toolmem rules approve {id}` lets it hold again",
        "已撤销：“{rule}”；`toolmem rules approve {id}` 可恢复",
    ),
}


def _line(what: str, quote: str, **told: str) -> str:
    """For the user, in the language of their words."""
    return _LINES[what][has_chinese(quote)].format(**told)


def _not_heard(quote: str, context: DemandContext) -> str:
    """Why the words count for nothing yet; "" where the user said them. Raises NoteRefused."""
    if context.heard is None:
        return "nothing here heard the user say it"
    match standing_of(quote, context.heard, mask_pasted):
        case "unsaid" if standing_of(quote, context.beside, mask_pasted) in {"said", "shown"}:
            return RECORDED_ALONE
        case "unsaid" | "too_short":
            raise NoteRefused([("quote", "the user did not say this here: copy their words exactly")])
        case "shown":
            return "it stands in what the user pasted or quoted"
    return ""


def rule_meant(lifted: str, rules: Sequence[ToolMemoryRule], field: str = "lifted") -> list[ToolMemoryRule]:
    """The rules of one sentence that fit best, under whichever tools. Raises NoteRefused where none or several do.

    `field`: the place in the note.
    """
    named = [rule for rule in rules if len(lifted) >= _SHORTEST_ID and _is_named(rule, lifted)]
    if named:
        return named
    sought = telling_words(lifted)
    by_text: dict[str, list[ToolMemoryRule]] = {}
    for rule in rules:
        if rule.is_users or rule.checked:
            by_text.setdefault(same_text(rule.rule), []).append(rule)
    fits = sorted(((_fit(sought, of[0]), text) for text, of in by_text.items()), reverse=True)
    if not fits or fits[0][0] < _LEAST_FIT:
        raise NoteRefused([(field, "no rule fits these words: name it by its id, as `toolmem rules list` shows it")])
    if len(fits) > 1 and fits[1][0] == fits[0][0]:
        ids = ", ".join(f"{by_text[text][0].id[:8]} “{by_text[text][0].rule[:60]}”" for _, text in fits[:3])
        raise NoteRefused([(field, f"several rules fit: name one by its id: {ids}")])
    return by_text[fits[0][1]]


def _is_named(rule: ToolMemoryRule, lifted: str) -> bool:
    return rule.id.startswith(lifted) or _code(rule) == lifted


def _code(rule: ToolMemoryRule) -> str:
    from toolmem.store.journal_changes import code_of  # loads SQLite

    return code_of(rule_key(rule.id))


def _fit(sought: frozenset[str], rule: ToolMemoryRule) -> float:
    understood = rule.said.understood if rule.said is not None else ""
    own = telling_words(f"{rule.rule} {understood}")
    return len(sought & own) / max(len(sought), 1) + len(sought & own) / (10 * max(len(own), 1))


def surely(rules: RuleStore, meant: Sequence[ToolMemoryRule], context: DemandContext) -> bool:
    """Do the user's own words take this back, read without a model?"""
    for message in (context.heard if context.fresh is None else context.fresh) or ():
        spoken = Turn(message, (), context.session, tuple(context.tools), context.turn)
        force = RulesInForce(rules, spoken)
        lifts = [lift for step in extract(spoken).said for lift in step.lifts]
        if lifts and {rule.id for rule in force.surely_meant(lifts, meant)} == {rule.id for rule in meant}:
            return True
    return False
