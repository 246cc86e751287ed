"""From a text to the words that the text leg of a search compares, the same for every backend.

The engines' own tokenizers differ (SQLite's `unicode61` keeps a run of Chinese as one word, Lucene's splits it into
single characters), so texts and queries are cut here and handed over as plain words between spaces:

* NFKC and casefold; accents of Latin, Greek and Cyrillic are dropped;
* identifiers count whole and in parts: `send_email` and `sendEmail` both give `sendemail`, `send`, `email`;
* scripts written without spaces give overlapping pairs of characters; single characters are indexed beside them,
  and asked for where the query has only one.
"""

from __future__ import annotations

from collections.abc import Iterator

from toolmem.late import late_pattern
from toolmem.readers.normal_form import normal_form

MAX_QUERY_WORDS = 128
MAX_WORD_CHARACTERS = 64  # longer ones (base64, hashes) are cut

_RUN = late_pattern(r"[^\W_](?:[\w\u0300-\u036f]*[^\W_])?")
_HUMP = late_pattern(r"(?<=[^\W\dA-Z_])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_ACCENTS = late_pattern("[\u0300-\u036f]")
# Kana, Bopomofo, Han, Hangul; Thai, Lao, Burmese, Khmer
_UNSPACED = late_pattern(
    "([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3100-\u312f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]+)"
)


def index_words(text: str) -> list[str]:
    """The words under which a text is found, in order, with repetitions."""
    return list(_words(text, singles=True))


def query_words(text: str) -> list[str]:
    """The different words to look for; at most MAX_QUERY_WORDS."""
    return list(dict.fromkeys(_words(text, singles=False)))[:MAX_QUERY_WORDS]


def _words(text: str, singles: bool) -> Iterator[str]:
    for run in _RUN.findall(normal_form("NFKC", text)):
        parts = [part for piece in run.split("_") for part in _HUMP.split(piece) if part]
        if len(parts) > 1 and not _UNSPACED.search(run):
            yield _folded("".join(parts))
        for part in parts:
            yield from _split_by_script(part, singles)


def _split_by_script(part: str, singles: bool) -> Iterator[str]:
    for piece in _UNSPACED.split(part):
        if not piece:
            continue
        if not _UNSPACED.match(piece):
            yield _folded(piece)
        elif len(piece) == 1:
            yield piece
        else:
            yield from (piece[i : i + 2] for i in range(len(piece) - 1))
            if singles:
                yield from piece


def _folded(word: str) -> str:
    if not word.isascii():
        word = normal_form("NFC", _ACCENTS.sub("", normal_form("NFKD", word)))
    return word.casefold()[:MAX_WORD_CHARACTERS]
