"""The vector of a text that is kept or asked for; an embedder that fails costs the vector, never the text."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

from toolmem.errors import ModelError
from toolmem.late import late_logger, late_pattern
from toolmem.stored import Document

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from toolmem.protocols import Embedder

logger = late_logger("toolmem.rules")

_WORD = late_pattern(r"[^\W_]+")
_SHORTEST = 4  # letters of which two forms of a word have to share the first ones
_LONGEST = 64


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
    """The text as a store finds it, with its vector where it has one."""
    return Document(text, await vector_of(text, embedder))


def by_spelling(embedder: Embedder | None) -> bool:
    """Whether its vectors compare letters, so that "trust" lies near "Rust"; others compare meanings."""
    return embedder is not None and embedder.identity.name == "hashing"


# The cosine that a text has to pass to have something in common with a query. Encoders of sentences put any two texts
# a little nearer than nothing: the best of 40 tools, all of them poor, has 0.14 on benchmarks/meaning.json.
_LEAST = {"multilingual": 0.15, "fastembed": 0.15}


def least_similarity(embedder: Embedder | None) -> float:
    """The cosine up to which two texts have nothing in common."""
    return 0.0 if embedder is None else _LEAST.get(embedder.identity.name, 0.0)


def share_a_word(one: str, other: str) -> bool:
    """Whether a word of the one is a word of the other, in another form or with its letters in another order.

    "deploying" and "deployment", "log" and "logs", "reprots" and "reports"; not "Rust" and "trust".
    """
    return not _forms(one).isdisjoint(_forms(other))


def _forms(text: str) -> set[str]:
    """Of each word: itself, its letters sorted, and what it begins with, at least half of it."""
    forms: set[str] = set()
    for word in set(_WORD.findall(unicodedata.normalize("NFKC", text).casefold())):
        stem = word[:_LONGEST].removesuffix("s") or word
        forms.add(stem)
        if len(stem) >= _SHORTEST:
            forms.add(" " + "".join(sorted(stem)))
            forms.update(stem[:end] for end in range(max(_SHORTEST, (len(stem) + 1) // 2), len(stem)))
    return forms
