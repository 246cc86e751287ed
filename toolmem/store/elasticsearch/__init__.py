"""The distributed store: the methods of `Store` over Elasticsearch, for any number of machines.

`store` combines `tool_calls` (tools, their calls and guidance, with the commit protocol), `records`
and `search`. `layout` defines the indices. `client` sends requests, with retries.
"""

from toolmem.store.elasticsearch.store import ElasticsearchStore

__all__ = ["ElasticsearchStore"]
