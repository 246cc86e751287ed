"""The safety case over HTTP: what the user demands is in every later prompt, whoever reads and whatever happens."""

from __future__ import annotations

from typing import Any

import pytest
import requests

SARAH = "never email Sarah at sarah@example.com"
SARAH_ZH = "永远不要给 sarah@example.com 的 Sarah 发邮件"


def rpc(url: str, method: str, **params: Any) -> Any:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    answer = requests.post(f"{url}/rpc", json=body, timeout=10).json()
    assert "error" not in answer, answer
    return answer["result"]


def capture(url: str, workspace: str, message: str) -> dict[str, Any]:
    turn = {"user_message": message, "tool_calls": [{"name": "send_email", "arguments": {}, "success": True}]}
    response = requests.post(f"{url}/capture_tool_rules", json={"workspace_id": workspace, **turn}, timeout=10)
    assert response.status_code == 200, response.text
    answered: dict[str, Any] = response.json()
    assert answered["success"]
    return answered


def test_a_demand_of_one_turn_is_pinned_to_the_prompts_of_all_later_ones(serve):
    service = serve()
    blocks = {}
    for workspace, said in (("sarah", SARAH), ("sarah-zh", SARAH_ZH)):
        capture(service.url, workspace, said)
        (rule,) = rpc(service.url, "memory.tool_rule_list", tool_name="send_email", workspace_id=workspace)
        assert (rule["rule"], rule["priority"], rule["source"]) == (said, "critical", "user_explicit")
        assert rule["tags"] == ["user-edict"]
        block = rpc(service.url, "memory.tool_rules_for_prompt", workspace_id=workspace)["rendered"]
        assert block.splitlines()[-2:] == ["### `send_email`", f"- **[critical]** {said}"]
        flow = {"workspace_id": workspace, "tools": ["send_email", "search"]}
        answer = requests.post(f"{service.url}/tool_rules_for_prompt", json=flow, timeout=10).json()["answer"]
        assert answer == block, "the flow and the RPC answer the same bytes"
        blocks[workspace] = block
        # A thousand calls are kept, and it is said again: the bytes of the block stay.
        calls = [{"tool_name": "send_email", "output": "sent"}] * 1000
        body = {"workspace_id": workspace, "tool_call_results": calls}
        assert requests.post(f"{service.url}/add_tool_call_result", json=body, timeout=60).json()["success"]
        capture(service.url, workspace, said)
    service.kill()
    service.start()
    for workspace, block in blocks.items():
        for tools in ([], ["search", "send_email"]):
            pinned = rpc(service.url, "memory.tool_rules_for_prompt", tools=tools, workspace_id=workspace)
            assert pinned["rendered"] == block
            assert len(pinned["rules"]) == 1


def test_a_critical_rule_is_never_dropped_and_workspaces_do_not_see_each_other(served):
    batch = [
        {
            "jsonrpc": "2.0",
            "id": number,
            "method": "memory.tool_rule_put",
            "params": {
                "tool_name": f"tool_{number}",
                "rule": f"never do thing {number}",
                "priority": "critical" if number < 35 else "high",
                "workspace_id": "many-rules",
            },
        }
        for number in range(40)
    ]
    answers = requests.post(f"{served.url}/rpc", json=batch, timeout=10).json()
    assert [answer["id"] for answer in answers] == list(range(40))
    pinned = rpc(served.url, "memory.tool_rules_for_prompt", workspace_id="many-rules")
    assert sum(rule["priority"] == "critical" for rule in pinned["rules"]) == 35
    assert len(pinned["left_out"]) == 5
    assert rpc(served.url, "memory.tool_rules_for_prompt", workspace_id="other") == {"rendered": "", "rules": []}


@pytest.mark.parametrize("said", ["Never mind", "Do you never sleep?", "don't send it yet"])
def test_what_is_no_standing_demand_pins_nothing(served, said):
    capture(served.url, "no-demand", said)
    assert rpc(served.url, "memory.tool_rules_for_prompt", workspace_id="no-demand")["rendered"] == ""
