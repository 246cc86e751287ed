"""What the server refuses, and how it is told."""

import os
import socket

import pytest
from elastic_transport import ApiResponseMeta, ConnectionError, ObjectApiResponse
from elasticsearch import ApiError

from toolmem.errors import RequestError, StoreClosed, StoreError, StoreUnavailable
from toolmem.store.elasticsearch import ElasticsearchStore
from toolmem.store.elasticsearch.client import Client, Write

KEYS = ("_index", "_id")


class Answers:
    """A client that answers each request by the next of its answers."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = []

    def _next(self, **asked):
        self.asked.append(asked)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return ObjectApiResponse(body=answer, meta=meta(200))

    bulk = mget = search = _next

    def close(self):
        pass


def meta(status):
    return ApiResponseMeta(status, "1.1", {}, 0.0, None)


def refused(status, kind="x", reason="y"):
    return ApiError(kind, meta(status), {"error": {"type": kind, "reason": reason}})


def item(status, kind="", reason=""):
    told = {"status": status, "_seq_no": 1, "_primary_term": 1}
    return {"index": {**told, "error": {"type": kind, "reason": reason}} if kind else told}


def items(*each):
    return {"items": list(each)}


def client_of(answers, timeout=5.0):
    return Client(lambda: answers, "http://here:9200", timeout, pause=0.0)


WRITES = [Write("i", str(number), {"a": "b"}, 1) for number in range(4)]


def test_items_that_were_rejected_are_sent_again_and_no_others():
    busy = item(429, "es_rejected_execution_exception")
    answers = Answers(items(item(200), busy, item(409, "conflict"), busy), items(busy, item(200)))
    answers.answers.append(items(item(200)))
    stands = client_of(answers).bulk(WRITES)
    assert stands == [(1, 1), (1, 1), None, (1, 1)]
    assert [len(each["operations"]) for each in answers.asked] == [4, 2, 1]


def test_a_request_that_is_too_large_is_sent_in_halves():
    answers = Answers(refused(413), items(item(200), item(200)), items(item(200), item(200)))
    assert client_of(answers).bulk(WRITES) == [(1, 1)] * 4
    with pytest.raises(StoreError, match="http.max_content_length"):
        client_of(Answers(refused(413))).bulk(WRITES[:1])


def test_a_document_whose_shard_is_missing_is_asked_for_again_and_never_absent():
    missing = {"_id": "1", "error": {"type": "no_shard_available_action_exception"}}
    absent = {"_id": "1", "found": False}
    answers = Answers({"docs": [missing]}, {"docs": [absent]})
    assert client_of(answers).mget([("i", "1")]) == [None]
    assert len(answers.asked) == 2
    with pytest.raises(StoreUnavailable, match="no_shard"):
        client_of(Answers({"docs": [missing]}), timeout=0.0).mget([("i", "1")])


def test_an_old_primary_term_is_tried_again_and_a_block_for_writes_is_not():
    passing = refused(500, "illegal_state_exception", "primary term [1] too old")
    answers = Answers(passing, ConnectionError("gone"), refused(503), {"hits": {"hits": []}})
    assert client_of(answers).search(index="i")["hits"]["hits"] == []
    block = refused(429, "cluster_block_exception", "index [i] blocked: read-only / allow delete")
    with pytest.raises(StoreUnavailable, match="disk space"):
        client_of(Answers(block)).search(index="i")


def test_a_search_is_whole_or_an_error():
    answers = Answers({"hits": {"hits": []}})
    client_of(answers).search(index="i")
    assert answers.asked[0]["allow_partial_search_results"] is False
    with pytest.raises(StoreUnavailable):
        client_of(Answers(refused(503)), timeout=0.0).search(index="i")


def test_errors_name_the_host_and_no_credentials():
    store = ElasticsearchStore("http://elastic:Sunshine7@127.0.0.1:9", timeout=0.1)
    assert store.location == "http://127.0.0.1:9"
    with pytest.raises(StoreUnavailable, match="cannot be reached") as caught:
        store.tool_names("w")
    assert "Sunshine7" not in str(caught.value)
    wrong = client_of(Answers(refused(401, "security_exception", "unable to authenticate")))
    with pytest.raises(StoreUnavailable, match="basic_auth"):
        wrong.search(index="i")


@pytest.mark.parametrize("hosts", ["localhost", "localhost:9200", "http://localhost", "ftp://a:1"])
def test_hosts_that_are_no_urls_are_refused_by_name(hosts):
    with pytest.raises(RequestError, match="hosts: expected a URL with a port"):
        ElasticsearchStore(hosts)
    with pytest.raises(RequestError, match="basic_auth"):
        ElasticsearchStore("http://a:1", basic_auth="user").tool_names("w")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_forked_child_opens_a_store_of_its_own():
    client = client_of(Answers({"hits": {"hits": []}}))
    client._pid -= 1
    with pytest.raises(StoreClosed, match="fork"):
        client.search(index="i")


@pytest.fixture
def silent():
    """A port that takes connections and answers nothing."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield f"127.0.0.1:{listening.getsockname()[1]}"


