"""Reference servers and the official conformance suite: the same with and without the proxy."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from ports import free_ports

from hosts_live.model import Asked, Model
from hosts_live.programs import PROGRAMS, ClaudeCode
from toolmem import ToolMem

pytestmark = pytest.mark.hosts
HERE = Path(__file__).parent
OWN = [sys.executable, str(HERE / "conformance_server.py")]
SUITE = PROGRAMS / "@modelcontextprotocol" / "conformance"
EVERYTHING = [str(PROGRAMS / ".bin" / "mcp-server-everything")]
MIN_SCENARIOS = 25


@pytest.fixture
def home(tmp_path):
    if not SUITE.exists():
        pytest.skip("`make test-hosts` installs it")
    return tmp_path


def environment(home):
    path = f"{PROGRAMS / '.bin'}:/usr/local/bin:/usr/bin:/bin"
    return {"HOME": str(home), "PATH": path, "LANG": "C.UTF-8"}


def proxied(home, *server):
    command = [sys.executable, "-P", "-m", "toolmem", "mcp", "proxy"]
    return [*command, "--store", str(home / "m.db"), *server]


@contextmanager
def served(home, command, port):
    with open(home / f"log{port}", "wb") as log:
        process = subprocess.Popen(command, cwd=home, env=environment(home), stdout=log, stderr=log)
    try:
        until = time.monotonic() + 60
        while socket.socket().connect_ex(("127.0.0.1", port)) != 0:
            assert time.monotonic() < until, (home / f"log{port}").read_text()
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.kill()  # what it started sees its pipe closed
        process.wait(timeout=60)


def conformance(home, server):
    """Scenario -> its checks and what each came to, of a command behind the HTTP front."""
    [port] = free_ports(1)
    folder = home / "results"
    front = [sys.executable, str(HERE / "http_front.py"), str(port), *server]
    with served(home, front, port) as url:
        command = [str(PROGRAMS / ".bin" / "node"), str(SUITE / "dist" / "index.js"), "server"]
        command += ["--url", url, "--suite", "all", "-o", str(folder)]
        subprocess.run(command, cwd=home, env=environment(home), capture_output=True, timeout=300)
    results = {}
    for each in sorted(folder.iterdir()):
        scenario = re.sub(r"^server-|-\d{4}-\d\d-\d\dT[\d-]+Z$", "", each.name)
        checks = json.loads((each / "checks.json").read_text())
        results[scenario] = [
            (c["id"], c["status"], c.get("errorMessage", "").replace(str(port), "PORT"))
            for c in checks
        ]
    shutil.rmtree(folder)
    return results


def told(name, direct, through):
    passed = sum(all(c[1] == "SUCCESS" for c in checks) for checks in direct.values())
    version = json.loads((SUITE / "package.json").read_text())["version"]
    same = sum(direct[each] == through.get(each) for each in direct)
    print(f"conformance {version}, {name}: {len(direct)} scenarios, {passed} passed, {same} equal")


@pytest.mark.parametrize(
    ("name", "server"), [("server-everything", EVERYTHING), ("a server of the suite's tools", OWN)]
)
def test_the_conformance_suite_sees_no_proxy(home, name, server):
    direct = conformance(home, server)
    through = conformance(home, proxied(home, "--", *server))
    told(name, direct, through)
    assert len(direct) >= MIN_SCENARIOS
    assert through == direct
    with ToolMem(home / "m.db") as memory:
        assert memory.calls()


def test_the_conformance_suite_sees_no_proxy_before_an_address(home):
    [port] = free_ports(1)
    with served(home, [*OWN, str(port)], port) as url:
        direct, through = conformance(home, OWN), conformance(home, proxied(home, "--url", url))
    told("--url", direct, through)
    assert through == direct


def test_a_wrapped_server_answers_as_before_and_its_calls_are_kept(home):
    files = home / "files"
    files.mkdir()
    (files / "a.txt").write_text("what stands in a\n")
    program = str(PROGRAMS / ".bin" / "mcp-server-filesystem")
    server = {"command": program, "args": [str(files)]}
    settings = home / ".mcp.json"
    settings.write_text(before := json.dumps({"mcpServers": {"files": server}}, indent=1))

    def toolmem(*words):
        command = [sys.executable, "-m", "toolmem", "mcp", *words, "--file", str(settings)]
        subprocess.run(command, cwd=home, env={**os.environ, **environment(home)}, check=True)

    def asked():
        entry = json.loads(settings.read_text())["mcpServers"]["files"]
        messages = [
            {
                "id": 1,
                "method": "initialize",
                "params": {
                    "protocolVersion": "2025-11-25",
                    "capabilities": {},
                    "clientInfo": {"name": "t", "version": "1"},
                },
            },
            {"method": "notifications/initialized"},
            {"id": 2, "method": "tools/list"},
            _read(3, files / "a.txt"),
            _read(4, files / "missing.txt"),
        ]
        process = subprocess.Popen(
            [entry["command"], *entry["args"]],
            cwd=home,
            env=environment(home),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        lines = []
        for message in messages:
            process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
            process.stdin.flush()
            if "id" in message:
                lines.append(json.loads(process.stdout.readline()))
        process.communicate(timeout=60)
        return lines

    bare = asked()
    toolmem("wrap", "files", "--store", str(home / "m.db"))
    *answers, failed = asked()
    assert answers == bare[:-1]
    assert failed["result"]["content"][:1] == bare[-1]["result"]["content"]
    with ToolMem(home / "m.db") as memory:
        assert [call.success for call in memory.calls()] == [True, False]
    toolmem("unwrap", "files")
    assert settings.read_text() == before


def _read(number, path):
    params = {"name": "read_text_file", "arguments": {"path": str(path)}}
    return {"id": number, "method": "tools/call", "params": params}


def test_in_claude_code_a_wrapped_server_is_held_and_the_memory_is_served(home):
    model = Model()
    agent = ClaudeCode(model, home / "agent")
    files = agent.project  # Claude Code tells servers that this is their root
    (files / "a.txt").write_text("what stands in a\n")
    program = str(PROGRAMS / ".bin" / "mcp-server-filesystem")
    memory = {"command": sys.executable, "args": ["-m", "toolmem", "mcp", "--store", "m.db"]}
    servers = {"files": {"command": program, "args": [str(files)]}, "toolmem": memory}
    settings = agent.project / ".mcp.json"
    settings.write_text(json.dumps({"mcpServers": servers}))
    agent.toolmem("mcp", "wrap", "files", "--file", ".mcp.json", "--store", "m.db")
    agent.toolmem("rules", "add", "write_file", "Never write b.txt", "--store", "m.db")
    agent.toolmem(
        *("rules", "add", "write_file", "Never write c.txt", "--store", "m.db"),
        *("--effect", "deny", "--when", '[{"path": "c\\\\.txt"}]'),
    )
    wanted = {"tool_name": "write_file"}
    model.then(
        Asked("mcp__files__read_text_file", {"path": str(files / "a.txt")}),
        Asked("mcp__files__write_file", {"path": str(files / "c.txt"), "content": "x"}),
        Asked("mcp__toolmem__memory_tools_list", wanted),
        "Done.",
    )
    options = ["--mcp-config", ".mcp.json", "--dangerously-skip-permissions"]
    agent.run("-p", "Go on.", *options, "--output-format", "json")
    model.close()
    told = list(model.requests[-1].results.values())
    assert "what stands in a" in told[0]
    assert "toolmem: not run" in told[1] and "Never write c.txt" in told[1]
    assert "Never write b.txt" in told[2]
    assert not (files / "c.txt").exists()
