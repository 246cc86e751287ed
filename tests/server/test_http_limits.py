"""Reading requests: JSON of a bounded depth, bodies of a bounded size, whatever pieces they come in."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolmem.server.http.limits import Gone, Limits, Unreadable
from toolmem.server.json_text import MAX_DEPTH, read_json, write_json

LIMITS = Limits(body=1000, items=3, seconds=5)
JSON_HEADERS = ((b"content-type", b"application/json"),)

texts = st.text(st.characters(codec=None))  # lone surrogates among them
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(texts, inner, max_size=5),
    max_leaves=20,
)


# ---------------------------------------------------------------- JSON


@given(values)
def test_what_is_written_is_read_again_and_utf_8_can_carry_it(value):
    text = write_json(value)
    assert read_json(text.encode()) == value
    assert read_json(b"\xef\xbb\xbf" + text.encode()) == value


@given(st.binary(max_size=200))
def test_any_bytes_are_json_or_refused(data):
    try:
        read_json(data)
    except ValueError as error:
        assert str(error)  # noqa: PT017 - both outcomes are right


def nested(depth: int, *, objects: bool) -> str:
    return '{"a":' * depth + "1" + "}" * depth if objects else "[" * depth + "]" * depth


@given(st.integers(1, 3 * MAX_DEPTH), st.booleans())
def test_the_depth_decides_and_nothing_else(depth, objects):
    if depth <= MAX_DEPTH:
        read_json(nested(depth, objects=objects))
    else:
        with pytest.raises(ValueError, match="nested more than 100 deep"):
            read_json(nested(depth, objects=objects))


@pytest.mark.parametrize(
    ("depth", "reason"),
    [
        (900, "nested more than 100 deep"),
        (10_000, "nested more than 100 deep"),
        (200_000, "nested more than 100 deep"),
        (1_000_000, "over 400,000 brackets"),
    ],
)
def test_no_depth_exhausts_the_stack(depth, reason):
    with pytest.raises(ValueError, match=reason):
        read_json(nested(depth, objects=False))


@pytest.mark.parametrize("text", ["NaN", "-Infinity", "[1e999]", '{"a": Infinity}', "9" * 5000, "", "'a'", "{a: 1}"])
def test_what_other_readers_would_not_take_is_refused(text):
    with pytest.raises(ValueError) as caught:
        read_json(text)
    assert "sys." not in str(caught.value)


# ---------------------------------------------------------------- bodies


class Sender:
    """Sends a body in pieces, as a server hands them on."""

    def __init__(self, parts: list[bytes], *, ends: bool = True, leaves: bool = False) -> None:
        self.sent = 0
        self._messages: list[dict[str, Any]] = [
            {"type": "http.request", "body": part, "more_body": not ends or n < len(parts) - 1}
            for n, part in enumerate(parts or [b""])
        ]
        if leaves:
            self._messages.append({"type": "http.disconnect"})

    async def receive(self) -> Any:
        if self.sent == len(self._messages):
            await asyncio.Event().wait()
        self.sent += 1
        return self._messages[self.sent - 1]


def read(sender: Sender, limits: Limits = LIMITS, headers: Any = JSON_HEADERS) -> bytes:
    return asyncio.run(limits.read({"type": "http", "headers": list(headers)}, sender.receive))


def refused(*given: Any, **named: Any) -> dict[str, Any]:
    with pytest.raises(Unreadable) as caught:
        read(*given, **named)
    return {"status": caught.value.answer.status_code, **json.loads(bytes(caught.value.answer.body))}


@given(st.lists(st.binary(max_size=400), max_size=12))
def test_a_body_is_read_whole_or_refused_by_its_size_alone(parts):
    whole = b"".join(parts)
    if len(whole) <= LIMITS.body:
        assert read(Sender(parts)) == whole
    else:
        assert refused(Sender(parts))["status"] == 413


def test_an_endless_body_is_given_up():
    endless = Sender([b"x" * 1000] * 10_000, ends=False)
    assert refused(endless)["status"] == 413
    assert endless.sent < 20


def test_a_body_that_stops_coming_is_given_up():
    slow = Limits(body=1000, items=3, seconds=0.05)
    answer = refused(Sender([b"{"], ends=False), limits=slow)
    assert answer["status"] == 408
    assert "http.read_timeout" in answer["answer"]


def test_a_client_that_leaves_is_not_answered():
    with pytest.raises(Gone):
        read(Sender([b"{"], ends=False, leaves=True))


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"content-type": "application/json"}, 0),
        ({"content-type": "Application/JSON; charset=UTF-8"}, 0),
        ({"content-type": 'application/json; charset="utf-8"; x=y'}, 0),
        ({"content-type": "application/json-rpc"}, 0),
        ({"content-type": "application/vnd.api+json"}, 0),
        ({"content-type": "application/json", "content-encoding": "identity"}, 0),
        ({}, 415),
        ({"content-type": "text/json"}, 415),
        ({"content-type": "application/jsonp"}, 415),
        ({"content-type": "application/json; charset=utf-16"}, 415),
        ({"content-type": "application/json", "content-encoding": "gzip"}, 415),
        ({"content-type": "application/json", "content-length": "8001"}, 413),
        ({"content-type": "application/json", "content-length": "1001", "expect": "100-continue"}, 413),
        ({"content-type": "application/json", "content-length": "9" * 5000}, 413),
    ],
)
def test_headers_decide_before_anything_is_read(headers, status):
    sender = Sender([b"{}"])
    given = [(name.encode(), value.encode()) for name, value in headers.items()]
    if status:
        assert refused(sender, headers=given)["status"] == status
        assert sender.sent == 0
    else:
        assert read(sender, headers=given) == b"{}"


@pytest.mark.parametrize("body", [b"[]", b'"a"', b"1", b"null", b"true", b"{", b""])
def test_a_request_is_an_object(body):
    with pytest.raises(Unreadable) as caught:
        asyncio.run(LIMITS.request_of(body))
    told = json.loads(bytes(caught.value.answer.body))
    assert caught.value.answer.status_code == 422
    assert told["metadata"]["errors"][0]["field"] == "body"


@given(st.integers(0, 6))
def test_a_list_is_as_long_as_allowed_or_named(length):
    body = json.dumps({"names": ["x"] * length, "text": "xxxxxxxx"}).encode()
    if length <= LIMITS.items:
        assert len(asyncio.run(LIMITS.request_of(body))["names"]) == length
    else:
        with pytest.raises(Unreadable) as caught:
            asyncio.run(LIMITS.request_of(body))
        assert caught.value.answer.status_code == 413
        assert json.loads(bytes(caught.value.answer.body))["metadata"]["errors"][0]["field"] == "names"
