"""Writes that are decided on what was read, and decided anew where somebody else wrote in between."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from toolmem.errors import Conflict

T = TypeVar("T")

ATTEMPTS = 100
_LONGEST_PAUSE = 0.02  # seconds between two of them


async def until_written(what: str, decide: Callable[[], Awaitable[T]], sleep: Callable[[float], Awaitable[None]]) -> T:
    """What `decide` answers: it reads, decides and writes, and raises Conflict where its write came too late."""
    for attempt in range(ATTEMPTS):
        if attempt:
            import random

            await sleep(random.uniform(0, _LONGEST_PAUSE))
        try:
            return await decide()
        except Conflict:
            continue
    raise Conflict(f"{what} changed {ATTEMPTS} times while one write waited; try again")
