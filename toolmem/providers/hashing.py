"""The embedder without a model: hashed character n-grams, so that texts that share spellings lie near each other.

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

_NGRAM_LENGTHS = (2, 3, 4)
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

        result = np.zeros((len(texts), self._dimension), dtype=np.float32)
        chunk: list[str] = []
        start = size = 0
        for i, text in enumerate(texts):
            chunk.append(normalized(text))
            size += len(chunk[-1])
            if size >= _CHUNK_CHARACTERS or i + 1 == len(texts):
                result[start : i + 1] = _unit_rows(chunk, self._dimension)
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


def _unit_rows(texts: Sequence[str], dimension: int) -> NDArray[np.float32]:
    """Of texts that are `normalized`: float32, shape (len(texts), dimension), rows of unit length or zero."""
    import numpy as np

    text_of, ngram = _ngrams(texts)
    # Distinct n-grams of each text and how often it holds them: sort by (text, n-gram), cut at the changes.
    order = np.lexsort((ngram, text_of))
    text_of, ngram = text_of[order], ngram[order]
    first = np.ones(len(ngram), dtype=bool)
    first[1:] = (ngram[1:] != ngram[:-1]) | (text_of[1:] != text_of[:-1])
    starts = np.flatnonzero(first)
    times = np.diff(np.append(starts, len(ngram)))
    ngram, text_of = ngram[starts], text_of[starts]
    sign = np.where(ngram >> np.uint64(63), 1.0, -1.0)
    bucket = (ngram % np.uint64(dimension)).astype(np.int64)
    sums = np.bincount(
        text_of * dimension + bucket,
        weights=sign * (1.0 + np.log(times)),
        minlength=len(texts) * dimension,
    )
    # Without any n-gram, bincount forgets about the weights and counts in integers.
    rows = sums.astype(np.float64).reshape(len(texts), dimension)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    lengths[lengths == 0] = 1.0
    unit: NDArray[np.float32] = (rows / lengths).astype(np.float32)
    return unit


def _ngrams(texts: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """For each n-gram that lies within a word (its bounding spaces included): the text it is from, and its hash."""
    import numpy as np

    codes = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), dtype="<u4").astype(np.uint32)
    text_of = np.repeat(np.arange(len(texts)), [len(text) for text in texts])
    space = codes == 32
    found_texts, found_hashes = [], []
    for length in _NGRAM_LENGTHS:
        count = max(len(codes) - length + 1, 0)
        hashes = np.full(count, length, dtype=np.uint64)
        within = np.ones(count, dtype=bool)
        empty = np.ones(count, dtype=bool)
        for offset in range(length):
            part = slice(offset, offset + count)
            hashes = (hashes ^ codes[part]) * np.uint64(0x100000001B3)
            empty &= space[part]
            if 0 < offset < length - 1:
                within &= ~space[part]
        chosen = within & ~empty
        found_texts.append(text_of[:count][chosen])
        found_hashes.append(_mixed(hashes[chosen]))
    return np.concatenate(found_texts), np.concatenate(found_hashes)


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finalizer of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): every bit depends on every bit."""
    import numpy as np

    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
