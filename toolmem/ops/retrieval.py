"""Rank tools for a query by vector similarity and by shared words.

Scores are added rather than ranks. With ranks, a match of "the" alone would outweigh a clear
similarity (`benchmarks/meaning.py`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress

from toolmem.errors import Conflict
from toolmem.models.protocols import Embedder, Store
from toolmem.models.records import Document
from toolmem.models.tools import ToolSchema
from toolmem.store.search import index_words, query_words, search_by_meaning, unit_vector
from toolmem.text.forms import word_set

DESCRIPTIONS = "descriptions"  # the namespace of tools' descriptions; the keys are tool names
MAX_TOOLS = 1_000  # descriptions stored per request
MAX_DESCRIPTION = 1_000  # characters
_CANDIDATES = 200  # hits per namespace
_MAX_TEXT = 4_000  # characters of a text in which words are searched
_WORD_BONUS = 0.5  # added to the cosine of a tool that shares every weighted word
# Guidance says less about what a tool does than its description, so it must be clearly closer.
_PENALTY: dict[str | None, float] = {None: 0.05, DESCRIPTIONS: 0.0}

# Words of queries that say nothing about a tool.
_STOP_WORDS = word_set("""
a about all am an and any are as at be been but by can could did do does for from get give had has
have he her him his how i if in into is it its just let like make me my no not now of off on one or
our out please s she should so some than that the their them then there these they this those to too
up us was we were what when where which who why will with would you your
""")


def keep_descriptions(store: Store, workspace: str, schemas: Iterable[ToolSchema]) -> None:
    """Store new and changed descriptions of tools. The next query makes their vectors."""
    descriptions = {
        schema.name: " ".join(schema.description[:MAX_DESCRIPTION].split())
        for schema in list(schemas)[:MAX_TOOLS]
    }
    descriptions = {name: text for name, text in descriptions.items() if text}
    known = store.get_many(workspace, [(DESCRIPTIONS, name) for name in descriptions]).records
    with store.transaction():
        for (name, text), record in zip(descriptions.items(), known, strict=True):
            if record is None or record.read(str) != text:
                document = Document(f"{name}\n{text}")
                store.put(workspace, DESCRIPTIONS, name, text, document=document)


def fitting_tools(
    store: Store,
    workspace: str,
    query: str,
    embedder: Embedder,
    names: Sequence[str] | None,
    on_embedded: Callable[[int], None],
) -> list[str]:
    """Return the names of the tools that fit a query, best first. Raises ModelError.

    `names`: rank only these; None: all. `on_embedded`: called with the number of documents that
    were embedded so far.
    """
    known = store.tool_names(workspace)
    wanted = known if names is None else [name for name in known if name in set(names)]
    if not wanted:
        return []
    query_vector = unit_vector(embedder.embed([query])[0], embedder.identity)
    _keep_names(store, workspace, wanted)
    cosines: dict[str, float] = {}
    for namespace, penalty in _PENALTY.items():
        scope = (workspace, namespace)
        asked = (query, query_vector)
        hits = search_by_meaning(store, embedder, scope, asked, _CANDIDATES, wanted, on_embedded)
        for hit in hits:
            if hit.similarity is not None:
                cosines[hit.key] = max(cosines.get(hit.key, -1.0), hit.similarity - penalty)
    candidates = [name for name in wanted if name in cosines]
    shares = _shares(query, _texts(store, workspace, candidates))
    scores = {name: cosines[name] + _WORD_BONUS * shares[name] ** 2 for name in candidates}
    return sorted(candidates, key=lambda name: (-round(scores[name], 9), name))


def _keep_names(store: Store, workspace: str, names: Sequence[str]) -> None:
    """Store the names of tools without guidance and description, so that they get a vector too."""
    for namespace in _PENALTY:
        described = store.documents(workspace, namespace, names)
        names = [name for name in names if name not in described]
    for name in names:
        with suppress(Conflict):  # another writer described it meanwhile
            document = Document(name)
            store.put(workspace, DESCRIPTIONS, name, "", document=document, expected_version=0)


def _texts(store: Store, workspace: str, names: Collection[str]) -> dict[str, str]:
    """The name, the description and the guidance of each tool, as one text."""
    found = {name: name for name in names}
    for namespace in (DESCRIPTIONS, None):
        for name, document in store.documents(workspace, namespace, list(names)).items():
            found[name] += document.text[len(name) :][:_MAX_TEXT]
    return found


def _shares(query: str, texts: Mapping[str, str]) -> dict[str, float]:
    """The share of the query's words in each text, from 0 to 1. Rare words weigh more."""
    words = [word for word in query_words(query) if word not in _STOP_WORDS]
    found = {name: set(index_words(text)).intersection(words) for name, text in texts.items()}
    counts = Counter(word for words in found.values() for word in words)
    weights = {word: max(math.log((len(texts) + 1) / (counts[word] + 0.5)), 0.0) for word in words}
    whole = sum(weights.values()) or 1.0
    return {name: sum(weights[word] for word in words) / whole for name, words in found.items()}
