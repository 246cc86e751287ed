"""Who is let in, and where a request may reach."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys

import pytest
import requests

from toolmem import Client
from toolmem.errors import RequestError, ServiceUnreachable

TOKEN = "b7f2-a-token-for-tests"
RETRIEVE = {"workspace_id": "w", "tool_names": "t"}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    from toolmem.testing.service_process import ServiceProcess

    with ServiceProcess(tmp_path_factory.mktemp("guarded"), token=TOKEN) as service:
        yield service


@pytest.mark.parametrize(
    "authorization",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        "Bearer wrong",
        f"Bearer {TOKEN[:-1]}",
        f"Bearer {TOKEN}x",
        f"Bearer {TOKEN.upper()}",
        f"Basic {TOKEN}",
        TOKEN,
        f"Bearer  {TOKEN} {TOKEN}",
        "Bearer \xff\xfe",
        "Bearer " + "x" * 10_000,
    ],
    ids=lambda value: repr(value)[:24],
)
@pytest.mark.parametrize("path", ["/retrieve_tool_memory", "/rpc", "/nosuch", "/docs", "/openapi.json"])
def test_without_the_token_nothing_is_answered_but_that_it_is_missing(guarded, path, authorization):
    connection = http.client.HTTPConnection("127.0.0.1", guarded.port, timeout=10)
    headers = {"Content-Type": "application/json"}
    if authorization is not None:
        headers["Authorization"] = authorization
    connection.request("POST", path, json.dumps(RETRIEVE), headers)
    answer = connection.getresponse()
    body = json.loads(answer.read())
    connection.close()
    assert answer.status == 401
    assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert body["success"] is False
    assert "flows" not in body["metadata"]


def test_tokens_are_compared_in_constant_time(monkeypatch):
    from toolmem.server.http import access

    compared = []
    compare = access.hmac.compare_digest
    monkeypatch.setattr(access.hmac, "compare_digest", lambda a, b: compared.append((len(a), len(b))) or compare(a, b))
    token = access.BearerToken(TOKEN)
    for given in (TOKEN, TOKEN[:-1], "", "x", "x" * 10_000):
        assert token.admits(f"Bearer {given}") is (given == TOKEN)
    assert len(compared) == 5
    assert len({lengths for pair in compared for lengths in pair}) == 1, "nothing is told by the lengths either"


def test_with_the_token_everything_is_answered(guarded):
    for scheme in ("Bearer", "bearer"):
        headers = {"Authorization": f"{scheme} {TOKEN}"}
        response = requests.post(f"{guarded.url}/retrieve_tool_memory", json=RETRIEVE, headers=headers, timeout=10)
        assert response.status_code == 200
    assert requests.get(f"{guarded.url}/health", headers=headers, timeout=10).json()["version"]
    # That the service is up may be known to everybody, what it is made of may not.
    assert requests.get(f"{guarded.url}/health", timeout=10).json() == {"status": "ok"}


def test_the_token_and_what_is_sent_are_not_in_the_log(guarded):
    headers = {"Authorization": f"Bearer {TOKEN}"}
    body = {"workspace_id": "w", "tool_call_results": [{"tool_name": "t", "output": "a-secret-of-the-user"}]}
    requests.post(f"{guarded.url}/add_tool_call_result?q=a-secret-query", json=body, headers=headers, timeout=10)
    requests.post(f"{guarded.url}/rpc", data="a-secret-of-the-user", headers=headers, timeout=10)
    lines = guarded.log.read_text(encoding="utf-8").splitlines()
    assert not any(TOKEN in line or "a-secret" in line for line in lines)
    told = [json.loads(line) for line in lines if line.startswith("{")]
    assert any(line.get("path") == "/add_tool_call_result" and line["status"] == 200 for line in told)


def test_an_address_that_others_reach_needs_a_token(tmp_path):
    from toolmem.testing.service_process import ServiceProcess

    with pytest.raises(ServiceUnreachable, match="no token is configured"):
        ServiceProcess(tmp_path, "http.host=0.0.0.0").start()


def test_all_problems_of_the_configuration_are_told_at_once_before_anything_is_served(tmp_path):
    ran = subprocess.run(
        [
            *(sys.executable, "-m", "toolmem", "serve", "http.port=70000", "http.hosst=x"),
            "op.summary_tool_memory_op.params.recent_cal_count=3",
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert ran.returncode == 2
    for problem in ("http.port", "did you mean 'host'", "did you mean 'recent_call_count'"):
        assert problem in ran.stderr
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8002", "169.254.169.254", ""])
def test_a_web_page_that_points_its_name_here_is_turned_away(served, host):
    """Without a token, `Host` must be a name of this machine: else a browser could be made to ask."""
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=10)
    connection.putrequest("POST", "/retrieve_tool_memory", skip_host=True)
    connection.putheader("Host", host)
    connection.putheader("Content-Type", "application/json")
    connection.putheader("Content-Length", "2")
    connection.endheaders(b"{}")
    assert connection.getresponse().status == 403
    connection.close()


@pytest.mark.parametrize(
    "origin",
    [
        *("https://elsewhere.example", "null", "http://127.0.0.1:1.evil.example", "http://[::1].evil.example"),
        *("http://127.0.0.1@evil.example", "http://localhost.evil.example", "file://"),
    ],
)
def test_a_web_page_of_another_machine_may_ask_nothing(served, origin):
    answer = requests.post(f"{served.url}/retrieve_tool_memory", json=RETRIEVE, headers={"Origin": origin}, timeout=10)
    assert answer.status_code == 403
    assert "Origin" in answer.text


@pytest.mark.parametrize("origin", ["http://127.0.0.1:3000", "http://localhost", "https://[::1]:8443"])
def test_a_web_page_of_this_machine_may_ask(served, origin):
    headers = {"Origin": origin}
    answer = requests.post(f"{served.url}/retrieve_tool_memory", json=RETRIEVE, headers=headers, timeout=10)
    assert answer.status_code != 403


def test_no_other_web_page_may_read_an_answer(served):
    headers = {"Origin": "https://elsewhere.example", "Access-Control-Request-Method": "POST"}
    for response in (
        requests.options(f"{served.url}/rpc", headers=headers, timeout=10),
        requests.post(f"{served.url}/retrieve_tool_memory", json=RETRIEVE, headers=headers, timeout=10),
    ):
        assert not [name for name in response.headers if name.lower().startswith("access-control")]


# ---------------------------------------------------------------- where a request may reach

ESCAPES = [
    "../outside",
    "../../../../../../tmp/outside",
    "/etc/passwd",
    "a/../../outside",
    "..",
    "../dumps-too/x.jsonl",
    "~root/x/../../../../..",
    "a\x00b",
    "C:\\..\\..\\outside" + "/../../..",
]


@pytest.mark.parametrize("action", ["dump", "load"])
@pytest.mark.parametrize("path", ESCAPES, ids=repr)
def test_a_dump_stays_in_its_folder(served, path, action):
    with Client(served.url, workspace_id="escapes") as client:
        client.add([{"tool_name": "t", "output": "x", "id": "one"}])
        before = sorted(each.name for each in served.folder.iterdir())
        with pytest.raises(RequestError) as caught:
            (client.dump if action == "dump" else client.load)(path)
        assert caught.value.field == "path"
    assert sorted(each.name for each in served.folder.iterdir()) == before


def test_a_link_out_of_the_dump_folder_is_no_way_out(served, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    folder = served.folder / "dumps"
    folder.mkdir(exist_ok=True)
    (folder / "link").symlink_to(outside)
    with Client(served.url, workspace_id="links") as client:
        client.add([{"tool_name": "t", "output": "x", "id": "one"}])
        with pytest.raises(RequestError, match="outside the dump folder"):
            client.dump("link")
        (folder / "links.jsonl").symlink_to(outside / "file.jsonl")
        with pytest.raises(RequestError, match="outside the dump folder"):
            client.dump()
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize(
    "workspace", ["../escape", "..", ".hidden", "a/b", "a\\b", "", " ", "a" * 129, "naïve", "a\n", 7, None, ["a"]]
)
@pytest.mark.parametrize("flow", ["add_tool_call_result", "retrieve_tool_memory", "vector_store", "rpc"])
def test_a_workspace_is_a_plain_name(served, flow, workspace):
    bodies = {
        "add_tool_call_result": {"tool_call_results": [{"tool_name": "t"}]},
        "retrieve_tool_memory": {"tool_names": "t"},
        "vector_store": {"action": "dump"},
    }
    if flow == "rpc":
        if workspace is None:
            return  # there it is optional
        params = {"tool_name": "t", "workspace_id": workspace}
        body = {"jsonrpc": "2.0", "id": 1, "method": "memory.tool_rule_list", "params": params}
        answer = requests.post(f"{served.url}/rpc", json=body, timeout=10).json()
        assert answer["error"]["data"] == {"parameter": "workspace_id"}
        return
    response = requests.post(f"{served.url}/{flow}", json={**bodies[flow], "workspace_id": workspace}, timeout=10)
    assert response.status_code == 422
    assert response.json()["metadata"]["errors"][0]["field"] == "workspace_id"


def test_a_source_to_copy_from_is_a_plain_name_as_well(served):
    with Client(served.url, workspace_id="copies") as client, pytest.raises(RequestError) as caught:
        client.copy_workspace("../escape")
    assert caught.value.field == "src_workspace_id"
