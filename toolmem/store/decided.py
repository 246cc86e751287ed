"""What every store of toolmem's own has in common: its writes are requests that `semantics` decides."""

from __future__ import annotations

import builtins
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from toolmem.errors import StoreError
from toolmem.store.codec import CALL_FAULTS, require_names, storable
from toolmem.store.records import PutRecord, check_verdicts, read_record, readable
from toolmem.store.searching import Asked, Legs, asked, fuse
from toolmem.store.semantics import AppendCalls, PutGuidance, Request, UpdateVerdicts
from toolmem.stored import Appended, Document, Hit, RawRecord, Record, StoredMemory, Where

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from toolmem.models import Guidance, ToolCallResult, ToolMemory, ToolRecord, Verdict
    from toolmem.protocols import Clock, EmbedderIdentity

T = TypeVar("T")


class DecidedStore:
    """A store that gives `_commit`: read what the request asks for, decide it, write the step whole or not at all."""

    _clock: Clock
    _embedder: EmbedderIdentity | None

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

    async def delete_memories(self, workspace: str, memory_ids: Sequence[str]) -> builtins.list[str]:
        raise NotImplementedError

    async def memories(
        self,
        workspace: str,
        tools: Sequence[str] | None,
        *,
        calls: bool = False,
        recent: int | None = None,
        seqs: Mapping[str, Sequence[int]] | None = None,
        known: Mapping[str, Hashable] | None = None,
    ) -> builtins.list[StoredMemory]:
        raise NotImplementedError

    async def put_verdicts(self, workspace: str, verdicts: Mapping[str, Verdict]) -> None:
        check_verdicts(verdicts)
        if verdicts:
            require_names(workspace)
            await self._put_verdicts(workspace, dict(verdicts))

    async def _put_verdicts(self, workspace: str, verdicts: Mapping[str, Verdict]) -> None:
        raise NotImplementedError

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
        if not (storable(workspace) and storable(namespace) and storable(key)):
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

    async def search(
        self,
        workspace: str,
        text: str,
        vector: NDArray[np.float32] | None,
        top_k: int,
        where: Where | None = None,
    ) -> builtins.list[Hit]:
        legs = await self._legs(workspace, asked(text, vector, top_k, where or Where(), self._embedder))
        return fuse(*legs, top_k)

    async def _legs(self, workspace: str, asked: Asked) -> Legs:
        """Raises EmbedderMismatch: the vector is another embedder's."""
        raise NotImplementedError

    async def workspaces(self) -> builtins.list[str]:
        return builtins.list((await self.info())["workspaces"])

    async def info(self) -> dict[str, Any]:
        raise NotImplementedError
