"""The distributed store: the same promises over Elasticsearch, for any number of machines.

`store` is the interface. `tools` holds the commit protocol, `call_log` the log over it, `records`
keyed records, `search` both rankings. `layout` says which indices there are, `client` sends what
failed again where that helps.
"""

from toolmem.store.elasticsearch.store import ElasticsearchStore

__all__ = ["ElasticsearchStore"]
