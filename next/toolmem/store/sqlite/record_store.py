"""Records, decisions, verdicts and search of one SQLite file."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from toolmem.models.calls import Verdict
from toolmem.models.decisions import Decision
from toolmem.models.records import (
    Document,
    EmbedderIdentity,
    Hit,
    Record,
    Snapshot,
    TextRow,
)
from toolmem.store import storable
from toolmem.store.search import depth_of, fuse, unit_vector
from toolmem.store.sqlite import records, search, tools
from toolmem.store.sqlite.database import Database, now
from toolmem.store.sqlite.search import Scope

if TYPE_CHECKING:
    import apsw
    import numpy as np
    from numpy.typing import NDArray


class RecordStore:
    """The part of `SqliteStore` that knows nothing of tools and calls."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._vectors = search.VectorCache()

    # ------------------------------------------------------------ records

    def get(self, workspace: str, namespace: str, key: str) -> Record | None:
        """None where there is none."""
        with self._database.read() as db:
            return records.get(db, tools.workspace_id(db, workspace), namespace, key)

    def get_many(self, workspace: str, keys: Sequence[tuple[str, str]]) -> Snapshot:
        """Records and the stamp of the rules, of one moment. `keys`: namespace and key."""
        with self._database.read() as db:
            number = tools.workspace_id(db, workspace)
            found = [records.get(db, number, *place) for place in keys]
            return Snapshot(records.rules_stamp(db, number), found)

    def list_records(
        self,
        workspace: str,
        namespace: str | None = None,
        *,
        prefix: str = "",
        key_prefix: str = "",
        newest: int | None = None,
    ) -> list[Record]:
        """Of one namespace, or of all whose name begins with `prefix`."""
        with self._database.read() as db:
            number = tools.workspace_id(db, workspace)
            return records.list_records(db, number, namespace, prefix, key_prefix, newest)

    def namespaces(self, workspace: str) -> list[str]:
        """Sorted, without the store's own."""
        with self._database.read() as db:
            return records.namespaces(db, tools.workspace_id(db, workspace))

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
        """`expected_version` 0: only where there is none; None: whatever is there. Or Conflict."""
        storable.require_workspace(workspace)
        body = storable.encode_value(value, "value")
        with self._database.write() as db:
            number = tools.make_workspace(db, workspace)
            made = records.put(db, number, namespace, key, body, expected_version, now())
            scope = Scope(number, namespace)
            if document is not None:
                search.put_document(db, scope, key, document)
            elif made.version > 1:
                search.delete_document(db, scope, key)
            return made

    def delete(self, workspace: str, namespace: str, key: str) -> bool:
        """Whether there was one."""
        with self._database.write() as db:
            number = tools.workspace_id(db, workspace)
            if number is None or not records.delete(db, number, namespace, key):
                return False
            search.delete_document(db, Scope(number, namespace), key)
            return True

    def verdicts(self, workspace: str, keys: Sequence[str]) -> dict[str, Verdict]:
        """Those that are known of these, by key."""
        with self._database.read() as db:
            return records.verdicts(db, tools.workspace_id(db, workspace), keys)

    def put_verdicts(self, workspace: str, made: Mapping[str, Verdict]) -> None:
        """Keep what was paid for."""
        storable.require_workspace(workspace)
        with self._database.write() as db:
            number = tools.make_workspace(db, workspace)
            records.put_verdicts(db, number, made, now())

    # ------------------------------------------------------------ decisions

    def log_decision(self, workspace: str, decision: Decision) -> None:
        """Keep a decision; one with the same id and time is replaced."""
        self.put(workspace, records.DECISIONS, records.decision_key(decision), decision)

    def decisions(
        self,
        workspace: str,
        *,
        ids: Collection[str] | None = None,
        conversation: str | None = None,
        tool: str | None = None,
        limit: int = 100,
    ) -> list[Decision]:
        """The newest that fit, oldest first. Only the newest 2,000 are looked at."""
        with self._database.read() as db:
            number = tools.workspace_id(db, workspace)
            newest = records.newest_decisions(db, number)
        found = [
            each
            for each in newest
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
        vector: NDArray[np.float32] | None,
        limit: int,
        *,
        keys: Collection[str] | None = None,
    ) -> list[Hit]:
        """`namespace` None: the guidance of tools. Documents without a vector are found by words.

        `embed_missing` makes the vectors that are still lacking.
        """
        from toolmem.store.words import query_words

        depth, words = depth_of(limit), query_words(text)
        with self._database.read() as db:
            scope = self._scope(db, workspace, namespace)
            if scope is None:
                return []
            by_words = search.by_words(db, scope, words, depth, keys)
            identity = search.embedder(db)
            if vector is None or identity is None:
                return fuse(by_words, [], {}, limit)
            unit = unit_vector(vector, identity)
            nearest, similarity = self._vectors.nearest(
                db, scope, identity, unit, depth, keys, by_words
            )
        return fuse(by_words, nearest, similarity, limit)

    def _scope(self, db: apsw.Connection, workspace: str, namespace: str | None) -> Scope | None:
        number = tools.workspace_id(db, workspace)
        if number is None:
            return None
        return Scope(number, search.GUIDANCE if namespace is None else namespace)

    def documents(
        self, workspace: str, namespace: str | None, keys: Collection[str]
    ) -> dict[str, Document]:
        """By key; those without a searchable side are absent."""
        with self._database.read() as db:
            scope = self._scope(db, workspace, namespace)
            return {} if scope is None else search.documents(db, scope, keys)

    def embedder(self) -> EmbedderIdentity | None:
        """Whose vectors the store holds."""
        with self._database.read() as db:
            return search.embedder(db)

    def use_embedder(self, identity: EmbedderIdentity) -> None:
        """Vectors of another embedder are dropped, and made anew when searches need them."""
        with self._database.write() as db:
            search.use_embedder(db, identity)

    def texts_without_vector(
        self, workspace: str, namespace: str | None, limit: int
    ) -> list[TextRow]:
        """What a search by meaning would miss."""
        with self._database.read() as db:
            scope = self._scope(db, workspace, namespace)
            return [] if scope is None else search.texts_without_vector(db, scope, limit)

    def put_vectors(
        self, identity: EmbedderIdentity, vectors: Mapping[int, NDArray[np.float32]]
    ) -> None:
        """By document id; a document that was replaced meanwhile is passed over."""
        with self._database.write() as db:
            search.put_vectors(db, identity, vectors)
