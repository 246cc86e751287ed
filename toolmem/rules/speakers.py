"""Who puts a rule: known by the road that it comes by, never by a field of a request.

the agent's own tools, MCP              agent
JSON-RPC, HTTP, command line, SDK       program
a user's message heard in this process  user
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import get_args

from toolmem.light_models import Speaker

SPEAKERS: tuple[Speaker, ...] = get_args(Speaker)
AUTHORITY: dict[Speaker, int] = {"user": 2, "program": 1, "agent": 0}
_ROAD: ContextVar[Speaker] = ContextVar("toolmem_road", default="user")


@contextmanager
def heard_from(speaker: Speaker) -> Iterator[None]:
    """What runs inside, its tasks among it, cannot speak for anybody with more authority."""
    token = _ROAD.set(lesser(speaker, _ROAD.get()))
    try:
        yield
    finally:
        _ROAD.reset(token)


def lesser(one: Speaker, other: Speaker) -> Speaker:
    """The one with less authority."""
    return min(one, other, key=AUTHORITY.__getitem__)


def as_heard(speaker: Speaker) -> Speaker:
    """The speaker as the road of what runs allows."""
    return lesser(speaker, _ROAD.get())
