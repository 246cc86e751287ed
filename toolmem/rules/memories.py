"""Store texts of agents beside rules, in namespaces: `global`, `skill-<id>`, `tool-<name>`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Literal

from msgspec import Struct

from toolmem.errors import RequestError
from toolmem.guidance.shown import require_trusted
from toolmem.models.calls import Moment
from toolmem.models.protocols import Clock, Embedder, Store
from toolmem.models.records import RULE_PREFIX, TOOL_PREFIX, Document, Record
from toolmem.models.rules import Priority, ToolMemoryRule
from toolmem.rules.failures import EFFECTIVENESS, EFFECTIVENESS_PREFIX, tool_effectiveness
from toolmem.rules.identity import (
    derived_id,
    namespace_of,
    read_id,
    read_tags,
    read_text,
    text_key,
)
from toolmem.store.search import search_by_meaning, unit_vector
from toolmem.store.storable import retry_on_conflict
from toolmem.text.masking import Masker

GLOBAL = "global"
SKILL_PREFIX = "skill-"
MEMORY_PREFIX = "memory/"
MAX_CONTENT = 10_000  # characters
LIMIT = 5
_MIN_SIMILARITY = 0.3  # of a memory that shares no word with the query


class MemoryEntry(Struct, kw_only=True, omit_defaults=True):
    """A text that an agent stored (a memory), a rule on a tool, or a tool's figures as JSON."""

    id: str
    namespace: str
    content: str
    kind: Literal["memory", "rule", "statistics"] = "memory"
    priority: Priority | None = None  # of a rule
    tags: list[str] = []
    created_at: Moment
    updated_at: Moment


def read_namespace(given: str) -> str:
    """Check a namespace; `tool-Bash` becomes `tool-bash`. Raises RequestError for other forms."""
    name = given.strip()
    if name == GLOBAL or (name.startswith(SKILL_PREFIX) and read_id(name[len(SKILL_PREFIX) :])):
        return name
    if name.startswith(TOOL_PREFIX) and name[len(TOOL_PREFIX) :].strip():
        return namespace_of(name[len(TOOL_PREFIX) :])
    problem = f"expected global, skill-<id> or tool-<name>; got {given!r}"
    raise RequestError(f"namespace: {problem}"[:300], "namespace")


class Memories:
    """Stores agents' texts in one workspace. `embedder`: called when a query needs an embedder."""

    def __init__(
        self, store: Store, workspace: str, clock: Clock, embedder: Callable[[], Embedder]
    ) -> None:
        self.store = store
        self.workspace = workspace
        self.clock = clock
        self._embedder = embedder

    def remember(
        self, content: str, namespace: str = GLOBAL, id: str = "", tags: Iterable[str] = ()
    ) -> MemoryEntry:
        """Store a memory. An older one of this id or, without an id, of this text is replaced."""
        where = read_namespace(namespace)
        text = read_text(content, "content", MAX_CONTENT)
        text = Masker(self.store.secret_key()).text(text)
        memory_id = read_id(id) or derived_id("memory", self.workspace, where, text_key(text))
        key = MEMORY_PREFIX + memory_id
        own_tags = read_tags(tags)

        def write() -> MemoryEntry:
            record = self.store.get(self.workspace, where, key)
            now = self.clock.now()
            before = None if record is None else _entry(record, now)
            entry = MemoryEntry(
                id=memory_id,
                namespace=where,
                content=text,
                tags=own_tags or (before.tags if before else []),
                created_at=before.created_at if before else now,
                updated_at=now,
            )
            version = record.version if record else 0
            document = Document(text)
            self.store.put(
                self.workspace, where, key, entry, document=document, expected_version=version
            )
            return entry

        return retry_on_conflict(write)

    def recall(
        self, query: str = "", namespace: str = GLOBAL, limit: int = LIMIT
    ) -> list[MemoryEntry]:
        """Return entries that fit a query by words or meaning; without a query, the newest.

        `tool-<name>` also has the tool's rules; `tool_effectiveness` has figures on all tools.
        """
        is_figures = namespace.strip() == EFFECTIVENESS
        where = EFFECTIVENESS if is_figures else read_namespace(namespace)
        require_trusted(self.store)
        rules = self._statistics() if is_figures else []
        rules += self._entries(where, RULE_PREFIX) if where.startswith(TOOL_PREFIX) else []
        if not query.strip():
            found = [*rules, *self._entries(where, MEMORY_PREFIX)]
            return sorted(found, key=lambda e: (-e.updated_at.timestamp(), e.id))[:limit]
        words = query.casefold().split()
        rules.sort(key=lambda e: -sum(word in f"{e.id} {e.content}".casefold() for word in words))
        return [*self._search(where, query, limit), *rules][:limit]

    def _statistics(self) -> list[MemoryEntry]:
        return [
            MemoryEntry(
                id=record.key.removeprefix(EFFECTIVENESS_PREFIX),
                namespace=EFFECTIVENESS,
                content=bytes(record.value).decode(),
                kind="statistics",
                created_at=record.time_created,
                updated_at=record.time_modified,
            )
            for record in tool_effectiveness(self.store, self.workspace)
        ]

    def _search(self, where: str, query: str, limit: int) -> Iterator[MemoryEntry]:
        if not self.store.list_records(self.workspace, where, key_prefix=MEMORY_PREFIX, newest=1):
            return
        embedder = self._embedder()
        vector = unit_vector(embedder.embed([query[:4_000]])[0], embedder.identity)
        scope = (self.workspace, where)
        for hit in search_by_meaning(self.store, embedder, scope, (query, vector), limit):
            record = self.store.get(self.workspace, where, hit.key)
            is_near = hit.text_rank is not None or (hit.similarity or 0.0) >= _MIN_SIMILARITY
            if is_near and record and (entry := _entry(record, self.clock.now())):
                yield entry

    def forget(self, id: str, namespace: str = GLOBAL) -> bool:
        """Delete a memory; return False if there is none. Raises RequestError for a rule."""
        where = read_namespace(namespace)
        memory_id = read_id(id)
        if not memory_id:
            raise RequestError("id is required", "id")
        if self.store.delete(self.workspace, where, MEMORY_PREFIX + memory_id):
            return True
        if self.store.get(self.workspace, where, RULE_PREFIX + memory_id) is not None:
            raise RequestError(f"id: {memory_id!r} is a rule; delete it as a rule", "id")
        return False

    def _entries(self, where: str, prefix: str) -> list[MemoryEntry]:
        records = self.store.list_records(self.workspace, where, key_prefix=prefix)
        now = self.clock.now()
        return [entry for record in records if (entry := _entry(record, now))]


def _entry(record: Record, now: datetime) -> MemoryEntry | None:
    """Read a memory or a rule; None if the record is damaged or the rule does not hold."""
    is_rule = record.key.startswith(RULE_PREFIX)
    try:
        found = record.read(ToolMemoryRule if is_rule else MemoryEntry)
    except ValueError:
        return None
    if isinstance(found, MemoryEntry):
        return found
    if not found.holds_at(now):
        return None
    names = ("id", "priority", "tags", "created_at", "updated_at")
    fields = {name: getattr(found, name) for name in names}
    return MemoryEntry(**fields, namespace=record.namespace, content=found.rule, kind="rule")
