"""DecidedStore, the base class of toolmem's own stores: each write is a request that `semantics` decides."""

from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, TypeVar

from toolmem.errors import RequestError, StoreError
from toolmem.late import late_logger
from toolmem.protocols import EmbedderIdentity, MemoryStore
from toolmem.store.codec import require_names, require_unicode
from toolmem.store.keyed import RecordStore
from toolmem.store.searching import Legs, SearchRequest, fuse, search_request
from toolmem.store.semantics import AppendCalls, PutGuidance, Request, UpdateVerdicts
from toolmem.stored import Appended, Document, Hit, LoggedCall, LoggedDecision, Stamped, Where

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from toolmem.models import Guidance, ToolCallResult, ToolMemory, ToolRecord, Verdict

logger = late_logger("toolmem.store")

T = TypeVar("T")


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

    # -- logs

    async def call_log(self, *asked: Any, **named: Any) -> builtins.list[LoggedCall]:
        raise self._without("call_log")

    async def log_decision(self, *asked: Any, **named: Any) -> None:
        raise self._without("log_decision")

    async def decisions(self, *asked: Any, **named: Any) -> builtins.list[LoggedDecision]:
        raise self._without("decisions")

    async def read_stamped(self, *asked: Any, **named: Any) -> Stamped:
        raise self._without("read_stamped")

    def _without(self, method: str) -> StoreError:
        return StoreError(f"{type(self).__name__} has no `{method}`, which the guard and the call log need")

    # -- verdict cache

    async def put_verdicts(self, workspace: str, verdicts: Mapping[str, Verdict]) -> None:
        for key, verdict in verdicts.items():
            try:
                for text in (key, verdict.summary, verdict.evaluation, verdict.error_class):
                    require_unicode(text)
            except ValueError as error:
                raise RequestError(f"verdicts[{key!r}]: {error}", field="verdicts") from error
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

    async def stored_embedder(self) -> EmbedderIdentity | None:
        """Whose vectors the store holds; None where it holds none yet."""
        held = (await self.info())["embedder"]
        return None if held is None else EmbedderIdentity(**held)

    def take_vectors_of(self, embedder: EmbedderIdentity) -> None:
        """From now on vectors come from this one."""
        self._embedder = embedder

    async def workspaces(self) -> builtins.list[str]:
        return builtins.list((await self.info())["workspaces"])


def read_verdict(found: dict[str, Verdict], key: str, fields: Any) -> None:
    """Add the cached verdict of these fields. A damaged one is logged and left out: it is judged again."""
    from toolmem.models import Verdict

    try:
        found[key] = Verdict.model_validate(fields)
    except ValueError:
        logger.error("the cached verdict %r is damaged and left out", key)
