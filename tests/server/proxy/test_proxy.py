"""The MCP proxy: what passes, what is held, what is kept, and what is added."""

import io
import json
import subprocess
import sys
from datetime import UTC, datetime

import pytest
from command_line import run

from toolmem import ToolMem
from toolmem.guard.decision import fallback_decision
from toolmem.guard.stores import open_stores
from toolmem.server.proxy import call as proxied_call
from toolmem.server.proxy.call import Consents, ToolCall
from toolmem.server.proxy.child import relay_lines
from toolmem.server.proxy.memory import ProxyMemory
from toolmem.server.proxy.relay import Relay

TO_SARAH = {"to": "sarah@example.com"}
TO_BOB = {"to": "bob@example.com"}
NEVER = "never email sarah@example.com"
ASK = "ask me before you email sarah@example.com"
FORM = {"elicitation": {"form": {}}}
MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": FORM,
}


def text_of(result):
    return result["content"][0]["text"]


def test_what_is_no_call_passes_as_the_bytes_that_came(host):
    host = host(said=NEVER)
    odd = '{ "method":"vendor/x" ,"id" : "é", "jsonrpc":"2.0", "params":{"n":1.10,"z":[ ]} }'
    host.write(odd.encode())
    assert host.line() == b'{"id" : "\\u00e9","result":{"rate":1.10, "x":[ ]}}'
    host.write(b'{"jsonrpc":"2.0","method":"notifications/progress", "params":{"progressToken":1}}')
    arguments = b'{"ID":1.0,"id":2}'
    allowed = b'{"id":4, "method":"tools/call","params":{"name":"send_email","arguments":%b}}'
    allowed %= arguments
    host.write(allowed)
    assert host.message()["id"] == 4
    assert host.got[0] == odd.encode() and host.got[2] == allowed
    assert host.got[1].endswith(b', "params":{"progressToken":1}}')
    assert host.close() == (0, "")


def test_a_forbidden_call_is_answered_with_the_users_sentence_and_never_sent(host):
    host = host(said=NEVER)
    stateless = host.call("send_email", TO_SARAH, _meta=MODERN)
    assert stateless["isError"] and stateless["resultType"] == "complete"
    denied = host.call("send_email", TO_SARAH)
    assert denied["isError"] and NEVER in text_of(denied)
    assert text_of(host.call("send_email", TO_BOB)) == "done"
    assert len(host.got) == 1 and b"bob" in host.got[0]
    [kept] = host.kept()
    assert (kept.tool_name, kept.input, kept.output) == ("send_email", TO_BOB, "done")
    assert kept.success is True and kept.time_cost > 0


@pytest.mark.parametrize(
    "line",
    [
        b'{"id":5,"method":"ping","method":"tools/call","params":{"name":"send_email","arguments":{"to":"sarah@example.com"}}}',
        b'{"id":5,"method":"tools/call","params":{"name":"send_email","arguments":{"to":"bob@example.com","to":"sarah@example.com"}}}',
        b'{"id":5,"method":"tools/call","params":{"name":"list_mails","Name":"send_email"}}',
        b'{"id":5,"method":"tools/call","params":{"Name":"send_email","arguments":{}}}',
        b'{"id":5,"method":"tools/call","Params":{"name":"send_email","arguments":{}}}',
        b'{"id":5,"Method":"tools/call","params":{"name":"send_email","arguments":{}}}',
        b'{"id":5,"method":"\\u0074ools\\/call","params":{"name":"send_email","arguments":{"to":"sarah@example.com"}}}',
        b'{"id":5,"method":"tools/call","params":{"name":"send_email","arguments":{"to":"sarah@example.com"}',
        b'{"id":5,"method":"tools/call","params":{"name":"send_email","arguments":{"to":"\xff"}}}',
        b'{"id":5,"method":"tools/call","params":' + b"[" * 100_000,
    ],
)
def test_a_call_that_two_readers_may_read_differently_is_refused_by_its_id(host, line):
    host = host(said=NEVER)
    host.write(line)
    answer = host.message()
    assert answer["id"] == 5
    assert "toolmem: not run" in json.dumps(answer)
    assert host.call("send_email", TO_BOB, id=6) and len(host.got) == 1


def test_a_batch_is_refused_and_the_exit_code_is_the_servers(host):
    host = host()
    host.write(b'[{"id":1,"method":"tools/call","params":{"name":"x"}}]')
    assert "no batches" in host.message()["error"]["message"]
    assert host.got == []
    host.send({"id": 1, "method": "tools/call", "params": {"name": "leave"}})
    assert host.process.wait(timeout=20) == 7


def test_the_user_is_asked_by_a_form_and_other_messages_pass_meanwhile(host):
    host = host(said=ASK, capabilities=FORM)
    host.begin("send_email", TO_SARAH, id=2)
    question = host.message()
    assert question["method"] == "elicitation/create"
    assert "sarah@example.com" in question["params"]["message"]
    assert text_of(host.call("send_email", TO_BOB, id=3)) == "done"
    accepted = {"action": "accept", "content": {"run": True}}
    host.send({"id": question["id"], "result": accepted})
    answer = host.message()
    assert (answer["id"], text_of(answer["result"])) == (2, "done")


