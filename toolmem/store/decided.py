"""What every store of toolmem's own has in common: its writes are requests that `semantics` decides."""

from __future__ import annotations

import builtins
import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, TypeVar

from toolmem.errors import StoreError
from toolmem.protocols import EmbedderIdentity, MemoryStore
from toolmem.store.codec import CALL_FAULTS, require_names, unnameable
from toolmem.store.records import PutRecord, check_verdicts, read_record, readable
from toolmem.store.searching import Legs, SearchRequest, fuse, search_request
from toolmem.store.semantics import AppendCalls, PutGuidance, Request, UpdateVerdicts
from toolmem.stored import Appended, Document, Hit, RawRecord, Record, Where

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from toolmem.models import Guidance, ToolCallResult, ToolMemory, ToolRecord, Verdict
    from toolmem.protocols import Clock

logger = logging.getLogger("toolmem.store")

T = TypeVar("T")


class RecordStore:
    """Keyed records, in a store that gives `_put`, `_get` and `list_raw`."""

    _clock: Clock

    async def put(
        self,
        workspace: str,
        namespace: str,
        key: str,
        value: Mapping[str, Any],
        *,
        document: Document | None = None,
        expected_version: int | None = None,
    ) -> Record:
        record = PutRecord(self._clock.now(), workspace, namespace, key, value, document, expected_version)
        return read_record(await self._put(record))

    async def _put(self, record: PutRecord) -> RawRecord:
        """Decide on the version that is there, and write what was decided."""
        raise NotImplementedError

    async def get(self, workspace: str, namespace: str, key: str) -> Record | None:
        if unnameable(workspace, namespace, key):
            return None
        raw = await self._get(workspace, namespace, key)
        try:
            return None if raw is None else read_record(raw)
        except CALL_FAULTS as error:
            raise StoreError(
                f"workspace {workspace!r}: record {key!r} of {namespace!r} is damaged; put or delete it"
            ) from error

    async def _get(self, workspace: str, namespace: str, key: str) -> RawRecord | None:
        raise NotImplementedError

    async def list(self, workspace: str, namespace: str) -> builtins.list[Record]:
        return readable(await self.list_raw(workspace, [namespace]))

    async def list_raw(
        self, workspace: str, namespaces: Sequence[str] | None, *, prefix: str = "", key_prefix: str = ""
    ) -> builtins.list[RawRecord]:
        raise NotImplementedError


class DecidedStore(RecordStore, MemoryStore):
    """A store that gives `_commit`: read what the request asks for, decide it, write the step whole or not at all."""

    _embedder: EmbedderIdentity | None

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # -- tool memories

    async def _commit(self, request: Request[T]) -> T:
        raise NotImplementedError

    async def append_calls(self, workspace: str, tool: str, calls: Sequence[ToolCallResult], keep: int) -> Appended:
        given = list(calls)
        return await self._commit(AppendCalls(self._clock.now(), workspace, tool, lambda: given, keep))

    async def put_guidance(
        self, workspace: str, tool: str, guidance: Guidance, *, document: Document, guidance_version: int
    ) -> ToolRecord:
        now = self._clock.now()
        return await self._commit(PutGuidance(now, workspace, tool, guidance, document, guidance_version))

    async def update_verdicts(
        self, workspace: str, tool: str, verdicts: Mapping[int, ToolCallResult]
    ) -> ToolRecord | None:
        return await self._commit(UpdateVerdicts(self._clock.now(), workspace, tool, verdicts))

    async def merge(
        self, workspace: str, memory: ToolMemory, keep: int, *, document: Document | None = None
    ) -> Appended:
        from toolmem.store.merging import Merge

        return await self._commit(Merge(self._clock.now(), workspace, memory, keep, document))

    async def records(self, workspace: str, tools: Sequence[str] | None) -> builtins.list[ToolRecord]:
        return [stored.record for stored in await self.memories(workspace, tools, recent=0)]

    async def delete_tools(self, workspace: str) -> int:
        ids = [record.memory_id for record in await self.records(workspace, None)]
        return len(await self.delete_memories(workspace, ids))

    # -- verdict cache

    async def put_verdicts(self, workspace: str, verdicts: Mapping[str, Verdict]) -> None:
        check_verdicts(verdicts)
        if verdicts:
            require_names(workspace)
            await self._put_verdicts(workspace, dict(verdicts))

    async def _put_verdicts(self, workspace: str, verdicts: Mapping[str, Verdict]) -> None:
        raise NotImplementedError

    # -- search

    async def search(
        self,
        workspace: str,
        text: str,
        vector: NDArray[np.float32] | None,
        top_k: int,
        where: Where | None = None,
    ) -> builtins.list[Hit]:
        legs = await self._legs(workspace, search_request(text, vector, top_k, where or Where(), self._embedder))
        return fuse(*legs, top_k)

    async def _legs(self, workspace: str, request: SearchRequest) -> Legs:
        """Raises EmbedderMismatch: the vector is another embedder's."""
        raise NotImplementedError

    # -- the store itself

    async def workspaces(self) -> builtins.list[str]:
        return builtins.list((await self.info())["workspaces"])
