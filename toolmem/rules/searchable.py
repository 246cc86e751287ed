"""The vector of a text that is kept or asked for; an embedder that fails costs the vector, never the text."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from toolmem.errors import ModelError
from toolmem.ports import Document, Embedder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

logger = logging.getLogger("toolmem.rules")


async def vector_of(text: str, embedder: Embedder | None) -> NDArray[np.float32] | None:
    """None without an embedder, or where it failed."""
    if embedder is None:
        return None
    try:
        rows = await embedder.embed([text])
    except ModelError as error:
        logger.warning("a text of %d characters has no vector, words alone will find it: %s", len(text), error)
        return None
    vector: NDArray[np.float32] = rows[0]
    return vector


async def document_of(text: str, embedder: Embedder | None) -> Document:
    return Document(text, await vector_of(text, embedder))
