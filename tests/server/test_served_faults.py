"""What no client should send, over real sockets: each gets an answer that says what is wrong, or a closed connection,
and the others are served meanwhile."""

from __future__ import annotations

import contextlib
import http.client
import json
import select
import socket
import threading
import time
from typing import Any

import pytest
import requests

from toolmem import Client
from toolmem.errors import RequestError, ServiceError

LIMIT = 8_000_000  # bytes, the default of http.max_body_bytes
READ_TIMEOUT = 3.0  # of the service under test
FLOW = "/add_tool_call_result"


def post(served: Any, body: bytes | str, path: str = FLOW, **headers: str) -> requests.Response:
    content = body.encode("utf-8", "surrogatepass") if isinstance(body, str) else body
    headers = {"Content-Type": "application/json", **headers}
    return requests.post(served.url + path, data=content, headers=headers, timeout=30)


def refused(response: requests.Response, status: int = 422) -> str:
    """Its message: whatever is wrong, the body is a FlowResponse."""
    assert response.status_code == status, response.text[:300]
    body = response.json()
    assert body["success"] is False
    assert set(body) == {"answer", "success", "metadata"}
    return str(body["answer"])


def raw(served: Any, data: bytes, timeout: float = 10) -> bytes:
    """All that comes back on a connection of its own."""
    with socket.create_connection(("127.0.0.1", served.port), timeout=timeout) as connection:
        connection.sendall(data)
        with contextlib.suppress(OSError):  # it may have hung up already
            connection.shutdown(socket.SHUT_WR)
        answer = b""
        while part := connection.recv(65536):
            answer += part
        return answer


def alive(served: Any) -> bool:
    with Client(served.url, workspace_id="alive") as client:
        return client.add([{"tool_name": "t", "output": "ok"}]).success


# ---------------------------------------------------------------- JSON


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("", "not JSON"),
        ("{", "line 1, column 2"),
        ('{"a": 1}}', "column 9"),
        ("{'a': 1}", "not JSON"),
        ('{"workspace_id": "w", "tool_call_results": [{"tool_name": "t", "time_cost": NaN}]}', "NaN is no JSON"),
        ('{"workspace_id": "w", "tool_call_results": [{"tool_name": "t", "time_cost": -Infinity}]}', "no JSON"),
        ('{"workspace_id": "w", "tool_call_results": [{"tool_name": "t", "time_cost": 1e999}]}', "too large"),
        ("[]", "expected a JSON object, got an array"),
        ("null", "got null"),
        ('"text"', "got a string"),
        (b"\xff\xfe\x00", "not UTF-8 at byte 0"),
        (b'{"workspace_id": "\xc3\x28"}', "not UTF-8"),
        ("[" * 100_000, "nested"),
        ("[" * 100_000 + "]" * 100_000, "nested"),
        ('{"a":' * 100_000 + "1" + "}" * 100_000, "nested"),
        ('{"workspace_id": "w", "tool_call_results": ' + "[" * 300 + "]" * 300 + "}", "nested more than 100 deep"),
        ('{"n": ' + "1" * 5000 + "}", "n"),
    ],
)
def test_a_body_that_is_no_request_is_refused_with_its_place(served, body, says):
    assert says in refused(post(served, body))


@pytest.mark.parametrize("body", ["", "{", "[" * 100_000, '{"a":' * 100_000, '{"id": NaN}', b"\xff", "[]", "3", "[[]]"])
def test_json_rpc_answers_what_is_no_request_in_its_own_way(served, body):
    response = post(served, body, "/rpc")
    assert response.status_code == 200
    answer = response.json()
    (answer,) = answer if isinstance(answer, list) else [answer]
    assert answer["error"]["code"] in (-32700, -32600)


def test_lone_surrogates_are_replaced_and_the_rest_of_a_text_stays(served):
    body = (
        r'{"workspace_id": "surrogates", "tool_call_results": [{"tool_name": "t", "output": "a\ud800b \ud83d\ude00"}]}'
    )
    assert post(served, body).json()["success"]
    with Client(served.url, workspace_id="surrogates") as client:
        assert client.retrieve("t", include_calls=True)[0].tool_call_results[0].output == "a\ufffdb \U0001f600"


@pytest.mark.parametrize("name", [r"\ud800", r"a\udfffb"])
def test_a_lone_surrogate_in_a_name_is_no_reason_to_fail(served, name):
    body = f'{{"workspace_id": "surrogates", "tool_names": "{name}"}}'
    response = post(served, body, "/retrieve_tool_memory")
    assert response.status_code in (200, 422)
    assert response.json()["success"] is False
    put = {"jsonrpc": "2.0", "id": 1, "method": "memory.tool_rule_list", "params": {"tool_name": "\ud800"}}
    assert post(served, json.dumps(put), "/rpc").status_code == 200


