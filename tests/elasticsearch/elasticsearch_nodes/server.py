"""Where tests and benchmarks get their server from."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from elasticsearch_nodes.docker import Container
from elasticsearch_nodes.installation import Missing
from elasticsearch_nodes.node import Node

URL_VARIABLE = "ELASTICSEARCH_URL"
REQUIRE_VARIABLE = "TOOLMEM_REQUIRE_ELASTICSEARCH"


@dataclass
class Server:
    url: str
    source: str  # for people: where it comes from
    own: Any = None  # what was started here and is stopped here

    def stop(self) -> None:
        if self.own is not None:
            self.own.stop()


def find_server() -> Server:
    """Raises Missing with all that was tried."""
    address = os.environ.get(URL_VARIABLE)
    if address:
        return Server(address, f"{URL_VARIABLE}")
    try:
        container = Container().start()
        return Server(container.url, "Docker", container)
    except Missing as without_docker:
        reason = str(without_docker)
    try:
        node = Node()
    except Missing as without_node:
        raise Missing(f"no Elasticsearch: {URL_VARIABLE} is not set; {reason}; {without_node}") from None
    try:
        return Server(node.start().url, "a node put together by Maven", node)
    except BaseException:
        node.stop()
        raise


def required() -> bool:
    """In CI a server that is missing is a failure, elsewhere a skip."""
    return os.environ.get(REQUIRE_VARIABLE) == "1"
