"""The distributed store: the same promises over Elasticsearch, for any number of machines.

`store` puts together `tools`, with the commit protocol, `records` and `search`. `layout` says which
indices there are, `client` sends what failed again where that helps.
"""

from toolmem.store.elasticsearch.store import ElasticsearchStore

__all__ = ["ElasticsearchStore"]
