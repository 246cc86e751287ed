"""The distributed store: the same promises over Elasticsearch, for any number of machines.

`tools` holds the commit protocol. `store` is a `SearchStore`, and that a `RecordStore`. `layout`
says which indices there are, `client` sends what failed again where that helps.
"""

from toolmem.store.elasticsearch.store import ElasticsearchStore

__all__ = ["ElasticsearchStore"]
