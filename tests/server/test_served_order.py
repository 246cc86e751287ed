"""A demand on order holds for programs that ask over HTTP before each call and tell how it ended."""

from __future__ import annotations

from typing import Any

import requests

SAID = "always run the tests before you commit"


def post(url: str, flow: str, **body: Any) -> dict[str, Any]:
    answer = requests.post(f"{url}/{flow}", json={"workspace_id": "order", **body}, timeout=20)
    assert answer.status_code == 200, answer.text
    read: dict[str, Any] = answer.json()
    return read


def uses(url: str, command: str, *, success: bool = True) -> str:
    call = {"tool_name": "Bash", "input": {"command": command}, "conversation_id": "c1"}
    decision = post(url, "check_tool_call", **call)["metadata"]["decision"]
    if decision["action"] == "allow":
        result = {**call, "output": "", "success": success, "decision_id": decision["id"]}
        post(url, "add_tool_call_result", tool_call_results=[result])
    return str(decision["action"])


def test_a_commit_is_stopped_until_tests_have_worked(served):
    tested = {"earlier": {"command": "^pytest", "worked": True, "since": {"writes": True}}}
    rule = {"tool_name": "@shell", "rule": SAID, "effect": "deny", "workspace_id": "order"}
    rule["when"] = {"when": [{"command": "^git commit"}], "unless": [tested]}
    body = {"jsonrpc": "2.0", "id": 1, "method": "memory.tool_rule_put", "params": rule}
    assert "error" not in requests.post(f"{served.url}/rpc", json=body, timeout=20).json()
    assert uses(served.url, "git commit -m x") == "deny"
    assert uses(served.url, "pytest", success=False) == "allow"
    assert uses(served.url, "git commit -m x") == "deny"
    assert uses(served.url, "pytest -q") != "deny"
    assert uses(served.url, "git commit -m x") == "allow"
    assert uses(served.url, "echo x > a.py") == "allow"
    assert uses(served.url, "git commit -m x") == "deny"
