"""Where calls, guidance, rules and decisions are kept: in SQLite or Elasticsearch.

`sqlite/` is the embedded store, `elasticsearch/` the distributed one. `base` has the parts that all
backends share, `changes` decides what a write changes of a tool, `storable` checks and encodes
input, `search` has the shared parts of search. `copying` copies from one store to another.
"""