@pytest.mark.parametrize(
    "answer",
    [
        {"action": "accept", "content": {"run": False}},
        {"action": "accept", "content": {"run": "true"}},
        {"action": "accept"},
        {"action": "decline"},
        None,
    ],
)
def test_anything_but_a_plain_yes_is_none(host, answer):
    host = host(said=ASK, capabilities=FORM)
    host.begin("send_email", TO_SARAH, id=2)
    host.send({"id": host.message()["id"], "result": answer})
    told = host.message()["result"]
    assert told["isError"] and "did not agree" in text_of(told)
    host.ask("initialize", {"capabilities": {}})  # such a client shows no forms
    told = host.call("send_email", TO_SARAH)
    assert told["isError"] and "ask the user first" in text_of(told)
    assert all(b"sarah" not in line for line in host.got)


def test_a_call_that_is_cancelled_while_the_user_is_asked_is_never_sent(host):
    host = host(said=ASK, capabilities=FORM)
    host.begin("send_email", TO_SARAH, id=2)
    ours = host.message()["id"]
    host.send({"method": "notifications/cancelled", "params": {"requestId": 2}})
    assert host.message()["params"]["requestId"] == ours
    host.send({"id": ours, "result": {"action": "accept", "content": {"run": True}}})
    assert host.ask("ping", id=9)["id"] == 9
    assert all(b"sarah" not in line for line in host.got)


def test_in_the_stateless_protocol_consent_holds_for_this_call_once(host):
    host = host(said=ASK)
    first = host.call("send_email", TO_SARAH, _meta=MODERN)
    assert first["resultType"] == "input_required"
    state = first["requestState"]
    yes = {"toolmem": {"action": "accept", "content": {"run": True}}}
    again = {"_meta": MODERN, "requestState": state, "inputResponses": yes}

    def retry(arguments):
        params = {"name": "send_email", "arguments": arguments, **again}
        return host.ask("tools/call", params, id=3)

    assert text_of(retry(TO_SARAH)["result"]) == "done"
    assert "requestState" not in json.loads(host.got[-1])["params"]
    assert "used before" in retry(TO_SARAH)["error"]["message"]


def test_consent_that_comes_after_ten_minutes_is_none(monkeypatch):
    monkeypatch.setattr(proxied_call, "CONSENT_SECONDS", -1.0)
    consents, params = Consents(), {"name": "send_email", "arguments": TO_SARAH}
    decision = fallback_decision("send_email", "c1", datetime.now(UTC), "closed")
    state = consents.ask(ToolCall.read({"params": params}), decision)["requestState"]
    with pytest.raises(ValueError, match="too old"):
        consents.answer(ToolCall.read({"params": {**params, "requestState": state}}))


def test_a_server_may_ask_on_about_a_call_that_the_user_agreed_to(host):
    host, given = host(said=ASK), {**TO_SARAH, "ask": True}
    first = host.call("send_email", given, _meta=MODERN)
    yes = {"toolmem": {"action": "accept", "content": {"run": True}}}
    more = {"_meta": MODERN, "requestState": first["requestState"], "inputResponses": yes}
    second = host.call("send_email", given, id=2, **more)
    assert second["requestState"] == "of the server"
    own = {"_meta": MODERN, "requestState": "of the server"}
    assert text_of(host.call("send_email", given, id=3, **own)) == "done"
    assert host.call("send_email", given, id=4, **own)["resultType"] == "input_required"


def test_a_failure_is_kept_and_advised_about(host):
    host = host()
    for number, path in enumerate(("a.txt", "b.txt", "c.txt")):
        noted = host.call("fail", {"path": path}, id=number)["content"]
    assert noted[0]["text"] == "Error: c.txt does not exist"
    assert noted[-1]["text"].startswith("[Added by toolmem]")
    assert [call.success for call in host.kept()] == [False] * 3


def test_an_unchanged_repeat_is_stopped_and_runs_where_it_is_sent_once_more(host):
    host = host()
    told = [text_of(host.call("fail", {"path": "a.txt"}, id=number)) for number in range(4)]
    assert [text.startswith("toolmem: not run") for text in told] == [False, True, False, True]
    assert "send it once more as it is" in told[1] and "once more" not in told[3]
    assert len(host.got) == 2


def test_structured_content_stands_as_text_before_a_note(host):
    host = host()
    host.call("fail_with_data", {"n": 1})
    result = host.call("fail_with_data", {"n": 2}, id=2)
    assert [json.loads(result["content"][0]["text"])] == [{"error": "gone"}]
    assert result["content"][1]["text"].startswith("[Added by toolmem]")
    assert result["structuredContent"] == {"error": "gone"}
    assert {json.loads(call.output)["error"] for call in host.kept()} == {"gone"}


