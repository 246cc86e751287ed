"""The SDK's client and server with a proxy between them, in both eras of the protocol."""

from __future__ import annotations

import json
from typing import Any

import pytest
from mcp import Client
from mcp_types import ElicitResult

from tests.server.proxy.conftest import MAIL, SARAH, SCRIPTED, call, initialize, parameters

ERAS = pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
ASK = "ask me before you email Sarah"


@ERAS
async def test_tools_answer_as_they_do_without_a_proxy(era, store):
    async with Client(parameters(store), mode=era) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert {"send_email", "weather", "fail"} <= names
        assert (await client.call_tool("weather", {"city": "Rome"})).structured_content == {
            "city": "Rome",
            "degrees": 21.5,
        }
        failed = await client.call_tool("fail", {"text": "no"})
        assert failed.is_error is True
        assert (await client.call_tool("no_such_tool", {})).is_error is True


@ERAS
async def test_progress_reaches_the_client(era, store):
    seen: list[float] = []

    async def note(done: float, total: float | None, message: str | None) -> None:
        seen.append(done)

    async with Client(parameters(store), mode=era) as client:
        await client.call_tool("count", {"to": 3}, progress_callback=note)
    assert seen == [1, 2, 3]


@ERAS
async def test_a_forbidden_call_is_an_error_the_model_reads(era, store, told):
    told(SARAH)
    async with Client(parameters(store), mode=era) as client:
        answer = await client.call_tool("send_email", {"to": "sarah@example.com"})
    assert answer.is_error is True
    assert SARAH in answer.content[0].text


@ERAS
@pytest.mark.parametrize(
    ("reply", "runs"),
    [
        (ElicitResult(action="accept", content={"run": True}), True),
        (ElicitResult(action="accept", content={"run": False}), False),
        (ElicitResult(action="decline"), False),
        (ElicitResult(action="cancel"), False),
    ],
    ids=["yes", "no", "declined", "cancelled"],
)
async def test_the_user_is_asked_by_the_client(era, store, told, reply, runs):
    told(ASK)
    asked: list[Any] = []

    async def answer(context: Any, params: Any) -> ElicitResult:
        asked.append(params)
        return reply

    async with Client(parameters(store), mode=era, elicitation_callback=answer) as client:
        result = await client.call_tool("send_email", {"to": "Sarah", "text": "hi"})
        assert (await client.call_tool("send_email", {"to": "bob@example.com"})).is_error is False
    assert len(asked) == 1
    assert ASK in asked[0].message
    assert result.is_error is not runs
    assert result.content[0].text == "sent to Sarah" if runs else "did not agree" in result.content[0].text


@ERAS
async def test_a_client_that_cannot_ask_is_told_to_ask_the_user(era, store, told):
    told(ASK)
    async with Client(parameters(store), mode=era) as client:
        answer = await client.call_tool("send_email", {"to": "Sarah"})
    assert answer.is_error is True
    assert "ask the user first" in answer.content[0].text


async def test_a_cancelled_call_is_kept_as_one_that_says_nothing(start, kept):
    proxy = start(server=MAIL)
    proxy.ask(initialize())
    proxy.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
    proxy.send(call("wait", {"seconds": 60}, 5))
    proxy.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}})
    proxy.ask({"jsonrpc": "2.0", "id": 6, "method": "ping"})
    proxy.end()
    (only,) = kept()
    assert (only.success, only.metadata["ending"]) == (None, "cancelled")


