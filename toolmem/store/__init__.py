"""Where calls, guidance, rules and decisions are kept: in SQLite or Elasticsearch.

`sqlite/` is the embedded store, `elasticsearch/` the distributed one. `base` does what every
backend does the same, `changes` decides what a write does to a tool, `storable` checks and encodes
what comes in, `search` holds what both searches share. `copying` copies from one store to another.
"""
