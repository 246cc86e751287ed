"""Which tools fit a query: by what they mean, and by the words they share with it where they share some.

Scores are added, not ranks: ranks of a text leg that found nothing but "the" would drown a clear meaning.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from toolmem.ops.tool_descriptions import NAMESPACE, embedded_descriptions
from toolmem.protocols import Embedder, MemoryStore
from toolmem.store.words import index_words, query_words
from toolmem.stored import Where

_LEG = 200  # candidates of each kind of text: guidance, descriptions
_READ = 4_000  # characters of a text that words are looked for in
_SHARED = 0.5  # what a tool that shares every telling word gains over its cosine; one that shares few gains hardly
_ENOUGH = 8  # candidates from which on the usual one says what a poor cosine is
_BY_WORDS = 0.25  # share of the telling words from which on a hit is no poor one, whatever its cosine

# Of each embedder that was measured (benchmarks/meaning.py): the cosine above that of the usual candidate, and the
# cosine where there are few of them, below which a fit is a poor one.
# What is learnt of calls says less what a tool does than its description; it counts where it is clearly nearer.
_BEHIND = {None: 0.05, NAMESPACE: 0.0}

# Words that tell nothing of what a tool does, in queries as people write them.
_UNTELLING_WORDS = (
    "a about all am an and any are as at be been but by can could did do does for from get give had has have "
    "he her him his how i if in into is it its just let like make me my no not now of off on one or our out "
    "please s she should so some than that the their them then there these they this those to too up us was we "
    "were what when where which who why will with would you your"
)
_UNTELLING = frozenset(_UNTELLING_WORDS.split())

_POOR = {"multilingual": (0.185, 0.23), "fastembed": (0.185, 0.23)}


@dataclass(frozen=True, slots=True)
class ToolFit:
    """One tool. `low`: a poor fit, the best there was; None where nobody measured what is poor for this embedder."""

    tool: str
    similarity: float | None
    score: float
    low: bool | None


async def fitting_tools(
    store: MemoryStore, workspace: str, query: str, embedder: Embedder, names: Sequence[str] | None
) -> list[ToolFit]:
    """Every tool of the workspace (or of `names`) that has a memory, up to some hundreds, best first.

    Raises ModelError.
    """
    vector = (await embedder.embed([query]))[0]
    known = await store.tool_names(workspace)
    wanted = known if names is None else [name for name in known if name in set(names)]
    if not wanted:
        return []
    await embedded_descriptions(store, workspace, embedder, wanted)
    cosines: dict[str, float] = {}
    keys = None if names is None else tuple(wanted)
    for where in (Where(keys=keys), Where(namespace=NAMESPACE, keys=keys)):
        for hit in await store.search(workspace, query, vector, _LEG, where):
            if hit.similarity is not None:
                cosines[hit.key] = max(cosines.get(hit.key, -1.0), hit.similarity - _BEHIND[where.namespace])
    candidates = [name for name in wanted if name in cosines]
    unread = [name for name in wanted if name not in cosines][:_LEG]  # nothing kept a vector of them
    candidates += unread
    texts = await _texts(store, workspace, candidates)
    if unread:
        rows = await embedder.embed([texts[name] for name in unread])
        cosines.update({name: float(row @ vector) for name, row in zip(unread, rows, strict=True)})
    shares = _shares(query, texts)
    return _ranked({name: cosines[name] for name in candidates}, shares, embedder.identity.name)


async def _texts(store: MemoryStore, workspace: str, names: Collection[str]) -> dict[str, str]:
    found = {name: name for name in names}
    for namespace in (NAMESPACE, None):
        for name, document in (await store.documents(workspace, namespace, list(names))).items():
            found[name] += document.text[len(name) :][:_READ]
    return found


def _shares(query: str, texts: Mapping[str, str]) -> dict[str, float]:
    """How much of what the query's words tell the text of each tool holds, in [0, 1]. Rare words tell more."""
    asked = [word for word in query_words(query) if word not in _UNTELLING]
    held = {name: set(index_words(text)).intersection(asked) for name, text in texts.items()}
    many = Counter(word for words in held.values() for word in words)
    telling = {word: math.log((len(texts) + 1) / (many[word] + 0.5)) for word in asked}
    telling = {word: max(weight, 0.0) for word, weight in telling.items()}
    whole = sum(telling.values()) or 1.0
    return {name: sum(telling[word] for word in words) / whole for name, words in held.items()}


def _ranked(cosines: Mapping[str, float], shares: Mapping[str, float], embedder: str) -> list[ToolFit]:
    usual = median(cosines.values())
    above, alone = _POOR.get(embedder, (None, None))
    fits = []
    for name, cosine in cosines.items():
        low = None
        if above is not None and alone is not None:
            poor = cosine - usual < above if len(cosines) >= _ENOUGH else cosine < alone
            low = poor and shares[name] < _BY_WORDS
        fits.append(ToolFit(name, cosine, cosine + _SHARED * shares[name] ** 2, low))
    return sorted(fits, key=lambda fit: (-round(fit.score, 9), fit.tool))
