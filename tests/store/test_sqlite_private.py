"""Who may read a store's files, and links that lead elsewhere."""

import os
import stat
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from toolmem import ToolMemApp
from toolmem.errors import StoreError, StoreUnavailable
from toolmem.store.sqlite import SqliteStore
from toolmem.testing.clock import ManualClock
from toolmem.testing.store_contract.scenario import EMBEDDER, append, kept_calls, numbers_of

make = partial(SqliteStore, clock=ManualClock(), embedder=EMBEDDER)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(params=[0o000, 0o022, 0o077], ids=oct)
def umask(request):
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


async def test_the_files_and_the_folder_of_a_new_store_are_this_users_alone(tmp_path, umask):
    path = tmp_path / "new" / ".toolmem" / "memory.db"
    async with make(path) as store:
        await append(store, 1)
        assert mode(path.parent) == 0o700
        assert {mode(path.with_name(path.name + end)) for end in ("", "-wal", "-shm")} == {0o600}


async def test_a_folder_of_the_users_own_keeps_its_permissions(tmp_path):
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o755)
    async with make(tmp_path / "shared" / "memory.db") as store:
        await append(store, 1)
        assert mode(tmp_path / "shared") == 0o755
        assert mode(tmp_path / "shared" / "memory.db") == 0o600
        assert not (tmp_path / "shared" / ".gitignore").exists()


async def test_what_an_earlier_version_left_open_to_others_is_closed(tmp_path):
    path = tmp_path / ".toolmem" / "memory.db"
    async with make(path) as store:
        await append(store, 1)
    (path.parent / ".gitignore").unlink()
    path.parent.chmod(0o755)
    path.chmod(0o644)
    async with make(path) as store:
        assert numbers_of(await kept_calls(store)) == [1]
        assert (mode(path.parent), mode(path)) == (0o700, 0o600)
        assert (path.parent / ".gitignore").read_text() == "*\n"


async def test_git_does_not_see_the_store(tmp_path):
    async with make(tmp_path / ".toolmem" / "memory.db"):
        pass
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    told = subprocess.run(["git", "-C", str(tmp_path), "status", "--porcelain"], capture_output=True, check=True)
    assert told.stdout == b""


async def test_a_gitignore_that_is_there_stays_as_it_is(tmp_path):
    (tmp_path / ".toolmem").mkdir()
    (tmp_path / ".toolmem" / ".gitignore").write_text("dumps\n")
    async with make(tmp_path / ".toolmem" / "memory.db"):
        assert (tmp_path / ".toolmem" / ".gitignore").read_text() == "dumps\n"


# ---------------------------------------------------------------- links


@pytest.mark.parametrize("end", ["", "-wal", "-shm", "-journal"])
@pytest.mark.parametrize("there", [True, False])
async def test_a_link_in_place_of_a_file_is_refused_and_what_it_leads_to_untouched(tmp_path, end, there):
    path = tmp_path / ".toolmem" / "memory.db"
    if end:
        async with make(path) as store:
            await append(store, 1)
    path.parent.mkdir(exist_ok=True)
    target = tmp_path / "precious"
    if there:
        target.write_bytes(b"")
    path.with_name(path.name + end).symlink_to(target)
    with pytest.raises(StoreUnavailable, match="symbolic link") as refused:
        await make(path).open()
    assert path.name + end in str(refused.value)
    assert target.exists() == there
    assert not there or target.read_bytes() == b""


async def test_a_folder_toolmem_that_is_a_link_is_refused(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / ".toolmem").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreUnavailable, match=r"\.toolmem is a symbolic link"):
        await make(tmp_path / ".toolmem" / "memory.db").open()
    assert list((tmp_path / "elsewhere").iterdir()) == []


async def test_a_reader_refuses_links_as_well(tmp_path):
    async with make(tmp_path / "real.db"):
        pass
    (tmp_path / "memory.db").symlink_to(tmp_path / "real.db")
    with pytest.raises(StoreUnavailable, match="symbolic link"):
        await make(tmp_path / "memory.db", accept_read_only=True).open()