@pytest.mark.parametrize("address", ["127.0.0.1:9", "nosuch.invalid:9200", "silent"])
def test_an_address_that_answers_nothing_is_told_in_one_line_with_the_remedy(address, request):
    at = request.getfixturevalue("silent") if address == "silent" else address
    with ElasticsearchStore(f"http://{at}", timeout=0.2) as store:
        for _ in range(2):  # the second time at once
            told = f"http://{at} .*or correct vector_store"
            with pytest.raises(StoreUnavailable, match=told) as e:
                store.tool_names("w")
            assert "\n" not in str(e.value)


class FirstContact:
    """A server that says what it is, and what settings it does not take."""

    def __init__(self, refuses=(), **version):
        self.version, self.refuses, self.made = version, refuses, {}
        self.indices = self

    def options(self, **_):
        return self

    def info(self):
        return ObjectApiResponse(body={"version": self.version}, meta=meta(200))

    def get_mapping(self, **_):
        return ObjectApiResponse(body={}, meta=meta(200))

    def create(self, index, settings, **_):
        if refused_here := [f"index.{name}" for name in settings if name in self.refuses]:
            reason = f"Settings [{','.join(refused_here)}] are not available when running in "
            raise refused(400, "illegal_argument_exception", f"{reason}serverless mode")
        self.made[index] = settings
        return ObjectApiResponse(body={}, meta=meta(200))

    def mget(self, docs):
        body = {"docs": [{"_id": each["_id"], "found": False} for each in docs]}
        return ObjectApiResponse(body=body, meta=meta(200))

    def close(self):
        pass


SERVERLESS = {"number": "8.11.0", "build_flavor": "serverless"}


@pytest.mark.parametrize("number", ["8.11.4", "8.14.3", "7.17.28", "8.9.0-SNAPSHOT"])
def test_a_server_that_is_too_old_is_refused_by_name_with_the_reason(number):
    store = ElasticsearchStore(client=FirstContact(number=number))
    with pytest.raises(StoreUnavailable, match=f"is {number}; .* 8.15 or newer .*`flat`"):
        store.get("w", "n", "k")


@pytest.mark.parametrize(
    ("version", "refuses"),
    [
        *(({"number": each}, ()) for each in ("8.15.0", "9.1.0", "10.0.1")),
        ({}, ()),
        (SERVERLESS, ()),
        (SERVERLESS, ("number_of_shards", "auto_expand_replicas")),
    ],
)
def test_settings_that_a_serverless_server_refuses_are_left_out(version, refuses):
    server = FirstContact(refuses, **version)
    assert ElasticsearchStore(client=server).get("w", "n", "k") is None
    assert len(server.made) == 4
    for settings in server.made.values():
        assert len(settings) == 3 - len(refuses)
        assert settings["refresh_interval"] == "-1"
