"""`toolmem serve` over HTTP: flows, operations, access, bodies, a graceful stop."""

import json
import signal
import socket
import threading

import command_line
import httpx
import pytest
from model_settings import model_of

from toolmem import ToolMem
from toolmem.testing.model_server import ModelServer

CALLS = [{"tool_name": "search", "input": {"q": "rain"}, "output": "[]", "success": True}]


def ask(url, name, body, **headers):
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    given = {"content": content, "headers": {"Content-Type": "application/json", **headers}}
    return httpx.post(f"{url}/{name}", **given, trust_env=False, timeout=60)


def test_remes_own_sequence_of_requests(url):
    body = {"workspace_id": "w", "tool_call_results": CALLS}
    added = ask(url, "add_tool_call_result", body).json()
    assert added["success"] and added["metadata"]["evaluation"]["evaluated"] == 1
    body = {"workspace_id": "w", "tool_names": "search"}
    assert ask(url, "summary_tool_memory", body).json()["metadata"]["summarized"] == ["search"]
    found = ask(url, "retrieve_tool_memory", {**body, "tool_names": "search,unknown"}).json()
    assert (found["metadata"]["partial"], found["metadata"]["not_found"]) == (True, ["unknown"])
    listed = ask(url, "vector_store", {"workspace_id": "w", "action": "list"}).json()
    assert listed["success"]


def test_operations_are_asked_by_their_names(url):
    put = {"workspace_id": "w", "tool_name": "shell", "rule": "Never use sudo"}
    more = {"effect": "deny", "when": [{"command": "^sudo"}], "priority": "critical"}
    made = ask(url, "tool_rule_put", {**put, **more}).json()
    asked = {"workspace_id": "w", "tool_name": "shell", "input": {"command": "sudo ls"}}
    for name in ("check_tool_call", "operations/check_tool_call"):  # the flow, and the operation
        answer = ask(url, name, asked).json()
        decision = answer["metadata"]["decision"]
        assert (answer["answer"], decision["action"]) == (decision["reason"], "deny")
        assert decision["sources"][0]["rule_id"] == made["id"]


def test_an_answer_holds_fields_with_their_defaults_too(url):
    ask(url, "add", {"workspace_id": "new", "tool_call_results": CALLS})
    body = {"workspace_id": "new", "tool_names": "search", "include_calls": True}
    (tool,) = ask(url, "retrieve_tool_memory", body).json()["metadata"]["memory_list"]
    assert (tool["content"], tool["memory_type"], tool["author"]) == ("", "tool", "")
    assert tool["tool_call_results"][0]["time_cost"] is None
    assert tool["metadata"]["lifetime"]["calls"] == 1 and tool["metadata"]["claims"] == []
    allowed = {"workspace_id": "w", "tool_name": "search", "input": {"q": "x"}}
    decision = ask(url, "operations/check_tool_call", allowed).json()["metadata"]["decision"]
    assert (decision["reason"], decision["advice"], decision["sources"]) == ("", "", [])


@pytest.mark.parametrize(
    ("name", "body", "status", "told"),
    [
        ("tool_rule_putt", {"workspace_id": "w"}, 404, "tool_rule_put"),
        ("health", {}, 405, "send GET /health"),
        ("tools", {}, 422, "workspace"),
        ("tool_rule_put", {"workspace_id": "w", "tool_name": "t"}, 422, "rule: missing"),
        ("tool_rules", {"workspace": "w", "state": "x"}, 422, "'holds', 'waiting', 'ended'"),
        ("tools", b"{", 422, "no JSON"),
        ("tools", b"[1]", 422, "JSON object"),
        ("tools", b"[" * 200_000, 422, "JSON"),
        ("tools", b'{"workspace_id": "w", "x": "' + b"y" * (33 << 20) + b'"}', 413, "32 MB"),
        ("summary_tool_memory", {"workspace_id": "w", "tool_nmes": "x"}, 422, "tool_names"),
    ],
)
def test_a_wrong_request_is_refused_with_its_field(url, name, body, status, told):
    answer = ask(url, name, body)
    assert answer.status_code == status
    assert told in answer.json()["error"]


def test_half_an_emoji_and_a_byte_order_mark_are_read(url):
    body = b'\xef\xbb\xbf{"workspace_id": "w", "user_message": "never: email Bob \\ud83d"}'
    assert ask(url, "capture_rules", body).json()["kept"][0]["rule"].startswith("Never email Bob")
    calls = b'{"workspace_id": "w", "tool_call_results": [{"tool_name": "t", "output": "\\ud800"}]}'
    assert ask(url, "add_tool_call_result", calls).json()["success"]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.com"}, 403),
        ({"Host": "127.0.0.1.evil.com"}, 403),
        ({"Origin": "https://evil.com"}, 403),
        ({"Content-Type": "text/plain"}, 415),
        ({"Host": "[::1]:8002"}, 200),
        ({"Host": "localhost"}, 200),
        ({"Origin": "http://localhost:3000"}, 200),
    ],
)
def test_without_a_token_only_this_machine_is_let_in(url, headers, status):
    answer = ask(url, "tools", {"workspace_id": "w"}, **headers)
    assert answer.status_code == status
    if status == 403:
        assert "TOOLMEM_TOKEN" in answer.json()["error"]


