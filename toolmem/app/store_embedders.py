"""Which embedder a store gets: the one that is configured, or the hashing one behind the packaged encoder.

A store knows whose vectors it holds, and those of two embedders are never compared: one that was made with hashing
goes on with it until `toolmem store reembed`. Where the encoder's package is missing, new stores begin with hashing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from toolmem.config.extras import is_installed
from toolmem.config.sockets import EMBEDDERS
from toolmem.errors import ConfigError, Conflict, StoreError
from toolmem.protocols import OF_THE_STORE, ChangesEmbedder, Embedder, MemoryStore
from toolmem.store.masked import unmasked

if TYPE_CHECKING:
    from toolmem.config.settings import EmbeddingSettings, Settings

logger = logging.getLogger("toolmem.app")
_TOLD = (OF_THE_STORE, "embedder", "told")  # the record that says: its user knows what `reembed` would bring


class StoreEmbedders:
    """The embedders of an app. `given`: instances, by section; `remote`: makes one that asks a server."""

    def __init__(
        self,
        settings: Settings,
        given: Mapping[str, Embedder],
        remote: Callable[[str, EmbeddingSettings], Embedder],
    ) -> None:
        self._settings = settings
        self._remote = remote
        self._made: dict[str, Embedder] = dict(given)
        self._settled: dict[str, Embedder] = {}  # by store, where it is not the configured one

    def all(self) -> list[Embedder]:
        return list(self._made.values())

    def configured(self, store: str = "default") -> Embedder:
        """The one that the configuration names for this store."""
        name = self._settings.vector_store[store].embedding_model
        if name not in self._made:
            self._made[name] = self._make(name, self._settings.embedding_model[name])
        return self._made[name]

    def of_store(self, store: str = "default") -> Embedder:
        """The one whose vectors the store takes, as far as it was opened."""
        return self._settled.get(store) or self.configured(store)

    async def settle(self, store: MemoryStore, name: str = "default", *, is_this: bool = True) -> Embedder:
        """Look whose vectors an open store holds, and answer the embedder to use with it.

        `is_this` False: it is not the store of that name, but configured like it.
        """
        configured = self.configured(name)
        fallback = await self._fallback(store, configured)
        before = self._settled.pop(name, None) if is_this else None
        if is_this and fallback is not None:
            self._settled[name] = fallback
        chosen = fallback or configured
        beneath = unmasked(store)
        if (fallback is not None or before is not None) and isinstance(beneath, ChangesEmbedder):
            beneath.take_vectors_of(chosen.identity)
        return chosen

    async def current(self, store: MemoryStore, name: str) -> Embedder:
        """The embedder of an open store. One on hashing is looked at again: another process may have renewed it."""
        if name in self._settled:
            await self.settle(unmasked(store), name)
            await self._tell_once(store, name)
        return self.of_store(name)

    async def _fallback(self, store: MemoryStore, configured: Embedder) -> Embedder | None:
        from toolmem.providers.packaged_encoder import NAME, PACKAGE

        beneath = unmasked(store)
        if configured.identity.name != NAME or not isinstance(beneath, ChangesEmbedder):
            return None
        held = await beneath.stored_embedder()
        if held is None and is_installed(PACKAGE):
            return None
        if held is not None and held.name != "hashing":
            return None
        from toolmem.providers.hashing import HashingEmbedder

        hashing = HashingEmbedder(384 if held is None else held.dimension)
        return hashing if held in (None, hashing.identity) else None

    async def renew(self, store: MemoryStore, name: str, progress: Any, *, is_this: bool = True) -> int:
        """Embed all texts of the store with the configured embedder; answers how many."""
        count = await store.reembed(self.configured(name), progress)
        if is_this:
            self._settled.pop(name, None)
        return count

    async def _tell_once(self, store: MemoryStore, name: str) -> None:
        """Once in the life of a store: that it was made with hashing, and what changes that."""
        from toolmem.providers.packaged_encoder import PACKAGE

        if name not in self._settled or not is_installed(PACKAGE):
            return
        try:
            if await store.get(*_TOLD) is not None:
                return
            await store.put(*_TOLD, {"told": "reembed"}, expected_version=0)
        except (Conflict, StoreError):  # another process told it, or nothing can be noted here
            return
        logger.warning(
            "this store was made with the hashing embedder, which finds what is spelled alike; `toolmem store reembed` "
            "once, and it finds what means the same (embedding_model.default.backend=hashing keeps it as it is)"
        )

    def _make(self, name: str, section: EmbeddingSettings) -> Embedder:
        from toolmem.app.own_backends import is_own, own_embedder

        if is_own(EMBEDDERS, section.backend):
            return own_embedder(name, section)
        if section.backend == "hashing":
            from toolmem.providers.hashing import HashingEmbedder

            return HashingEmbedder(section.params.dimensions or 384)
        if section.backend == "multilingual":
            from toolmem.providers.packaged_encoder import DIMENSION, PackagedEncoder

            if section.params.dimensions not in (None, DIMENSION):
                raise ConfigError(
                    f"embedding_model.{name}.params.dimensions: the vectors of multilingual have {DIMENSION} numbers; "
                    f"leave it out, or set embedding_model.{name}.backend=hashing"
                )
            return PackagedEncoder()
        if section.backend == "fastembed":
            from toolmem.providers.onnx_encoder import OnnxEncoder

            return OnnxEncoder(section.model_name, section.params.dimensions, f"embedding_model.{name}")
        return self._remote(name, section)
