"""Nothing acknowledged is lost: many processes, killed writers, forks, files that are replaced."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from toolmem.errors import StoreClosed, StoreUnavailable
from toolmem.models.calls import ToolCallResult
from toolmem.store.changes import LOG_CALLS
from toolmem.store.sqlite import SqliteStore

ROOT = str(Path(__file__).parents[1])
NOW = datetime(2026, 1, 1, tzinfo=UTC)
spawning = multiprocessing.get_context("spawn")


def append_many(path, writer, count):
    with SqliteStore(path) as store:
        for number in range(count):
            calls = [
                ToolCallResult(tool_name=tool, create_time=NOW, id=f"{writer}-{number}-{tool}")
                for tool in ("shared", f"own{writer}")
            ]
            store.append_calls("w", calls, 100)


def test_eight_processes_that_make_and_fill_one_store_lose_nothing(path):
    writers = [spawning.Process(target=append_many, args=(path, n, 50)) for n in range(8)]
    for each in writers:
        each.start()
    for each in writers:
        each.join()
    assert [each.exitcode for each in writers] == [0] * 8
    with SqliteStore(path) as store:
        records = {each.tool_name: each for each in store.records("w")}
        assert records["shared"].counters.calls == 400
        assert records["shared"].kept == 100
        assert all(records[f"own{n}"].counters.calls == 50 for n in range(8))
        log = store.call_log("w", tool="shared", limit=1000)
        assert len({each.call.id for each in log}) == 400


def send_again(path, count):
    with SqliteStore(path) as store:
        for number in range(count):
            call = ToolCallResult(tool_name="shared", create_time=NOW, id=str(number))
            store.append_calls("w", [call], 100)


def test_an_id_that_several_processes_send_counts_once(path):
    senders = [spawning.Process(target=send_again, args=(path, 60)) for _ in range(4)]
    for each in senders:
        each.start()
    for each in senders:
        each.join()
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


def test_a_writer_killed_thirty_times_loses_nothing_that_it_acknowledged(path):
    acknowledged = 0
    for round_ in range(30):
        command = [sys.executable, "-c", WRITER, path, str(round_)]
        writer = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT, text=True)
        time.sleep(0.15 + 0.013 * (round_ % 7))
        writer.send_signal(signal.SIGKILL)
        lines = writer.communicate()[0].splitlines()
        acknowledged += len(lines)
        with SqliteStore(path) as store:
            ids = {f"{round_}-{batch}-{n}" for batch in lines for n in range(5)}
            known = set().union(*(store.known_ids("w", f"t{n}", ids) for n in range(3)))
            assert known == ids
            for window in store.windows("w"):
                seqs = [each.seq for each in window.calls]
                assert seqs == list(range(window.record.first_seq, window.record.last_seq + 1))
            for record in store.records("w"):  # whole batches, or nothing of them
                logged = len(store.call_log("w", tool=record.tool_name, limit=10**6))
                assert logged == record.counters.calls or LOG_CALLS <= logged < LOG_CALLS + 32
    assert acknowledged > 30


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


@pytest.mark.parametrize("what", ["replaced", "deleted", "log taken away"])
def test_a_file_that_is_not_in_its_place_takes_nothing_more(path, store, call, tmp_path, what):
    store.append_calls("w", [call()], 10)
    if what == "replaced":
        with SqliteStore(tmp_path / "other.db") as other:
            other.append_calls("w", [call("other")], 10)
        os.replace(tmp_path / "other.db", path)
    else:
        os.remove(path if what == "deleted" else f"{path}-wal")
    with pytest.raises(StoreUnavailable, match="moved, replaced or deleted"):
        store.append_calls("w", [call()], 10)
    with pytest.raises(StoreUnavailable, match="moved, replaced or deleted"):
        store.tool_names("w")


def test_a_file_replaced_during_a_commit_is_not_acknowledged(path, store, call, tmp_path):
    store.append_calls("w", [call()], 10)
    Path(tmp_path / "other.db").touch()
    with pytest.raises(StoreUnavailable), store.transaction():
        store.append_calls("w", [call()], 10)
        os.replace(tmp_path / "other.db", path)
