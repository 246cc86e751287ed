"""Memories beside the rules: short texts in a namespace, found by what is asked.

Namespaces: `global`, `skill-{id}`, `tool-{name}`. A tool's namespace also holds its rules; they are recalled with the
rest, and only the rule store changes them.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, Field, ValidationError

from toolmem.errors import RequestError, StoreClosed, StoreError, StoreUnavailable, StoreUntrusted
from toolmem.late import late_logger
from toolmem.light_models import Priority, Speaker
from toolmem.protocols import Clock, Embedder, MemoryStore
from toolmem.readers.query import read_query
from toolmem.rules.compare_and_swap import until_written
from toolmem.rules.embedded_text import by_spelling, document_of, least_similarity, share_a_word, vector_of
from toolmem.rules.identity import RULE_PREFIX, TOOL_PREFIX, namespace_of, read_id, read_tags, read_text, text_id
from toolmem.rules.stored_rules import is_tombstone, read_rule
from toolmem.stored import Where

logger = late_logger("toolmem.rules")

GLOBAL = "global"
SKILL_PREFIX = "skill-"
MEMORY_PREFIX = "memory/"  # keys of memories
MAX_CONTENT = 10_000  # characters
MAX_LIMIT = 100
LIMIT = 5
_PASSED_OVER = 20  # hits more than are asked for, because some are like the query in letters alone


class MemoryEntry(BaseModel):
    """A memory, or a rule of the same namespace."""

    id: str
    namespace: str
    kind: Literal["memory", "rule"] = "memory"
    content: str
    priority: Priority | None = None  # of rules
    by: Speaker | None = None  # who put the rule
    tags: list[str] = Field(default_factory=list)
    created_at: datetime
    updated_at: datetime


def read_namespace(given: Any) -> str:
    """`global`, `skill-{id}` or `tool-{name}`, the last in lower case. Raises RequestError."""
    if isinstance(given, str):
        name = given.strip()
        if name == GLOBAL or (name.startswith(SKILL_PREFIX) and read_id(name.removeprefix(SKILL_PREFIX))):
            return name
        if name.startswith(TOOL_PREFIX) and name.removeprefix(TOOL_PREFIX).strip():
            return namespace_of(name.removeprefix(TOOL_PREFIX))
    raise RequestError(
        f"namespace: expected 'global', 'skill-<id>' or 'tool-<name>'; got {given!r}"[:300], field="namespace"
    )


class GeneralMemory:
    """The memories of one workspace. `embedder`: the one of the store; None searches words alone.

    `untrusted`: why none of them may reach a model; then `recall` raises StoreUntrusted.
    """

    def __init__(
        self,
        store: MemoryStore,
        workspace: str = "default",
        *,
        clock: Clock,
        embedder: Embedder | None = None,
        untrusted: str = "",
    ) -> None:
        self._store = store
        self._workspace = workspace
        self._clock = clock
        self._embedder = embedder
        self._untrusted = untrusted

    async def remember(
        self, content: str, *, namespace: str = GLOBAL, id: str = "", tags: Iterable[str] | None = None
    ) -> MemoryEntry:
        """Insert, or replace the memory of that id. The same text again is the same memory; tags left out stay.

        Raises RequestError that names the field.
        """
        where = read_namespace(namespace)
        text = read_text(content, "content", MAX_CONTENT)
        memory_id = read_id(id) or text_id(self._workspace, where, text)
        given_tags = None if tags is None else read_tags(tags)
        document = await document_of(text, self._embedder)

        async def write() -> MemoryEntry:
            record = await self._store.get(self._workspace, where, MEMORY_PREFIX + memory_id)
            stored = None if record is None else _memory(where, record.key, record.value)
            now = self._clock.now()
            entry = MemoryEntry(
                id=memory_id,
                namespace=where,
                content=text,
                tags=given_tags if given_tags is not None else stored.tags if stored is not None else [],
                created_at=now if stored is None else stored.created_at,
                updated_at=now,
            )
            await self._store.put(
                self._workspace,
                where,
                MEMORY_PREFIX + memory_id,
                entry.model_dump(mode="json", exclude={"kind", "priority", "by"}),
                document=document,
                expected_version=0 if record is None else record.version,
            )
            return entry

        return await until_written(f"memory {memory_id!r}", write, self._clock.sleep)

    async def recall(self, query: str = "", *, namespace: str = GLOBAL, limit: int = LIMIT) -> list[MemoryEntry]:
        """The entries of the namespace that fit the query best, by words and by vector; without one, the newest.

        Rules of a tool's namespace are among them. Raises RequestError that names the field.
        """
        where = read_namespace(namespace)
        count = read_limit(limit)
        if self._untrusted:
            raise StoreUntrusted(self._untrusted)
        if not read_query(query):
            return (await self._listed(where))[:count]
        vector = await vector_of(query, self._embedder)
        hits = await self._store.search(self._workspace, query, vector, count + _PASSED_OVER, Where(namespace=where))
        spelled, least = by_spelling(self._embedder), least_similarity(self._embedder)
        found = []
        for hit in hits:
            if hit.text_rank is None and (hit.similarity or 0.0) <= least:
                continue  # the vector leg ranks everything, also what has nothing in common with the query
            entry = await self._found(where, hit.key)
            if entry is None or (hit.text_rank is None and spelled and not share_a_word(query, entry.content)):
                continue
            found.append(entry)
            if len(found) == count:
                break
        return found

    async def _found(self, namespace: str, key: str) -> MemoryEntry | None:
        """None where it is gone, or damaged: then it hides no other."""
        try:
            record = await self._store.get(self._workspace, namespace, key)
        except (StoreClosed, StoreUnavailable):
            raise
        except StoreError as error:
            logger.warning("record %r of %r is left out: %s", key, namespace, error)
            return None
        return None if record is None else _entry(namespace, key, record.value, self._clock.now())

    async def forget(self, id: str, *, namespace: str = GLOBAL) -> bool:
        """True if it was there. Raises RequestError for a rule: those are deleted as rules."""
        where, memory_id = read_namespace(namespace), read_id(id)
        if not memory_id:
            raise RequestError("id is required", field="id")
        if await self._store.delete(self._workspace, where, MEMORY_PREFIX + memory_id):
            return True
        if await self._found(where, RULE_PREFIX + memory_id) is not None:
            problem = f"{memory_id!r} is a rule of {where!r}; its user may delete it as a rule, an agent may not"
            raise RequestError(f"id: {problem}", field="id")
        return False

    async def _listed(self, namespace: str) -> list[MemoryEntry]:
        records = await self._store.list(self._workspace, namespace)
        now = self._clock.now()
        entries = [_entry(namespace, record.key, record.value, now) for record in records]
        known = [entry for entry in entries if entry is not None]
        return sorted(known, key=lambda entry: (-entry.updated_at.timestamp(), entry.id))


def read_limit(given: Any) -> int:
    """1 to 100. Raises RequestError."""
    if isinstance(given, bool) or not isinstance(given, int) or not 1 <= given <= MAX_LIMIT:
        raise RequestError(f"limit: expected a whole number from 1 to {MAX_LIMIT}, got {given!r}"[:300], field="limit")
    return given


def _entry(namespace: str, key: str, value: dict[str, Any], now: datetime) -> MemoryEntry | None:
    """None, and logged, where the record is damaged; None where it is something else."""
    if key.startswith(MEMORY_PREFIX):
        return _memory(namespace, key, value)
    if not key.startswith(RULE_PREFIX) or is_tombstone(value):
        return None
    try:
        rule = read_rule(namespace, key, value)
    except ValueError as error:
        logger.warning("record %r of %r is no rule and is left out: %s", key, namespace, error)
        return None
    if not rule.holds_at(now):
        return None
    return MemoryEntry(
        kind="rule",
        namespace=namespace,
        content=rule.rule,
        by=rule.by,
        **rule.model_dump(include={"id", "priority", "tags", "created_at", "updated_at"}),
    )


def _memory(namespace: str, key: str, value: dict[str, Any]) -> MemoryEntry | None:
    try:
        return MemoryEntry.model_validate(value)
    except ValidationError as error:
        logger.warning("record %r of %r is no memory and left out; problems: %d", key, namespace, error.error_count())
        return None
