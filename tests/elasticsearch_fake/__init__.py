"""An Elasticsearch in memory, on which a test decides what goes wrong with every request.

`server` answers as one shard does: sequence numbers, external versions, real-time gets, refreshed
searches, stale copies. `client` stands in the place of the `elasticsearch.Elasticsearch` that a
store sends its requests by. `interleave` stops operations at each request. `model` says what must
be true after each commit.
"""
