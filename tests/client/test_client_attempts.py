"""What the client does where the service does not answer as it should: another attempt where that is safe, an error
that says what to do where it is not."""

from __future__ import annotations

import asyncio
import socket

import pytest

from toolmem import AsyncClient, Client
from toolmem.client import clients, retrying
from toolmem.errors import (
    BudgetReached,
    ClientClosed,
    ModelError,
    NotProvided,
    RequestError,
    ServiceDenied,
    ServiceError,
    ServiceUnreachable,
    StoreError,
)

GOOD = (200, {"answer": "ok", "success": True, "metadata": {"memory_list": []}})
RECORD = {"tool_name": "search", "output": "[]"}
WITH_ID = {**RECORD, "id": "call-1"}


@pytest.fixture(autouse=True)
def _without_pauses(monkeypatch):
    monkeypatch.setattr(retrying, "FIRST_PAUSE", 0.001)


def refused(status: int, kind: str, message: str, **more: str):
    body = {"answer": message, "success": False, "metadata": {"errors": [{"type": kind, "message": message, **more}]}}
    return (status, body)


@pytest.fixture
def client(misbehaving):
    clients = []

    def make(*script, **given):
        server = misbehaving(*script)
        clients.append(Client(server.url, workspace_id="team", **given))
        return clients[-1], server

    yield make
    for each in clients:
        each.close()


# ---------------------------------------------------------------- another attempt, or none


@pytest.mark.parametrize("failure", ["cut", "half", b"", refused(503, "StoreUnavailable", "the disk is full")])
def test_a_read_is_tried_again(client, failure):
    asking, server = client(failure, failure, GOOD)
    assert asking.retrieve("search") == []
    assert len(server.received) == 3


@pytest.mark.parametrize("failure", ["cut", "half"])
def test_calls_with_ids_are_sent_again_because_the_same_id_is_kept_once(client, failure):
    asking, server = client(failure, GOOD)
    assert asking.add([WITH_ID]).success
    assert [each.body["tool_call_results"] for each in server.received] == [[WITH_ID], [WITH_ID]]


@pytest.mark.parametrize(
    "call",
    [
        lambda c: c.add([WITH_ID, RECORD]),
        lambda c: c.add([{**RECORD, "id": " "}]),
        lambda c: c.add([]),
        lambda c: c.summarize("search"),
        lambda c: c.delete_workspace(),
        lambda c: c.delete_tools(),
        lambda c: c.delete_memories(["a"]),
        lambda c: c.copy_workspace("other"),
        lambda c: c.load(),
        lambda c: c.rejudge(),
        lambda c: c.capture_rules("never email Sarah"),
        lambda c: c.run("retrieve_tool_memory", tool_names="search"),
        lambda c: c.rules.put("t", "one"),
        lambda c: c.rules.delete("t", "x"),
        lambda c: c.call("memory.recall"),
    ],
)
def test_what_might_be_done_twice_is_sent_once(client, call):
    asking, server = client("cut", GOOD)
    with pytest.raises(ServiceUnreachable, match="whether it was carried out is not known") as caught:
        call(asking)
    assert caught.value.sent
    assert len(server.received) == 1


def test_a_batch_is_sent_again_only_where_each_of_its_calls_may_be(client):
    asking, server = client("cut", (200, [{"jsonrpc": "2.0", "id": 1, "result": []}]), "cut")
    safe = asking.batch()
    safe.list_rules("t")
    assert safe.results() == [[]]
    unsafe = asking.batch()
    unsafe.list_rules("t")
    unsafe.put_rule("t", "one")
    with pytest.raises(ServiceUnreachable):
        unsafe.results()
    assert len(server.received) == 3


def test_nothing_is_sent_again_after_a_time_out(client):
    asking, server = client("silence", GOOD, timeout=0.2)
    with pytest.raises(ServiceUnreachable, match=r"no answer to retrieve_tool_memory within 0\.2 s.*`timeout`"):
        asking.retrieve("search")
    assert len(server.received) == 1


def test_a_service_that_is_busy_has_begun_nothing_so_anything_is_sent_again(client):
    busy = refused(503, "Busy", "4 requests are under way")
    asking, server = client(busy, GOOD, *[busy] * 3)
    assert asking.summarize("search").success
    assert len(server.received) == 2
    with pytest.raises(ServiceUnreachable, match="is busy: 4 requests"):
        asking.summarize("search")


async def test_more_calls_than_connections_wait_for_one(misbehaving, monkeypatch):
    monkeypatch.setattr(clients, "MAX_CONNECTIONS", 1)
    server = misbehaving("silence")
    async with AsyncClient(server.url, workspace_id="team", timeout=0.3) as asking:
        outcomes = await asyncio.gather(*(asking.retrieve("search") for _ in range(2)), return_exceptions=True)
    assert sorted(outcome.sent for outcome in outcomes) == [False, True]
    assert any("all connections" in str(outcome) for outcome in outcomes)


