"""A store of 0.1 is opened as it is, answers as it did, and goes on being used."""

from __future__ import annotations

import gzip
import json
import runpy
from pathlib import Path

import pytest

from toolmem import ToolMem
from toolmem.cli import main
from toolmem.errors import StoreUntrusted

HERE = Path(__file__).parent
BY_0_1 = runpy.run_path(str(HERE / "stores_of_0_1.py"))


def unpacked(path: Path) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(gzip.decompress((HERE / "sqlite.db.gz").read_bytes()))
    return path


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the names that `ask` uses
async def test_a_file_of_0_1_gives_a_program_of_0_1_the_same_answers(tmp_path: Path) -> None:
    then = json.loads(gzip.decompress((HERE / "sqlite_answers.json.gz").read_bytes()))
    now = await BY_0_1["ask"]([f"vector_store.default.params.path={unpacked(tmp_path / 'memory.db')}"])
    missing = BY_0_1["missing"](then, json.loads(json.dumps(now)))
    newer = ("## Tool-scoped rules", "captured though it was deleted")  # words before rules; a demand said anew is kept
    assert [each for each in missing if not any(words in each for words in newer)] == []


def test_a_file_of_0_1_goes_on_where_it_was(tmp_path: Path) -> None:
    with ToolMem(unpacked(tmp_path / "memory.db"), workspace="team") as memory:
        assert memory.add([{"tool_name": "search", "output": "again", "id": "c1"}]).duplicates == 1
        memory.add([{"tool_name": "search", "input": {"query": "hail", "limit": 9}, "output": '["helmet"]'}])
        (summary,) = memory.summarize("search")
        assert summary.action == "summarized"
        assert "5 calls" in memory.guidance("search").text
        (bobs, sarahs) = sorted(memory.rules.list("send_email"), key=lambda rule: rule.rule)
        assert memory.rules.delete("send_email", bobs.id)
        memory.rules.put("send_email", "never email Sarah", priority="high")
        assert [(rule.id, rule.priority) for rule in memory.rules.list("send_email")] == [(sarahs.id, "high")]


def test_a_store_of_0_1_that_lies_in_the_working_directory_is_trusted_once() -> None:
    unpacked(Path(".toolmem/memory.db"))
    with ToolMem(workspace="team") as memory, pytest.raises(StoreUntrusted, match="toolmem store trust"):
        memory.prompt()
    with pytest.raises(SystemExit) as ended:
        main(["store", "trust", ".toolmem/memory.db"])
    assert ended.value.code == 0
    with ToolMem(workspace="team") as memory:
        assert "never email Sarah" in memory.prompt()
