"""Where memories live: the backends of `toolmem.protocols.MemoryStore`.

`sqlite.SqliteStore` is the embedded one. A call on its way in meets, in this order: `lanes` (the connection and its
thread), `tool_writes` (the transaction), `codec` (the row). A search meets `search`, `words` and `vector_index`, and
`fusion`. `tables` holds the schema, `connection` opens the file.
"""
