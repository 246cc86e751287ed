"""The embedded store: one SQLite file.

A call on its way in meets `worker_threads` (the connection and its thread), `tool_writes` (the transaction) and
`toolmem.store.codec` (the row). A search meets `search` and what every store has in common. `schema.sql` holds
the tables, `connection` opens the file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolmem.store.sqlite.sqlite_store import SqliteStore

__all__ = ["SqliteStore"]


def __getattr__(name: str) -> Any:
    """The store brings an event loop's modules along; who only reads its tables needs none of them."""
    if name != "SqliteStore":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from toolmem.store.sqlite.sqlite_store import SqliteStore

    return SqliteStore
