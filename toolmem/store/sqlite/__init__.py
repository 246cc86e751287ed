"""The embedded store: one SQLite file, any number of processes and threads.

`store` combines `tool_calls` (tools, their calls and guidance), `records` and `search`, which hold
the SQL. `database` owns connections and transactions. `files` creates and opens the file. `trust`
remembers which files this user made.
"""

from toolmem.store.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
