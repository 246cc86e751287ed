"""A scripted model speaks the protocols of whole agents: calls, results, streaming; everything that is sent is kept."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any, NamedTuple

import pytest

from toolmem.testing.agent_server import APIS, LAST_WORD, AgentRequest, AgentServer, AskedCall, ModelTurn

COMMAND = {"command": "git push origin main"}
TOOL_SCHEMA = {"type": "object", "properties": {"command": {"type": "string"}}}


class Spoken(NamedTuple):
    """How a client of one protocol asks, answers a call, and reads."""

    path: str
    tools: list[dict[str, Any]]

    def body(self, said: str, result: tuple[str, str] | None = None, *, stream: bool = False) -> dict[str, Any]:
        body: dict[str, Any] = {"model": "m", "stream": stream, "tools": self.tools}
        if self.path.endswith("/messages"):
            body["messages"] = [{"role": "user", "content": said}]
            if result:
                content = {"type": "tool_result", "tool_use_id": result[0], "content": result[1], "is_error": True}
                body["messages"].append({"role": "user", "content": [content]})
        elif self.path.endswith("/responses"):
            body["input"] = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": said}]}]
            if result:
                body["input"].append({"type": "function_call_output", "call_id": result[0], "output": result[1]})
        elif self.path.endswith("/completions"):
            body["messages"] = [{"role": "user", "content": said}]
            if result:
                body["messages"].append({"role": "tool", "tool_call_id": result[0], "content": result[1]})
        else:
            body = {"tools": self.tools, "contents": [{"role": "user", "parts": [{"text": said}]}]}
            if result:
                told = {"id": result[0], "name": "shell", "response": {"error": result[1]}}
                body["contents"].append({"role": "user", "parts": [{"functionResponse": told}]})
        return body


FUNCTION = {"name": "shell", "parameters": TOOL_SCHEMA}
SPOKEN = {
    "anthropic": Spoken("/v1/messages", [{"name": "shell", "input_schema": TOOL_SCHEMA}]),
    "responses": Spoken("/v1/responses", [{"type": "function", **FUNCTION}]),
    "chat": Spoken("/v1/chat/completions", [{"type": "function", "function": FUNCTION}]),
    "gemini": Spoken("/v1beta/models/m:generateContent", [{"functionDeclarations": [FUNCTION]}]),
}


def post(server: AgentServer, path: str, body: dict[str, Any]) -> str:
    headers = {"Content-Type": "application/json", "x-api-key": "a-key-of-mine", "Authorization": "Bearer another"}
    asked = urllib.request.Request(server.url + path, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(asked, timeout=20) as answer:
        return answer.read().decode()


def events(stream: str) -> list[dict[str, Any]]:
    lines = [line.removeprefix("data: ") for line in stream.splitlines() if line.startswith("data: ")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


def call_of(body: dict[str, Any]) -> tuple[str, str, Any]:
    """Id, name and arguments of the only call in an answer."""
    if "content" in body:
        (block,) = body["content"]
        return block["id"], block["name"], block["input"]
    if "output" in body:
        (item,) = body["output"]
        return item["call_id"], item["name"], json.loads(item["arguments"])
    if "choices" in body:
        (call,) = body["choices"][0]["message"]["tool_calls"]
        return call["id"], call["function"]["name"], json.loads(call["function"]["arguments"])
    call = body["candidates"][0]["content"]["parts"][0]["functionCall"]
    return call["id"], call["name"], call["args"]


def test_every_protocol_is_tried_here():
    assert [api.name for api in APIS] == list(SPOKEN)


@pytest.mark.parametrize("name", SPOKEN)
def test_a_call_is_asked_for_and_its_result_is_read(name: str):
    spoken = SPOKEN[name]
    with AgentServer(AskedCall("shell", COMMAND), "It is done.") as server:
        call_id, tool, arguments = call_of(json.loads(post(server, spoken.path, spoken.body("push it"))))
        last = post(server, spoken.path, spoken.body("push it", (call_id, "blocked: never push to main")))
    assert (tool, arguments) == ("shell", COMMAND)
    first, second = server.turns
    assert (first.api, first.tools, first.texts, first.answers) == (name, ["shell"], ["push it"], [])
    assert first.model == second.model == "m"
    answer = second.answer_to(call_id)
    assert answer is not None
    assert answer.text == "blocked: never push to main"
    assert answer.failed is (None if name in ("responses", "chat") else True)
    assert "It is done." in last
    assert "never push to main" in second.text


@pytest.mark.parametrize("name", SPOKEN)
def test_the_stream_holds_what_the_whole_answer_holds(name: str):
    spoken = SPOKEN[name]
    path = spoken.path.replace(":generate", ":streamGenerate")
    turn = ModelTurn("First this.", (AskedCall("shell", COMMAND, "id_1"), AskedCall("shell", {}, "id_2")), 4321)
    with AgentServer(turn) as server:
        stream = post(server, path, spoken.body("go", stream=True))
    assert server.turns[0].streams
    told = json.dumps(events(stream))
    for part in ("First this.", "git push origin main", "id_1", "id_2", "4321"):
        assert part in told
    assert told.index("First this.") < told.index("id_1") < told.index("id_2")


def test_the_events_of_messages_come_in_the_order_that_clients_expect():
    spoken = SPOKEN["anthropic"]
    with AgentServer(ModelTurn("Text.", (AskedCall("shell", COMMAND),))) as server:
        kinds = [event["type"] for event in events(post(server, spoken.path, spoken.body("go", stream=True)))]
    block = ["content_block_start", "content_block_delta", "content_block_stop"]
    assert kinds == ["message_start", *block, *block, "message_delta", "message_stop"]


def test_free_text_goes_to_a_tool_that_takes_it():
    patch = "*** Begin Patch\n*** End Patch\n"
    with AgentServer(AskedCall("apply_patch", patch)) as server:
        (item,) = json.loads(post(server, "/v1/responses", SPOKEN["responses"].body("go")))["output"]
    assert (item["type"], item["name"], item["input"]) == ("custom_tool_call", "apply_patch", patch)


def test_a_turn_may_be_a_function_of_the_request_and_turns_can_be_added():
    def echoed(request: AgentRequest) -> str:
        return f"You said {request.texts[-1]!r}."

    spoken = SPOKEN["anthropic"]
    with AgentServer(echoed) as server:
        assert "You said 'hello'." in post(server, spoken.path, spoken.body("hello"))
        server.then("Added.")
        assert server.turns_left == 1
        assert "Added." in post(server, spoken.path, spoken.body("on"))
        server.then("Never said.")
        server.drop_turns()
        assert LAST_WORD in post(server, spoken.path, spoken.body("and then"))


def test_a_request_without_tools_uses_up_no_turn():
    spoken = SPOKEN["anthropic"]
    with AgentServer("The only turn.", aside="A title") as server:
        title = post(server, spoken.path, {"model": "m", "messages": [{"role": "user", "content": "Name this"}]})
        assert "A title" in title
        assert "The only turn." in post(server, spoken.path, spoken.body("go"))
    assert [len(server.asides), len(server.turns)] == [1, 1]


def test_keys_are_not_kept_and_other_paths_are_counted_or_refused():
    with AgentServer() as server:
        assert json.loads(post(server, "/v1/messages/count_tokens", {})) == {"input_tokens": 100}
        with pytest.raises(urllib.error.HTTPError, match="404"):
            post(server, "/v1/unknown", {})
        post(server, "/v1/messages", SPOKEN["anthropic"].body("go"))
    assert server.others == ["POST /v1/messages/count_tokens", "POST /v1/unknown"]
    kept = json.dumps(server.requests[0].headers)
    assert "a-key-of-mine" not in kept
    assert "another" not in kept


@pytest.mark.parametrize(
    "damaged", [{}, {"messages": 5, "input": {}, "contents": [3], "tools": "x"}, {"system": [None]}]
)
@pytest.mark.parametrize("name", SPOKEN)
def test_a_damaged_request_is_answered_too(name: str, damaged: dict[str, Any]):
    with AgentServer(aside="still here") as server:
        assert "still here" in post(server, SPOKEN[name].path, damaged)
