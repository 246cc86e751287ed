"""A message that no road heard the user say is a program's, where agents are held to the store."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from toolmem import ToolMem
from toolmem.config.service_token import make_service_token
from toolmem.engine import StoreFile, before, user_said
from toolmem.hosts.install_notes import InstallNote, keep_note
from toolmem.light_models import ToolMemoryRule
from toolmem.readers.weight import at_once
from toolmem.rules.rule_store import RuleStore
from toolmem.testing.scripted_llm import ScriptedLLM
from toolmem.testing.service_process import ServiceProcess

BACK = "You may push to main again."
DEMAND = "Never use ssh."
PUSH = {"tool_name": "Bash", "input": {"command": "git push origin main"}}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """With one demand that a hook heard, and hooks that stand."""
    path = tmp_path / "repo" / ".toolmem" / "memory.db"
    path.parent.mkdir(parents=True)
    with StoreFile(path) as opened:
        opened.held = True
        assert user_said(opened, "Never push to main.", tools=["Bash"], by_class=True).rules
    settings = tmp_path / "settings.json"
    settings.write_text("{}")
    keep_note("claude-code", settings, InstallNote.between(settings, None, b"{}", []))
    return path


def rules_of(path: Path) -> list[ToolMemoryRule]:
    with StoreFile(path) as opened:
        return at_once(RuleStore(opened.protocol, clock=opened.clock).all_rules(inactive=True))[0]


def turn(message: str) -> dict[str, Any]:
    return {"user_message": message, "tools": ["Bash"], "session_id": "s9", "workspace_id": "default"}


def by_flow(path: Path, message: str) -> None:
    (path.parent / "r.json").write_text(json.dumps(turn(message)))
    command(path, "run", "capture_tool_rules", "--request", str(path.parent / "r.json"))


def by_command(path: Path, message: str) -> None:
    file = path.parent / "turns.jsonl"
    file.write_text(json.dumps({name: value for name, value in turn(message).items() if name != "workspace_id"}) + "\n")
    command(path, "rules", "capture", "--turns", str(file), "--apply")


def command(path: Path, *words: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "toolmem", *words, f"vector_store.default.params.path={path}"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=path.parent.parent,
    )
    assert ran.returncode == 0, ran.stderr


def by_library(path: Path, message: str) -> None:
    with ToolMem(path) as mem:
        mem.capture_rules(message, tools=["Bash"])


@pytest.fixture
def service(store: Path, tmp_path: Path) -> Iterator[str]:
    with ServiceProcess(tmp_path / "service", f"vector_store.default.params.path={store}") as started:
        yield started.url


ROADS = {"a flow": by_flow, "the command": by_command, "the library": by_library}


@pytest.mark.parametrize("road", ROADS)
def test_what_it_demands_is_proposed(store: Path, road: str) -> None:
    ROADS[road](store, DEMAND)

    (made,) = [each for each in rules_of(store) if "ssh" in each.rule]
    assert (made.status, made.by, made.is_users) == ("proposed", "program", False)


@pytest.mark.parametrize("road", ROADS)
def test_what_it_takes_back_holds_on(store: Path, road: str) -> None:
    ROADS[road](store, BACK)

    (kept,) = [each for each in rules_of(store) if "push" in each.rule]
    assert kept.status == "active"
    with StoreFile(store) as opened:
        assert before(opened, PUSH).action == "deny"


@pytest.mark.parametrize("token", [False, True])
def test_over_http_and_rpc_it_is_the_same_with_the_token_and_without(store: Path, service: str, token: bool) -> None:
    headers = {"Authorization": f"Bearer {make_service_token()}"} if token else {}
    for message in (BACK, DEMAND):
        answer = requests.post(f"{service}/capture_tool_rules", json=turn(message), headers=headers, timeout=30)
        assert answer.status_code == 200
    (kept,) = [each for each in rules_of(store) if "push" in each.rule]
    (made,) = [each for each in rules_of(store) if "ssh" in each.rule]
    assert (kept.status, made.status, made.by) == ("active", "proposed", "program")

    if token:
        asked = {"id": kept.id, "status": "withdrawn"}
        body = {"jsonrpc": "2.0", "id": 1, "method": "memory.tool_rule_set_status", "params": asked}
        told = requests.post(f"{service}/rpc", json=body, headers=headers, timeout=30).json()["error"]
        assert told["data"]["reason"] == "proposed"
        assert f"lift {told['data']['code']}" in told["message"]


def test_on_a_store_that_nobody_holds_it_is_as_before(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    by_library(path, "Never push to main.")
    (made,) = rules_of(path)
    assert (made.status, made.is_users) == ("active", True)
    by_library(path, BACK)
    assert [each.status for each in rules_of(path)] == ["withdrawn"]


# ---------------------------------------------------------------- notes of demands

SSH = {"tool_name": "Bash", "input": {"command": "ssh build1 uptime"}}
NOTE: dict[str, Any] = {
    "user_message": f"{DEMAND} The keys are gone",
    "conversation_id": "chat-7",
    "tools_available": [{"type": "function", "function": {"name": "Bash", "parameters": {"properties": {}}}}],
    "quote": DEMAND,
    "effect": "deny",
    "lasting": "always",
    "tools": ["Bash"],
    "when": [{"command": "^ssh "}],
    "stops": [{"tool": "Bash", "arguments": {"command": "ssh db1"}}],
    "passes": [{"tool": "Bash", "arguments": {"command": "ls ~/.ssh"}}],
}


def note_by_http(service: str, **given: Any) -> dict[str, Any]:
    body = {"workspace_id": "default", **NOTE, **given}
    told = requests.post(f"{service}/note_demand", json=body, timeout=30).json()
    return {**told["metadata"], "success": told["success"], "answer": told["answer"]}


def note_by_rpc(service: str, **given: Any) -> dict[str, Any]:
    params = {"workspace_id": "default", **NOTE, **given}
    body = {"jsonrpc": "2.0", "id": 1, "method": "memory.demand_note", "params": params}
    headers = {"Authorization": f"Bearer {make_service_token()}"}
    told: dict[str, Any] = requests.post(f"{service}/rpc", json=body, headers=headers, timeout=30).json()["result"]
    return {**told, "success": told["outcome"] == "kept", "answer": told["told"]}


SERVED = {"HTTP": note_by_http, "JSON-RPC": note_by_rpc}


@pytest.mark.parametrize("road", SERVED)
def test_a_note_on_a_held_store_is_a_programs_proposal_that_binds_nothing(store: Path, service: str, road: str) -> None:
    told = SERVED[road](service)
    assert (told["outcome"], told["success"]) == ("proposed", False)
    assert "waits for you" in told["answer"]
    (made,) = [each for each in rules_of(store) if "ssh" in each.rule]
    assert (made.status, made.by, made.is_users) == ("proposed", "program", False)
    with StoreFile(store) as opened:
        assert before(opened, SSH).action == "allow"


@pytest.mark.parametrize("road", SERVED)
def test_a_note_on_a_store_that_nobody_holds_is_in_force_said_by_the_program(tmp_path: Path, road: str) -> None:
    path = tmp_path / "free" / "memory.db"
    with ServiceProcess(tmp_path / "service", f"vector_store.default.params.path={path}") as started:
        told = SERVED[road](started.url)
        assert (told["outcome"], told["success"]) == ("kept", True)
        assert told["answer"].startswith(f"Kept: “{DEMAND}” (stops `ssh db1`, not `ls ~/.ssh`)")
        refused = SERVED[road](started.url, quote="never push to main")
        assert (refused["outcome"], refused["success"]) == ("refused", False)
        assert [each["field"] for each in refused["problems"]] == ["quote"]
        body = {"workspace_id": "default", **SSH}
        decided = requests.post(f"{started.url}/check_tool_call", json=body, timeout=30).json()
        assert decided["metadata"]["decision"]["action"] == "deny"
        assert DEMAND in decided["answer"]
    (made,) = rules_of(path)
    assert (made.status, made.by) == ("active", "program")


@pytest.mark.parametrize("road", SERVED)
def test_a_demand_of_one_conversation_binds_calls_that_name_it(tmp_path: Path, road: str) -> None:
    path = tmp_path / "free" / "memory.db"
    with ServiceProcess(tmp_path / "service", f"vector_store.default.params.path={path}") as started:
        assert SERVED[road](started.url, lasting="session")["outcome"] == "kept"
        for conversation, action in (("chat-7", "deny"), ("chat-8", "allow")):
            body = {"workspace_id": "default", "conversation_id": conversation, **SSH}
            decided = requests.post(f"{started.url}/check_tool_call", json=body, timeout=30).json()
            assert decided["metadata"]["decision"]["action"] == action


def test_what_a_configured_model_notes_on_a_held_store_is_proposed_too(store: Path) -> None:
    fields = {name: value for name, value in NOTE.items() if name not in ("user_message", "conversation_id")}
    del fields["tools_available"]
    reply = json.dumps({"calls": [{"name": "note_demand", "arguments": fields}]})
    with ToolMem(store, overrides=["rules.capture=model"], llms={"default": ScriptedLLM([reply])}) as mem:
        told = mem.capture_rules(NOTE["user_message"], tools=["Bash"])
    assert "waits for you" in told.notes[0]
    assert {each.status for each in rules_of(store) if "ssh" in each.rule} == {"proposed"}