LAST = "last"  # the connection is cut, and nothing listens any more


def test_a_retry_that_finds_nobody_does_not_hide_that_the_first_attempt_arrived(client):
    asking, server = client(LAST)
    with pytest.raises(
        ServiceUnreachable, match=r"nothing answers.*an earlier attempt may have been carried"
    ) as caught:
        asking.add([WITH_ID])
    assert caught.value.sent
    assert len(server.received) == 1


async def test_the_async_client_remembers_that_an_attempt_arrived(misbehaving):
    server = misbehaving(LAST)
    async with AsyncClient(server.url, workspace_id="team") as asking:
        with pytest.raises(ServiceUnreachable, match="an earlier attempt may have been carried out") as caught:
            await asking.add([WITH_ID])
        assert caught.value.sent
        with pytest.raises(ServiceUnreachable) as caught:  # another call starts anew
            await asking.add([WITH_ID])
    assert not caught.value.sent
    assert "earlier" not in str(caught.value)


async def test_a_closed_client_says_that_it_is_closed():
    asking = Client(workspace_id="team")
    asking.close()
    with pytest.raises(ClientClosed, match="retrieve_tool_memory: this Client is closed"):
        asking.retrieve("search")
    later = AsyncClient(workspace_id="team")
    await later.close()
    with pytest.raises(ClientClosed, match="this AsyncClient is closed"):
        await later.health()


def test_tools_without_a_memory_are_named_beside_the_memories(client):
    metadata = {"memory_list": [], "not_found": ["nosuch"]}
    asking, _ = client((200, {"answer": "", "success": False, "metadata": metadata}), GOOD)
    retrieved = asking.retrieve(["nosuch"])
    assert (retrieved, retrieved.not_found) == ([], ["nosuch"])
    assert asking.retrieve(query="rain").not_found == []


def test_the_number_of_attempts_is_bounded(client):
    asking, server = client(*["cut"] * 9, retries=3)
    with pytest.raises(ServiceUnreachable):
        asking.retrieve("search")
    assert len(server.received) == 4
    asking, server = client(*["cut"] * 9, retries=0)
    with pytest.raises(ServiceUnreachable):
        asking.retrieve("search")
    assert len(server.received) == 1


async def test_the_async_client_makes_the_same_attempts(misbehaving):
    server = misbehaving("cut", GOOD, "cut", "silence")
    async with AsyncClient(server.url, workspace_id="team") as asking:
        assert await asking.retrieve("search") == []
        with pytest.raises(ServiceUnreachable, match="is not known"):
            await asking.summarize("search")
    async with AsyncClient(server.url, workspace_id="team", timeout=0.3) as asking:
        with pytest.raises(ServiceUnreachable, match="within"):
            await asking.retrieve("search")
    assert len(server.received) == 4


# ---------------------------------------------------------------- errors


def test_where_nothing_listens_the_error_names_the_address_and_the_remedy():
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    with Client(url, workspace_id="team") as asking:
        for call in (lambda: asking.retrieve("search"), lambda: asking.add([RECORD])):
            with pytest.raises(ServiceUnreachable, match="start it with `toolmem serve`") as caught:
                call()
            assert url in str(caught.value)
            assert not caught.value.sent