def test_a_call_that_is_cancelled_while_the_user_is_asked_is_never_sent(start, told, tmp_path):
    told(ASK)
    proxy = start()
    proxy.ask(initialize(elicitation={}))
    proxy.send(call("send_email", {"to": "Sarah"}, 5))
    question = proxy.read()
    assert question["method"] == "elicitation/create"
    proxy.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}})
    assert proxy.read()["params"]["requestId"] == question["id"]
    proxy.send({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": {"run": True}}})
    assert proxy.ask({"jsonrpc": "2.0", "id": 6, "method": "last"})["result"]["of"] == "last"


def test_other_messages_pass_while_the_user_is_asked(start, told):
    told(ASK)
    proxy = start()
    proxy.ask(initialize(elicitation={"form": {}}))
    proxy.send(call("send_email", {"to": "Sarah"}, 5))
    question = proxy.read()
    assert proxy.ask({"jsonrpc": "2.0", "id": 6, "method": "x"})["id"] == 6
    answer = {"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": {"run": True}}}
    assert proxy.ask(answer)["id"] == 5


# ---------------------------------------------------------------- the state that a client brings back


def stateless(arguments: Any, id: int, **params: Any) -> dict[str, Any]:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
        "io.modelcontextprotocol/clientInfo": {"name": "lines", "version": "1"},
    }
    return call("send_email", arguments, id, _meta=meta, **params)


def test_a_forged_changed_or_used_state_is_refused(start, told, tmp_path):
    told(ASK)
    proxy = start()
    first = proxy.ask(stateless({"to": "Sarah"}, 1))["result"]
    assert first["resultType"] == "input_required"
    state = first["requestState"]
    yes = {"inputResponses": {"toolmem": {"action": "accept", "content": {"run": True}}}}

    def again(state: str, to: str = "Sarah", id: int = 2) -> dict[str, Any]:
        return proxy.ask(stateless({"to": to}, id, requestState=state, **yes))

    body, signature = state.rsplit(".", 1)
    for forged in (f"{body}.{'0' * len(signature)}", "toolmem.1.e30=.00", state[:-1], "toolmem.1.", f"{state}x"):
        assert again(forged)["error"]["code"] == -32602
    assert again(state, "Sarah and Bob")["error"]["code"] == -32602  # another call
    assert again(state)["result"]["isError"] is False
    assert again(state)["error"]["code"] == -32602  # once
    other = start()
    other_state = other.ask(stateless({"to": "Sarah"}, 1))["result"]["requestState"]
    assert again(other_state)["error"]["code"] == -32602
    assert proxy.ask(stateless({"to": "Sarah"}, 3, **yes))["result"]["resultType"] == "input_required"


def test_the_server_sees_nothing_of_the_question(start, told, tmp_path):
    told(ASK)
    proxy = start(server=[*SCRIPTED, str(tmp_path / "log")])
    state = proxy.ask(stateless({"to": "Sarah", "n": 1}, 1))["result"]["requestState"]
    yes = {"toolmem": {"action": "accept", "content": {"run": True}}}
    proxy.ask(stateless({"to": "Sarah", "n": 1}, 2, requestState=state, inputResponses=yes))
    (seen,) = (tmp_path / "log").read_text().splitlines()
    assert json.loads(seen)["params"].keys() == {"name", "arguments", "_meta"}


def test_a_server_that_asks_itself_goes_on_asking_and_the_consent_holds_for_that_call(start, told, kept):
    told(ASK)
    proxy = start()
    arguments = {"to": "Sarah", "asks": True}
    ours = proxy.ask(stateless(arguments, 1))["result"]["requestState"]
    yes = {"toolmem": {"action": "accept", "content": {"run": True}}}
    round_two = proxy.ask(stateless(arguments, 2, requestState=ours, inputResponses=yes))["result"]
    assert round_two["requestState"] == "of-the-server"
    filled = {"requestState": "of-the-server", "inputResponses": {"q": {"action": "accept", "content": {}}}}
    assert proxy.ask(stateless(arguments, 3, **filled))["result"]["isError"] is False
    again = proxy.ask(stateless(arguments, 4, **filled))["result"]  # the same call once more is another one
    assert again["requestState"].startswith("toolmem.")
    proxy.end()
    assert [each.metadata["ending"] for each in kept()] == ["answered"]
