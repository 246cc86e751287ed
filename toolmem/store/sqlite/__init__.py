"""The embedded store: one SQLite file.

A call on its way in meets `lanes` (the connection and its thread), `tool_writes` (the transaction) and
`toolmem.store.codec` (the row). A search meets `search` and what every store has in common. `tables` holds the schema,
`connection` opens the file.
"""

from toolmem.store.sqlite.sqlite_store import SqliteStore

__all__ = ["SqliteStore"]
