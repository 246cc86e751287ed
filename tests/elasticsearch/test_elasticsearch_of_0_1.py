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

from toolmem.store.elasticsearch import ElasticsearchStore
from toolmem.testing.clock import ManualClock

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
    missing = BY_0_1["missing"](read("elasticsearch_answers.json.gz"), json.loads(json.dumps(now)))
    newer = ("## Tool-scoped rules", "captured though it was deleted")  # words before rules; a demand said anew is kept
    assert [each for each in missing if not any(words in each for words in newer)] == []


async def test_calls_that_indices_of_0_1_keep_are_logged_as_they_were_made(
    server: Server, fresh_prefix: Callable[[], str]
) -> None:
    prefix = fresh_prefix()
    put_back(server.url, prefix)

    def store() -> ElasticsearchStore:
        return ElasticsearchStore(server.url, clock=ManualClock(), embedder=None, index_prefix=prefix)

    async with store(), store() as held:
        info = (await held.info())["workspaces"]
        assert any(each["calls"] for each in info.values())
        for workspace, counts in info.items():
            log = await held.call_log(workspace)
            assert len(log) == counts["calls"] == counts["logged_calls"]
            kept = {each.record.tool_name: each.calls for each in await held.memories(workspace, None, calls=True)}
            for tool, calls in kept.items():
                own = await held.call_log(workspace, tool=tool)
                assert [each.call.id for each in own] == [call.id for call in calls]
            last = log[-1].position if log else 0
            new = next(iter(kept.values()))[-1].model_copy(update={"id": None}) if kept else None
            if new is not None:
                await held.append_calls(workspace, new.tool_name, [new], 2)
                assert (await held.call_log(workspace, newest=True, limit=1))[0].position > last
                assert len(await held.call_log(workspace)) == len(log) + 1


async def test_toolmem_of_0_1_refuses_indices_once_they_are_carried_over(
    server: Server, fresh_prefix: Callable[[], str]
) -> None:
    """0.1 refuses an alias of its own whose index bears a schema version above 1."""
    prefix = fresh_prefix()
    put_back(server.url, prefix)
    async with ElasticsearchStore(server.url, clock=ManualClock(), embedder=None, index_prefix=prefix):
        for kind in ("tools", "calls", "ids", "records", "verdicts", "meta"):
            (index,) = json.load(urllib.request.urlopen(f"{server.url}/{prefix}-{kind}")).values()
            assert index["mappings"]["_meta"]["toolmem_schema"] == 2
