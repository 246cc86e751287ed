"""Client and AsyncClient: the methods of ToolMem, asked of a real service."""

import asyncio
import inspect
import pydoc
from collections.abc import Sequence
from typing import Any
from unittest.mock import create_autospec

import httpx
import pytest

from toolmem import AsyncClient, AsyncToolMem, Client, ToolMem
from toolmem.errors import Conflict, RequestError, ServiceError, StoreClosed
from toolmem.operations import OPERATIONS
from toolmem.rules.changes import rule_digest

SARAH = "never email Sarah at sarah@example.com"
MAIL = {"name": "send_email", "parameters": {"properties": {"to": {"type": "string"}}}}
CALLS = [{"tool_name": "search", "input": {"q": "rain"}, "output": "[]", "success": True}]


@pytest.fixture
def client(url, request):
    with Client(url, workspace=request.node.name) as opened:
        yield opened


@pytest.mark.parametrize("kind", [ToolMem, AsyncToolMem, Client, AsyncClient])
def test_every_operation_is_a_documented_method_and_wrong_calls_are_refused(kind):
    stand_in = create_autospec(kind, instance=True)
    for name, operation in OPERATIONS.items():
        method = getattr(kind, name)
        assert inspect.iscoroutinefunction(method) == (kind in (AsyncToolMem, AsyncClient))
        assert (method.__name__, method.__module__) == (name, operation.function.__module__)
        signature = inspect.signature(method)
        assert ["self", *operation.signature.parameters] == list(signature.parameters)
        assert "Annotated" not in str(signature)
        told = inspect.getdoc(method).splitlines()
        for argument in operation.signature.parameters:
            assert any(line.startswith(f"    {argument}: ") and line[-1] == "." for line in told)
        with pytest.raises(TypeError):
            getattr(stand_in, name)(colour="red")
    shown = "".join(pydoc.plaintext.document(kind).replace("|", "").split())  # 3.13 breaks lines
    assert f"add(self,tool_call_results:{Sequence[Any]},*" in shown
    with pytest.raises(TypeError):
        create_autospec(kind)(colour="red")


def test_what_works_over_the_client(serve, tmp_path):
    client = Client(serve()[0], workspace="w")
    assert client.add(CALLS).evaluation.evaluated == 1
    assert client.summarize("search").summarized == ["search"]
    assert client.guidance("search").text.startswith("## `search`")
    assert client.calls()[0].input == {"q": "rain"}
    assert client.tools()[0].calls_ever == 1
    assert client.ledger(newest=3).to_frame().empty  # no model was asked
    assert client.run("retrieve_tool_memory", tool_names="search").success
    checked = client.run("check_tool_call", tool_name="search", input={"q": "rain"})
    assert checked.metadata["decision"]["action"] == "allow"
    with pytest.raises(RequestError, match="'tools' is no flow"):
        client.run("tools")
    with ToolMem(str(tmp_path / "m.db"), workspace="w") as memory:
        assert memory.calls() == client.calls()


def test_older_calls_come_page_by_page_without_gap_or_repetition(client, url):
    calls = [
        {"tool_name": "ab"[n % 2], "input": {"q": n}, "output": "x", "success": n % 3 > 0}
        for n in range(120)
    ]
    client.add(calls)
    seen, before = [], None
    while not seen or before:
        page = client.calls(["a", "b"], outcome="failed", before=before, limit=7)
        seen, before = [each.input["q"] for each in page] + seen, page.next
    assert seen == list(range(0, 120, 3))
    asked = {"workspace": client.workspace_name, "limit": 3}
    answer = httpx.post(f"{url}/calls", json=asked, trust_env=False)
    assert [each["input"]["q"] for each in answer.json()] == [117, 118, 119]
    older = {**asked, "before": int(answer.headers["Toolmem-Next"])}
    answer = httpx.post(f"{url}/calls", json=older, trust_env=False)
    assert [each["input"]["q"] for each in answer.json()] == [114, 115, 116]
    answer = httpx.post(f"{url}/calls", json={**asked, "limit": 120}, trust_env=False)
    assert "Toolmem-Next" not in answer.headers


