"""Two nested values of JSON compared, the difference told in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_LONGEST = 160  # characters of a value that are shown


def differences(before: Any, after: Any, place: str = "") -> Iterator[str]:
    """One sentence for each place that came, went or changed; none where both are equal."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in sorted({*before, *after}):
            inside = f"{place} > {key}" if place else str(key)
            if key not in after:
                yield f"{inside}: gone (it was {_shown(before[key])})"
            elif key not in before:
                yield f"{inside}: new ({_shown(after[key])})"
            else:
                yield from differences(before[key], after[key], inside)
    elif isinstance(before, list) and isinstance(after, list) and _are_words(before) and _are_words(after):
        yield from (f"{place}: no longer has {each!r}" for each in before if each not in after)
        yield from (f"{place}: now has {each!r}" for each in after if each not in before)
        if before != after and sorted(before) == sorted(after):
            yield f"{place}: the same entries in another order, {_shown(after)}"
    elif before != after:
        yield f"{place}: was {_shown(before)}, is {_shown(after)}"


def _are_words(values: list[Any]) -> bool:
    return all(isinstance(value, str) for value in values)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}… ({len(text)} characters)"
