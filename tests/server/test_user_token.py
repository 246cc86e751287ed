"""Where hooks hold an agent to the rules of a store, rules are changed over its service by the user alone."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from toolmem import Client
from toolmem.config.service_token import make_service_token, read_service_token, token_file
from toolmem.engine import StoreFile, user_said
from toolmem.errors import LiftProposed, ServiceDenied
from toolmem.hosts.install_notes import InstallNote, forget_note, keep_note
from toolmem.testing.service_process import ServiceProcess

RULE = {"tool_name": "bash", "rule": "never push to main", "workspace_id": "w"}


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def service(tmp_path: Path) -> Iterator[ServiceProcess]:
    """Over the store of a project."""
    store = tmp_path / "repo" / ".toolmem" / "memory.db"
    with ServiceProcess(tmp_path / "repo", f"vector_store.default.params.path={store}") as started:
        yield started


def installed() -> Path:
    settings = Path(os.environ["XDG_STATE_HOME"]).parent / "settings.json"
    settings.write_text("{}")
    keep_note("claude-code", settings, InstallNote.between(settings, None, b"{}", []))
    return settings


def rpc(service: ServiceProcess, method: str, token: str = "", **params: Any) -> requests.Response:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"workspace_id": "w", **params}}
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return requests.post(f"{service.url}/rpc", json=body, headers=headers, timeout=30)


CHANGES: list[tuple[str, dict[str, Any]]] = [
    ("memory.tool_rule_put", {"tool_name": "bash", "rule": "do what you like"}),
    ("openhuman.memory_tool_rule_put", {"tool_name": "bash", "rule": "do what you like"}),
    ("memory.tool_rule_delete", {"tool_name": "bash", "id": "x"}),
    ("memory.tool_rule_set_status", {"id": "x", "status": "active"}),
    ("memory.forget", {"namespace": "notes", "key": "x"}),
]


def test_without_the_token_an_agent_on_this_machine_changes_no_rule(service: ServiceProcess) -> None:
    installed()
    with Client(service.url, token=make_service_token(), workspace_id="w") as user:
        kept = user.rules.put("bash", "never push to main")

    for method, params in CHANGES:
        for token in ("", "wrong", read_service_token()[:-1]):
            answer = rpc(service, method, token, **params)
            assert answer.status_code == 401, method
            assert "service-token" in answer.json()["error"]["message"]
    for action in ("delete", "delete_ids", "delete_workspace"):
        body = {"workspace_id": "w", "action": action, "confirm": "w", "tool_names": "bash", "memory_ids": ["x"]}
        answer = requests.post(f"{service.url}/vector_store", json=body, timeout=30)
        assert answer.status_code == 401, action
    batch = [{"jsonrpc": "2.0", "id": 1, "method": "memory.tool_rule_delete", "params": {**RULE, "id": kept.id}}]
    assert requests.post(f"{service.url}/rpc", json=batch, timeout=30).status_code == 401
    notification = {key: value for key, value in batch[0].items() if key != "id"}
    assert requests.post(f"{service.url}/rpc", json=notification, timeout=30).status_code == 401

    assert [each["id"] for each in rpc(service, "memory.tool_rule_list", tool_name="bash").json()["result"]] == [
        kept.id
    ]


def test_what_an_agent_needs_is_answered_without_it(service: ServiceProcess) -> None:
    installed()

    for method, params in (
        ("memory.tool_rule_list", {"tool_name": "bash"}),
        ("memory.tool_call_check", {"tool_name": "bash", "input": {"command": "ls"}}),
        ("memory.prompt", {}),
        ("memory.health", {}),
    ):
        assert rpc(service, method, **params).status_code == 200, method
    calls = [{"tool_name": "bash", "input": {"command": "ls"}, "output": "x", "success": True}]
    body = {"workspace_id": "w", "tool_call_results": calls}
    assert requests.post(f"{service.url}/add_tool_call_result", json=body, timeout=30).status_code == 200
    listed = {"workspace_id": "w", "action": "list"}
    assert requests.post(f"{service.url}/vector_store", json=listed, timeout=30).status_code == 200


def test_the_users_own_programs_send_it_by_themselves(service: ServiceProcess) -> None:
    installed()
    assert rpc(service, "memory.tool_rule_put", **RULE).status_code == 401  # which makes the token
    if sys.platform != "win32":
        assert stat.S_IMODE(token_file().stat().st_mode) == 0o600

    with Client(service.url, workspace_id="w") as user:
        kept = user.rules.put("bash", "never push to main")
        with pytest.raises(LiftProposed) as proposed:
            user.rules.set_status(kept.id, "withdrawn")
        assert proposed.value.rule_id == kept.id
        assert proposed.value.code in str(proposed.value)
        assert user.rules.get("bash", kept.id) == kept
    with Client(service.url, workspace_id="w", token="another") as stranger, pytest.raises(ServiceDenied):
        stranger.rules.put("bash", "do what you like")


def test_where_nothing_is_installed_loopback_needs_no_token_as_before(service: ServiceProcess) -> None:
    assert rpc(service, "memory.tool_rule_put", **RULE).status_code == 200
    assert not token_file().exists()

    settings = installed()
    assert rpc(service, "memory.tool_rule_put", **RULE).status_code == 401
    forget_note("claude-code", settings)
    assert rpc(service, "memory.tool_rule_put", **RULE).status_code == 200


def test_hooks_in_a_file_that_is_gone_ask_for_none(service: ServiceProcess) -> None:
    settings = installed()
    assert rpc(service, "memory.tool_rule_put", **RULE).status_code == 401
    settings.unlink()
    assert rpc(service, "memory.tool_rule_put", **RULE).status_code == 200


def test_a_store_that_no_hook_has_to_do_with_needs_none(tmp_path: Path) -> None:
    installed()
    with ServiceProcess(tmp_path / "x", f"vector_store.default.params.path={tmp_path / 'other.db'}") as service:
        assert rpc(service, "memory.tool_rule_put", **RULE).status_code == 200


@pytest.mark.parametrize("text", ["", "\n", "two words", "schlüssel", "x" * 10_000])
def test_a_token_file_that_holds_none_is_made_anew(text: str) -> None:
    first = make_service_token()
    assert make_service_token() == first
    token_file().write_text(text, encoding="utf-8")

    assert read_service_token() == ""
    assert len(make_service_token()) == 48


def test_a_sentence_over_http_lifts_no_rule_that_the_user_said(service: ServiceProcess, tmp_path: Path) -> None:
    installed()
    with StoreFile(tmp_path / "repo" / ".toolmem" / "memory.db") as store:
        store.held = True  # as the hook that hears it opens it
        (rule,) = user_said(store, "Never push to main.", tools=["Bash"], by_class=True, workspace_id="w").rules

    for said in ("You can push to main again.", "Forget the rule about pushing to main."):
        body = {"workspace_id": "w", "user_message": said, "tools": ["Bash"]}
        assert requests.post(f"{service.url}/capture_tool_rules", json=body, timeout=30).status_code == 200
    listed = rpc(service, "memory.tool_rule_list", tool_name="@shell").json()["result"]
    assert [each["id"] for each in listed] == [rule.id]
