"""The base class of stores: checks, masking, search. A backend adds reading and writing."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Self

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from toolmem.errors import RequestError
from toolmem.models.calls import ToolCallResult, Verdict
from toolmem.models.decisions import Decision
from toolmem.models.guidance import Guidance
from toolmem.models.protocols import Store
from toolmem.models.records import Document, Hit, Record
from toolmem.models.tools import AppendResult, CallSums, LoggedCall, ToolRecord, Window
from toolmem.store import changes, storable
from toolmem.store.search import Query, Ranking, fuse, query_words, scope_of, unit_vector
from toolmem.store.storable import Prepared, RecordKey
from toolmem.text.masking import mask_call

CALLS_AT_ONCE = 200  # calls of the log to hold in memory; each may have megabytes
DECISIONS_READ = 2_000  # the newest decisions, among which filters choose

SeqsOf = Callable[[ToolRecord], list[int]]  # the calls of a tool that are to be read


class LogQuery(Struct):
    """A query of the call log, with the arguments of `Store.call_log`."""

    workspace: str
    limit: int
    newest: bool
    conversations: list[str] | None  # None: all
    tools: list[str] | None
    after: int = 0
    before: int | None = None
    contains: str = ""
    ids: Collection[str] | None = None


class BaseStore(Store):
    """What all stores share. `toolmem.models.protocols.Store` documents the methods."""

    _mask: bool  # whether secrets in calls are replaced before they are stored

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _mask_key(self) -> bytes | None:
        return self.secret_key() if self._mask else None

    # ------------------------------------------------------------ calls

    def windows(
        self,
        workspace: str,
        names: Sequence[str] | None = None,
        *,
        recent: int | None = None,
        seqs: Mapping[str, Sequence[int]] | None = None,
        type: Any = ToolCallResult,
    ) -> list[Window[Any]]:
        def chosen(record: ToolRecord) -> list[int]:
            return storable.window_seqs(record, recent, (seqs or {}).get(record.tool_name))

        return self._windows(workspace, names, chosen, type)

    def _windows(
        self, workspace: str, names: Sequence[str] | None, chosen: SeqsOf, kind: Any
    ) -> list[Window[Any]]:
        """Return tools' records, each with those of its calls whose seqs `chosen` returns.

        A backend overrides this method or `windows`.
        """
        raise NotImplementedError

    def call_log(
        self,
        workspace: str,
        *,
        conversation_id: str | Sequence[str] | None = None,
        tool_names: str | Sequence[str] | None = None,
        limit: int = 1000,
        newest: bool = False,
        **wanted: Any,
    ) -> list[LoggedCall]:
        conversations = None if conversation_id is None else storable.as_list(conversation_id)
        tools = None if tool_names is None else storable.as_list(tool_names)
        query = LogQuery(workspace, limit, newest, conversations, tools, **wanted)
        found: list[LoggedCall] = []
        while len(found) < limit:
            query.limit = limit - len(found)
            page, end = self._log_page(query)
            found = [*page, *found] if newest else [*found, *page]
            if end is None:
                break
            if newest:
                query.before = end
            else:
                query.after = end
        return found

    def _log_page(self, query: LogQuery) -> tuple[list[LoggedCall], int | None]:
        """At most `limit` calls of the log, and the position of the last one read; None: the end.

        A page may have fewer calls, or none, because damaged ones are left out. A backend overrides
        this method or `call_log`.
        """
        raise NotImplementedError

    def append_calls(
        self, workspace: str, calls: Sequence[ToolCallResult], keep: int
    ) -> dict[str, AppendResult]:
        storable.require_workspace(workspace)
        if keep < 1:
            raise RequestError(f"keep: expected a whole number of at least 1, got {keep}", "keep")
        now = datetime.now(UTC)  # the same for all tools, which keeps the order of calls in the log
        updates = {
            name: changes.append_update(workspace, name, prepared, keep, now)
            for name, prepared in storable.prepare(calls, self._mask_key()).items()
        }
        return self._commit(workspace, updates)

    @abstractmethod
    def _commit(self, workspace: str, updates: Mapping[str, changes.Update]) -> dict[str, Any]:
        """Read each tool, let its update decide, write all at once. Returns answers by tool."""

    def merge(self, workspace: str, window: Window[ToolCallResult], keep: int) -> AppendResult:
        storable.require_workspace(workspace)
        name, now = window.record.tool_name, datetime.now(UTC)
        prepared = storable.prepare(window.calls, self._mask_key()).get(name, Prepared([], []))
        append = changes.append_update(workspace, name, prepared, keep, now)

        def decide(found: changes.FoundTool) -> tuple[Any, AppendResult]:
            if found.record is not None:
                return append.decide(found)
            return changes.import_tool(workspace, window, prepared, keep, now)

        update = changes.Update(decide, append.ids)
        merged: AppendResult = self._commit(workspace, {name: update})[name]
        return merged

    def update_verdicts(
        self, workspace: str, tool: str, verdicts: Mapping[int, ToolCallResult]
    ) -> ToolRecord | None:
        key = self._mask_key() if verdicts else None
        given = {seq: mask_call(c, key) if key else c for seq, c in verdicts.items()}

        def decide(found: changes.FoundTool) -> tuple[changes.Commit | None, ToolRecord | None]:
            if found.record is None:
                return None, None
            window, now = found.window(list(given)), datetime.now(UTC)
            record = changes.with_all_sums(found.record, found.figures)
            commit = changes.with_verdicts(record, window, given, now)
            return commit, found.record if commit is None else commit.record

        record: ToolRecord | None = self._commit(workspace, {tool: changes.Update(decide)})[tool]
        return record

    def delete_calls(
        self,
        workspace: str,
        tool: str,
        ids: Collection[str],
        *,
        back: Sequence[str] = (),
        sums: CallSums | None = None,
    ) -> int:
        update = changes.delete_update(set(ids), back, sums, datetime.now(UTC))
        deleted: int = self._commit(workspace, {tool: update})[tool]
        return deleted

    def put_guidance(
        self,
        workspace: str,
        tool: str,
        guidance: Guidance,
        *,
        document: Document,
        expected_version: int,
    ) -> ToolRecord:
        def decide(found: changes.FoundTool) -> tuple[changes.Commit, changes.Commit]:
            now = datetime.now(UTC)
            commit = changes.with_guidance(found.record, guidance, document, expected_version, now)
            return commit, commit

        done: changes.Commit = self._commit(workspace, {tool: changes.Update(decide)})[tool]
        return replace(done.record, guidance=done.guidance)

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
        storable.require_workspace(workspace)
        try:
            body = bytes(value) if isinstance(value, msgspec.Raw) else msgspec.json.encode(value)
        except (ValueError, TypeError, RecursionError) as error:
            raise RequestError(f"value: {error}", field="value") from error
        return self._put(RecordKey(workspace, namespace, key), body, document, expected_version)

    @abstractmethod
    def _put(
        self, record_key: RecordKey, body: bytes, document: Document | None, expected: int | None
    ) -> Record:
        """Write a record. Raises Conflict if its version is not `expected` (None: any)."""

    def verdicts(self, workspace: str, keys: Sequence[str]) -> dict[str, Verdict]:
        found = self.get_many(workspace, [(storable.VERDICTS, key) for key in keys]).records
        return {each.key: each.read(Verdict) for each in found if each is not None}

    def put_verdicts(self, workspace: str, made: Mapping[str, Verdict]) -> None:
        with self.transaction():
            for key, verdict in made.items():
                self.put(workspace, storable.VERDICTS, key, verdict)

    def log_decision(self, workspace: str, decision: Decision) -> None:
        self.put(workspace, storable.DECISIONS, storable.decision_key(decision), decision)

    def decisions(
        self,
        workspace: str,
        *,
        ids: Collection[str] | None = None,
        conversation_id: str | None = None,
        tool_name: str | None = None,
        limit: int = 100,
    ) -> list[Decision]:
        read = storable.decoder(Decision)
        newest = self.list_records(workspace, storable.DECISIONS, newest=DECISIONS_READ)
        found = [
            each
            for each in (read(record.value) for record in newest)
            if (ids is None or each.id in ids)
            and conversation_id in (None, each.conversation_id)
            and tool_name in (None, each.tool_name)
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
        identity = None if vector is None else self.embedder()
        unit = None if identity is None else unit_vector(vector, identity)
        scope, words = scope_of(workspace, namespace), query_words(text)
        depth = max(100, 10 * limit)  # a key in the middle of both rankings may come first
        query = Query(scope, words, identity, unit, depth, keys)
        return fuse(self._rank(query), limit)

    @abstractmethod
    def _rank(self, query: Query) -> Ranking:
        """Rank keys by words and, if the query has a vector, by cosine."""
