"""Which tools fit a query: by meaning, and by the words that they share with it.

Scores are added, not ranks: the ranks of words that found nothing but "the" would drown a clear
meaning (`benchmarks/meaning.py`).
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
from toolmem.store.search import embed_missing, index_words, query_words, unit_vector
from toolmem.text.forms import word_set

DESCRIPTIONS = "descriptions"  # what agents were told that their tools do; keys: names of tools
MAX_TOOLS = 1_000  # whose descriptions one request may bring
MAX_DESCRIPTION = 1_000  # characters
_CANDIDATES = 200  # of each kind of text
_READ = 4_000  # characters of a text in which words are looked for
_SHARED = 0.5  # what a tool that shares every telling word gains over its cosine
# Guidance says less of what a tool does than its description; it counts where it is clearly nearer.
_BEHIND: dict[str | None, float] = {None: 0.05, DESCRIPTIONS: 0.0}

# Words of queries that tell nothing of what a tool does.
_UNTELLING = word_set("""
a about all am an and any are as at be been but by can could did do does for from get give had has
have he her him his how i if in into is it its just let like make me my no not now of off on one or
our out please s she should so some than that the their them then there these they this those to too
up us was we were what when where which who why will with would you your
""")


def keep_descriptions(store: Store, workspace: str, schemas: Iterable[ToolSchema]) -> None:
    """Keep what is new. Their vectors are made when a query first needs them."""
    told = {
        schema.name: " ".join(schema.description[:MAX_DESCRIPTION].split())
        for schema in list(schemas)[:MAX_TOOLS]
    }
    told = {name: text for name, text in told.items() if text}
    known = store.get_many(workspace, [(DESCRIPTIONS, name) for name in told]).records
    with store.transaction():
        for (name, text), record in zip(told.items(), known, strict=True):
            if record is None or record.read(str) != text:
                document = Document(f"{name}\n{text}")
                store.put(workspace, DESCRIPTIONS, name, text, document=document)


def fitting_tools(
    store: Store,
    workspace: str,
    query: str,
    embedder: Embedder,
    names: Sequence[str] | None,
    on_embedded: Callable[[int], None] | None = None,
) -> list[str]:
    """The tools of a workspace (or of `names`), best first. Raises ModelError.

    `on_embedded` is told how many documents got their vectors so far.
    """
    known = store.tool_names(workspace)
    wanted = known if names is None else [name for name in known if name in set(names)]
    if not wanted:
        return []
    identity = embedder.identity
    store.use_embedder(identity)
    vector = unit_vector(embedder.embed([query])[0], identity)
    _keep_names(store, workspace, wanted)
    cosines: dict[str, float] = {}
    for namespace, behind in _BEHIND.items():
        embed_missing(store, embedder, workspace, namespace, on_embedded)
        hits = store.search(workspace, namespace, query, vector, _CANDIDATES, keys=wanted)
        for hit in hits:
            if hit.similarity is not None:
                cosines[hit.key] = max(cosines.get(hit.key, -1.0), hit.similarity - behind)
    candidates = [name for name in wanted if name in cosines]
    shares = _shares(query, _texts(store, workspace, candidates))
    scores = {name: cosines[name] + _SHARED * shares[name] ** 2 for name in candidates}
    return sorted(candidates, key=lambda name: (-round(scores[name], 9), name))


def _keep_names(store: Store, workspace: str, names: Sequence[str]) -> None:
    """A document for each tool of which only the name is known, so that its vector is kept too."""
    for namespace in _BEHIND:
        held = store.documents(workspace, namespace, names)
        names = [name for name in names if name not in held]
    for name in names:
        with suppress(Conflict):  # it was described meanwhile
            document = Document(name)
            store.put(workspace, DESCRIPTIONS, name, "", document=document, expected_version=0)


def _texts(store: Store, workspace: str, names: Collection[str]) -> dict[str, str]:
    """Name, description and guidance of each tool."""
    found = {name: name for name in names}
    for namespace in (DESCRIPTIONS, None):
        for name, document in store.documents(workspace, namespace, list(names)).items():
            found[name] += document.text[len(name) :][:_READ]
    return found


def _shares(query: str, texts: Mapping[str, str]) -> dict[str, float]:
    """How much of the query's words each text holds, from 0 to 1. Rare words tell more."""
    asked = [word for word in query_words(query) if word not in _UNTELLING]
    held = {name: set(index_words(text)).intersection(asked) for name, text in texts.items()}
    many = Counter(word for words in held.values() for word in words)
    telling = {word: max(math.log((len(texts) + 1) / (many[word] + 0.5)), 0.0) for word in asked}
    whole = sum(telling.values()) or 1.0
    return {name: sum(telling[word] for word in words) / whole for name, words in held.items()}
