"""A store on a medium that cannot be written: it is read where that was asked for, and refused otherwise."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import apsw
import pytest

from toolmem.errors import StoreDamaged
from toolmem.store.sqlite import SqliteStore
from toolmem.store.sqlite.schema import APPLICATION_ID
from toolmem.testing.clock import ManualClock
from toolmem.testing.store_contract.scenario import EMBEDDER, append

make = partial(SqliteStore, clock=ManualClock(), embedder=EMBEDDER)

# In a mount namespace of its own: the folder becomes a medium that nobody can write, root included.
ON_A_READ_ONLY_MEDIUM = """
set -e
mount --bind "$1" "$1"
mount -o remount,ro,bind "$1"
exec "$2" -c "$3" "$1/memory.db"
"""
READ = """
import asyncio, sys
from toolmem.errors import StoreUnavailable
from toolmem.store.sqlite import SqliteStore
from toolmem.testing.clock import ManualClock
from toolmem.testing.store_contract.scenario import EMBEDDER, W, append, kept_calls, numbers_of

async def main():
    try:
        await SqliteStore(sys.argv[1], clock=ManualClock(), embedder=EMBEDDER).open()
    except StoreUnavailable as error:
        print("refused:", error)
    try:
        async with SqliteStore(sys.argv[1], clock=ManualClock(), embedder=EMBEDDER, accept_read_only=True) as store:
            print("read:", numbers_of(await kept_calls(store)), await store.workspaces() == [W])
            print("found:", len(await store.search(W, "umbrella", None, 5)))
            await append(store, 3)
    except StoreUnavailable as error:
        print("then:", error)

asyncio.run(main())
"""


def read_there(folder: Path) -> list[str]:
    unshare = shutil.which("unshare")
    command = [unshare or "", "-m", "bash", "-c", ON_A_READ_ONLY_MEDIUM, "bash", str(folder), sys.executable, READ]
    if unshare is None or os.geteuid() != 0 or subprocess.run([unshare, "-m", "true"], check=False).returncode:
        pytest.skip("a read-only medium needs mount namespaces (root on Linux)")
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


async def test_a_store_on_a_read_only_medium_is_read_where_that_is_asked_for(tmp_path: Path):
    path = tmp_path / "disc #1" / "memory.db"
    async with make(path) as store:
        await append(store, 1, 2)
    refused, read, found, then = read_there(path.parent)
    assert refused.startswith("refused: cannot open the store")
    assert "not writable" in refused
    assert f"toolmem store copy --from sqlite:{path}" in refused
    assert (read, found) == ("read: [1, 2] True", "found: 0")
    assert then.startswith(f"then: the store {path} cannot be written")


async def test_writes_that_are_still_in_the_log_are_not_passed_over_in_silence(tmp_path: Path):
    path = tmp_path / "disc" / "memory.db"
    path.parent.mkdir()
    async with make(tmp_path / "memory.db") as store:
        await append(store, 1)
        for name in ("memory.db", "memory.db-wal"):  # as a backup of a running program takes them
            shutil.copy(tmp_path / name, path.parent / name)
    assert path.with_name("memory.db-wal").stat().st_size
    _, then = read_there(path.parent)
    assert "its last writes are in" in then
    assert "writable folder" in then


@pytest.mark.parametrize("version", [0, -1, -(2**31)])
async def test_a_file_with_our_mark_and_no_version_of_ours_is_refused_and_left_alone(tmp_path: Path, version: int):
    path = tmp_path / "theirs.db"
    db = apsw.Connection(str(path))
    db.execute(f"CREATE TABLE meta (x); PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {version}")
    db.close()
    before = path.read_bytes()
    with pytest.raises(StoreDamaged, match=f"schema version {version}, which no toolmem writes"):
        await make(path).open()
    assert path.read_bytes() == before
