"""Character n-grams, hashed: texts that share spellings lie near each other.

No model and no network: it finds `send_email` for "sending e-mails", and not for "post a letter". The hashing trick
with signs is that of Weinberger et al., "Feature Hashing for Large Scale Multitask Learning", ICML 2009. Only integer
arithmetic on code points decides where an n-gram goes, so every process and machine agrees.
"""

from __future__ import annotations

import asyncio
import re
import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING

from toolmem.errors import RequestError
from toolmem.protocols import EmbedderIdentity
from toolmem.readers.normal_form import normal_form

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MODEL = "char-ngrams-2-4-v1"  # part of the identity: a change of the vectors needs another name
_CHUNK_CHARACTERS = 200_000  # bounds the memory of one pass over a batch
_IN_THREAD_CHARACTERS = 20_000  # longer batches would hold up the event loop

_NOT_WORD = re.compile(r"[\W_]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


class HashingEmbedder:
    """`Embedder` without a model. `dimension`: length of the vectors, at least 8."""

    def __init__(self, dimension: int = 384) -> None:
        if dimension < 8:
            raise RequestError(f"dimension: expected at least 8, got {dimension!r}", field="dimension")
        self._dimension = dimension

    @property
    def identity(self) -> EmbedderIdentity:
        return EmbedderIdentity("hashing", MODEL, self._dimension)

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """float32, shape (len(texts), dimension), rows of unit length; a text without letters or digits: a zero row."""
        texts = list(texts)
        if sum(map(len, texts)) > _IN_THREAD_CHARACTERS:
            return await asyncio.to_thread(self.vectors, texts)
        return self.vectors(texts)

    def vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The same, at once."""
        import numpy as np

        from toolmem.providers.ngrams import unit_rows

        result = np.zeros((len(texts), self._dimension), dtype=np.float32)
        chunk: list[str] = []
        start = size = 0
        for i, text in enumerate(texts):
            chunk.append(normalized(text))
            size += len(chunk[-1])
            if size >= _CHUNK_CHARACTERS or i + 1 == len(texts):
                result[start : i + 1] = unit_rows(chunk, self._dimension)
                start, size, chunk = i + 1, 0, []
        return result


def normalized(text: str) -> str:
    """Lower-case words between single spaces, one space at either end: `Send_E-Mail` gives " send e mail "."""
    text = _HUMP.sub(" ", normal_form("NFKC", text)).casefold()
    if not text.isascii():
        # Marks belong to the letters before them (vowel signs of Indic scripts); for \w they do not.
        text = "".join(c if c.isalnum() or unicodedata.category(c)[0] == "M" else " " for c in text)
        return f" {' '.join(text.split())} "
    return f" {_NOT_WORD.sub(' ', text).strip()} "