def test_what_the_user_demands_over_the_client(client):
    kept = client.capture_rules(SARAH, tools=[MAIL])
    assert [rule.rule for rule in kept.kept] == [SARAH]
    assert SARAH in client.prompt([MAIL])
    decision = client.check_tool_call("send_email", {"to": "sarah@example.com"})
    assert decision.action == "deny"
    [rule] = client.tool_rule_list("send_email")
    assert client.tool_rule_get("send_email", rule.id) == rule
    assert client.tool_rule_delete("send_email", rule.id)
    allowed = client.check_tool_call("send_email", {"to": "sarah@example.com"})
    assert allowed.action == "allow"
    assert client.tool_call_ended(allowed, {"to": "sarah@example.com"}, success=True)
    assert client.remember("blue is staging").content == "blue is staging"
    assert client.health()["status"] == "ok"
    assert client.workspace("other").tool_rule_list("send_email") == []


def test_rules_and_decisions_are_reviewed_over_the_client(client):
    rule = client.tool_rule_put("t", "Never", effect="deny", when=[{"always": True}])
    client.check_tool_call("t", {"a": 1})
    [listed] = client.tool_rules()
    assert (listed.rule, listed.stopped, listed.digest) == (rule, 1, rule_digest(rule))
    assert client.tool_rule_try(id=rule.id, call={"a": 1}).match == "yes"
    [decision] = client.decisions(action="deny")
    assert client.mark_decision(decision.id).is_wrong
    assert list(client.decisions().to_frame()["is_wrong"]) == [True]
    client.tool_rule_review(rule.id, "withdraw", seen=listed.digest)
    with pytest.raises(Conflict, match="read it again"):
        client.tool_rule_review(rule.id, "restore", seen=listed.digest)
    assert client.tool_rules(state="holds") == []


def test_a_note_over_the_client_is_kept_and_one_with_a_forged_quote_is_not(client):
    calls = [[{"tool": "Bash", "arguments": {"command": c}}] for c in ("git push", "ls")]
    note = {"effect": "deny", "tools": ["Bash"], "when": [{"command": "^git push"}]}
    note |= {"stops": calls[0], "passes": calls[1], "tools_available": ["Bash"]}
    outcomes = [
        client.note_demand(quote, **note, user_message="no pushes, please").outcome
        for quote in ("no pushes, please", "the user never said any of this here")
    ]
    assert outcomes == ["kept", "refused"]


def test_errors_are_those_of_the_service(client, url, serve):
    with pytest.raises(RequestError) as refused:
        client.tool_rule_put(" ", "x")
    assert refused.value.field == "tool_name"
    with pytest.raises(RequestError, match="priority"):
        client.tool_rule_put("t", "x", priority="urgent")
    with pytest.raises(RequestError, match="base_url"):
        Client("ftp://x")
    guarded, _ = serve(token="s3cret", store="other.db")
    with Client(guarded, token="wrong") as wrong, pytest.raises(ServiceError) as denied:
        wrong.tools()
    assert denied.value.status == 401
    nobody = Client("http://bob:s3cret@127.0.0.1:9", timeout=2)
    with nobody, pytest.raises(ServiceError, match="is `toolmem serve` running") as gone:
        nobody.tools()
    assert "s3cret" not in str(gone.value)
    client.close()
    with pytest.raises(StoreClosed):
        client.tools()


def test_a_proxy_of_the_environment_is_not_asked_for_this_machine(url, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    with Client(url, workspace="proxy") as client:
        assert client.tools() == []


def test_the_same_awaited(url):
    async def main():
        async with AsyncClient(url, workspace="awaited") as client:
            await client.add(CALLS * 2)
            names = [tool.tool_name for tool in await client.tools()]
            return names, (await client.calls(limit=1)).next is not None

    assert asyncio.run(main()) == (["search"], True)


def test_half_an_emoji_in_a_call_or_a_question_is_sent_as_what_utf_8_can_carry(client):
    assert client.add([{**CALLS[0], "output": "cut \ud83d"}]).success
    assert [call.output for call in client.calls(text="cut \ud83d")] == ["cut \ufffd"]
