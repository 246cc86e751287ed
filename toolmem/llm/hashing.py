"""An embedder without a model: hashed character n-grams. Similar spelling gives similar vectors.

It finds `send_email` for "sending e-mails", but not for "post a letter". The hashing trick with
signs is that of Weinberger et al., "Feature Hashing for Large Scale Multitask Learning", ICML 2009.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING
from unicodedata import normalize

from toolmem.llm.encoder import unit_rows
from toolmem.models.records import EmbedderIdentity
from toolmem.text.forms import spaced

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

DIMENSION = 384
MODEL = "char-ngrams-2-4-v2"  # part of the identity; change it if the vectors change
_LENGTHS = (2, 3, 4)
_LONGEST = 20_000  # characters of a text that are read
_NOT_WORD = re.compile(r"[\W_]+")


class HashingEmbedder:
    """Implements `Embedder` without a model and without a network."""

    def __init__(self, dimension: int = DIMENSION) -> None:
        self.identity = EmbedderIdentity("hashing", MODEL, dimension)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """float32, shape (len(texts), dimension). Rows of unit length; zeros without a word."""
        import numpy as np

        rows = np.zeros((len(texts), self.identity.dimension))
        for row, text in enumerate(texts):
            for ngram, times in Counter(_ngrams(text[:_LONGEST])).items():
                digest = blake2b(ngram.encode(errors="replace"), digest_size=8).digest()
                number = int.from_bytes(digest)
                sign = 1.0 if number >> 63 else -1.0
                rows[row, number % self.identity.dimension] += sign * (1.0 + math.log(times))
        return unit_rows(rows)


def _ngrams(text: str) -> Iterator[str]:
    """The n-grams of each word, which include a space before and after it."""
    plain = _NOT_WORD.sub(" ", spaced(normalize("NFKC", text)).casefold())
    for word in plain.split():
        bounded = f" {word} "
        for length in _LENGTHS:
            for start in range(len(bounded) - length + 1):
                yield bounded[start : start + length]
