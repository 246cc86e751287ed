"""A real Elasticsearch for tests and benchmarks.

`find_server` tries the address in ELASTICSEARCH_URL, then Docker, then a node put together from
Maven artifacts (Java 17 and Maven). `Node` and `Cluster` may be killed. Whatever was started here
is stopped here.
"""

from elasticsearch_nodes.installation import Missing
from elasticsearch_nodes.node import Cluster, Node
from elasticsearch_nodes.server import Server, find_server

__all__ = ["Cluster", "Missing", "Node", "Server", "find_server"]
