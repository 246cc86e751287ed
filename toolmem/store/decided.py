"""What every store of toolmem's own has in common: its writes are requests that `semantics` decides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from toolmem.models import Guidance, ToolCallResult, ToolMemory, ToolRecord
from toolmem.protocols import Clock
from toolmem.store.semantics import AppendCalls, PutGuidance, Request, UpdateVerdicts
from toolmem.stored import Appended, Document

T = TypeVar("T")


class DecidedStore:
    """A store that gives `_commit`: read what the request asks for, decide it, write the step whole or not at all."""

    _clock: Clock

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
