"""The loopback model server: both protocols on real sockets, scripted faults, a record of every request."""

import contextlib
import http.client
import json
import socket
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolmem.providers.tokenizer import QwenTokenizer
from toolmem.testing.model_script import FAULTS, OK, Behaviour, Rule, Script
from toolmem.testing.model_server import ModelServer
from toolmem.testing.scripted_llm import plausible_reply

CHAT = "/compatible-mode/v1/chat/completions"


def post(server, path, body, *, key="k", connection=None, timeout=5.0):
    """(status, headers, body) of one POST."""
    link = connection or http.client.HTTPConnection("127.0.0.1", server.port, timeout=timeout)
    headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}
    try:
        link.request("POST", path, body if isinstance(body, bytes) else json.dumps(body).encode(), headers)
        response = link.getresponse()
        return response.status, dict(response.headers), response.read()
    finally:
        if connection is None:
            link.close()


def chat(prompt, **further):
    return {"model": "qwen-plus", "messages": [{"role": "user", "content": prompt}], **further}


def test_it_speaks_the_openai_protocol():
    prompt = "Judge this. ```json"
    with ModelServer() as server:
        status, headers, body = post(server, CHAT, chat(prompt))
    answer = json.loads(body)
    assert (status, headers["Content-Type"]) == (200, "application/json")
    text = plausible_reply(prompt)
    assert answer["choices"][0]["message"] == {"role": "assistant", "content": text}
    count = QwenTokenizer().count
    assert answer["usage"] == {
        "prompt_tokens": count(prompt),
        "completion_tokens": count(text),
        "total_tokens": count(prompt) + count(text),
    }


def test_the_dashscope_sdk_finds_its_way_without_toolmem():
    import dashscope

    with ModelServer() as server:
        reply = dashscope.Generation.call(
            model="qwen-plus",
            messages=[{"role": "user", "content": "你好"}],
            result_format="message",
            api_key="k",
            base_address=server.dashscope_url,
        )
        vectors = dashscope.TextEmbedding.call(
            model="text-embedding-v4", input=["a", "b"], dimension=8, api_key="k", base_address=server.dashscope_url
        )
        dashscope.api_entities.http_request.close_shared_sync_session()
    assert reply.status_code == 200
    assert reply.output.choices[0].message.content == plausible_reply("你好")
    assert reply.usage.input_tokens == QwenTokenizer().count("你好")
    assert [len(item["embedding"]) for item in vectors.output["embeddings"]] == [8, 8]
    assert [(request.protocol, request.kind) for request in server.requests] == [
        ("dashscope", "chat"),
        ("dashscope", "embedding"),
    ]


def test_embeddings_are_always_alike():
    with ModelServer() as server:
        bodies = [post(server, "/v1/embeddings", {"model": "m", "input": "a text", "dimensions": 8})[2] for _ in "ab"]
        status, _, _ = post(server, "/v1/embeddings", {"model": "m", "input": ["a", ""]})
    assert bodies[0] == bodies[1]
    assert status == 400


def test_requests_are_recorded_without_their_key():
    with ModelServer(Script(latency=0.02)) as server:
        post(server, CHAT, chat("first", temperature=0.3), key="sk-hidden")
        post(server, CHAT, chat("second"), key="sk-hidden")
    first, second = server.requests
    assert (first.number, first.prompt, first.model, first.body["temperature"]) == (1, "first", "qwen-plus", 0.3)
    assert first.status == 200
    assert 0.02 <= first.finished - first.started < 1
    assert second.started >= first.finished
    assert "sk-hidden" not in repr(server.requests)
    assert server.shortest_gap() == pytest.approx(second.started - first.started)