def test_descriptions_tell_the_users_rules_and_stay_until_the_list_changes(host, tmp_path):
    host = host(said=NEVER)
    first = host.ask("tools/list")
    [tool] = first["result"]["tools"]
    assert tool["description"].startswith("Sends.\n\n[Added by toolmem]")
    assert NEVER in tool["description"] and first["result"]["cacheScope"] == "private"
    with ToolMem(tmp_path / "m.db") as memory:
        bob = {"rule": "never email bob@example.com", "priority": "critical"}
        memory.tool_rule_put("send_email", **bob)
    assert host.ask("tools/list")["result"]["tools"] == [tool]
    host.send({"method": "vendor/changes"})
    assert host.message()["method"] == "notifications/tools/list_changed"
    [fresh] = host.ask("tools/list")["result"]["tools"]
    assert "bob@example.com" in fresh["description"]


def test_cancelled_and_unanswered_calls_are_kept_as_unknown(host):
    host = host()
    for number in (1, 2):
        host.begin("silent", {"n": number}, id=number)
    host.send({"method": "notifications/cancelled", "params": {"requestId": 1}})
    assert host.ask("ping", id=3)["id"] == 3
    assert b"notifications/cancelled" in host.got[2]
    assert host.close()[0] == 0
    endings = {call.input["n"]: (call.success, call.metadata["ending"]) for call in host.kept()}
    assert endings == {1: (None, "cancelled"), 2: (None, "no_answer")}


def test_in_the_shadow_nothing_is_changed_and_everything_is_kept(host):
    host = host("--shadow", said=NEVER)
    assert text_of(host.call("send_email", TO_SARAH)) == "done"
    assert "description" in host.ask("tools/list")["result"]["tools"][0]
    assert NEVER not in json.dumps(host.ask("tools/list"))
    assert len(host.kept()) == 1
    with ToolMem(host.folder / "m.db") as memory:
        assert [each.mode for each in memory.decisions()] == ["shadow"]


@pytest.mark.parametrize(("policy", "runs"), [("open", True), ("closed", False)])
def test_a_store_that_cannot_be_opened_never_takes_the_server_down(host, tmp_path, policy, runs):
    (tmp_path / "m.db").write_text("no store")
    host = host("--on-error", policy)
    answer = host.call("send_email", TO_BOB)
    assert (text_of(answer) == "done") is runs
    assert host.ask("tools/list")["result"]["tools"]
    assert "calls cannot be checked" in host.close()[1]


def test_a_store_that_came_with_the_folder_only_asks_and_is_told(host, tmp_path, monkeypatch):
    with monkeypatch.context() as somebody_else:
        somebody_else.setenv("HOME", str(tmp_path / "theirs"))
        somebody_else.setenv("XDG_STATE_HOME", str(tmp_path / "their state"))
        with ToolMem(tmp_path / "m.db") as memory:
            memory.capture_rules(NEVER, tools=["send_email"])
    host = host()
    answer = text_of(host.call("send_email", TO_SARAH))
    assert "A store that is not trusted has this rule" in answer and "The user said" not in answer
    assert NEVER not in json.dumps(host.ask("tools/list"))
    assert "its rules only ask" in host.close()[1]


def test_a_message_that_nothing_can_be_added_to_reaches_the_client_and_so_do_others(monkeypatch):
    sent = []
    memory = ProxyMemory(lambda: open_stores("", ":memory:"))
    monkeypatch.setattr(memory, "describe", lambda tools: 1 / 0)
    relay = Relay(memory, sent.append, sent.append)
    lines = [b'{"id": 1, "method": "tools/list"}', b'{"id": 1, "result": {"tools": []}}']
    relay.from_client(lines[0])
    relay.from_server(lines[1])
    assert sent == lines
    taken = []

    def take(line):
        taken.append(line)
        raise ValueError(line)

    relay_lines(io.BytesIO(b"a\nb\n"), take)
    assert taken == [b"a", b"b"]


def test_a_program_cannot_loosen_rules_where_a_proxy_is_at_work(host):
    host = host(said=NEVER)
    host.call("send_email", TO_BOB)
    with ToolMem(host.folder / "m.db") as memory:
        [rule] = memory.tool_rule_list("send_email")
        memory.tool_rule_delete("send_email", rule.id)
        assert [each.id for each in memory.tool_rule_list("send_email")] == [rule.id]
    assert host.call("send_email", TO_SARAH, id=2)["isError"]


def test_a_command_that_is_none_is_told(tmp_path):
    done = run(tmp_path, "mcp", "proxy", "--", "no-such-program")
    assert done.returncode == 127 and "cannot be started: no-such-program" in done.stderr


def test_the_proxy_loads_no_flows_servers_or_models():
    """What a host starts beside each of its servers stays small."""
    program = "import sys, toolmem.cli.mcp, toolmem.server.proxy.child; print(*sys.modules)"
    command = [sys.executable, "-c", program]
    loaded = subprocess.run(command, capture_output=True, check=True, text=True).stdout.split()
    heavy = ("toolmem.memory", "toolmem.flow", "toolmem.llm", "asyncio", "starlette", "mcp", "yaml")
    assert [each for each in heavy if each in loaded] == []
