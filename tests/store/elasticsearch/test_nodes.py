"""Real nodes, real processes, SIGKILL: nothing acknowledged is lost."""

import multiprocessing
import subprocess
import sys
import time
from datetime import UTC, datetime

import pytest
from elasticsearch_fake.making import calls_of, guidance_of
from elasticsearch_nodes import Cluster, Node
from store.conftest import started

from toolmem.models.calls import ToolCallResult
from toolmem.store.changes import LOG_CALLS
from toolmem.store.elasticsearch import ElasticsearchStore

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("elasticsearch")]
NOW = datetime(2026, 1, 1, tzinfo=UTC)
spawning = multiprocessing.get_context("spawn")


@pytest.fixture(scope="module")
def node():
    own = started(Node)
    try:
        yield own.start()
    finally:
        own.stop()


@pytest.fixture(scope="module")
def cluster():
    own = started(Cluster)
    try:
        own.mend()
        yield own
    finally:
        own.stop()


def append_many(url, prefix, writer, count):
    with ElasticsearchStore(url, index_prefix=prefix, timeout=60) as store:
        for number in range(count):
            calls = [
                ToolCallResult(tool_name=tool, create_time=NOW, id=f"{writer}-{number}-{tool}")
                for tool in ("shared", f"own{writer}")
            ]
            store.append_calls("w", calls, 100)


def test_eight_processes_that_write_at_once_lose_nothing(server, prefix):
    given = [(server.url, prefix, writer, 25) for writer in range(8)]
    processes = [spawning.Process(target=append_many, args=each) for each in given]
    for each in processes:
        each.start()
    for each in processes:
        each.join(240)
    assert [each.exitcode for each in processes] == [0] * 8
    with ElasticsearchStore(server.url, index_prefix=prefix) as store:
        records = {each.tool_name: each for each in store.records("w")}
        assert (records["shared"].counters.calls, records["shared"].kept) == (200, 100)
        assert all(records[f"own{n}"].counters.calls == 25 for n in range(8))
        log = store.call_log("w", tool_names="shared")
        assert len({each.call.id for each in log}) == 200


WRITER = """
import sys
from toolmem.errors import StoreUnavailable
from toolmem.models.calls import ToolCallResult
from toolmem.store.changes import LOG_CALLS
from toolmem.store.elasticsearch import ElasticsearchStore
from datetime import UTC, datetime
urls, prefix, writer = sys.argv[1].split(","), sys.argv[2], sys.argv[3]
store, number = ElasticsearchStore(urls, index_prefix=prefix, timeout=60), 0
while True:
    calls = [ToolCallResult(tool_name=f"t{n % 3}", create_time=datetime.now(UTC), input={"n": n},
                            id=f"{writer}-{number}-{n}") for n in range(5)]
    store.append_calls("w", calls, 50)
    print(number, flush=True)
    number += 1
"""


class Writers:
    """Processes that write until they are killed, and tell what was acknowledged."""

    def __init__(self, urls, prefix, count):
        self.running = [
            subprocess.Popen(
                [sys.executable, "-c", WRITER, ",".join(urls), prefix, str(number)],
                stdout=subprocess.PIPE,
                text=True,
            )
            for number in range(count)
        ]
        self.lines = [[each.stdout.readline() for _ in range(2)] for each in self.running]

    def wait_for_more(self):
        for lines, each in zip(self.lines, self.running, strict=True):
            lines += [each.stdout.readline() for _ in range(3)]

    def kill(self):
        """The ids that were acknowledged."""
        ids = set()
        for number, each in enumerate(self.running):
            each.kill()
            lines = [*self.lines[number], *each.stdout.read().splitlines()]
            each.wait(30)
            ids |= {f"{number}-{int(line)}-{n}" for line in lines if line.strip() for n in range(5)}
        return ids


def everything_is_there(store, ids):
    """What was acknowledged is known and counted once, windows and log are whole."""
    known = set().union(*(store.known_ids("w", f"t{n}", ids) for n in range(3)))
    assert known == ids
    for window in store.windows("w"):
        record = window.record
        seqs = [each.seq for each in window.calls]
        assert seqs == list(range(record.first_seq, record.last_seq + 1))
        log = store.call_log("w", tool_names=record.tool_name, limit=10**5)
        assert len({each.call.id for each in log}) == len(log)
        assert len(log) == record.counters.calls or len(log) >= LOG_CALLS  # older ones were dropped


def test_killed_writers_lose_nothing_that_they_acknowledged(server, prefix):
    for _ in range(3):
        ids = Writers([server.url], prefix, 3).kill()
        with ElasticsearchStore(server.url, index_prefix=prefix) as store:
            everything_is_there(store, ids)


def test_a_killed_node_that_comes_back_has_lost_nothing(node):
    writers = Writers([node.url], "single", 2)
    for _ in range(2):
        node.kill()
        time.sleep(1)
        node.start()
        writers.wait_for_more()  # they go on by themselves
    ids = writers.kill()
    with ElasticsearchStore(node.url, index_prefix="single", timeout=60) as store:
        everything_is_there(store, ids)


def test_the_killed_master_of_three_takes_nothing_with_it(cluster):
    writers = Writers(cluster.urls, "cluster", 2)
    cluster.elected().kill()
    writers.wait_for_more()
    cluster.mend()
    writers.wait_for_more()
    cluster.elected().kill()
    writers.wait_for_more()
    ids = writers.kill()
    with ElasticsearchStore(cluster.urls, index_prefix="cluster", timeout=60) as store:
        everything_is_there(store, ids)
        store.append_calls("w", calls_of("a"), 9)
        guidance, document = guidance_of("after", [1])
        store.put_guidance("w", "t", guidance, document=document, expected_version=0)
    cluster.mend()
    with ElasticsearchStore(cluster.urls, index_prefix="cluster") as store:
        assert store.windows("w", ["t"])[0].record.guidance.text == "after"
