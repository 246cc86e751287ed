"""`toolmem serve` as a process: how it starts, what it refuses to start with, what it logs, how it ends."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from toolmem.errors import ConfigError
from toolmem.server.http.listening import listen
from toolmem.server.http.preparing import prepare
from toolmem.testing.model_script import Script
from toolmem.testing.model_server import ModelServer

TOOLMEM = (sys.executable, "-m", "toolmem")
ASK = {"workspace_id": "w", "tool_names": "t"}
PATIENCE = 300.0  # seconds: ends what hangs, on however busy a machine

Starter = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Starter]:
    """Starts `toolmem ...` in the test's folder; what still runs at the end is killed with its workers."""
    started: list[subprocess.Popen[str]] = []

    def begin(*arguments: str, **env: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [*TOOLMEM, *arguments],
            cwd=tmp_path,
            env={**os.environ, "TOOLMEM_TOKEN": "", "XDG_STATE_HOME": str(tmp_path / "state"), **env},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        started.append(process)
        return process

    yield begin
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def url_of(process: subprocess.Popen[str]) -> str:
    """From the line that it prints when it is ready."""
    assert process.stdout is not None
    line = process.stdout.readline()
    [url] = [word for word in line.split() if word.startswith("http://")]
    return url


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=PATIENCE)
    return process.returncode, out, err


def lines_of(log: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in log.splitlines()]


def children(pid: int) -> list[int]:
    """The workers of a supervisor: its children but for multiprocessing's resource tracker."""
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            stat, command = (folder / "stat").read_text(), (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if int(stat.rpartition(")")[2].split()[1]) == pid and b"spawn_main" in command:
            found.append(int(folder.name))
    return sorted(found)


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, "it did not come to that in time"
        time.sleep(0.05)


def is_running(pid: int) -> bool:
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


# ---------------------------------------------------------------- starting and ending


def test_remes_command_serves_tells_where_and_stops_when_told_to(start):
    process = start("backend=http", "http.port=0")
    url = url_of(process)
    assert url.startswith("http://127.0.0.1:")
    with httpx.Client(base_url=url) as client:  # its connection stays open
        assert client.get("/health").json()["status"] == "ok"
        added = client.post(
            "/add_tool_call_result", json={"workspace_id": "w", "tool_call_results": [{"tool_name": "t"}]}
        )
        assert added.json()["success"] is True
        process.send_signal(signal.SIGTERM)
        code, out, err = ended(process)
    assert (code, out) == (0, "")
    assert [each["path"] for each in lines_of(err)] == ["/health", "/add_tool_call_result"]


def test_a_model_that_nothing_asks_is_told_at_the_start_and_not_shown_as_if_it_were_asked(start):
    process = start("backend=http", "http.port=0", "llm.default.model_name=qwen-plus")
    line = process.stdout.readline()
    [url] = [word for word in line.split() if word.startswith("http://")]
    health = httpx.get(f"{url}/health").json()
    process.send_signal(signal.SIGTERM)
    code, _, err = ended(process)
    assert code == 0
    assert "model: offline)" in line
    assert health["models"] == {"default": {"backend": "offline", "model_name": ""}}
    (warning,) = health["warnings"]
    assert "no model is asked" in warning
    assert lines_of(err)[0]["message"] == warning


def test_a_line_of_the_log_tells_of_a_request_and_nothing_that_it_held(start):
    process = start("serve", "--port", "0")
    url = url_of(process)
    body = {"workspace_id": "team-7", "tool_names": "a secret tool"}
    answer = httpx.post(f"{url}/retrieve_tool_memory?key=query-secret", json=body)
    rule = {"workspace_id": "team-8", "tool_name": "t", "rule": "a secret rule"}
    httpx.post(f"{url}/rpc", json={"jsonrpc": "2.0", "id": 1, "method": "memory.tool_rule_put", "params": rule})
    httpx.post(f"{url}/retrieve_tool_memory", json={"workspace_id": "../a secret path", "tool_names": "t"})
    process.send_signal(signal.SIGINT)
    code, _, err = ended(process)
    assert code == 0
    assert "secret" not in err
    told = {line.get("workspace"): line for line in lines_of(err)}  # a line follows its answer, at times the next one's
    first, second, third = told["team-7"], told["team-8"], told[None]
    assert len(told) == len(lines_of(err)) == 3
    assert {key: first[key] for key in ("level", "method", "path", "status", "workspace")} == {
        "level": "info",
        "method": "POST",
        "path": "/retrieve_tool_memory",
        "status": 200,
        "workspace": "team-7",
    }
    assert first["bytes_in"] == len(answer.request.content)
    assert first["bytes_out"] == len(answer.content)
    assert first["ms"] > 0
    assert second["path"] == "/rpc"
    assert third["status"] == 422


def test_requests_that_outlast_the_shutdown_are_ended_with_an_answer(serve):
    with ModelServer(Script(latency=600.0)) as model:  # much longer than `stop` waits
        service = serve(
            "llm.default.backend=openai_compatible",
            "llm.default.model_name=qwen-plus",
            "llm.default.params.api_key=any",
            f"llm.default.params.base_url={model.openai_url}",
            "http.shutdown_timeout=0.5",
        )
        answers: list[httpx.Response] = []
        body = {"workspace_id": "w", "tool_call_results": [{"tool_name": "t", "output": "x"}]}
        asking = threading.Thread(
            target=lambda: answers.append(httpx.post(service.url + "/add_tool_call_result", json=body, timeout=600))
        )
        asking.start()
        until(lambda: bool(model.requests))
        assert service.stop() == 0
        asking.join()
    assert answers[0].status_code == 503
    assert answers[0].json()["success"] is False


# ---------------------------------------------------------------- what it refuses to start with


def test_all_problems_of_the_configuration_are_told_at_once(start):
    code, out, err = ended(
        start(
            "serve",
            "llm.default.bckend=x",
            "op.summary_tool_memory_op.params.recent_cal_count=3",
            "http.host=0.0.0.0",
            "http.workers=0",
        )
    )
    assert (code, out) == (2, "")
    for part in ("did you mean 'backend'?", "did you mean 'recent_call_count'?", "http.workers", "0.0.0.0"):
        assert part in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        (["http.host=0.0.0.0"], "no token is configured"),
        (["http.host=192.0.2.1"], "no token is configured"),
        (["llm.default.backend=dashscope", "llm.default.model_name=qwen-plus"], "DASHSCOPE_API_KEY"),
        (["flow.health.flow_content=retrieve_tool_memory_op"], "flow.health"),
        (["auth.token_file=nosuch"], "auth.token_file"),
        (['http.cors_origins=["*"]'], "http.cors_origins"),
        (["http.max_body_bytes=0"], "http.max_body_bytes"),
        (["http.read_timeout=never"], "http.read_timeout"),
    ],
)
def test_what_cannot_be_served_is_refused_before_anything_is_opened(tmp_path, monkeypatch, overrides, says):
    monkeypatch.delenv("TOOLMEM_TOKEN", raising=False)
    with pytest.raises(ConfigError) as caught:
        prepare([], overrides)
    assert says in str(caught.value)
    assert len(caught.value.problems) == 1
    assert not list(tmp_path.iterdir())


