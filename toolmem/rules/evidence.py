"""Evidence that the user wants a rule to bind no longer, or to bind less.

To make a rule restricts an agent, and is believed. To lift, narrow, expire or delete one loosens, and where hooks, a
proxy or a session hold an agent to a store it needs evidence, which only these roads make:

typed      a plain sentence that the user typed to the agent, and that nothing pasted, quoted or machine-made stands in
answered   the host's own question to its user, which showed the rule
terminal   a question of toolmem's, answered in an interactive terminal that is not below an agent

Whatever comes without evidence is a proposal to lift, which the user is shown and accepts by name.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal, NamedTuple

from toolmem.readers.plain_text import plain_line

EvidenceKind = Literal["typed", "answered", "terminal"]
LONGEST_WORDS = 300  # characters of what was typed or answered


class UserEvidence(NamedTuple):
    """What the user did, where. It is kept with what it loosened, and told to the user at the next prompt."""

    kind: EvidenceKind
    words: str = ""  # what was typed, or answered; one line
    session: str = ""
    host: str = ""  # the agent's name, as its hooks are installed; "" at a terminal


def typed_here(message: str, session: str) -> UserEvidence:
    """The user typed it to this very process, in a session of its own."""
    return UserEvidence("typed", plain_line(message, LONGEST_WORDS), session)


_WANTED: ContextVar[UserEvidence | None] = ContextVar("toolmem_evidence", default=None)


@contextmanager
def wanted_by_user(evidence: UserEvidence | None) -> Iterator[None]:
    """What runs inside, its tasks among it, is what the user wants by this evidence."""
    token = _WANTED.set(evidence)
    try:
        yield
    finally:
        _WANTED.reset(token)


def evidence_here() -> UserEvidence | None:
    """What runs around this gives."""
    return _WANTED.get()
