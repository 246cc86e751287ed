"""What calls teach the guard lies in the commit that keeps them."""

from __future__ import annotations

import asyncio
import multiprocessing
import random
import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import apsw
import pytest

from toolmem import ToolMemApp
from toolmem.engine import StoreFile, after
from toolmem.engine.guard_records import CONVERSATIONS, Places
from toolmem.engine.guarding import CallGuard
from toolmem.engine.lessons import Lessons
from toolmem.flow.runner import SystemClock
from toolmem.light_models import ToolCall
from toolmem.store.masked import masking
from toolmem.store.sqlite import SqliteStore
from toolmem.testing.clock import ManualClock
from toolmem.testing.store_contract.scenario import call

W, TOOLS = "w", ("bash", "search", "sql")
FAILED = "Error: no such file"


def failures(first: int, count: int) -> list[dict[str, Any]]:
    """Each in a conversation of its own; two tools in turn."""
    return [
        {
            "tool_name": TOOLS[number % len(TOOLS)],
            "input": {"command": f"cat {number}"},
            "output": FAILED,
            "success": False,
            "metadata": {"conversation_id": f"c{number}"},
        }
        for number in range(first, first + count)
    ]


async def kept_and_learned(path: Path) -> tuple[set[str], set[str]]:
    """The conversations of the calls that are kept, and those in which a failure stands, hashed."""
    async with SqliteStore(path, clock=ManualClock(), embedder=None) as store:
        logged = await store.call_log(W, limit=10_000)
        learned = {record.key for record in await store.list_raw(W, [CONVERSATIONS])}
        return {place(each.call.conversation_id)[1] for each in logged}, learned


def by_flow(path: str, pipe: Connection) -> None:
    """Adds five failures at a time, and tells how many were acknowledged."""

    async def add_all() -> None:
        async with ToolMemApp(overrides=[f"vector_store.default.params.path='{path}'"]) as app:
            for first in range(0, 500, 5):
                calls = failures(first, 5)
                added = await app.run_flow("add_tool_call_result", workspace_id=W, tool_call_results=calls)
                assert added.success, added.answer
                pipe.send(first + 5)

    asyncio.run(add_all())


def by_hooks(path: str, pipe: Connection) -> None:
    """As `by_flow`, one failure at a time without an event loop, as hooks keep calls."""
    with StoreFile(path) as store:
        for number, record in enumerate(failures(0, 500), 1):
            after(store, record, workspace_id=W)
            pipe.send(number)


@pytest.mark.parametrize("add", [by_flow, by_hooks])
def test_a_process_that_dies_leaves_no_kept_call_that_taught_nothing_and_no_lesson_of_a_lost_one(
    tmp_path: Path, add: Callable[[str, Connection], None]
) -> None:
    context, draw = multiprocessing.get_context("spawn"), random.Random(7)
    for number in range(4):
        path = tmp_path / f"{number}.db"
        mine, theirs = context.Pipe()
        process = context.Process(target=add, args=(str(path), theirs), daemon=True)
        process.start()
        assert mine.poll(60), "nothing was added"
        time.sleep(draw.uniform(0, 0.2))
        process.kill()
        process.join(60)
        theirs.close()
        acknowledged = last_of(mine)
        kept, learned = asyncio.run(kept_and_learned(path))
        assert len(kept) >= acknowledged >= 1
        assert kept == learned


def last_of(pipe: Connection) -> int:
    told = 0
    try:
        while pipe.poll():
            told = pipe.recv()
    except EOFError:
        pass
    return told


async def test_what_calls_teach_is_written_in_the_transaction_that_keeps_them(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    async with ToolMemApp(overrides=[f"vector_store.default.params.path='{path}'"]) as app:
        await app.run_flow("add_tool_call_result", workspace_id=W, tool_call_results=failures(0, 1))
        before = commits(path)
        await app.run_flow("add_tool_call_result", workspace_id=W, tool_call_results=failures(1, 200))
        written = commits(path) - before
    assert len((await kept_and_learned(path))[1]) == 201
    assert written == 2  # the verdicts; the calls of three tools, with what 200 conversations learn of them


def commits(path: Path) -> int:
    """Transactions in the write-ahead log: a frame that ends one bears the size of the database in pages."""
    log = path.with_name(f"{path.name}-wal").read_bytes()
    frame = 24 + int.from_bytes(log[8:12], "big")
    heads = [log[at : at + 24] for at in range(32, len(log) - frame + 1, frame)]
    return sum(head[8:16] == log[16:24] and head[4:8] != bytes(4) for head in heads)


class _Broken(Lessons):
    def change(self, *given: Any) -> None:
        raise apsw.IOError("the disk")


async def test_calls_that_are_not_kept_teach_nothing_now_and_the_same_calls_do_when_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with SqliteStore(tmp_path / "memory.db", clock=ManualClock(), embedder=None) as opened:
        store: Any = masking(opened)
        guard = CallGuard(store, W, clock=SystemClock())
        failed = call(1, "bash", success=False, id="a", output=FAILED, metadata={"conversation_id": "c"})
        with monkeypatch.context() as patched:
            patched.setattr("toolmem.engine.guarding.Lessons", _Broken)
            with pytest.raises(Exception, match="the disk"):
                await guard.keep([(failed, "")], 10, store)
        assert await store.call_log(W) == await store.list_raw(W, [CONVERSATIONS]) == []
        await guard.keep([(failed, "")], 10, store)
        assert len(await store.call_log(W)) == len(await store.list_raw(W, [CONVERSATIONS])) == 1


async def test_a_call_that_is_known_or_cannot_be_kept_teaches_nothing(tmp_path: Path) -> None:
    async with SqliteStore(tmp_path / "memory.db", clock=ManualClock(), embedder=None) as opened:
        store: Any = masking(opened)

        async def keep(*calls: Any) -> None:
            await CallGuard(store, W, clock=SystemClock()).keep([(each, "") for each in calls], 10, store)

        def failed(number: int, conversation: str, **given: Any) -> Any:
            told = {"conversation_id": conversation}
            return call(number, "bash", success=False, output=FAILED, metadata=told, **given)

        await keep(failed(1, "c", id="a"))
        await store.put(W, *place("c"), {"state": 0, "failures": {}})
        other = call(2, "search", success=True, metadata={"conversation_id": "d"})
        await keep(other, failed(1, "c", id="a"), failed(3, "e", time_cost=-1.0), failed(4, "f"))
        standing = {each.key for each in await store.list_raw(W, [CONVERSATIONS]) if "no such file" in each.text}
        assert standing == {place("f")[1]}


def place(conversation: str) -> tuple[str, str]:
    found = Places(conversation).of_conversation
    assert found is not None
    return found


async def test_a_lesson_that_cannot_be_learned_costs_no_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*_: Any, **__: Any) -> Any:
        raise ArithmeticError("a defect")

    monkeypatch.setattr("toolmem.engine.lessons.ended_call", fails)
    async with SqliteStore(tmp_path / "memory.db", clock=ManualClock(), embedder=None) as opened:
        guard = CallGuard(masking(opened), W, clock=SystemClock())
        calls: Sequence[dict[str, Any]] = failures(0, 2)
        for each in calls:
            await guard.after(None, ToolCall(each["tool_name"], each["input"], FAILED, success=False))
        assert len(await opened.call_log(W)) == 2
        assert "a defect" in caplog.text