def test_a_port_that_is_taken_is_named(start):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        code, out, err = ended(start("serve", f"http.port={port}", "http.workers=2"))
    assert (code, out) == (2, "")
    assert err.startswith(f"toolmem: http.port: {port} on 127.0.0.1 is taken by another program, perhaps")
    assert f"http.port={port + 1}" in err


def test_a_file_that_says_0_0_0_0_binds_loopback_with_one_warning(start, tmp_path):
    (tmp_path / "reme.yaml").write_text("backend: http\nhttp:\n  host: 0.0.0.0\n  port: 0\n", encoding="utf-8")
    process = start("config=reme.yaml")
    assert url_of(process).startswith("http://127.0.0.1:")
    process.terminate()
    code, _, err = ended(process)
    [warning] = lines_of(err)
    assert code == 0
    assert "no token is configured, so services bind 127.0.0.1" in str(warning["message"])


@pytest.mark.parametrize("workers", [1, 2])
def test_a_store_that_cannot_be_opened_stops_the_start(start, tmp_path, workers):
    (tmp_path / "memory.db").write_bytes(b"this is no database, but it is long enough to be looked at" * 100)
    path = "vector_store.default.params.path=memory.db"
    code, out, err = ended(start("serve", "http.port=0", path, f"http.workers={workers}"))
    assert (code, out) == (1, "")
    assert "memory.db" in err
    assert "Traceback" not in err


def test_a_cluster_that_is_not_there_yet_is_waited_for(start):
    process = start(
        "serve",
        "http.port=0",
        "vector_store.default.backend=elasticsearch",
        "vector_store.default.params.hosts=http://127.0.0.1:9",
        "vector_store.default.params.max_retries=0",
    )
    url = url_of(process)
    answer = httpx.post(f"{url}/retrieve_tool_memory", json=ASK, timeout=30)
    health = httpx.get(f"{url}/health", timeout=30)
    process.terminate()
    code, _, _ = ended(process)
    assert (answer.status_code, health.status_code, code) == (503, 503, 0)
    assert answer.json()["metadata"]["errors"][0]["type"] == "StoreUnavailable"


# ---------------------------------------------------------------- the other backends


def test_the_backend_cmd_runs_one_flow_once(start):
    code, out, err = ended(
        start("backend=cmd", "cmd.flow=retrieve_tool_memory", 'cmd.params={"workspace_id": "w", "tool_names": "t"}')
    )
    assert code == 1
    assert json.loads(out)["metadata"]["not_found"] == ["t"]
    assert err == ""


