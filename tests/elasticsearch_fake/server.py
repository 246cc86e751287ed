"""One shard. Every earlier version of every document is kept, for reads from stale copies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from operator import ge, gt, le, lt
from typing import Any

Key = tuple[str, str]  # index, id
Position = tuple[int, int]


class Lost(Exception):
    """No answer came: whether it acted is open."""


class Rejected(Exception):
    """429: nothing was done."""


@dataclass(frozen=True)
class Doc:
    source: dict[str, Any]
    position: Position
    version: int


@dataclass(frozen=True)
class Mget:
    keys: tuple[Key, ...]


@dataclass(frozen=True)
class Refresh:
    index: str


@dataclass(frozen=True)
class Search:
    index: str
    filters: tuple[Any, ...]


@dataclass(frozen=True)
class Item:
    """Of a bulk. `version`: external_gte; else at a position, which is None where it creates.

    `anyhow`: whatever is there.
    """

    key: Key
    source: dict[str, Any] | None  # None: delete
    version: int | None
    position: Position | None
    anyhow: bool = False

    @property
    def is_swap(self) -> bool:
        return self.version is None and not self.anyhow


@dataclass(frozen=True)
class Bulk:
    items: tuple[Item, ...]

    @property
    def is_swap(self) -> bool:
        return any(item.is_swap for item in self.items)


@dataclass
class Server:
    docs: dict[Key, Doc] = field(default_factory=dict)
    history: list[tuple[Key, Doc | None]] = field(default_factory=list)
    doomed: dict[Key, Doc] = field(default_factory=dict)  # of an isolated primary, which loses them
    refreshed: dict[str, dict[Key, Doc]] = field(default_factory=dict)
    tombs: dict[Key, int] = field(default_factory=dict)  # versions of deleted documents
    seq_no: int = 0
    on_write: Callable[[Key, Doc | None], None] = lambda key, doc: None

    def act(self, request: Any) -> Any:
        if isinstance(request, Mget):
            return self.mget(request)
        if isinstance(request, Bulk):
            return self.bulk(request)
        if isinstance(request, Refresh):
            held = {key: doc for key, doc in self.docs.items() if key[0] == request.index}
            self.refreshed[request.index] = held
            return None
        found = self.refreshed.get(request.index, {}).items()
        return {k: d for k, d in found if all(_passes(d.source, f) for f in request.filters)}

    def mget(self, request: Mget, stale: int = 0, dirty: bool = False) -> list[Doc | None]:
        """`stale`: as it was so many writes ago. `dirty`: from a primary that is isolated."""
        docs = {**self.docs, **self.doomed} if dirty else self.docs
        if stale:
            docs = {}
            for key, doc in self.history[: max(len(self.history) - stale, 0)]:
                docs.pop(key, None)
                if doc is not None:
                    docs[key] = doc
        return [docs.get(key) for key in request.keys]

    def bulk(
        self, request: Bulk, only: Callable[[int], bool] = lambda number: True
    ) -> list[int | Position]:
        """Where each document stands now, or the status of a refusal."""
        numbered = enumerate(request.items)
        return [self._item(item) if only(number) else 429 for number, item in numbered]

    def _item(self, item: Item) -> int | Position:
        doc = self.docs.get(item.key)
        if item.version is None:
            if item.is_swap and (None if doc is None else doc.position) != item.position:
                return 409
            version = 1 if doc is None else doc.version + 1
        else:
            version = item.version
            if version < (doc.version if doc else self.tombs.get(item.key, 0)):
                return 409
        if item.source is not None:
            return self._write(item.key, item.source, version)
        if doc is not None:
            del self.docs[item.key]
            self.tombs[item.key] = version
            self.history.append((item.key, None))
            self.on_write(item.key, None)
        return 200

    def _write(self, key: Key, source: dict[str, Any], version: int) -> Position:
        self.seq_no += 1
        doc = self.docs[key] = Doc(source, (self.seq_no, 1), version)
        self.history.append((key, doc))
        self.on_write(key, doc)
        return doc.position

    def doom(self, request: Bulk) -> None:
        """As an isolated primary does it: shown for a while, never acknowledged, undone."""
        for item in request.items:
            doc = self.doomed.get(item.key, self.docs.get(item.key))
            if item.is_swap and (None if doc is None else doc.position) == item.position:
                assert item.source is not None
                position = (1_000_000 + len(self.doomed), 0)
                self.doomed[item.key] = Doc(item.source, position, 1)


def _passes(source: dict[str, Any], rule: dict[str, Any]) -> bool:
    ((kind, told),) = rule.items()
    ((name, wanted),) = told.items()
    value = source.get(name)
    if kind == "term":
        return bool(value == wanted)
    if kind == "terms":
        return value in wanted
    if kind == "prefix":
        return str(value).startswith(wanted)
    assert kind == "range", kind
    return value is not None and all(
        {"gt": gt, "gte": ge, "lt": lt, "lte": le}[bound](value, limit)
        for bound, limit in wanted.items()
    )
