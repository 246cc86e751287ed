"""Many processes, killed writers, forks: nothing acknowledged is lost."""

import multiprocessing
import os
import subprocess
import sys
from datetime import UTC, datetime

import pytest

from toolmem.errors import StoreClosed
from toolmem.models.calls import ToolCallResult
from toolmem.store.sqlite import SqliteStore

NOW = datetime(2026, 1, 1, tzinfo=UTC)
spawning = multiprocessing.get_context("spawn")


def run(target, arguments):
    """Start one process for each, at once; every one must end well."""
    processes = [spawning.Process(target=target, args=each) for each in arguments]
    for each in processes:
        each.start()
    for each in processes:
        each.join(120)
    assert [each.exitcode for each in processes] == [0] * len(processes)


def append_many(path, writer, count, barrier):
    barrier.wait(60)  # all of them make the file at one moment
    with SqliteStore(path) as store:
        for number in range(count):
            calls = [
                ToolCallResult(tool_name=tool, create_time=NOW, id=f"{writer}-{number}-{tool}")
                for tool in ("shared", f"own{writer}")
            ]
            store.append_calls("w", calls, 100)


def test_eight_processes_that_make_and_fill_one_store_at_once_lose_nothing(path):
    barrier = spawning.Barrier(8)
    run(append_many, [(path, n, 50, barrier) for n in range(8)])
    with SqliteStore(path) as store:
        records = {each.tool_name: each for each in store.records("w")}
        assert records["shared"].counters.calls == 400
        assert records["shared"].kept == 100
        assert all(records[f"own{n}"].counters.calls == 50 for n in range(8))
        log = store.call_log("w", tool_names="shared", limit=1000)
        assert len({each.call.id for each in log}) == 400
        assert store.untrusted == ""


def look(path, barrier):
    barrier.wait(60)
    with SqliteStore(path) as store:
        assert store.untrusted == ""
        store.put("w", "n", str(os.getpid()), 1)


@pytest.mark.parametrize("attempt", range(3))
def test_a_store_that_others_are_making_is_no_strangers(attempt, path):
    barrier = spawning.Barrier(8)
    run(look, [(path, barrier)] * 8)


def send_all(path, count):
    with SqliteStore(path) as store:
        for number in range(count):
            call = ToolCallResult(tool_name="shared", create_time=NOW, id=str(number))
            store.append_calls("w", [call], 100)


def test_an_id_that_several_processes_send_counts_once(path):
    run(send_all, [(path, 60)] * 4)
    with SqliteStore(path) as store:
        (record,) = store.records("w")
        assert (record.counters.calls, record.last_seq) == (60, 60)


WRITER = """
import sys
from datetime import UTC, datetime
from toolmem.models.calls import ToolCallResult
from toolmem.store.sqlite import SqliteStore
store, number = SqliteStore(sys.argv[1]), 0
while True:
    calls = [
        ToolCallResult(tool_name=f"t{n % 3}", create_time=datetime.now(UTC), input={"n": n},
                       id=f"{sys.argv[2]}-{number}-{n}")
        for n in range(5)
    ]
    store.append_calls("w", calls, 50)
    print(number, flush=True)
    number += 1
"""


def test_a_killed_writer_loses_nothing_that_it_acknowledged_and_leaves_whole_batches(path):
    for round_, before in enumerate((1, 2, 3, 5, 8, 13, 21, 34)):
        command = [sys.executable, "-c", WRITER, path, str(round_)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
            lines = [writer.stdout.readline() for _ in range(before)]
            writer.kill()  # somewhere in the commits that follow
            lines += writer.stdout.read().splitlines()
        ids = {f"{round_}-{int(line)}-{n}" for line in lines for n in range(5)}
        with SqliteStore(path) as store:
            known = set().union(*(store.known_ids("w", f"t{n}", ids) for n in range(3)))
            assert known == ids
            records = {each.tool_name: each for each in store.records("w")}
            counts = [records[f"t{n}"].counters.calls for n in range(3)]
            assert counts[0] == counts[1] == 2 * counts[2]  # of five calls two, two and one
            for window in store.windows("w"):
                seqs = [each.seq for each in window.calls]
                assert seqs == list(range(window.record.first_seq, window.record.last_seq + 1))
                log = store.call_log("w", tool_names=window.record.tool_name, limit=10**6)
                assert len(log) == window.record.counters.calls


def test_a_forked_child_cannot_use_the_store_and_leaves_it_whole(path, store, call):
    store.append_calls("w", [call()], 10)
    child = os.fork()
    if not child:
        try:
            store.tool_names("w")
        except StoreClosed:
            del store
            with SqliteStore(path) as own:
                own.append_calls("w", [call()], 10)
            os._exit(7)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    store.append_calls("w", [call()], 10)
    assert store.records("w")[0].counters.calls == 3