def test_a_file_that_says_mcp_starts_the_mcp_server(start, tmp_path):
    (tmp_path / "reme.yaml").write_text("backend: mcp\nmcp:\n  transport: stdio\n", encoding="utf-8")
    code, out, _ = ended(start("config=reme.yaml"))  # its stdin is at its end: the client has left
    assert (code, out) == (0, "")


# ---------------------------------------------------------------- several workers


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_a_worker_that_dies_is_replaced_and_all_stop_together(start):
    process = start("serve", "http.port=0", "http.workers=2")
    url = url_of(process)
    first = children(process.pid)
    assert len(first) == 2
    os.kill(first[0], signal.SIGKILL)
    until(lambda: len(children(process.pid)) == 2 and first[0] not in children(process.pid))
    for _ in range(8):  # each on a connection of its own: the new worker's among them
        assert httpx.post(f"{url}/retrieve_tool_memory", json=ASK, timeout=PATIENCE).status_code == 200
    last = children(process.pid)
    process.terminate()
    code, _, err = ended(process)
    assert code == 0
    assert f"worker {first[0]} ended with code -9" in err
    assert not any(is_running(pid) for pid in (*first, *last))


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "tgkill"), reason="signals for one thread are Linux's")
def test_a_signal_that_reaches_another_thread_stops_the_workers_too(start):
    model = ("llm.default.backend=openai_compatible", "llm.default.model_name=m", "llm.default.params.api_key=any")
    process = start("serve", "http.port=0", "http.workers=2", *model, "llm.default.params.base_url=http://127.0.0.1:9")
    url_of(process)
    threads = [int(name) for name in os.listdir(f"/proc/{process.pid}/task") if int(name) != process.pid]
    assert threads, "the supervisor has no other thread; nothing is tried here"
    time.sleep(0.5)  # until it waits for its workers and for nothing else
    assert ctypes.CDLL(None).tgkill(process.pid, threads[-1], signal.SIGTERM) == 0
    code, _, _ = ended(process)
    assert code == 0


@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c_once_more_does_not_wait_for_what_is_in_flight(start, workers):
    with ModelServer(Script(latency=60.0)) as model:
        process = start(
            "serve",
            "http.port=0",
            f"http.workers={workers}",
            "llm.default.backend=openai_compatible",
            "llm.default.model_name=qwen-plus",
            "llm.default.params.api_key=any",
            f"llm.default.params.base_url={model.openai_url}",
        )
        url = url_of(process)
        statuses: list[int] = []
        body = {"workspace_id": "w", "tool_call_results": [{"tool_name": "t", "output": "x"}]}
        ask = threading.Thread(
            target=lambda: statuses.append(httpx.post(f"{url}/add_tool_call_result", json=body, timeout=50).status_code)
        )
        ask.start()
        until(lambda: bool(model.requests))
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGTERM)  # says nothing new
        time.sleep(1.0)
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        code, _, _ = ended(process)
        ask.join()
    assert (code, statuses) == (0, [503])


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_workers_do_not_outlive_their_supervisor(start):
    process = start("serve", "http.port=0", "http.workers=2")
    url_of(process)
    workers = children(process.pid)
    assert len(workers) == 2
    process.kill()
    until(lambda: not any(is_running(pid) for pid in workers))


# ---------------------------------------------------------------- sockets


def test_a_name_that_is_no_address_is_refused():
    with pytest.raises(ConfigError, match="is no address of this machine"):
        listen("nosuch.invalid", 0)


@pytest.mark.parametrize("count", [1, 3])
def test_an_address_is_had_once(count):
    held = listen("127.0.0.1", 0, count=count)
    try:
        port = held[0][0].getsockname()[1]
        assert {one.getsockname()[1] for each in held for one in each} == {port}
        for wanted in (1, 2):
            with pytest.raises(ConfigError, match="is taken"):
                listen("127.0.0.1", port, count=wanted)
    finally:
        for each in held:
            for one in each:
                one.close()


def test_localhost_is_every_loopback_address_that_there_is():
    [sockets] = listen("localhost", 0)
    try:
        assert {one.getsockname()[0] for one in sockets} <= {"127.0.0.1", "::1"}
        assert len({one.getsockname()[1] for one in sockets}) == 1
    finally:
        for one in sockets:
            one.close()


def test_a_port_that_another_toolmem_has_is_said_with_its_store(start, tmp_path):
    first = start("serve", "http.port=0", "vector_store.default.params.path=first.db")
    assert first.stdout is not None
    port = int(first.stdout.readline().partition(" (")[0].rpartition(":")[2])
    code, out, err = ended(start("serve", "--port", str(port)))
    assert (code, out) == (2, "")
    assert f"http.port: {port} on 127.0.0.1 is taken by another toolmem (" in err
    assert "first.db)" in err
    assert f"--port {port + 1}" in err or port == 65535
    assert "Traceback" not in err