async def test_a_link_on_the_way_to_the_users_folder_is_followed(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "project").symlink_to(tmp_path / "real")
    async with make(tmp_path / "project" / ".toolmem" / "memory.db") as store:
        await append(store, 1)
    async with make(tmp_path / "real" / ".toolmem" / "memory.db") as store:
        assert numbers_of(await kept_calls(store)) == [1]


async def test_what_is_no_regular_file_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "memory.db")
    with pytest.raises(StoreUnavailable, match="not a regular file"):
        await make(tmp_path / "memory.db").open()


# ---------------------------------------------------------------- logs that came with a folder


async def their_log(tmp_path: Path, end: str) -> bytes:
    """What lies beside a store of somebody else's that holds a call."""
    theirs = tmp_path / "theirs.db"
    async with make(theirs) as store:
        await append(store, 666)
        if end == "-wal":
            return theirs.with_name("theirs.db-wal").read_bytes()
    return b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" + theirs.read_bytes()


@pytest.mark.parametrize("end", ["-wal", "-journal"])
async def test_a_log_without_a_store_is_no_store(tmp_path, end):
    content = await their_log(tmp_path, end)
    path = tmp_path / ".toolmem" / "memory.db"
    path.parent.mkdir()
    path.with_name(path.name + end).write_bytes(content)
    with pytest.raises(StoreUnavailable, match=f"memory.db{end} was not written by this store"):
        await make(path).open()
    path.with_name(path.name + end).chmod(0o600)
    async with make(path) as store:
        assert await store.workspaces() == []


@pytest.mark.parametrize("end", ["-wal", "-journal"])
async def test_a_log_that_was_checked_out_beside_a_store_is_not_taken_over(tmp_path, end):
    content = await their_log(tmp_path, end)
    path = tmp_path / ".toolmem" / "memory.db"
    async with make(path) as store:
        await append(store, 1)
    log = path.with_name(path.name + end)
    log.write_bytes(content)
    log.chmod(0o644)
    with pytest.raises(StoreUnavailable, match=f"memory.db{end} was not written by this store"):
        await make(path).open()
    log.unlink()
    async with make(path) as store:
        assert numbers_of(await kept_calls(store)) == [1]


async def test_what_a_killed_process_left_beside_its_store_is_taken_over(tmp_path):
    path = tmp_path / ".toolmem" / "memory.db"
    code = (
        "import asyncio, os\nfrom tests.store.test_sqlite_private import append, make\n"
        f"async def work():\n    store = make({str(path)!r})\n    await store.open()\n    await append(store, 1)\n"
        "    os._exit(0)\nasyncio.run(work())\n"
    )
    root = Path(__file__).parents[2]
    subprocess.run([sys.executable, "-c", code], cwd=root, check=True, env={**os.environ, "PYTHONPATH": str(root)})
    assert path.with_name("memory.db-wal").stat().st_size
    async with make(path) as store:
        assert numbers_of(await kept_calls(store)) == [1]


# ---------------------------------------------------------------- dumps lie in the same folder

CALL = {"tool_name": "search", "input": {"q": "a"}, "output": "[1]", "success": True}


async def dump(app: ToolMemApp) -> None:
    await app.run_flow("add_tool_call_result", workspace_id="w", tool_call_results=[CALL])
    await app.run_flow("vector_store", workspace_id="w", action="dump")


async def test_a_dump_is_this_users_alone_and_unseen_by_git(tmp_path):
    async with ToolMemApp(overrides=["vector_store.default.params.path=':memory:'"]) as app:
        await dump(app)
    dumps = Path(".toolmem/dumps")
    assert (mode(dumps.parent), mode(dumps), mode(dumps / "w.jsonl")) == (0o700, 0o700, 0o600)
    assert (dumps.parent / ".gitignore").read_text() == "*\n"


@pytest.mark.parametrize("link", [".toolmem", ".toolmem/dumps"])
async def test_a_dump_through_a_link_is_refused(tmp_path, link):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    Path(link).parent.mkdir(exist_ok=True)
    Path(link).symlink_to(elsewhere)
    async with ToolMemApp(overrides=["vector_store.default.params.path=':memory:'"]) as app:
        with pytest.raises(StoreError, match="symbolic link"):
            await dump(app)
    assert list(elsewhere.iterdir()) == []
