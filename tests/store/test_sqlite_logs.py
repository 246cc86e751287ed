"""The logs of the embedded store: what a store of version 0.1 becomes, and what only this backend can show."""

from __future__ import annotations

import json
from datetime import timedelta
from functools import partial
from pathlib import Path

import apsw
import pytest

from toolmem.errors import RequestError, StoreVersionError
from toolmem.store.sqlite import SqliteStore, connection, schema
from toolmem.stored import LogLimits
from toolmem.testing.clock import ManualClock
from toolmem.testing.store_contract.scenario import JUDGE, START, TOOL, W, append, call, kept_calls, numbers_of

make = partial(SqliteStore, clock=ManualClock(), embedder=None, synchronous="NORMAL")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


def store_of_version_1(path: Path, *calls: tuple[int, int, str, str]) -> None:
    """As toolmem 0.1 wrote it. A call: its tool (1, 2), its number, its conversation, and what damages its payload."""
    db = apsw.Connection(str(path))
    db.execute("PRAGMA page_size = 2048; PRAGMA journal_mode = WAL")
    db.execute(
        f"BEGIN; {schema.MIGRATIONS[0]}; PRAGMA application_id = {schema.APPLICATION_ID}; PRAGMA user_version = 1"
    )
    db.execute("INSERT INTO workspaces VALUES (1, ?), (2, 'empty')", (W,))
    db.execute("INSERT INTO judges VALUES (1, ?, ?, ?)", (JUDGE.backend, JUDGE.model, JUDGE.prompt_version))
    counts = {tool: [number for of, number, _, _ in calls if of == tool] for tool in (1, 2)}
    for tool, name in ((1, TOOL), (2, "other")):
        many = len(counts[tool])
        db.execute(
            "INSERT INTO tools VALUES (?, 1, ?, ?, ?, 1, 0, 3, ?, '[]', '[]', ?, ?, 0, ?, ?, 0, 0.0, 0, 0, 0, 0, 0)",
            (tool, name, f"memory {tool}", f"stem{tool}", many + 2, many + 2, many + 2, many, float(many)),
        )
    seqs = {1: 2, 2: 2}  # two calls of each were dropped before
    for tool, number, conversation, damage in calls:
        seqs[tool] += 1
        made = (START + timedelta(seconds=number)).timestamp() * 1_000_000
        body = {"create_time": int(made), "input": {"query": f"question {number}"}, "output": f"answer {number}"}
        body |= {"metadata": {"session_id": conversation}} if conversation else {}
        payload = damage or json.dumps(body)
        db.execute("INSERT INTO calls VALUES (?, 1, 0, 1.0, 0.25, 7, 1, ?)", (tool << 32 | seqs[tool], payload))
    db.execute("INSERT INTO records VALUES (1, 1, 'tool-search', 'rule/1', 1, 0, 0, '{}')")
    db.execute("COMMIT")
    db.close()


async def test_the_kept_calls_of_a_store_of_version_1_are_in_the_log_afterwards(path: Path):
    store_of_version_1(path, (1, 1, "a", ""), (1, 5, "", ""), (2, 2, "a", ""), (1, 3, "b", ""), (2, 9, "", "{torn"))
    async with make(path) as store:
        assert numbers_of(await kept_calls(store)) == [1, 5, 3]
        logged = await store.call_log(W)
        # by time, and those of one tool as they came; what is damaged is left out
        assert [each.call.output for each in logged] == ["answer 1", "answer 2", "answer 5", "answer 3"]
        assert [each.call.output for each in await store.call_log(W, conversation="a")] == ["answer 1", "answer 2"]
        assert [each.call.id for each in await store.call_log(W, tool="other")] == ["stem2-3"]
        assert (await store.read_stamped(W, [("tool-search", "rule/1")])).records[0] is not None
        await append(store, 7)
        assert numbers_of(await kept_calls(store)) == [1, 5, 3, 7]
        newest = await store.call_log(W, newest=True, limit=1)
        assert [each.call.output for each in newest] == ["answer 7"]
        assert newest[0].position > logged[-1].position
        assert (await store.info())["workspaces"][W]["logged_calls"] == 6
    db = apsw.Connection(str(path))
    assert db.pragma("user_version") == 2
    assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    db.close()


async def test_an_empty_store_of_version_1_is_opened(path: Path):
    store_of_version_1(path)
    async with make(path) as store:
        assert await store.call_log(W) == []
        await append(store, 1)
        assert len(await store.call_log(W)) == 1


async def test_toolmem_of_schema_version_1_refuses_the_file(path: Path, monkeypatch: pytest.MonkeyPatch):
    async with make(path) as store:
        await append(store, 1)
    before = path.read_bytes()
    for module in (schema, connection):
        monkeypatch.setattr(module, "SCHEMA_VERSION", 1)
    with pytest.raises(StoreVersionError, match=r"version 2.*up to 1"):
        await make(path).open()
    assert path.read_bytes() == before


async def test_a_call_is_stored_once_for_window_and_log(path: Path):
    output = "only once " * 1000
    async with make(path) as store:
        await store.append_calls(W, TOOL, [call(1, output=output)], 10)
        assert len(await store.call_log(W)) == len(await kept_calls(store)) == 1
    assert path.read_bytes().count(b"only once only once ") <= len(output) / 20


@pytest.mark.parametrize("limits", [{"max_calls": 0}, {"max_bytes": -1}, {"max_decisions": True}, {"max_calls": "5"}])
def test_a_limit_that_is_no_limit_is_refused_by_its_name(limits: dict[str, object]):
    with pytest.raises(RequestError, match=f"log.{next(iter(limits))}"):
        LogLimits(**limits)  # type: ignore[arg-type]
