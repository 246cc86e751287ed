"""Which memory a proxy uses where none is named, and what it shares with the hooks of its host."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.server.proxy.conftest import PROXY, SARAH, SCRIPTED, Lines, call, initialize, text_of
from toolmem import ToolMem
from toolmem.hosts.receipts import Receipts

ASK = "ask me before you email Sarah"
SESSION = "5f1c3a52-0000-4000-8000-000000000001"


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Path, Path]]:
    """A project's folder and the user's home."""
    project, home = tmp_path / "project", tmp_path / "home"
    (project / ".git").mkdir(parents=True)
    (project / "src").mkdir()
    home.mkdir()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("HOME", str(home))
    return project, home


def put(store: Path, sentence: str, tool: str = "send_email") -> None:
    store.parent.mkdir(exist_ok=True)
    with ToolMem(store) as memory:
        memory.rules.put(tool, sentence, priority="critical")


def calls_in(store: Path) -> list[Any]:
    with ToolMem(store) as memory:
        return list(memory.calls())


def proxy_in(folder: Path, *options: str, **environment: str) -> Lines:
    return Lines([*PROXY, *options, "--", *SCRIPTED], folder, **environment)


def test_the_rules_of_the_project_and_of_the_user_bind_and_calls_go_to_the_project(places):
    project, home = places
    put(project / ".toolmem" / "memory.db", SARAH)
    put(home / ".toolmem" / "memory.db", "never email Bob")
    proxy = proxy_in(project / "src", HOME=str(home))
    tools = proxy.ask({"jsonrpc": "2.0", "id": 0, "method": "tools/list"})["result"]["tools"]
    assert SARAH in tools[1]["description"]
    assert "never email Bob" in tools[1]["description"]
    assert SARAH in text_of(proxy.call("send_email", {"to": "sarah@example.com"}, 1))
    assert "never email Bob" in text_of(proxy.call("send_email", {"to": "Bob"}, 2))
    assert proxy.call("odd", {"n": 1}, 3)["result"]["isError"] is False
    assert proxy.end()[2] == ""
    assert [each.input for each in calls_in(project / ".toolmem" / "memory.db")] == [{"n": 1}]
    assert calls_in(home / ".toolmem" / "memory.db") == []


def test_the_users_own_store_is_used_where_the_project_has_none(places):
    project, home = places
    put(home / ".toolmem" / "memory.db", SARAH)
    proxy = proxy_in(project, HOME=str(home))
    assert SARAH in text_of(proxy.call("send_email", {"to": "sarah@example.com"}))
    proxy.call("odd", {"n": 1}, 2)
    proxy.end()
    assert not (project / ".toolmem").exists()
    assert len(calls_in(home / ".toolmem" / "memory.db")) == 1


def test_the_store_of_somebody_elses_folder_is_not_used(places, tmp_path, monkeypatch):
    project, home = places
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another"))
    put(project / ".toolmem" / "memory.db", "always email sarah@example.com first")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    proxy = proxy_in(project, HOME=str(home))
    proxy.send({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    assert b"always email" not in proxy.line()
    assert "neither made nor trusted" in proxy.end()[2]


def test_a_call_that_a_hook_let_through_is_one_record_and_nobody_is_asked_twice(places):
    project, home = places
    store = project / ".toolmem" / "memory.db"
    put(store, ASK)
    receipts = Receipts()
    receipts.begin("claude-code", SESSION, "before_call", "toolu_1")
    receipts.end(SESSION, "before_call", "toolu_1", action="ask", note={"id": "d1", "action": "ask", "sources": []})
    proxy = proxy_in(project, HOME=str(home), CLAUDE_CODE_SESSION_ID=SESSION, CLAUDE_PROJECT_DIR=str(project))
    proxy.ask(initialize(elicitation={}))
    told = {"_meta": {"claudecode/toolUseId": "toolu_1"}}
    assert proxy.call("send_email", {"to": "Sarah"}, 1, **told)["result"]["isError"] is False
    proxy.send(call("send_email", {"to": "Sarah"}, 2, _meta={"claudecode/toolUseId": "toolu_2"}))
    assert proxy.read()["method"] == "elicitation/create"  # no hook was told of this one
    proxy.end()
    (kept,) = calls_in(store)
    assert kept.id == "toolu_1"
    assert kept.metadata["conversation_id"] == SESSION
