"""Indices of 0.1 are opened as they are and answer as they did (`tests/carried_over` holds them)."""

from __future__ import annotations

import gzip
import json
import runpy
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from elasticsearch_nodes.server import Server

DATA = Path(__file__).parents[1] / "carried_over"
BY_0_1 = runpy.run_path(str(DATA / "stores_of_0_1.py"))
PREFIX = "toolmem-carried-over"


def read(name: str) -> Any:
    return json.loads(gzip.decompress((DATA / name).read_bytes()))


def send(url: str, method: str, *lines: Any) -> Any:
    body = "".join(json.dumps(line) + "\n" for line in lines).encode()
    headers = {"Content-Type": "application/json"}
    return json.load(urllib.request.urlopen(urllib.request.Request(url, body, headers, method=method)))


def put_back(url: str, prefix: str) -> None:
    for index, made in read("elasticsearch.json.gz").items():
        name = index.replace(PREFIX, prefix)
        aliases = {alias.replace(PREFIX, prefix): {} for alias in made["aliases"]}
        send(f"{url}/{name}", "PUT", {"mappings": made["mappings"], "settings": made["settings"], "aliases": aliases})
        lines = []
        for document in made["documents"]:
            routing = {"routing": document["_routing"]} if "_routing" in document else {}
            lines += [{"index": {"_id": document["_id"]} | routing}, document["_source"]]
        if lines:
            assert not send(f"{url}/{name}/_bulk?refresh=true", "POST", *lines)["errors"]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the names that `ask` uses
async def test_indices_of_0_1_give_a_program_of_0_1_the_same_answers(
    server: Server, fresh_prefix: Callable[[], str]
) -> None:
    prefix = fresh_prefix()
    put_back(server.url, prefix)
    params = "vector_store.default.params"
    store = ["vector_store.default.backend=elasticsearch", f"{params}.hosts={server.url}"]
    now = await BY_0_1["ask"]([*store, f"{params}.index_prefix={prefix}", f"{params}.number_of_replicas=0"])
    assert BY_0_1["missing"](read("elasticsearch_answers.json.gz"), json.loads(json.dumps(now))) == []
