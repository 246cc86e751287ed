"""Claims about the core function: what the tool takes, as the calls show it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from toolmem.guidance.counted import values
from toolmem.guidance.counted.analysis import Analysis
from toolmem.guidance.counted.claims import claim
from toolmem.models import Claim, Subject

MAX_NAMED = 8  # parameters, keys or actions listed in one sentence; of further parameters the names, so many at most
MAX_CHOICES = 4  # values listed for one parameter
REGULAR = 0.9  # share of the calls that give a parameter which is called usual
_CHOICE = re.compile(r"[a-z][a-z _-]{0,30}|[A-Z][A-Z_]{2,30}")

Named = tuple[str, ...]  # (name, shape, what the shape holds): as in `Subject.named`


def usage(found: Analysis) -> Iterator[Claim]:
    """What calls give, those that worked where some did. Evidence: the calls that the sentence counts."""
    good = found.where(True)
    shown, which = (good, "successful") if good else (range(len(found.calls)), "all_calls")
    given = Counter(name for i in shown for name in found.seen[i].params)
    if not given:
        yield claim(found, "usage", Subject(form="usage_none"), len(shown), len(shown), shown)
        return
    regular = sorted(name for name, count in given.items() if count >= REGULAR * len(shown))
    rare = sorted(given.keys() - set(regular))
    if regular:
        held = [i for i in shown if found.seen[i].params.keys() >= set(regular)]
        yield _takes(found, "usage", regular, shown, held, which)
    if rare:
        held = [i for i in shown if not found.seen[i].params.keys().isdisjoint(rare)]
        yield _takes(found, "usage_optional", rare, shown, held, which)


def _takes(
    found: Analysis, form: str, names: Sequence[str], shown: Sequence[int], held: Sequence[int], which: str
) -> Claim:
    """The first MAX_NAMED parameters as they are given, and how many more there are; by name, where they are few."""
    more = names[MAX_NAMED:]
    subject = Subject(form=form, path=which, named=tuple(_described(found, name, shown) for name in names[:MAX_NAMED]))
    detail = {"more": len(more) or None, "names": more if len(more) <= MAX_NAMED else []}
    return claim(found, "usage", subject, len(held), len(shown), held, detail=detail)


def _described(found: Analysis, name: str, shown: Sequence[int]) -> Named:
    """A parameter with its choices, or with what its values look like."""
    given = [found.seen[i].params[name] for i in shown if name in found.seen[i].params]
    if name in found.text_kinds:
        return (name, found.text_kinds[name])
    if choices := _choices(given):
        return (name, "choices", *choices)
    if all(isinstance(value, dict) for value in given):
        keys = Counter(str(key) for value in given for key in value)
        return (name, "object_with", *_few(values.by_frequency(keys)))
    shapes = set(map(_shape, given))
    shape = next(iter(shapes)) if len(shapes) == 1 and not _one_code(given) else ()
    return (name, *shape)


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
    return values.by_frequency(counts)


def _shape(value: Any) -> Named:
    """(shape, what it holds); nothing where the shape says nothing."""
    if isinstance(value, str):
        shape = values.text_shape(value[: values.MAX_TEXT])
        return (shape,) if shape not in {"word", "words"} else ()
    if isinstance(value, list):
        keys = sorted({str(key) for item in value[:20] if isinstance(item, dict) for key in item})
        return ("list_of", *_few(keys)) if keys else ("array",)
    if isinstance(value, dict):
        return ("object_with", *_few(sorted(map(str, value))))
    return (values.type_name(value),)


def _few(names: Sequence[str]) -> Sequence[str]:
    """The first MAX_NAMED names, and a mark where there are more."""
    return [*names[:MAX_NAMED], *(["…"] if len(names) > MAX_NAMED else [])]
