"""Sentences about the core function: what the tool takes and what it answers, as the calls show it."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from toolmem.guidance.counted import values
from toolmem.guidance.counted.analysis import Analysis
from toolmem.guidance.counted.sentences import Sentence
from toolmem.guidance.counted.wording import Wording, named
from toolmem.guidance.counted.worth import worth
from toolmem.models import ToolSchema

MAX_NAMED = 8  # parameters, keys or actions listed in one sentence; of further parameters the names, so many at most
MAX_CHOICES = 4  # values listed for one parameter
REGULAR = 0.9  # share of the calls that give a parameter which is called usual
MAX_PURPOSE = 200  # characters of a schema's description
_CHOICE = re.compile(r"[a-z][a-z _-]{0,30}|[A-Z][A-Z_]{2,30}")
MAX_OUTPUT = 20_000  # characters of an output that is parsed


def usage(found: Analysis, schema: ToolSchema | None, say: Wording) -> Iterator[Sentence]:
    """Purpose, parameters, actions and the form of answers. Evidence: the calls that the sentence counts."""
    if schema is not None and schema.description.strip():
        text = " ".join(schema.description.split())[:MAX_PURPOSE]
        yield Sentence("core", "schema", say.say("purpose", text=text), 0, 0, (), _worth("purpose", found))
    good = found.where(True)
    shown = good or list(range(len(found.calls)))
    which = say.say("successful" if good else "all_calls")
    yield from _parameters(found, shown, which, say)
    yield from _actions(found, say)
    yield from _answers(found, good, say)


def _regular(found: Analysis, shown: Sequence[int]) -> set[str]:
    counts = Counter(name for i in shown for name in found.seen[i].params)
    return {name for name, count in counts.items() if count >= REGULAR * len(shown)}


def _parameters(found: Analysis, shown: Sequence[int], which: str, say: Wording) -> Iterator[Sentence]:
    if not shown:
        return
    regular = _regular(found, shown)
    order = list(dict.fromkeys(name for i in shown for name in found.seen[i].params))
    if not order:
        text = say.say("usage_none", k=len(shown), n=len(shown))
        yield Sentence("core", "usage", text, len(shown), len(shown), shown, _worth("usage_none", found))
        return
    if regular:
        held = [i for i in shown if regular <= found.seen[i].params.keys()]
        text = say.say(
            "usage", params=_named(found, sorted(regular), shown, say), k=len(held), n=len(shown), which=which
        )
        yield Sentence("core", "usage", _tidy(text), len(held), len(shown), held, _worth("usage", found))
    rare = sorted(set(order) - regular)
    if rare:
        some = [i for i in shown if not found.seen[i].params.keys().isdisjoint(rare)]
        named = _named(found, rare, shown, say)
        text = say.say("usage_optional", params=named, k=len(some), n=len(shown), which=which)
        yield Sentence("core", "usage", _tidy(text), len(some), len(shown), some, _worth("usage_optional", found))


def _named(found: Analysis, names: Sequence[str], shown: Sequence[int], say: Wording) -> str:
    """The first MAX_NAMED parameters as they are given, and how many more there are; by name, where they are few."""
    params = say.join([_described(found, name, shown, say) for name in names[:MAX_NAMED]])
    more = [f"`{named(name)}`" for name in names[MAX_NAMED:]]
    if not more:
        return params
    key = "and_more_named" if len(more) <= MAX_NAMED else "and_more"
    return say.say(key, params=params, x=len(more), names=say.join(more))


def _described(found: Analysis, name: str, shown: Sequence[int], say: Wording) -> str:
    """A parameter with its choices, or with what its values look like."""
    given = [found.seen[i].params[name] for i in shown if name in found.seen[i].params]
    label = f"`{named(name) or 'input'}`"
    if name in found.text_kinds:
        return f"{label} ({say.shape(found.text_kinds[name])})"
    choices = _choices(given)
    if choices:
        return f"{label} ({' | '.join(choices) if len(choices) > 1 else say.say('always', x=choices[0])})"
    if all(isinstance(value, dict) for value in given):
        keys = Counter(str(key) for value in given for key in value)
        return f"{label} ({say.shape('object_with', _few(sorted(keys, key=lambda k: (-keys[k], k)), say))})"
    shapes = Counter(_shape(value, say) for value in given)
    shape, count = min(shapes.items(), key=lambda item: (-item[1], item[0]))
    return f"{label} ({shape})" if shape and count == len(given) and not _one_code(given) else label


def _one_code(given: Sequence[Any]) -> bool:
    """A single code tells no form: "4RK9T0" may be written like others or not."""
    codes = {value for value in given if isinstance(value, str) and values.text_shape(value).startswith("like:")}
    return len(codes) == 1


def _choices(given: Sequence[Any]) -> list[str]:
    """The values of a parameter that is chosen from a few: each was given several times."""
    if not all(isinstance(value, bool) or (isinstance(value, str) and _CHOICE.fullmatch(value)) for value in given):
        return []
    counts = Counter(repr(value) if isinstance(value, str) else str(value).lower() for value in given)
    if len(counts) > MAX_CHOICES or len(given) < 3 * len(counts):
        return []
    return [value for value, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]


def _shape(value: Any, say: Wording) -> str:
    if isinstance(value, str):
        shape = values.text_shape(value[: values.MAX_TEXT])
        return say.shape(shape) if shape not in {"word", "words"} else ""
    if isinstance(value, list):
        keys = sorted({str(key) for item in value[:20] if isinstance(item, dict) for key in item})
        return say.shape("list_of", _few(keys, say)) if keys else say.shape("array")
    if isinstance(value, dict):
        return say.shape("object_with", _few(sorted(map(str, value)), say))
    return say.shape(values.type_name(value))


def _actions(found: Analysis, say: Wording) -> Iterator[Sentence]:
    """What the calls do, where a statement, a program or a parameter chooses it."""
    actions = Counter(one.action for one in found.seen if one.action is not None)
    if len(actions) < 2:
        return
    first, k = min(actions.items(), key=lambda item: (-item[1], item[0]))
    if first.kind == "value":
        return  # told with the parameter already
    n = sum(first.path in one.params for one in found.seen)
    rest = [f"{action.detail} {count}" for action, count in actions.most_common(6) if action != first]
    rest = sorted(rest, key=lambda item: (-int(item.rsplit(" ", 1)[1]), item))[:4]
    text = say.say(
        "mix", path=first.path, top=first.detail, k=k, n=n, rest=say.say("mix_rest", x=say.join(rest)) if rest else ""
    )
    held = [i for i, one in enumerate(found.seen) if one.action == first]
    yield Sentence("core", "usage", text, k, n, held, _worth("mix", found))


def _answers(found: Analysis, good: Sequence[int], say: Wording) -> Iterator[Sentence]:
    """What successful calls answer, where most of them answer alike."""
    shapes: dict[str, list[int]] = {}
    for position in good:
        shapes.setdefault(_answer_shape(found.calls[position].output, say), []).append(position)
    if not shapes:
        return
    shape, held = min(shapes.items(), key=lambda item: (-len(item[1]), item[0]))
    if 2 * len(held) > len(good):
        text = say.say("answers", shape=shape, k=len(held), n=len(good))
        yield Sentence("core", "usage", text, len(held), len(good), held, _worth("answers", found))


def _answer_shape(output: str, say: Wording) -> str:
    stripped = output[: MAX_OUTPUT + 1].strip()
    if not stripped:
        return say.shape("nothing")
    if values.number_of(stripped) is not None:
        return say.shape("one_number")
    if stripped[0] in "{[" and len(stripped) <= MAX_OUTPUT:
        try:
            read = json.loads(stripped)
        except (ValueError, RecursionError):
            read = None
        if isinstance(read, dict):
            return say.shape("json_object", _keys(read, say))
        if isinstance(read, list):
            keyed = read and isinstance(read[0], dict)
            return say.shape("json_list_of", _keys(read[0], say)) if keyed else say.shape("json_list")
    return say.shape("many_lines" if "\n" in stripped else "one_line")


def _keys(read: dict[str, Any], say: Wording) -> str:
    return _few(list(map(str, read)), say)


def _few(names: Sequence[str], say: Wording) -> str:
    """The first MAX_NAMED names, and a mark where there are more."""
    return say.join([*map(named, names[:MAX_NAMED]), *(["…"] if len(names) > MAX_NAMED else [])])


def _worth(phrase: str, found: Analysis) -> float:
    return worth(phrase, failures=found.failures.bad)


def _tidy(text: str) -> str:
    return text.replace("  ", " ")
