"""A store file with a flipped byte: each command says so or goes on, and none breaks off with a traceback."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from toolmem import ToolMem
from toolmem.cli import main
from toolmem.errors import StoreDamaged
from toolmem.store.sqlite.schema import APPLICATION_ID

HEADER = (0, 5, 15, 16, 18, 24, 28, 44, 47, 56, 60, 63, 68, 71, 100, 101, 103, 105, 108)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    store = tmp_path_factory.mktemp("whole") / "memory.db"
    with ToolMem(store) as memory:
        memory.rules.put("send_email", "Never e-mail Sarah Jäger", priority="critical")
        memory.add(
            [
                {
                    "tool_name": f"t{i % 3}",
                    "input": {"q": i},
                    "output": "Error: q is odd" if i % 2 else "ok",
                    "success": i % 2 == 0,
                }
                for i in range(60)
            ]
        )
        memory.summarize(["t0", "t1", "t2"])
    return store.read_bytes()


def places(whole: bytes) -> Iterator[int]:
    yield from HEADER
    for page in range(2048, len(whole), 2048):
        yield from (page, page + 3, page + 5, page + 9, page + 1500)


@pytest.mark.parametrize("mask", [0xFF, pytest.param(0x04, marks=pytest.mark.slow)])
def test_a_flipped_byte_ends_no_command_with_a_traceback(whole, mask, tmp_path, capsys):
    store = tmp_path / "memory.db"
    said = 0
    for number, at in enumerate(places(whole)):
        commands = [["rules", "list"], ["tools", "list"], ["tools", "show", "t1"], ["store", "info"]]
        command = commands[number % len(commands)]
        for beside in ("-wal", "-shm"):
            Path(f"{store}{beside}").unlink(missing_ok=True)
        data = bytearray(whole)
        data[at] ^= mask
        store.write_bytes(data)
        where = (
            ["--store", f"sqlite:{store}"] if command[0] == "store" else [f"vector_store.default.params.path={store}"]
        )
        with pytest.raises(SystemExit) as ended:
            main([*command, *where])
        told = capsys.readouterr()
        assert ended.value.code in (0, 1), (at, command, told.err)
        assert "Traceback" not in told.err, (at, command)
        said += f"the store {store} is damaged" in told.err
    assert said > len(HEADER) / 2


@pytest.mark.parametrize(
    "what",
    [b"SQLite format 3", APPLICATION_ID.to_bytes(4, "big"), "Jäger".encode()[2:]],
    ids=["the magic", "the mark of toolmem", "a letter of two bytes"],
)
def test_damage_is_an_error_of_its_own_that_says_what_to_do(whole, what, tmp_path):
    store = tmp_path / "memory.db"
    store.write_bytes(whole.replace(what, bytes([what[0] ^ 0xFF]) + what[1:]))
    with (
        pytest.raises(StoreDamaged, match=r"nothing was changed.*sqlite3 .* \.recover") as caught,
        ToolMem(store) as memory,
    ):
        memory.rules.list("send_email")
    assert caught.value.path == str(store)


def test_a_damaged_log_beside_the_store_costs_no_traceback(whole, tmp_path, capsys):
    store = tmp_path / "memory.db"
    store.write_bytes(whole)
    with ToolMem(store) as memory:
        memory.rules.put("send_email", "Never e-mail Bob", priority="critical")
        log = Path(f"{store}-wal").read_bytes()
        data = store.read_bytes()
    for at in range(0, len(log), 509):
        Path(f"{store}-shm").unlink(missing_ok=True)
        store.write_bytes(data)
        broken = bytearray(log)
        broken[at] ^= 0xFF
        Path(f"{store}-wal").write_bytes(broken)
        with pytest.raises(SystemExit) as ended:
            main(["rules", "list", f"vector_store.default.params.path={store}"])
        told = capsys.readouterr()
        assert ended.value.code in (0, 1)
        assert "Traceback" not in told.err
