"""`toolmem mcp proxy` between pipes: real processes, and every byte."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.server.proxy.conftest import HERE, MAIL, PROXY, SARAH, SCRIPTED, call, initialize, text_of

ODD_MESSAGES = [
    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","x":1.0}}',
    b'{"jsonrpc":"2.0","method":"notifications/initialized"}',
    b'{"params": {"n":1.50,"deep":{"a":[1e3]}},"id":"\\u0041b","method":"server/discover","jsonrpc":"2.0"}',
    b'{"jsonrpc":"2.0","id":12345678901234567890,"method":"unknown/method","y":null}',
    b'{"jsonrpc":"2.0","id":2.50,"method":"completion/complete"}',
    b'{"jsonrpc":"2.0","id":3,"method":"ask/roots"}',
    b'{"jsonrpc":"2.0","id":"s-1","result":{"roots":[],"z":1.0}}',
    b'{"jsonrpc":"2.0","id":4,"method":"tools/list"}',
    b'{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"odd","arguments":{"x":1.0}}}',
    b'{"jsonrpc":"2.0","id":"5","method":"tools/call","params":{"name":"broken","arguments":{}}}',
    b'{"jsonrpc":"2.0","method":"notifications/change"}',
    b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99,"reason":"r"}}',
]


def exchanged(command: list[str], folder: Path, log: Path) -> tuple[bytes, bytes]:
    done = subprocess.run(
        [*command, str(log)], input=b"".join(each + b"\n" for each in ODD_MESSAGES), capture_output=True, cwd=folder
    )
    return done.stdout, log.read_bytes()


def test_every_byte_passes_as_it_came_where_nothing_is_known(tmp_path, store):
    direct = exchanged(SCRIPTED, tmp_path, tmp_path / "direct")
    through = exchanged([*PROXY, "--store", str(store), "--", *SCRIPTED], tmp_path, tmp_path / "through")
    assert through[1] == direct[1] == b"".join(each + b"\n" for each in ODD_MESSAGES)
    assert through[0] == direct[0]


def test_a_forbidden_call_is_answered_and_never_reaches_the_server(start, told, tmp_path):
    told(SARAH)
    proxy = start(server=[*SCRIPTED, str(tmp_path / "log")])
    answer = proxy.call("send_email", {"to": "sarah@example.com"}, "a")
    assert answer["id"] == "a"
    assert answer["result"]["isError"] is True
    assert text_of(answer).startswith("toolmem: not run")
    assert SARAH in text_of(answer)
    assert proxy.call("send_email", {"to": "bob@example.com"})["result"]["isError"] is False
    assert b"sarah" not in (tmp_path / "log").read_bytes()


@pytest.mark.parametrize(
    "wrapped",
    [
        lambda each: b"[" + each + b', {"jsonrpc":"2.0","id":8,"method":"x"}]',
        lambda each: each.replace(b"tools/call", b"tools\\/call"),
        lambda each: each.replace(b"tools", b"\\u0074ools"),
        lambda each: each.replace(b'"id": 1, ', b""),
        lambda each: b" \t" + each + b"\r",
        lambda each: each.replace(b"sarah@", b"x\xff sarah@"),
    ],
    ids=["a batch", "an escaped slash", "an escaped letter", "a notification", "spaces", "no UTF-8"],
)
def test_however_a_forbidden_call_is_written_it_does_not_reach_the_server(start, told, tmp_path, wrapped):
    told(SARAH)
    proxy = start(server=[*SCRIPTED, str(tmp_path / "log")])
    proxy.send(wrapped(json.dumps(call("send_email", {"to": "sarah@example.com"})).encode()))
    proxy.send({"jsonrpc": "2.0", "id": "last", "method": "x"})
    while proxy.read()["id"] != "last":
        pass
    assert b"example" not in (tmp_path / "log").read_bytes()


def test_a_call_that_cannot_be_read_is_refused_by_its_id(start, told, tmp_path):
    told(SARAH)
    proxy = start(server=[*SCRIPTED, str(tmp_path / "log")])
    deep = b'{"id":7,"method":"tools/call","params":{"name":"send_email","arguments":' + b'{"a":' * 90_000
    answer = proxy.ask(deep + b'"sarah@example.com"' + b"}" * 90_002)
    assert answer["id"] == 7
    assert "cannot be read" in answer["error"]["message"]
    assert not (tmp_path / "log").exists() or not (tmp_path / "log").read_bytes()


def test_what_a_call_came_to_is_kept_with_its_outcome(start, kept):
    proxy = start("--name", "mail", server=SCRIPTED)
    proxy.call("odd", {"q": "x", "password": "hunter2hunter2"}, 1, _meta={"claudecode/toolUseId": "toolu_01"})
    proxy.call("broken", {}, 2)
    assert proxy.end()[0] == 0
    odd, broken = kept()
    assert (odd.id, odd.tool_name, odd.success, odd.output) == ("toolu_01", "odd", True, "café é")
    assert (odd.metadata["mcp_server"], odd.metadata["ending"]) == ("mail", "answered")
    assert odd.input["q"] == "x"
    assert "hunter2" not in str(odd.input)
    assert odd.time_cost > 0
    assert (broken.success, broken.output) == (False, "error -32602: no such tool")
    assert (broken.metadata["ending"], broken.metadata["error_code"]) == ("protocol_error", -32602)


@pytest.mark.parametrize(
    ("meta", "id"),
    [
        ({"sessionId": "s1", "callId": "call_1"}, "s1/call_1"),  # as Codex tells it, and toolmem's hook keeps it
        ({"sessionId": "s1", "callId": 3}, ""),
        ({"sessionId": "s1"}, ""),
        ({"claudecode/toolUseId": "x" * 1000}, ""),
    ],
)
def test_the_host_says_which_of_its_calls_it_is(start, kept, meta, id):
    proxy = start(server=SCRIPTED)
    proxy.call("odd", {"q": "x"}, 1, _meta=meta)
    proxy.end()
    (call,) = kept()
    assert call.id == id if id else call.id not in ("", "s1/3", "x" * 1000)


def test_no_arguments_are_kept_where_that_is_said(start, told, store, kept):
    told(SARAH)
    proxy = start("--no-arguments")
    proxy.call("odd", {"q": "my-private-word"})
    proxy.call("send_email", {"to": "sarah@example.com", "text": "my-private-word"})
    proxy.end()
    assert kept()[0].input == {}
    for file in store.parent.glob("memory.db*"):
        assert b"my-private-word" not in file.read_bytes()


def test_guidance_and_rules_stand_in_the_description_and_stay_until_the_list_changes(start, told):
    told("always write politely, never in capitals")
    proxy = start()
    listing = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    proxy.send(listing)
    first = proxy.line()
    tools = {tool["name"]: tool for tool in json.loads(first)["result"]["tools"]}
    assert tools["send_email"]["description"].startswith("Sends / mail.\n\n[Added by toolmem")
    assert "never in capitals" in tools["send_email"]["description"]
    assert "description" not in tools["odd"]
    assert b'"x-new":1.50' in first
    assert b'"ttlMs":5e3' in first
    assert b'"odd":1e2' in first
    assert b'"cacheScope":"private"' in first  # it is this user's now
    told("only write to people at acme.com")
    proxy.send(listing)
    assert proxy.line() == first
    proxy.send(b'{"jsonrpc":"2.0","method":"notifications/change"}')
    assert b"list_changed" in proxy.line()
    proxy.send(listing)
    assert b"people at acme.com" in proxy.line()


def test_a_tool_without_a_description_gains_one(start, told):
    told("never with q over ten", tool="odd")
    proxy = start()
    answer = proxy.ask({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    assert answer["result"]["tools"][0]["description"].startswith("[Added by toolmem")


def test_shadow_decides_and_changes_nothing(start, told, store, tmp_path):
    told(SARAH)
    proxy = start("--shadow")
    assert proxy.call("send_email", {"to": "sarah@example.com"})["result"]["isError"] is False
    proxy.send({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    assert b"toolmem" not in proxy.line()
    proxy.end()
    log = subprocess.run(
        [*PROXY[:4], "guard", "log", "--json", f"vector_store.default.params.path={store}"],
        capture_output=True,
        cwd=tmp_path,
    )
    (decision,) = json.loads(log.stdout)
    assert decision["mode"] == "shadow"
    assert SARAH in json.dumps(decision["sources"]) or decision["sources"][0]["kind"] == "rule"


def test_a_failed_call_is_stopped_unchanged_runs_once_more_and_is_stopped_again(start):
    proxy = start()
    stopped = [proxy.call("broken", {"x": 1}, n) for n in range(1, 5)]
    assert ["error" in each for each in stopped] == [True, False, True, False]
    assert "This exact call failed once" in text_of(stopped[1])
    assert "error" in proxy.call("broken", {"x": 2}, 9)  # another call


def test_a_store_that_cannot_be_used_stops_nothing_and_is_said(start, store):
    store.write_bytes(b"this is no database" * 100)
    proxy = start()
    assert proxy.call("send_email", {"to": "sarah@example.com"})["result"]["isError"] is False
    code, _, errors = proxy.end()
    assert code == 0
    assert "calls pass unchecked" in errors


def test_closed_denies_where_the_store_cannot_be_used(start, store):
    store.write_bytes(b"this is no database" * 100)
    proxy = start("--on-error", "closed")
    answer = proxy.call("send_email", {"to": "bob@example.com"})
    assert answer["result"]["isError"] is True
    assert "guard.on_error is closed" in text_of(answer)
    assert proxy.ask({"jsonrpc": "2.0", "id": 2, "method": "x"})["result"]["of"] == "x"


def test_the_guard_can_be_switched_off_from_outside(start, told):
    told(SARAH)
    proxy = start(TOOLMEM_GUARD="off")
    assert proxy.call("send_email", {"to": "sarah@example.com"})["result"]["isError"] is False


# ---------------------------------------------------------------- processes


def test_what_a_server_prints_beside_its_messages_goes_to_stderr(start):
    proxy = start()
    assert proxy.ask({"jsonrpc": "2.0", "id": 1, "method": "noise"})["result"] == {}
    assert "this is no message" in proxy.end()[2]


def test_the_exit_code_and_stderr_are_the_servers(start, kept):
    proxy = start(server=MAIL)
    proxy.ask(initialize())
    proxy.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
    proxy.send(call("die", {}))
    assert proxy.line() == b""
    code, _, errors = proxy.end()
    assert code == 7
    assert "the server's own stderr" in errors
    (lost,) = kept()
    assert (lost.success, lost.metadata["ending"]) == (None, "no_answer")


def test_a_server_that_cannot_be_started_is_named(start):
    code, out, errors = start(server=["/no/such/server"]).end()
    assert (code, out) == (127, b"")
    assert "/no/such/server" in errors


def is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def child_of(process: int) -> int:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(process)], capture_output=True, text=True)
        if found.stdout.split():
            return int(found.stdout.split()[0])
        time.sleep(0.1)
    raise AssertionError("no server was started")


def wait_until_ended(process: int) -> None:
    until = time.monotonic() + 30
    while is_running(process):
        assert time.monotonic() < until, "it still runs"
        time.sleep(0.02)


def test_a_proxy_that_is_killed_keeps_what_was_answered_and_the_server_ends(start, kept):
    proxy = start()
    proxy.call("odd", {"n": 1})
    child = child_of(proxy.process.pid)
    proxy.send(call("odd", {"n": 2}))
    proxy.process.kill()
    assert proxy.end()[0] == -signal.SIGKILL
    wait_until_ended(child)
    assert {"n": 1} in [each.input for each in kept()]


@pytest.mark.parametrize("stubborn", [False, True], ids=["a server that ends", "a server that ignores it"])
def test_sigterm_ends_the_server_and_the_proxy(start, stubborn):
    server = [
        sys.executable,
        "-c",
        "import signal; signal.signal(15, signal.SIG_IGN); print('{}', flush=True)\nwhile True: signal.pause()",
    ]
    proxy = start(server=server) if stubborn else start()
    if stubborn:
        assert proxy.line() == b"{}\n"
    else:
        proxy.ask({"jsonrpc": "2.0", "id": 1, "method": "x"})
    child = child_of(proxy.process.pid)
    proxy.process.send_signal(signal.SIGTERM)
    assert proxy.process.wait(timeout=60) == 128 + (signal.SIGKILL if stubborn else signal.SIGTERM)
    assert not is_running(child)


def test_two_hosts_with_a_server_each_keep_into_one_store(start, kept):
    first, second = start("--name", "a"), start("--name", "b")
    for number in range(10):
        for proxy in (first, second):
            proxy.send(call("odd", {"n": number}, number))
    for proxy in (first, second):
        for _ in range(10):
            proxy.read()
        proxy.end()
    assert len(kept()) == 20


@pytest.mark.slow
def test_a_message_of_sixty_megabytes_passes_and_its_call_is_checked(start, told, tmp_path):
    told(SARAH)
    proxy = start(server=[*SCRIPTED, str(tmp_path / "log")])
    text = "x y" * 20_000_000
    assert proxy.call("send_email", {"to": "bob@example.com", "text": text})["result"]["isError"] is False
    assert proxy.call("send_email", {"to": "sarah@example.com", "text": text})["result"]["isError"] is True
    assert b"sarah" not in (tmp_path / "log").read_bytes()
    status = Path(f"/proc/{proxy.process.pid}/status").read_text()
    peak = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
    assert peak < 1_500_000, "kB"


@pytest.mark.slow
def test_a_message_that_is_longer_than_can_be_checked_does_not_pass(start, tmp_path):
    proxy = start(server=[*SCRIPTED, str(tmp_path / "log")])
    answer = proxy.call("send_email", {"to": "bob@example.com", "text": "x" * 70_000_000}, 3)
    assert answer["id"] == 3
    assert "67,108,864" in answer["error"]["message"]
    assert proxy.ask({"jsonrpc": "2.0", "id": 4, "method": "x"})["id"] == 4
    assert (tmp_path / "log").stat().st_size < 1000


def test_a_host_that_stops_reading_ends_the_proxy(start):
    proxy = start()
    proxy.ask({"jsonrpc": "2.0", "id": 1, "method": "x"})
    assert proxy.process.stdout is not None
    proxy.process.stdout.close()
    proxy.send({"jsonrpc": "2.0", "id": 2, "method": "x"})
    proxy.process.wait(timeout=60)


def test_no_file_of_the_working_directory_is_run(start, tmp_path):
    for name in ("apsw.py", "json.py", "sitecustomize.py", "typer.py"):
        (tmp_path / name).write_text("import os; os._exit(66)")
    (tmp_path / "toolmem").mkdir()
    (tmp_path / "toolmem" / "__init__.py").write_text("import os; os._exit(66)")
    proxy = start(server=[sys.executable, "-P", *SCRIPTED[1:]])
    assert proxy.call("odd", {})["result"]["isError"] is False
    assert proxy.end()[0] == 0
    assert os.listdir(tmp_path / "toolmem") == ["__init__.py"]


@pytest.mark.parametrize("times", [1, 2])
def test_arguments_that_are_written_as_text_are_read_and_pass_as_they_came(start, told, kept, tmp_path, times):
    told(SARAH)
    proxy = start(server=[*SCRIPTED[:1], str(HERE / "puppet_server.py"), str(tmp_path / "log")])

    def text(value):
        for _ in range(times):
            value = json.dumps(value)
        return value

    stopped = proxy.call("send_email", text({"to": "sarah@example.com"}))
    assert stopped["result"]["isError"] is True
    assert SARAH in text_of(stopped)
    assert not (tmp_path / "log").exists()
    proxy.send(call("odd", text({"to": "bob@example.com"}), 2))
    proxy.end()
    assert json.loads((tmp_path / "log").read_text())["params"]["arguments"] == text({"to": "bob@example.com"})
    assert [each.input for each in kept()] == [{"to": "bob@example.com"}]
