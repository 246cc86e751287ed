"""A store whose file is moved, replaced or deleted while it is open: it says so, and nothing acknowledged is lost."""

import asyncio
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from toolmem.errors import StoreUnavailable
from toolmem.store.sqlite import SqliteStore
from toolmem.testing.clock import ManualClock
from toolmem.testing.store_contract.scenario import EMBEDDER, TOOL, W, append, call, kept_calls, numbers_of

make = partial(SqliteStore, clock=ManualClock(), embedder=EMBEDDER)
SIDES = ("", "-wal", "-shm")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "here" / "memory.db"


def beside(path: Path, side: str) -> Path:
    return path.with_name(path.name + side)


def move_file(path: Path) -> None:
    path.rename(path.with_name("elsewhere.db"))


def move_folder(path: Path) -> None:
    path.parent.rename(path.parent.with_name("there"))


def delete_file(path: Path) -> None:
    path.unlink()


def delete_folder(path: Path) -> None:
    shutil.rmtree(path.parent)


def replace_by_a_copy(path: Path) -> None:
    shutil.copy(path, path.with_name("copy.db"))
    path.with_name("copy.db").replace(path)


def delete_log(path: Path) -> None:
    beside(path, "-wal").unlink()


def delete_index_of_the_log(path: Path) -> None:
    beside(path, "-shm").unlink()


@pytest.mark.parametrize(
    "happen",
    [move_file, move_folder, delete_file, delete_folder, replace_by_a_copy, delete_log, delete_index_of_the_log],
)
async def test_neither_a_write_nor_a_read_is_answered_as_if_nothing_had_happened(path, happen: Callable[[Path], None]):
    async with make(path) as store:
        await append(store, 1)
        await kept_calls(store)  # both connections are open
        happen(path)
        with pytest.raises(StoreUnavailable, match=r"moved, replaced or deleted while it was open") as refused:
            await append(store, 2)
        assert str(path) in str(refused.value)
        with pytest.raises(StoreUnavailable, match="while it was open"):
            await store.put(W, "notes", "a", {"text": "x"})
        with pytest.raises(StoreUnavailable, match="while it was open"):
            await kept_calls(store)


async def test_what_was_acknowledged_before_the_move_is_in_the_moved_files(path):
    async with make(path) as store:
        acknowledged: list[int] = []

        async def write() -> None:
            for number in range(1, 2000):
                await store.append_calls(W, TOOL, [call(number)], 100_000)
                acknowledged.append(number)

        writing = asyncio.create_task(write())
        while len(acknowledged) < 20:
            await asyncio.sleep(0.001)
        move_folder(path)
        with pytest.raises(StoreUnavailable, match="while it was open"):
            await writing
    async with make(path.parent.with_name("there") / "memory.db") as moved:
        kept = numbers_of(await kept_calls(moved))
        assert kept[: len(acknowledged)] == acknowledged
        assert len(kept) <= len(acknowledged) + 1


async def test_a_file_put_back_with_what_lies_beside_it_goes_on(path):
    async with make(path) as store:
        await append(store, 1)
        move_folder(path)
        with pytest.raises(StoreUnavailable):
            await append(store, 2)
        path.parent.with_name("there").rename(path.parent)
        await append(store, 3)
    async with make(path) as again:
        assert numbers_of(await kept_calls(again)) == [1, 3]


async def test_a_store_that_takes_the_place_of_a_deleted_one_is_left_alone(path):
    gone = make(path)
    await gone.open()
    await append(gone, 1)
    delete_folder(path)
    async with make(path) as another:
        await append(another, 7)
        with pytest.raises(StoreUnavailable, match="while it was open"):
            await append(gone, 2)
        await gone.close()
        await append(another, 8)
        assert numbers_of(await kept_calls(another)) == [7, 8]
    async with make(path) as again:
        assert numbers_of(await kept_calls(again)) == [7, 8]
    await gone.open()
    assert numbers_of(await kept_calls(gone)) == [7, 8]
    await gone.close()
