"""A real Elasticsearch for tests and benchmarks, wherever one can be had.

`server.find_server()` tries, in this order: the address in ELASTICSEARCH_URL; a Docker engine with the official image
(`docker`); Java 17+ with Maven, from whose artifacts a node is put together (`installation`) and started (`node`).
`cluster` starts several nodes that form one cluster. What was started here is stopped here, and nothing else.
"""
