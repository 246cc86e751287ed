"""`toolmem store`: info, copy, reembed, import, and what they refuse."""

from __future__ import annotations

import asyncio
import json
import socket
from pathlib import Path

import pytest

from toolmem.cli import main
from toolmem.providers.hashing import HashingEmbedder
from toolmem.store.sqlite import SqliteStore
from toolmem.testing.clock import ManualClock
from toolmem.testing.store_contract.scenario import append, document

DIMENSIONS = 384


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    async def fill() -> None:
        embedder = HashingEmbedder(DIMENSIONS)
        async with SqliteStore(path, clock=ManualClock(), embedder=embedder.identity) as store:
            await append(store, *range(5), workspace="team")
            await store.put("team", "n", "k", {"a": 1}, document=document("umbrella"))

    path = tmp_path / "filled.db"
    asyncio.run(fill())
    return path


def run(*arguments: str) -> int:
    try:
        main(list(arguments))
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def test_info_counts_what_a_store_holds(filled: Path, capsys: pytest.CaptureFixture[str]):
    assert run("store", "info", "--store", f"sqlite:{filled}", "--json") == 0
    held = json.loads(capsys.readouterr().out)
    counted = {"tools": 1, "calls": 5, "records": 1, "verdicts": 0, "logged_calls": 5, "decisions": 0, "secrets": 0}
    assert held["workspaces"] == {"team": counted}
    assert run("store", "info", f"vector_store.default.params.path={filled}") == 0
    assert "team" in capsys.readouterr().out


def test_a_copy_tells_what_it_did_and_verifies_it(filled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    target = f"sqlite:{tmp_path / 'target.db'}"
    assert run("store", "copy", "--from", f"sqlite:{filled}", "--to", target) == 0
    out = capsys.readouterr().out
    assert "copied 1 tool: 5 calls added, 0 there already; 1 record added" in out
    assert "verified" in out
    assert run("store", "copy", "--from", f"sqlite:{filled}", "--to", target, "--json") == 0
    again = json.loads(capsys.readouterr().out)
    assert (again["calls"], again["duplicates"], again["kept"]) == (0, 5, 1)


def test_a_difference_is_an_exit_code(filled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    async def differ() -> None:
        async with SqliteStore(tmp_path / "target.db", clock=ManualClock(), embedder=None) as store:
            await store.put("team", "n", "k", {"a": "mine"})

    asyncio.run(differ())
    assert run("store", "copy", "--from", f"sqlite:{filled}", "--to", f"sqlite:{tmp_path / 'target.db'}") == 1
    assert "differs: team: record 'k' of 'n' differs" in capsys.readouterr().err


def test_reembed_takes_on_the_configured_embedder(filled: Path, capsys: pytest.CaptureFixture[str]):
    hashing = ("embedding_model.default.backend=hashing", "embedding_model.default.params.dimensions=64")
    command = ("store", "reembed", "--store", f"sqlite:{filled}", *hashing)
    assert run(*command) == 0
    assert "1 text embedded" in capsys.readouterr().out
    run("store", "info", "--store", f"sqlite:{filled}", "--json")
    assert json.loads(capsys.readouterr().out)["embedder"]["dimension"] == 64


def test_import_brings_over_what_reme_wrote(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    call = {"tool_name": "search", "input": {"q": 1}, "output": "ok", "success": True, "score": 1.0, "summary": "s"}
    call |= {"create_time": "2025-10-01 12:00:00", "evaluation": "good", "time_cost": 0.2, "token_cost": 5}
    memory = {"memory_type": "tool", "memory_id": "m1", "when_to_use": "search", "content": "Ask precisely."}
    memory |= {"time_created": "2025-10-01 12:00:00", "time_modified": "2025-10-01 12:00:00", "author": "qwen"}
    memory["tool_call_results"] = [call, {**call, "input": {"q": 2}}]
    folder = tmp_path / "reme"
    folder.mkdir()
    lines = [json.dumps(memory), json.dumps({"memory_type": "task", "content": "x"})]
    (folder / "team.jsonl").write_text("\n".join(lines), encoding="utf-8")
    store = f"sqlite:{tmp_path / 'store.db'}"
    assert run("store", "import", str(folder), "--store", store) == 0
    captured = capsys.readouterr()
    assert "imported 1 tool: 2 calls added" in captured.out
    assert "1 line of other memory types passed over (task)" in captured.err
    assert run("store", "import", str(folder), "--store", store) == 0
    assert "0 calls added, 2 there already" in capsys.readouterr().out
    (folder / "bad.jsonl").write_text('{"memory_type": "tool"}\n', encoding="utf-8")
    assert run("store", "import", str(folder), "--store", store) == 2


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("info", "--store", "sqlite:nowhere.db"), "there is no store nowhere.db"),
        (("info",), "there is no store"),
        (("info", "--store", "config:defualt"), "there are default"),
        (("info", "--store", "mongo:x"), "expected config:NAME"),
        (("info", "--store", "elasticsearch:http://x:1?api_key=1"), "is no part of an address"),
        (("info", "--store", "elasticsearch:http://x:1?timeout=soon"), "expected a number"),
        (("copy", "--from", "sqlite:a.db"), "--to"),
        (("copy", "--from", "sqlite:a.db", "--to", "sqlite:a.db"), "the store itself"),
        (("import", "nowhere.jsonl"), "there is no dump"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anything_is_made(
    arguments: tuple[str, ...], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    assert run("store", *arguments) == 2
    assert told in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "setting"),
    [
        (("copy", "--from", "sqlite:{filled}", "--to", "elasticsearch:{url}?timeout=2"), "--to"),
        (("copy", "--from", "elasticsearch:{url}?timeout=2", "--to", "sqlite:other.db"), "--from"),
        (("info", "--store", "elasticsearch:{url}?timeout=2"), "--store"),
        (
            (
                *("info", "vector_store.default.backend=elasticsearch", "vector_store.default.params.hosts={url}"),
                "vector_store.default.params.timeout=2",
            ),
            "vector_store.default.params.hosts",
        ),
    ],
)
def test_a_server_that_is_not_there_is_told_with_the_option_that_named_it(
    arguments: tuple[str, ...], setting: str, filled: Path, capsys: pytest.CaptureFixture[str]
):
    pytest.importorskip("elasticsearch")
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    assert run("store", *(each.format(filled=filled, url=url) for each in arguments)) == 1
    told = capsys.readouterr().err.splitlines()[-1]
    assert told.startswith(f"toolmem: Elasticsearch at {url} cannot be reached")
    assert told.endswith(f". Start the server, or correct {setting}")
    assert "ssl:" not in told
    assert "Connect call" not in told