@pytest.mark.parametrize(
    ("path", "body", "key", "status", "words"),
    [
        (CHAT, chat("p"), "", 401, "API-key"),
        (CHAT, chat("p"), "wrong", 401, "API-key"),
        (CHAT, chat("p", stream=True), "right", 400, "streaming"),
        (CHAT, {"model": "m"}, "right", 400, "no messages"),
        (CHAT, {"messages": [{"role": "user", "content": "p"}]}, "right", 400, "no model"),
        (CHAT, b"{not json", "right", 400, "no JSON object"),
        ("/v1/images", chat("p"), "right", 404, "not served"),
    ],
)
def test_what_a_real_service_refuses_is_refused(path, body, key, status, words):
    with ModelServer(Script(key="right")) as server:
        answered, _, said = post(server, path, body, key=key)
    assert answered == status
    assert words in said.decode()


def test_a_connection_serves_many_requests_and_pipelined_ones():
    with ModelServer() as server:
        link = http.client.HTTPConnection("127.0.0.1", server.port)
        assert [post(server, CHAT, chat(str(n)), connection=link)[0] for n in range(3)] == [200] * 3
        link.close()
        body = json.dumps(chat("p")).encode()
        head = f"POST {CHAT} HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer k\r\nContent-Length: {len(body)}\r\n"
        with socket.create_connection(("127.0.0.1", server.port)) as raw:
            raw.sendall((head + "\r\n").encode() + body + (head + "Connection: close\r\n\r\n").encode() + body)
            received = b""
            while chunk := raw.recv(65536):
                received += chunk
        assert received.count(b"HTTP/1.1 200 OK") == 2
        assert server.connections_made == 2


def test_a_client_that_asks_before_it_sends_a_large_body_may_go_on():
    body = json.dumps(chat("p" * 100)).encode()
    lines = (f"POST {CHAT} HTTP/1.1", "Host: h", "Authorization: Bearer k", f"Content-Length: {len(body)}")
    head = "\r\n".join((*lines, "Expect: 100-continue", "", ""))
    with ModelServer() as server, socket.create_connection(("127.0.0.1", server.port), timeout=2) as raw:
        raw.sendall(head.encode())
        assert raw.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        raw.sendall(body)
        assert raw.recv(100).startswith(b"HTTP/1.1 200 OK")


@pytest.mark.parametrize(
    "junk", [b"\x00\x01\x02\r\n\r\n", b"GET\r\n\r\n", b"POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n"]
)
def test_what_is_no_http_is_refused_and_hung_up_on(junk):
    with ModelServer() as server:
        with socket.create_connection(("127.0.0.1", server.port), timeout=2) as raw:
            raw.sendall(junk)
            with contextlib.suppress(ConnectionResetError):
                said = b"".join(iter(lambda: raw.recv(4096), b""))
                assert not said or b" 400 Bad Request" in said
        assert post(server, CHAT, chat("p"))[0] == 200


@pytest.mark.parametrize("fault", [name for name, fault in FAULTS.items() if not fault.cut and not fault.hang])
def test_faults_are_answered_as_they_are_written(fault):
    with ModelServer(Script.failing(fault)) as server:
        status, headers, body = post(server, CHAT, chat("p"))
    behaviour = FAULTS[fault]
    assert status == behaviour.status == server.requests[0].status
    assert server.requests[0].behaviour == fault
    if behaviour.body is not None:
        assert body == behaviour.body
    elif behaviour.error is not None:
        assert json.loads(body)["error"]["code"] == behaviour.error[0]
    else:
        assert json.loads(body)["choices"][0]["finish_reason"] == behaviour.finish_reason
    assert headers.get("Retry-After") == (None if behaviour.retry_after is None else str(behaviour.retry_after))


@pytest.mark.parametrize(
    ("fault", "errors"),
    [
        ("cut", (ConnectionResetError, http.client.RemoteDisconnected)),
        ("cut_within", (http.client.IncompleteRead, ConnectionResetError)),
        ("hang", (TimeoutError,)),
    ],
)
def test_connections_are_cut_and_left_hanging(fault, errors):
    with ModelServer(Script.failing(fault)) as server:
        with pytest.raises(errors):
            post(server, CHAT, chat("p"), timeout=0.1)
        for _ in range(100):
            if not server.in_flight:
                break
            time.sleep(0.01)
        assert server.in_flight == 0, "a client that left is not waited for"


