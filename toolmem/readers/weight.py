"""What takes long to read is read in a thread, so that the event loop answers others meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextvars import ContextVar, copy_context
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
            elif isinstance(each, (list, tuple)):
                if len(each) > MOST_AT_ONCE:
                    return True
                inside.append(each)
            weight += 1
            if weight > MOST_AT_ONCE:
                return True
    return False


async def aside(value: Any, read: Callable[[], _T]) -> _T:
    """What `read` answers, which goes through `value`: in a thread where that is heavy."""
    if _ALONE.get() or not is_heavy(value):
        return read()
    import asyncio

    return await asyncio.to_thread(read)


_ALONE = ContextVar("toolmem_alone", default=False)


def alone() -> bool:
    """Does a coroutine run that `at_once` carries out, without an event loop?"""
    return _ALONE.get()


def at_once(work: Coroutine[Any, Any, _T]) -> _T:
    """What a coroutine answers that waits for nothing, without an event loop; `aside` reads in this thread."""
    context = copy_context()
    context.run(_ALONE.set, True)
    try:
        context.run(work.send, None)
    except StopIteration as end:
        answer: _T = end.value
        return answer
    work.close()
    raise RuntimeError("the coroutine waits for an event loop, and there is none")
