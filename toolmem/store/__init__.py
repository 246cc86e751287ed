"""Where memories live: the backends of `toolmem.protocols.MemoryStore`.

What they have in common: `decided` (every write as a request), `semantics` (what a request decides, pure), `merging`
(a dumped memory), `keyed` (keyed records), `searching` and `words`, `codec` and `window` (calls in and out).
`sqlite.SqliteStore` is the embedded one, `elasticsearch.ElasticsearchStore` the distributed one. `masked` keeps secrets
out of either, `copying` copies one into another.
"""
