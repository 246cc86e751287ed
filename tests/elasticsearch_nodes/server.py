"""Where tests and benchmarks get their server from."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Callable
from typing import NamedTuple

from elasticsearch_nodes.installation import VERSION, Missing
from elasticsearch_nodes.node import Node

IMAGE = f"elasticsearch:{VERSION}"


class Server(NamedTuple):
    """A server that answers."""

    url: str
    source: str  # where it comes from, for people
    stop: Callable[[], None]


def find_server(heap: str = "512m") -> Server:
    """Raises Missing with all that was tried."""
    if address := os.environ.get("ELASTICSEARCH_URL"):
        return Server(address, "ELASTICSEARCH_URL", lambda: None)
    try:
        return _container()
    except Missing as missing:
        reason = str(missing)
    try:
        node = Node(heap=heap)
    except Missing as missing:
        problem = f"no Elasticsearch: ELASTICSEARCH_URL is not set; {reason}; {missing}"
        raise Missing(problem) from missing
    try:
        return Server(node.start().url, "a node put together by Maven", node.stop)
    except BaseException:
        node.stop()
        raise


def _container() -> Server:
    """The official image on a free loopback port, without security."""
    if shutil.which("docker") is None or _docker("info").returncode:
        raise Missing("no Docker engine runs")
    settings = ["discovery.type=single-node", "xpack.security.enabled=false"]
    options = [part for setting in settings for part in ("-e", setting)]
    started = _docker("run", "-d", "--rm", "-p", "127.0.0.1::9200", *options, IMAGE)
    if started.returncode:
        raise Missing(f"docker could not start {IMAGE}: {started.stderr.strip()[-300:]}")
    container = started.stdout.strip()

    def stop() -> None:
        _docker("rm", "-f", container)

    url = f"http://{_docker('port', container, '9200/tcp').stdout.splitlines()[0]}"
    give_up = time.monotonic() + 180
    while not _answers(url):
        if time.monotonic() > give_up:
            stop()
            raise Missing(f"{IMAGE} did not answer within 180 s")
        time.sleep(0.5)
    return Server(url, "Docker", stop)


def _answers(url: str) -> bool:
    try:
        address = f"{url}/_cluster/health?wait_for_status=yellow&timeout=1s"
        with urllib.request.urlopen(address, timeout=3) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def _docker(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = ["docker", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=600)