def test_a_key_given_twice_or_a_byte_order_mark_is_no_failure(served):
    body = b'\xef\xbb\xbf{"workspace_id": "w", "workspace_id": "twice", "tool_call_results": []}'
    assert post(served, body).status_code == 200


# ---------------------------------------------------------------- sizes


def test_a_body_of_ten_megabytes_is_refused_and_the_sender_reads_why(served):
    body = json.dumps({"workspace_id": "w", "tool_call_results": [{"tool_name": "t", "output": "x" * 10_000_000}]})
    assert f"larger than {LIMIT} bytes" in refused(post(served, body), 413)
    assert "http.max_body_bytes" in refused(post(served, body, "/rpc"), 413)
    with Client(served.url, workspace_id="w") as client, pytest.raises(RequestError, match="larger than"):
        client.add([{"tool_name": "t", "output": "x" * 10_000_000}])
    assert alive(served)


def test_a_body_just_under_the_limit_is_kept_whole(served):
    text = "x" * (LIMIT - 1000)
    with Client(served.url, workspace_id="large") as client:
        assert client.add([{"tool_name": "t", "output": text}]).success
        assert client.retrieve("t", include_calls=True)[0].tool_call_results[0].output == text


def test_chunks_are_counted_as_they_come(served):
    def parts(count: int) -> Any:
        yield b'{"workspace_id": "w", "x": "'
        for _ in range(count):
            yield b"x" * 100_000
        yield b'"}'

    headers = {"Content-Type": "application/json"}
    over = requests.post(served.url + FLOW, data=parts(100), headers=headers, timeout=30)
    assert "larger" in refused(over, 413)
    under = requests.post(served.url + FLOW, data=parts(2), headers=headers, timeout=30)
    assert "x: unknown" in refused(under)


def test_an_endless_body_is_cut_off(served):
    with socket.create_connection(("127.0.0.1", served.port), timeout=20) as connection:
        head = f"POST {FLOW} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        connection.sendall((head + "Transfer-Encoding: chunked\r\n\r\n").encode())
        chunk = b"186a0\r\n" + b"x" * 100_000 + b"\r\n"
        sent = 0
        with pytest.raises(OSError):  # noqa: PT012 - it ends when the service has had enough
            while sent < 50 * LIMIT:
                connection.sendall(chunk)
                sent += 100_000
    assert sent < 20 * LIMIT
    assert alive(served)


def test_a_list_of_too_many_items_is_refused_whole(served):
    records = [{"tool_name": "t", "output": str(n)} for n in range(1001)]
    with Client(served.url, workspace_id="too-many") as client:
        with pytest.raises(RequestError, match="1001 items; at most 1000") as caught:
            client.add(records)
        assert caught.value.field == "tool_call_results"
        assert client.memories() == []
        batch = client.batch()
        for number in range(1001):
            batch.list_rules(f"t{number}")
        with pytest.raises(RequestError, match="1 to 1000"):
            batch.results()


# ---------------------------------------------------------------- HTTP


@pytest.mark.parametrize(
    "data",
    [
        b"\x00\x01\x02\x03\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"POST /rpc HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
        b"POST /rpc HTTP/1.1\r\nHost: localhost\r\nContent-Length: abc\r\n\r\n",
        b"POST /rpc HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n",
        b"POST /rpc HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 200_000 + b"\r\n\r\n",
        b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: localhost\r\n" + b"A: b\r\n" * 30_000 + b"\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 100,  # TLS
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ],
    ids=lambda data: repr(data[:24]),
)
def test_what_is_no_http_is_refused_or_cut_off(served, data):
    try:
        answer = raw(served, data)
    except ConnectionError:
        answer = b""
    assert answer == b"" or answer.split(b" ", 2)[1][:1] == b"4", answer[:200]
    assert alive(served)


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "NONSENSE"])
def test_another_method_is_refused_and_the_right_one_named(served, method):
    response = requests.request(method, served.url + FLOW, timeout=10)
    if method == "NONSENSE":
        assert 400 <= response.status_code < 500
    else:
        assert "POST" in refused(response, 405)


@pytest.mark.parametrize("media", ["", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data"])
def test_a_body_that_is_not_sent_as_json_is_refused(served, media):
    body = '{"workspace_id": "w", "tool_call_results": []}'
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=10)
    connection.request("POST", FLOW, body, {"Content-Type": media} if media else {})
    answer = connection.getresponse()
    assert answer.status == 415
    assert b"application/json" in answer.read()
    connection.close()


def test_a_compressed_body_is_refused(served):
    assert "compressed" in refused(post(served, b"\x1f\x8b\x08", **{"Content-Encoding": "gzip"}), 415)


@pytest.mark.parametrize("path", ["/nosuch", "/", "//rpc", "/rpc/", "/retrieve_tool_memory/x", "/%2e%2e/rpc", "/%00"])
def test_an_unknown_address_names_the_flows(served, path):
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=10)
    connection.request("POST", path, "{}", {"Content-Type": "application/json"})
    answer = connection.getresponse()
    body = json.loads(answer.read())
    assert answer.status == 404
    assert "retrieve_tool_memory" in body["metadata"]["flows"]
    connection.close()


