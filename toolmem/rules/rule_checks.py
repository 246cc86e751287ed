"""What of a rule can be checked: as its caller says, or as its sentence reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

from toolmem.errors import RequestError
from toolmem.guard.tool_classes import class_schema, is_scope
from toolmem.late_dataclasses import dataclass
from toolmem.light_models import Effect, ToolMemoryRule, ToolSchema, When
from toolmem.rows import own_json
from toolmem.rules.identity import UNSCOPED, folded_name, read_choice

_NO_TOOL = "it was said of no tool at hand"
_OF_ANOTHER = "it speaks of another tool"
_PLAIN_QUOTES = str.maketrans("“”", "''")  # a row of plain characters is read twice as fast


COMPILED_BY_MODEL = "compiled-by-model"  # the tag of a rule whose condition a model wrote


@dataclass(frozen=True, slots=True)
class Check:
    """What becomes of which calls; of a reminder why none is held against it."""

    effect: Effect = "remind"
    when: When | None = None
    unchecked: str = ""
    stops: str = ""  # a call that was stopped on trial, in words; "" where none could be derived from the sentence


def said_text(rule: ToolMemoryRule) -> str:
    """The sentence that somebody said: a rule that a model compiled tells beside it how it is read."""
    return rule.said.sentence if COMPILED_BY_MODEL in rule.tags and rule.said is not None else rule.rule


def check_of(sentence: str, tool_name: str) -> Check:
    """How a sentence binds one tool of which only the name is known, read offline."""
    return checks_of(sentence, [tool_name], [])[tool_name]


def checks_of(
    sentence: str, bound: Sequence[str], tools: Sequence[str | ToolSchema], *, guessed: bool = False
) -> dict[str, Check]:
    """How a sentence binds tools, read offline: those `bound` by its words, then further ones of `tools` that it means.

    `guessed`: its words name none of those bound, so that tools which it means take their place.
    """
    from toolmem.sentences.said_conditions import condition_of  # its forms take their time, which no prompt needs

    given = {folded_name(each): each for each in reversed(bound) if folded_name(each) != UNSCOPED}
    known = {
        key: class_schema(key) if is_scope(key) else ToolSchema(name=name) for key, name in reversed(given.items())
    }
    for each in reversed(tools):
        schema = each if isinstance(each, ToolSchema) else ToolSchema(name=each)
        known[folded_name(schema.name)] = schema
    made = condition_of(sentence, list(known.values()), list(given.values()))
    when = {} if made.effect == "remind" else {folded_name(name): each for name, each in made.when.items()}
    effect: Effect = "ask" if made.effect == "ask" else "deny"
    stops = {folded_name(name): call for name, call in made.stops.items()}
    names = {} if guessed and when else {folded_name(name): name for name in bound}
    names |= {key: known[key].name for key in when if key not in names}
    reason = made.reason.translate(_PLAIN_QUOTES) or _OF_ANOTHER
    return {
        name: Check(effect, _kept(when[key]), stops=stops.get(key, ""))
        if key in when
        else Check(unchecked=_NO_TOOL if key == UNSCOPED else reason)
        for key, name in names.items()
    }


def _kept(condition: Mapping[str, Any] | bool) -> When:
    return condition if isinstance(condition, bool) else dict(condition)


def read_check(effect: Any, when: Any) -> tuple[Effect | None, When | None]:
    """As a caller gives it; None for what is left out. Raises RequestError with the place and the remedy."""
    chosen: Effect | None = read_choice(effect, "effect", get_args(Effect))
    if when is None:
        return chosen, None
    from toolmem.guard.call_conditions import check_condition

    kept = check_condition(when)
    if chosen == "remind":
        raise RequestError("effect: remind checks nothing; leave `when` out, or say deny or ask", field="effect")
    return chosen, True if isinstance(kept, bool) else own_json(dict(kept))


def effect_meant(sentence: str) -> Effect:
    """Of a sentence whose condition is given: it forbids, unless it says that the user wants to be asked."""
    from toolmem.sentences.said_conditions import asks_first

    return "ask" if asks_first(sentence) else "deny"


def require_condition(check: Check) -> Check:
    """Raises RequestError where nothing says which calls are meant."""
    if check.effect != "remind" and check.when is None:
        raise RequestError(
            f"effect: {check.effect} needs `when`, the condition of the calls that are meant (true: every call of the "
            "tool); leave `effect` out, and the sentence is read for it",
            field="effect",
        )
    return check
