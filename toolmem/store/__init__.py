"""Where calls, guidance, rules and decisions are kept: in SQLite or Elasticsearch.

`sqlite/` is the embedded store, `elasticsearch/` the distributed one. `base` has the methods that
all backends share, `changes` decides what a write changes in a tool, `storable` checks and encodes
input, `search` has the shared parts of search. `copying` copies a workspace to another store.
"""