def test_with_a_token_it_is_needed_and_any_host_may_ask(serve):
    url, _ = serve(token="s3cret-token")
    body = {"workspace_id": "w"}
    refused = ask(url, "tools", body, Authorization="Bearer wrong")
    assert (refused.status_code, "s3cret" in refused.text) == (401, False)
    let_in = {"Authorization": "Bearer s3cret-token", "Host": "memory.example.org"}
    assert ask(url, "tools", body, **let_in).status_code == 200
    assert httpx.get(f"{url}/health", trust_env=False).json() == {"status": "ok"}
    told = httpx.get(f"{url}/health", headers=let_in, trust_env=False).json()
    assert told["name"] == "toolmem"


def test_an_address_of_others_needs_a_token(serve, tmp_path):
    with pytest.raises(AssertionError, match="no token is configured"):
        serve("http.host=0.0.0.0")
    (tmp_path / "s.yaml").write_text("http: {host: 0.0.0.0}\n")
    url, process = serve("config=s.yaml")
    assert httpx.get(f"{url}/health", trust_env=False).json()["status"] == "ok"
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=40) is not None
    assert b"listening on 127.0.0.1" in process.stderr.read()


@pytest.mark.parametrize("workspace", ["workspace", "workspace_id"])
@pytest.mark.parametrize("conversation", ["conversation_id", "session_id"])
def test_programs_may_use_the_names_of_reme_and_openhuman(url, workspace, conversation):
    said = {"user_message": "For now, never use sudo.", "tools": ["shell"], conversation: "c1"}
    kept = ask(url, "capture_rules", {workspace: "old", **said}).json()["kept"]
    assert [rule["session"] for rule in kept] == ["c1"]
    put = {workspace: "old", "tool_name": "shell", "rule": "Never use dd"}
    body = {"jsonrpc": "2.0", "id": 1, "method": "memory.tool_rule_put", "params": put}
    assert ask(url, "rpc", body).json()["result"]["rule"] == "Never use dd"
    rules = ask(url, "tool_rule_list", {workspace: "old", "tool_name": "shell"}).json()
    assert "Never use dd" in [each["rule"] for each in rules]


def test_two_names_for_one_thing_are_refused(url):
    both = {"workspace": "w", "workspace_id": "x"}
    refused = ask(url, "tools", both)
    assert (refused.status_code, refused.json()["field"]) == (422, "workspace_id")


@pytest.mark.parametrize(("command", "section"), [(["serve"], "http"), (["mcp"], "mcp")])
def test_a_port_that_is_taken_is_told_with_the_setting_that_chooses_another(
    tmp_path, command, section
):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        over_http = ["mcp.transport=streamable-http"] if section == "mcp" else []
        done = command_line.run(tmp_path, *command, f"{section}.port={port}", *over_http)
    another = f"choose another with {section}.port={(port + 1) % 65_536}"
    told = f"error: {section}.port: {port} is taken (by another program); {another}\n"
    assert (done.returncode, done.stderr) == (2, told)


def test_the_description_names_every_flow_and_operation(url):
    document = httpx.get(f"{url}/openapi.json", trust_env=False).json()
    assert {"/add_tool_call_result", "/tool_rule_put", "/note_demand"} <= document["paths"].keys()
    put = document["paths"]["/tool_rule_put"]["post"]["requestBody"]["content"]
    required = put["application/json"]["schema"]["required"]
    assert required == ["rule", "tool_name", "workspace"]
    for path, kind in [
        ("/tool_rule_put", "ToolMemoryRule"),
        ("/check_tool_call", "FlowResponse"),
        ("/operations/check_tool_call", "FlowResponse"),
    ]:
        answer = document["paths"][path]["post"]["responses"]["200"]["content"]["application/json"]
        assert answer["schema"] == {"$ref": f"#/components/schemas/{kind}"}
        assert kind in document["components"]["schemas"]


def test_a_check_is_not_held_up_by_work_that_waits_for_a_model(serve):
    with ModelServer(latency=3) as model:
        url, _ = serve(*model_of(model))
        body = {"workspace_id": "w", "tool_call_results": CALLS}
        adding = threading.Thread(target=ask, args=(url, "add_tool_call_result", body))
        adding.start()
        asked = {"workspace_id": "w", "tool_name": "shell", "input": {"command": "ls"}}
        assert ask(url, "operations/check_tool_call", asked).json()["answer"] == ""
        assert adding.is_alive()
        adding.join()


def test_sigterm_lets_a_request_finish_its_work(serve, tmp_path):
    url, process = serve()
    calls = [{"tool_name": f"t{n}", "input": {"n": n}, "output": "x" * 500} for n in range(3_000)]
    done = []

    def add():
        body = {"workspace_id": "w", "tool_call_results": calls}
        done.append(ask(url, "add_tool_call_result", body))

    adding = threading.Thread(target=add)
    adding.start()
    while not (tmp_path / "m.db").exists() and adding.is_alive():
        pass
    process.send_signal(signal.SIGTERM)
    adding.join()
    process.wait(timeout=40)
    if done and done[0].status_code == 200:
        with ToolMem(str(tmp_path / "m.db"), workspace="w") as memory:
            assert len(memory.tools()) == 3_000


def test_no_flow_no_method_and_no_place_is_told_how_to_ask(url):
    assert httpx.get(f"{url}/nothing/here", trust_env=False).status_code == 404
    answer = httpx.get(f"{url}/tools", trust_env=False)
    assert (answer.status_code, "POST" in answer.json()["error"]) == (405, True)
