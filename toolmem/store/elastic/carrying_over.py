"""Indices of 0.1 become those of today: they get the fields that are new. From then on 0.1 refuses them."""

from __future__ import annotations

import logging

from toolmem.store.elastic.indices import add_fields, mark_as_newest
from toolmem.store.elastic.session import Session

logger = logging.getLogger("toolmem.store")


async def carry_over(session: Session) -> None:
    """Whoever opens such a store first does it; two at once do the same. What is stopped half way is done again."""
    await add_fields(session.connection, session.layout)
    await mark_as_newest(session.connection, session.layout)