def test_requests_sent_without_waiting_are_answered_in_order(served):
    body = b'{"workspace_id": "w", "tool_names": "%s"}'
    data = b""
    for name in (b"first", b"second", b"third"):
        content = body % name
        data += (
            b"POST /retrieve_tool_memory HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: %d\r\n\r\n" % len(content)
        ) + content
    with socket.create_connection(("127.0.0.1", served.port), timeout=5) as connection:
        connection.sendall(data)
        answer = b""
        while answer.count(b'"not_found":["') < 3:
            answer += connection.recv(65536)
    found = [answer.index(name) for name in (b'["first"]', b'["second"]', b'["third"]')]
    assert found == sorted(found)


# ---------------------------------------------------------------- slow clients


def test_slow_clients_are_cut_off_while_others_are_served(served):
    """Twenty that never finish a head, twenty that never finish a body."""
    head = f"POST {FLOW} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n".encode()
    slow = [socket.create_connection(("127.0.0.1", served.port), timeout=10) for _ in range(40)]
    for number, connection in enumerate(slow):
        connection.sendall(head if number % 2 else head + b"Content-Length: 1000\r\n\r\n{")
    stop = threading.Event()

    def dribble() -> None:
        while not stop.wait(0.1):
            for number, connection in enumerate(slow):
                with contextlib.suppress(OSError):
                    connection.sendall(b"X-Slow: 1\r\n" if number % 2 else b" ")

    thread = threading.Thread(target=dribble)
    thread.start()
    try:
        began = time.monotonic()
        assert alive(served)
        cut_off, _, _ = select.select(slow, [], [], 0)
        while time.monotonic() - began < READ_TIMEOUT + 1.5:
            assert alive(served)
    finally:
        stop.set()
        thread.join()
    assert not cut_off, "nobody waits until the slow ones have gone"
    for connection in slow:
        answer = b""
        with contextlib.suppress(ConnectionResetError):
            while part := connection.recv(65536):
                answer += part
        assert answer == b"" or answer.startswith(b"HTTP/1.1 408"), answer[:100]
        connection.close()


def test_a_client_that_goes_away_leaves_nothing_behind(served):
    for _ in range(20):
        connection = socket.create_connection(("127.0.0.1", served.port), timeout=5)
        connection.sendall(f"POST {FLOW} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{{".encode())
        connection.close()
    assert alive(served)


def test_a_client_that_does_not_read_its_answers_does_not_stop_the_others(served):
    with Client(served.url, workspace_id="unread") as client:
        client.add([{"tool_name": "t", "output": "x" * 1_000_000}])
    body = b'{"workspace_id": "unread", "action": "list"}'
    head = b"POST /vector_store HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    request = head + b"Content-Length: %d\r\n\r\n" % len(body) + body
    deaf = [socket.create_connection(("127.0.0.1", served.port), timeout=5) for _ in range(5)]
    for connection in deaf:
        connection.sendall(request * 5)
    for _ in range(5):
        assert alive(served)
    for connection in deaf:
        connection.close()


# ---------------------------------------------------------------- what must not come out


def test_no_answer_is_a_traceback_and_none_is_our_bug(served):
    """Values of every JSON type in every argument of every flow."""
    values = [None, True, -1, 10**30, 1e308, "", "\x00", "x" * 10_000, [], [None], [[]], {}, {"": None}, ["a", 1]]
    document = requests.get(served.url + "/openapi.json", timeout=10).json()
    asked = 0
    with requests.Session() as session:
        for path, item in document["paths"].items():
            schema = _request_schema(document, item)
            for name in schema.get("properties", {}):
                for value in values:
                    body = {"workspace_id": "values", name: value}
                    response = session.post(served.url + path, json=body, timeout=30)
                    assert response.status_code < 500, (path, name, value, response.text[:300])
                    assert "Traceback" not in response.text
                    asked += 1
    assert asked > 200


def _request_schema(document: Any, item: Any) -> Any:
    content = item.get("post", {}).get("requestBody", {}).get("content", {}).get("application/json", {})
    schema = content.get("schema", {})
    reference = schema.get("$ref")
    return document["components"]["schemas"][reference.rpartition("/")[2]] if reference else schema


def test_something_else_at_the_address_is_told_apart(served):
    with Client(served.url + "/docs", workspace_id="w") as client, pytest.raises((ServiceError, RequestError)):
        client.retrieve("t")
