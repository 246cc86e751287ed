"""What every store does the same: checking, masking, fusing; a backend adds reading and writing."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Self

from toolmem.errors import RequestError
from toolmem.models.calls import ToolCallResult, Verdict
from toolmem.models.decisions import Decision
from toolmem.models.protocols import Store
from toolmem.models.records import Document, Hit, Record
from toolmem.models.tools import AppendResult, ToolRecord, Window
from toolmem.store.search import Query, Ranking, depth_of, fuse, scope_of, unit_vector
from toolmem.store.storable import (
    DECISIONS,
    VERDICTS,
    Place,
    Prepared,
    decoder,
    encode_value,
    micros,
    prepare,
    require_workspace,
)
from toolmem.text.masking import mask_call

DECISIONS_READ = 2_000  # the newest: a filter looks at no others


class BaseStore(Store):
    """The documentation of the methods is that of the protocol."""

    _mask: bool  # replace secrets in calls before they are stored

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _mask_key(self) -> bytes | None:
        return self.secret_key() if self._mask else None

    # ------------------------------------------------------------ calls

    def append_calls(
        self, workspace: str, calls: Sequence[ToolCallResult], keep: int
    ) -> dict[str, AppendResult]:
        require_workspace(workspace)
        if keep < 1:
            raise RequestError(f"keep: expected a whole number of at least 1, got {keep}", "keep")
        return self._append(workspace, prepare(calls, self._mask_key()), keep)

    @abstractmethod
    def _append(
        self, workspace: str, prepared: Mapping[str, Prepared], keep: int
    ) -> dict[str, AppendResult]: ...

    def merge(self, workspace: str, window: Window[ToolCallResult], keep: int) -> AppendResult:
        require_workspace(workspace)
        calls = prepare(window.calls, self._mask_key())
        prepared = calls.get(window.record.tool_name, Prepared([], []))
        return self._take_over(workspace, window, prepared, keep)

    @abstractmethod
    def _take_over(
        self, workspace: str, window: Window[ToolCallResult], prepared: Prepared, keep: int
    ) -> AppendResult: ...

    def update_verdicts(
        self, workspace: str, tool: str, verdicts: Mapping[int, ToolCallResult]
    ) -> ToolRecord | None:
        if key := self._mask_key() if verdicts else None:
            verdicts = {seq: mask_call(call, key) for seq, call in verdicts.items()}
        return self._judge(workspace, tool, verdicts)

    @abstractmethod
    def _judge(
        self, workspace: str, tool: str, verdicts: Mapping[int, ToolCallResult]
    ) -> ToolRecord | None: ...

    # ------------------------------------------------------------ records

    def get(self, workspace: str, namespace: str, key: str) -> Record | None:
        return self.get_many(workspace, [(namespace, key)]).records[0]

    def put(
        self,
        workspace: str,
        namespace: str,
        key: str,
        value: Any,
        *,
        document: Document | None = None,
        expected_version: int | None = None,
    ) -> Record:
        require_workspace(workspace)
        body = encode_value(value, "value")
        return self._put(Place(workspace, namespace, key), body, document, expected_version)

    @abstractmethod
    def _put(
        self, place: Place, body: bytes, document: Document | None, expected: int | None
    ) -> Record:
        """Raises Conflict where the record is not at the version that was expected."""

    def verdicts(self, workspace: str, keys: Sequence[str]) -> dict[str, Verdict]:
        found = self.get_many(workspace, [(VERDICTS, key) for key in keys]).records
        return {each.key: each.read(Verdict) for each in found if each is not None}

    def put_verdicts(self, workspace: str, made: Mapping[str, Verdict]) -> None:
        with self.transaction():
            for key, verdict in made.items():
                self.put(workspace, VERDICTS, key, verdict)

    def log_decision(self, workspace: str, decision: Decision) -> None:
        key = f"{micros(decision.time):020d}-{decision.id}"  # sorted by time
        self.put(workspace, DECISIONS, key, decision)

    def decisions(
        self,
        workspace: str,
        *,
        ids: Collection[str] | None = None,
        conversation: str | None = None,
        tool: str | None = None,
        limit: int = 100,
    ) -> list[Decision]:
        read = decoder(Decision)
        newest = self.list_records(workspace, DECISIONS, newest=DECISIONS_READ)
        found = [
            each
            for each in (read(record.value) for record in newest)
            if (ids is None or each.id in ids)
            and conversation in (None, each.conversation_id)
            and tool in (None, each.tool_name)
        ]
        return found[-limit:] if limit > 0 else []

    # ------------------------------------------------------------ search

    def search(
        self,
        workspace: str,
        namespace: str | None,
        text: str,
        vector: Any,
        limit: int,
        *,
        keys: Collection[str] | None = None,
    ) -> list[Hit]:
        from toolmem.store.words import query_words

        identity = None if vector is None else self.embedder()
        unit = None if identity is None else unit_vector(vector, identity)
        scope, words = scope_of(workspace, namespace), query_words(text)
        query = Query(scope, words, identity, unit, depth_of(limit), keys)
        return fuse(self._rank(query), limit)

    @abstractmethod
    def _rank(self, query: Query) -> Ranking:
        """By words, and where there is a vector of unit length, by its cosine."""
