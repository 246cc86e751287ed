"""What takes long to read is read in a thread, so that the event loop answers others meanwhile."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

_T = TypeVar("_T")

MOST_AT_ONCE = 10_000  # values, or as many times _CHARACTERS of text: some milliseconds of work
_CHARACTERS = 20


def is_heavy(value: Any) -> bool:
    """Whether a JSON value holds more than is read at once. Looks at no more of it than that."""
    weight = 0
    inside: list[Iterable[Any]] = [(value,)]
    while inside:
        for each in inside.pop():
            if isinstance(each, str):
                weight += len(each) // _CHARACTERS
            elif isinstance(each, Mapping):
                inside.append(each.values())
                weight += sum(map(len, map(str, each))) // _CHARACTERS if len(each) < MOST_AT_ONCE else len(each)
            elif isinstance(each, list | tuple):
                inside.append(each)
            weight += 1
            if weight > MOST_AT_ONCE:
                return True
    return False


async def aside(value: Any, read: Callable[[], _T]) -> _T:
    """What `read` answers, which goes through `value`: in a thread where that is heavy."""
    return await _in_thread(read) if is_heavy(value) and "asyncio" in sys.modules else read()


async def _in_thread(read: Callable[[], _T]) -> _T:
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:  # nobody else is there to be answered
        return read()
    return await asyncio.to_thread(read)
