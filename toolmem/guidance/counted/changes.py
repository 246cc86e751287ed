"""What was changed between a call that failed and one that worked, as it may be shown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from toolmem.guidance.counted import values
from toolmem.guidance.counted.analysis import Analysis
from toolmem.guidance.counted.conditions import Observation
from toolmem.guidance.counted.shown_values import MAX_SHOWN, arguments, may_be_added, may_be_told

MAX_NAMES = 4  # parameters named in a list
_NOTHING = object()


class ShownChange(NamedTuple):
    """Arguments as JSON; parameters by name."""

    sent: str  # what was changed or left out later; "" for nothing
    lacked: tuple[str, ...]  # what was added later
    worked: str  # what stands there now, as far as it may be told; "" for nothing
    others: tuple[str, ...]  # another value of these worked: it is another entity's
    left_out: tuple[str, ...]
    size: int  # parameters that differ


def whole(seen: Observation) -> str:
    """All arguments of a call."""
    return arguments(seen.params)


def concerned(seen: Observation, message: str) -> str:
    """The arguments of a call that its error names, all where it names none."""
    named = {name: value for name, value in seen.params.items() if values.is_written_in(message, str(name))}
    return arguments(named or seen.params)


def change_between(found: Analysis, failure: int, success: int, message: str) -> ShownChange | None:
    """None where nothing differs that says anything: parameters that always change say nothing."""
    before, after = found.seen[failure], found.seen[success]
    pairs = list(_differing("", before.params, after.params, values.MAX_DEPTH))
    sent, worked, lacked, others, left_out = {}, {}, [], [], []
    moved = [new for _, old, new in pairs if old is _NOTHING]
    for path, old, new in pairs:
        if old is _NOTHING:
            lacked.append(path)
            same = any(new == gone for _, gone, there in pairs if there is _NOTHING)
            if same or may_be_added(path, new, message):
                worked[path] = new
            else:
                others.append(path)
        elif new is _NOTHING:
            sent[path] = old
            if not any(old == each for each in moved):
                left_out.append(path)
        elif path in before.texts or may_be_told(path, old, new, message):
            sent[path], worked[path] = old, new
        elif path not in found.restless or path in message or len(pairs) == 1:
            sent[path] = old
            others.append(path)
    if not pairs:
        return ShownChange(whole(before), (), "", (), (), 0)
    if not worked and not others and not left_out:
        return None
    return ShownChange(
        arguments(sent) if sent else "",
        tuple(lacked[:MAX_NAMES]) if not sent else (),
        arguments(worked, MAX_SHOWN) if worked else "",
        tuple(others[:MAX_NAMES]),
        tuple(left_out[:MAX_NAMES]),
        len(pairs),
    )


def _differing(prefix: str, old: dict[str, Any], new: dict[str, Any], depth: int) -> Iterator[tuple[str, Any, Any]]:
    """(path, value before, value after) of what is not alike; _NOTHING where a parameter is not given."""
    for name in dict.fromkeys([*old, *new]):
        a, b = old.get(name, _NOTHING), new.get(name, _NOTHING)
        if isinstance(a, dict) and isinstance(b, dict) and depth > 1:
            yield from _differing(f"{prefix}{name}.", a, b, depth - 1)
        elif a is _NOTHING or b is _NOTHING or a != b:
            yield f"{prefix}{name}", a, b
