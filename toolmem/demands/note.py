"""A note of a demand, as a model writes it; read strictly, kept with its conditions as written."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, get_args

from toolmem.errors import RequestError
from toolmem.guard.alternatives import Conditions, read_conditions
from toolmem.late_dataclasses import dataclass, field
from toolmem.light_models import Effect

Lasting = Literal["always", "session"]
Where = Literal["here", "everywhere"]

LONGEST_QUOTE = 500  # characters, as of a captured sentence
LONGEST_RULE = 500
_LONGEST_EXAMPLE = 4_000  # characters of its arguments as JSON
_MOST_EXAMPLES = 3
_MOST_TOOLS = 20
_KEYS = ("quote", "effect", "lasting", "tools", "rule", "when", "unless", "stops", "passes", "where", "until")
FIELDS = (*_KEYS, "replaces")


@dataclass(frozen=True, slots=True)
class ExampleCall:
    """A call that the note says is stopped, or passes."""

    tool: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class DemandNote:
    """What the model understood of one demand."""

    quote: str  # the user's words
    effect: Effect
    lasting: Lasting = "always"
    tools: tuple[str, ...] = ()  # names or classes; (): those that a test can be about
    rule: str = ""  # in the model's words; shown as such, and nowhere else
    conditions: Conditions | None = None
    stops: tuple[ExampleCall, ...] = field(default=())
    passes: tuple[ExampleCall, ...] = field(default=())
    where: Where = "here"
    until: datetime | None = None
    replaces: str = ""


def read_note(given: Any) -> DemandNote:
    """Raises RequestError that names the field and what it takes."""
    if not isinstance(given, Mapping):
        raise RequestError(f"expected a JSON object with {', '.join(FIELDS)}", field="note")
    unknown = [str(name)[:40] for name in given if name not in FIELDS]
    if unknown:
        raise RequestError(f"{', '.join(unknown)}: unknown; a note has {', '.join(FIELDS)}", field=unknown[0])
    effect = _choice(given, "effect", get_args(Effect))
    checks = effect != "remind"
    if checks and not given.get("when"):
        told = f"needed where the effect is {effect}: which calls are meant; remind is for what no argument tells"
        raise RequestError(f"`when`: {told}", field="when")
    return DemandNote(
        _text(given, "quote", LONGEST_QUOTE),
        effect,
        _choice({"lasting": "always", **given}, "lasting", get_args(Lasting)),
        _tools(given.get("tools")),
        _text(given, "rule", LONGEST_RULE) if given.get("rule") else "",
        read_conditions(given["when"], given.get("unless")) if checks else None,
        _examples(given, "stops") if checks else (),
        _examples(given, "passes") if checks else (),
        _choice({"where": "here", **given}, "where", get_args(Where)),
        _until(given.get("until")),
        str(given.get("replaces") or "")[:LONGEST_QUOTE],
    )


def _choice(given: Mapping[str, Any], name: str, choices: Sequence[str]) -> Any:
    value = given.get(name)
    if not isinstance(value, str) or value not in choices:
        raise RequestError(f"`{name}`: expected {' or '.join(choices)}", field=name)
    return value


def _text(given: Mapping[str, Any], name: str, longest: int) -> str:
    value = given.get(name)
    if not isinstance(value, str) or not value.strip():
        raise RequestError(f"`{name}`: expected text", field=name)
    if len(value) > longest:
        raise RequestError(f"`{name}`: {len(value):,} characters; {longest} is the most", field=name)
    return value.strip()


def _tools(given: Any) -> tuple[str, ...]:
    listed = [] if given is None else [given] if isinstance(given, str) else given
    if not isinstance(listed, list) or len(listed) > _MOST_TOOLS or not all(isinstance(e, str) and e for e in listed):
        raise RequestError(f"`tools`: expected at most {_MOST_TOOLS} names of tools", field="tools")
    return tuple(dict.fromkeys(each.strip() for each in listed))


def _examples(given: Mapping[str, Any], name: str) -> tuple[ExampleCall, ...]:
    """One to three."""
    listed = given.get(name)
    told = f'`{name}`: expected 1 to {_MOST_EXAMPLES} calls {{"tool": ..., "arguments": {{...}}}}'
    if not isinstance(listed, list) or not 1 <= len(listed) <= _MOST_EXAMPLES:
        raise RequestError(told, field=name)
    return tuple(_example(each, f"{name}[{number}]", name, told) for number, each in enumerate(listed))


def _example(each: Any, place: str, field: str, told: str) -> ExampleCall:
    if not isinstance(each, Mapping) or not isinstance(each.get("tool"), str):
        raise RequestError(told, field=field)
    arguments = each.get("arguments")
    if not isinstance(arguments, Mapping) or not arguments:
        raise RequestError(
            f"`{place}.arguments`: expected the arguments of a call; one without any shows nothing", field=field
        )
    if len(json.dumps(arguments, default=str)) > _LONGEST_EXAMPLE:
        raise RequestError(f"`{place}`: over {_LONGEST_EXAMPLE:,} characters: a short call shows as much", field=field)
    return ExampleCall(each["tool"], arguments)


def _until(given: Any) -> datetime | None:
    if not given:
        return None
    try:
        told = datetime.fromisoformat(str(given))
        return told if told.tzinfo is not None else told.astimezone()
    except ValueError:
        raise RequestError("`until`: expected a date or time, such as 2026-12-24", field="until") from None