def test_two_hundred_clients_at_once_are_all_answered():
    statuses = []
    with ModelServer(Script(latency=0.05)) as server:
        clients = [
            threading.Thread(target=lambda: statuses.append(post(server, CHAT, chat("p"))[0])) for _ in range(200)
        ]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
    assert statuses == [200] * 200
    assert len(server.requests) == 200


def test_a_taken_port_is_an_error_and_a_stopped_server_frees_it():
    with ModelServer() as server:
        with pytest.raises(OSError, match="in use"):
            ModelServer(port=server.port).start()
        port = server.port
    with ModelServer(port=port) as again:
        assert post(again, CHAT, chat("p"))[0] == 200
    again.stop()


# ---------------------------------------------------------------- scripts

FAULT = Behaviour("fault", 500)


def played(script, prompts, kind="chat"):
    return [script.behaviour(kind, prompt).name for prompt in prompts]


def test_every_nth_request_fails():
    assert played(Script.failing(FAULT, every=3), "abcdefg") == ["ok", "ok", "fault", "ok", "ok", "fault", "ok"]


def test_rules_pick_by_number_pattern_and_times():
    assert played(Script([Rule(FAULT, nth=(1, 4))]), "abcd") == ["fault", "ok", "ok", "fault"]
    assert played(Script([Rule(FAULT, matching="b|c")]), "abca") == ["ok", "fault", "fault", "ok"]
    assert played(Script([Rule(FAULT, times=2)]), "abca") == ["fault", "fault", "ok", "ok"]


def test_the_first_rule_that_applies_decides_and_all_of_them_count():
    other = Behaviour("other")
    script = Script([Rule(FAULT, every=2), Rule(other, every=2)])
    assert played(script, "abcd") == ["ok", "fault", "ok", "fault"]
    script = Script([Rule(FAULT, every=2), Rule(other, every=3)])
    assert played(script, "abcdef") == ["ok", "fault", "other", "fault", "ok", "fault"]


def test_a_rule_for_chats_neither_fails_nor_counts_embeddings():
    script = Script([Rule(FAULT, every=2, kind="chat")])
    assert [script.behaviour(kind, "p").name for kind in ("chat", "embedding", "chat", "chat")] == [
        *("ok", "ok", "fault", "ok"),
    ]


@given(st.lists(st.text(max_size=5), max_size=30), st.integers(0, 5))
def test_lasting_failures_belong_to_the_prompt_and_the_seed(prompts, seed):
    rules = [Rule(FAULT, share=0.5)]
    first = dict(zip(prompts, played(Script(rules, seed=seed), prompts), strict=True))
    again = played(Script(rules, seed=seed), list(reversed(prompts)))
    assert again == [first[prompt] for prompt in reversed(prompts)]


def test_shares_and_probabilities_are_about_what_they_say():
    prompts = [str(number) for number in range(2000)]
    lasting = played(Script.failing(FAULT, share=0.3), prompts)
    drawn = played(Script([Rule(FAULT, probability=0.3)], seed=1), prompts)
    for names in (lasting, drawn):
        assert 500 < names.count("fault") < 700
    assert drawn == played(Script([Rule(FAULT, probability=0.3)], seed=1), prompts)
    assert drawn != played(Script([Rule(FAULT, probability=0.3)], seed=2), prompts)


def test_a_delayed_behaviour_is_the_same_but_later():
    with ModelServer(Script([Rule(OK.after(0.1), nth=(1,))])) as server:
        post(server, CHAT, chat("p"))
    assert server.requests[0].finished - server.requests[0].started >= 0.1