@pytest.mark.parametrize(
    ("answer", "error", "says"),
    [
        (refused(422, "RequestError", "tool_names: missing", field="tool_names"), RequestError, "tool_names: missing"),
        (refused(404, "RequestError", "no flow is called 'x'"), RequestError, "no flow"),
        (refused(404, "NotProvided", "not provided by toolmem: X"), NotProvided, "not provided"),
        (refused(413, "RequestError", "the body is larger"), RequestError, "larger"),
        (refused(429, "BudgetReached", "the budget is spent"), BudgetReached, "spent"),
        (refused(502, "ReplyUnreadable", "no score in it"), ModelError, "no score"),
        (refused(502, "ModelError", "gave no answer"), ModelError, "gave no answer"),
        (refused(503, "StoreError", "the disk is full"), StoreError, "the disk is full"),
        (refused(403, "WrongHost", "this service answers to localhost only"), ServiceDenied, "localhost only"),
        (
            refused(500, "InternalError", "internal error (KeyError)"),
            ServiceError,
            "failed at summary_tool_memory .status 500.",
        ),
        ((200, {"hello": "world"}), ServiceError, "is this the address of `toolmem serve`"),
        ((200, ["a"]), ServiceError, "not toolmem's"),
        ((404, {"detail": "Not Found"}), ServiceError, "status 404"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n\xff\xfe{]", ServiceError, "not toolmem's"),
        (b"HTTP/1.1 302 X\r\nLocation: http://elsewhere\r\nContent-Length: 0\r\n\r\n", ServiceError, "status 302"),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc", ServiceError, "cannot be read"),
        (b"SSH-2.0-OpenSSH_9\r\n\r\n", ServiceError, "cut the connection"),
    ],
)
def test_each_kind_of_answer_becomes_its_error(client, answer, error, says):
    asking, _ = client(answer)
    with pytest.raises(error, match=says) as caught:
        asking.summarize("search")
    if isinstance(answer, tuple) and answer[0] == 422:
        assert caught.value.field == "tool_names"


@pytest.mark.parametrize(
    ("answer", "error", "says"),
    [
        (
            {"error": {"code": -32602, "message": "Invalid params: id: missing", "data": {"parameter": "id"}}},
            RequestError,
            "^id: missing",
        ),
        ({"error": {"code": -32601, "message": "Method not found: 'x'"}}, RequestError, "Method not found"),
        ({"error": {"code": -32000, "message": "Server error: locked"}}, StoreError, "^locked"),
        ({"error": {"code": -32603, "message": "Internal error: KeyError"}}, ServiceError, "KeyError"),
        ({"error": "odd"}, ServiceError, "odd"),
        ({}, ServiceError, "not toolmem's"),
    ],
)
def test_each_error_of_the_rpc_becomes_its_error(client, answer, error, says):
    asking, _ = client((200, {"jsonrpc": "2.0", "id": 1, **answer}))
    with pytest.raises(error, match=says) as caught:
        asking.rules.delete("t", "x")
    if error is RequestError and "id" in says:
        assert caught.value.field == "id"


def test_results_of_a_batch_are_matched_by_id_and_a_failed_one_is_an_error_among_them(client):
    refusal = {"code": -32602, "message": "Invalid params: rule: missing", "data": {"parameter": "rule"}}
    asking, _ = client((200, [{"id": 3, "result": True}, {"id": 1, "result": False}, {"id": 2, "error": refusal}]))
    batch = asking.batch()
    batch.delete_rule("t", "a")
    batch.put_rule("t", "")
    batch.delete_rule("t", "b")
    batch.delete_rule("t", "c")
    assert len(batch) == 4
    first, second, third, fourth = batch.results()
    assert (first, third) == (False, True)
    assert isinstance(second, RequestError)
    assert second.field == "rule"
    assert isinstance(fourth, ServiceError)  # it was not answered
    assert asking.batch().results() == []


def test_a_batch_that_is_refused_as_a_whole_raises(client):
    asking, _ = client((200, {"id": None, "error": {"code": -32600, "message": "Invalid Request: too many"}}))
    batch = asking.batch()
    batch.list_rules("t")
    with pytest.raises(RequestError, match="too many"):
        batch.results()


# ---------------------------------------------------------------- the token


SECRET = "s3cr3t-of-nobody"


def test_the_token_is_sent_and_never_shown(client, monkeypatch):
    unauthorized = refused(401, "RequestError", "token missing or wrong")
    asking, server = client(unauthorized, "cut", "silence", token=SECRET, timeout=0.2, retries=0)
    shown = [repr(asking), str(vars(asking))]
    for _ in range(3):
        with pytest.raises(ServiceError) as caught:
            asking.retrieve("search")
        shown += [str(caught.value), repr(caught.value), repr(caught.value.__cause__)]
    assert all(f"Authorization: Bearer {SECRET}" in each.head for each in server.received)
    assert not any(SECRET in text for text in shown)


def test_a_token_that_is_missing_or_wrong_names_the_variable(client, monkeypatch):
    asking, _ = client(refused(401, "RequestError", "token missing"))
    with pytest.raises(ServiceDenied, match="asks for a token: set TOOLMEM_TOKEN"):
        asking.retrieve("search")
    monkeypatch.setenv("TOOLMEM_TOKEN", SECRET)
    asking, server = client(refused(401, "RequestError", "token wrong"))
    with pytest.raises(ServiceDenied, match="does not accept the token that was sent: set TOOLMEM_TOKEN"):
        asking.retrieve("search")
    assert f"Authorization: Bearer {SECRET}" in server.received[0].head


def test_a_given_token_counts_before_the_variable(client, monkeypatch):
    monkeypatch.setenv("TOOLMEM_TOKEN", SECRET)
    asking, server = client(GOOD, token="")
    asking.retrieve("search")
    assert "authorization" not in server.received[0].head.lower()


@pytest.mark.parametrize("token", ["line\nbreak", "blank inside", "ümlaut"])
def test_a_token_that_no_header_can_carry_is_refused_without_showing_it(token):
    with pytest.raises(RequestError, match="TOOLMEM_TOKEN") as caught:
        Client(token=token)
    assert token not in str(caught.value)


def test_a_token_read_from_a_file_may_end_in_a_line_break(client):
    asking, server = client(GOOD, token=SECRET + "\n")
    asking.retrieve("search")
    assert f"Authorization: Bearer {SECRET}\r\n" in server.received[0].head + "\r\n"


def test_a_proxy_of_the_environment_is_not_asked_for_what_runs_here(client, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    asking, _ = client(GOOD)
    assert asking.retrieve("search") == []
