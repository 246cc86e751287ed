"""Who puts a rule: known by the way that it comes in, never by a field of a request.

the agent's own tools, MCP              agent
JSON-RPC, HTTP, command line, SDK       program
a user's message read in this process   user
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from toolmem.light_models import Speaker

AUTHORITY: dict[Speaker, int] = {"user": 2, "program": 1, "agent": 0}
_HIGHEST: ContextVar[Speaker] = ContextVar("toolmem_speaker", default="user")


@contextmanager
def speaking_as(speaker: Speaker) -> Iterator[None]:
    """What runs inside, its tasks among it, cannot speak for anybody with more authority."""
    token = _HIGHEST.set(lesser(speaker, _HIGHEST.get()))
    try:
        yield
    finally:
        _HIGHEST.reset(token)


def lesser(one: Speaker, other: Speaker) -> Speaker:
    """The one with less authority."""
    return min(one, other, key=AUTHORITY.__getitem__)


def allowed_speaker(speaker: Speaker) -> Speaker:
    """The speaker as what runs around this allows."""
    return lesser(speaker, _HIGHEST.get())
