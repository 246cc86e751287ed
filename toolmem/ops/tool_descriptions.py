"""What agents' catalogues say that their tools do: kept beside the tools, so that a search finds what they mean.

Kept without a vector: the first search embeds what lacks one, so that adding a call never waits for an encoder.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from toolmem.errors import Conflict, StoreError
from toolmem.stored import Document

if TYPE_CHECKING:
    from toolmem.light_models import ToolSchema
    from toolmem.protocols import Embedder, MemoryStore

NAMESPACE = "declared-tools"  # keys: names of tools
_MOST = 1_000  # tools whose descriptions one request may bring
_LONGEST = 1_000  # characters of one


async def note_descriptions(store: MemoryStore, workspace: str, schemas: Iterable[ToolSchema]) -> None:
    """Keep the descriptions that are new or changed."""
    for schema in list(schemas)[:_MOST]:
        description = " ".join(schema.description[:_LONGEST].split())
        if not description:
            continue
        known = await store.get(workspace, NAMESPACE, schema.name)
        if known is not None and known.value.get("description") == description:
            continue
        document = Document(f"{schema.name}\n{description}")
        version = 0 if known is None else known.version
        value = {"description": description}
        try:
            await store.put(workspace, NAMESPACE, schema.name, value, document=document, expected_version=version)
        except Conflict:  # another process keeps it at this moment
            continue


async def embedded_descriptions(store: MemoryStore, workspace: str, embedder: Embedder, names: Collection[str]) -> None:
    """Give those of these tools that have no vector yet theirs, in one batch. Raises ModelError."""
    held = await store.documents(workspace, NAMESPACE, list(names))
    lacking = {name: document.text for name, document in held.items() if document.vector is None}
    if not lacking:
        return
    vectors = await embedder.embed(list(lacking.values()))
    for (name, text), vector in zip(lacking.items(), vectors, strict=True):
        record = await store.get(workspace, NAMESPACE, name)
        if record is None:
            continue
        try:
            await store.put(
                workspace,
                NAMESPACE,
                name,
                record.value,
                document=Document(text, vector),
                expected_version=record.version,
            )
        except Conflict:  # it was described anew meanwhile: the next search embeds that
            continue
        except StoreError:  # this store cannot be written
            return
