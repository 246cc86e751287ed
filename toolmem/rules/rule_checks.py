"""What of a rule can be checked: as its caller says, or as its sentence reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, get_args

from toolmem.errors import RequestError
from toolmem.light_models import Effect, ToolSchema, When
from toolmem.rows import own_json
from toolmem.rules.identity import UNSCOPED, folded_name, read_choice

_NO_TOOL = "it was said without a tool"
_OF_ANOTHER = "it speaks of another tool"


@dataclass(frozen=True, slots=True)
class Check:
    """What becomes of which calls; of a reminder why none is held against it."""

    effect: Effect = "remind"
    when: When | None = None
    unchecked: str = ""


def check_of(sentence: str, tool_name: str, tools: Sequence[str | ToolSchema] = ()) -> Check:
    """How a sentence binds one tool, read offline; `tools`: all that are known, by which its words are understood."""
    from toolmem.guard.said_conditions import condition_of  # its forms take their time, which no prompt needs

    if folded_name(tool_name) == UNSCOPED:
        return Check(unchecked=_NO_TOOL)
    known = {folded_name(each.name): each for each in tools if isinstance(each, ToolSchema)}
    schema = known.setdefault(folded_name(tool_name), ToolSchema(name=tool_name))
    made = condition_of(sentence, list(known.values()), [schema.name])
    when = made.when.get(schema.name)
    if when is None or made.effect == "remind":
        return Check(unchecked=made.reason or _OF_ANOTHER)
    return Check("ask" if made.effect == "ask" else "deny", when if isinstance(when, bool) else dict(when))


def read_check(effect: Any, when: Any) -> Check | None:
    """As a caller gives it; None where both are left out. Raises RequestError with the place and the remedy."""
    chosen: Effect | None = read_choice(effect, "effect", get_args(Effect))
    if when is None:
        return None if chosen is None else Check(chosen)
    from toolmem.guard.call_conditions import check_condition

    kept = check_condition(when)
    if chosen == "remind":
        raise RequestError("effect: remind checks nothing; leave `when` out, or say deny or ask", field="effect")
    return Check(chosen or "deny", True if isinstance(kept, bool) else own_json(dict(kept)))


def require_condition(check: Check) -> Check:
    """Raises RequestError where nothing says which calls are meant."""
    if check.effect != "remind" and check.when is None:
        raise RequestError(
            f"effect: {check.effect} needs `when`, the condition of the calls that are meant (true: every call of the "
            "tool); leave `effect` out, and the sentence is read for it",
            field="effect",
        )
    return check
