"""The reference servers through `toolmem mcp proxy`, with the official inspector and the official conformance suite.

What is told with the proxy is told without it. The last run stands in docs/how-to/hosts/mcp-conformance.md.
"""

from __future__ import annotations

import datetime
import json
import os
import platform
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from toolmem import ToolMem

pytestmark = [pytest.mark.hosts, pytest.mark.xdist_group("mcp-proxy")]

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent
MODULES = Path(os.environ.get("TOOLMEM_NPM_MODULES", ROOT / ".hosts" / "node_modules"))
PROGRAMS = MODULES / ".bin"
VENVS = ROOT / ".hosts" / "venvs"
REPORT = HERE / "mcp_report.json"
PATH = "/usr/local/bin:/usr/bin:/bin"
SCOPE = "@modelcontextprotocol"


@dataclass(frozen=True)
class ReferenceServer:
    """A server as its users start it. `{home}` stands for the test's folder."""

    name: str
    package: str  # of npm, or of PyPI with its version
    arguments: tuple[str, ...]
    calls: tuple[tuple[str, dict[str, str], str], ...]  # tool, arguments, what the answer holds

    @property
    def is_npm(self) -> bool:
        return self.package.startswith("@")

    def command(self, home: Path) -> list[str]:
        program = PROGRAMS / f"mcp-{self.name}" if self.is_npm else installed(self)
        return [str(program), *(each.format(home=home) for each in self.arguments)]

    def version(self) -> str:
        if not self.is_npm:
            return self.package.partition("==")[2].partition(" ")[0]
        return str(json.loads((MODULES / self.package / "package.json").read_text())["version"])


SERVERS = [
    ReferenceServer(
        "server-everything",
        f"{SCOPE}/server-everything",
        (),
        (("echo", {"message": "héllo"}, "héllo"), ("get-sum", {"a": "2", "b": "3"}, "5")),
    ),
    ReferenceServer(
        "server-filesystem",
        f"{SCOPE}/server-filesystem",
        ("{home}/files",),
        (
            ("read_text_file", {"path": "{home}/files/a.txt"}, "what stands in a"),
            ("read_text_file", {"path": "{home}/files/missing.txt"}, "ENOENT"),
            ("list_directory", {"path": "{home}/files"}, "a.txt"),
        ),
    ),
    ReferenceServer("server-memory", f"{SCOPE}/server-memory", (), (("read_graph", {}, "entities"),)),
    ReferenceServer(
        "server-git",
        "mcp-server-git==2026.10.19",
        ("--repository", "{home}/files"),
        (("git_log", {"repo_path": "{home}/files"}, "the first"), ("git_status", {"repo_path": "{home}"}, "")),
    ),
    ReferenceServer(
        "server-time",
        "mcp-server-time==2026.10.19",
        (),
        (("convert_time", {"source_timezone": "UTC", "time": "16:30", "target_timezone": "Asia/Tokyo"}, "01:30"),),
    ),
    ReferenceServer(
        "server-sqlite",
        "mcp-server-sqlite==2025.4.25 mcp<2",  # it was written for the first line of the SDK
        ("--db-path", "{home}/some.db"),
        (
            ("read_query", {"query": "SELECT 1 + 1 AS two"}, "2"),
            ("read_query", {"query": "SELECT no"}, "no such column"),
        ),
    ),
]


def installed(server: ReferenceServer) -> Path:
    """The program of a package of PyPI, in an environment of its own."""
    folder = VENVS / f"mcp-{server.name}"
    program = folder / "bin" / f"mcp-{server.name}"
    if not program.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        subprocess.run([str(folder / "bin" / "pip"), "install", "-q", *server.package.split(" ")], check=True)
    return program


@pytest.fixture(autouse=True)
def programs() -> None:
    if not (PROGRAMS / "mcp-inspector-cli").exists():
        pytest.skip("the inspector is not installed: run `make test-hosts`")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    files = tmp_path / "files"
    files.mkdir()
    (files / "a.txt").write_text("what stands in a\n")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.com", "-C", str(files)]
    subprocess.run([*git[:-2], "init", "-q", str(files)], check=True)
    for step in (["add", "."], ["commit", "-qm", "the first"]):
        subprocess.run([*git, *step], check=True)
    return tmp_path


def environment(home: Path) -> dict[str, str]:
    return {"HOME": str(home), "PATH": PATH, "LANG": "C.UTF-8", "XDG_STATE_HOME": str(home / "state")}


def proxied(home: Path, *options: str) -> list[str]:
    return [sys.executable, "-P", "-m", "toolmem", "mcp", "proxy", "--store", str(home / "memory.db"), *options]


def inspect(home: Path, command: list[str], *asked: str) -> str:
    """What the inspector prints of one request."""
    done = subprocess.run(
        [str(PROGRAMS / "mcp-inspector-cli"), "--cli", *command, *asked],
        cwd=home,
        env=environment(home),
        capture_output=True,
        text=True,
        timeout=120,
    )
    return done.stdout or re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z", "", done.stderr)


def note(part: str, told: Any) -> None:
    """For the page of the last run."""
    kept = json.loads(REPORT.read_text()) if REPORT.is_file() else {}
    kept[part] = told
    kept["date"] = datetime.date.today().isoformat()
    kept["python"] = platform.python_version()
    kept["inspector"] = json.loads((MODULES / SCOPE / "inspector" / "package.json").read_text())["version"]
    REPORT.write_text(json.dumps(dict(sorted(kept.items())), indent=2, ensure_ascii=False) + "\n")


@pytest.mark.parametrize("server", SERVERS, ids=lambda each: each.name)
def test_a_reference_server_answers_the_inspector_as_without_the_proxy(server, home):
    direct = server.command(home)
    # The inspector reads options of a server for its own, so that the command stands in a file.
    through = home / "through"
    through.write_text(f"#!/bin/sh\nexec {' '.join(map(repr, [*proxied(home), '--', *direct]))}\n")
    bare = home / "direct"
    bare.write_text(f"#!/bin/sh\nexec {' '.join(map(repr, direct))}\n")
    for each in (through, bare):
        each.chmod(0o755)
    listed = inspect(home, [str(bare)], "--method", "tools/list")
    assert '"tools"' in listed
    assert inspect(home, [str(through)], "--method", "tools/list") == listed
    for tool, arguments, expected in server.calls:
        asked = ["--method", "tools/call", "--tool-name", tool]
        for name, value in arguments.items():
            asked += ["--tool-arg", f"{name}={value.format(home=home)}"]
        answer = inspect(home, [str(bare)], *asked)
        assert expected in answer
        assert inspect(home, [str(through)], *asked) == answer
    with ToolMem(home / "memory.db") as memory:
        kept = list(memory.calls())
    assert len(kept) == len(server.calls)
    tools = len(json.loads(listed)["tools"])
    told = {"version": server.version(), "tools": tools, "calls": len(kept), "same": True}
    known = json.loads(REPORT.read_text()).get("servers", {}) if REPORT.is_file() else {}
    note("servers", dict(sorted({**known, server.package.partition("==")[0]: told}.items())))


# ---------------------------------------------------------------- conformance


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


@contextmanager
def served(home: Path, command: list[str], port: int, **more: str) -> Iterator[str]:
    with open(home / f"log{port}", "wb") as log:
        process = subprocess.Popen(command, cwd=home, env={**environment(home), **more}, stdout=log, stderr=log)
    try:
        until = time.monotonic() + 60
        while socket.socket().connect_ex(("127.0.0.1", port)) != 0:
            assert time.monotonic() < until, (home / f"log{port}").read_text()
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
        process.wait(timeout=60)


def conformance(home: Path, url: str) -> dict[str, list[list[str]]]:
    """Scenario -> its checks and what each came to."""
    folder = home / f"results{time.monotonic_ns()}"
    suite = MODULES / SCOPE / "conformance" / "dist" / "index.js"
    command = [str(PROGRAMS / "node"), str(suite), "server", "--url", url, "--suite", "all", "-o", str(folder)]
    subprocess.run(command, cwd=home, env=environment(home), capture_output=True, timeout=600)
    results = {}
    for each in sorted(folder.iterdir()):
        scenario = re.sub(r"^server-|-\d{4}-\d\d-\d\dT[\d-]+Z$", "", each.name)
        checks = json.loads((each / "checks.json").read_text())
        results[scenario] = [
            [check["id"], check["status"], check.get("errorMessage", "").replace(url, "URL")] for check in checks
        ]
    shutil.rmtree(folder)
    return results


WAYS = {
    "server-everything": [str(PROGRAMS / "mcp-server-everything"), "streamableHttp"],
    "a server with the suite's own tools": [sys.executable, str(HERE / "conformance_server.py")],
}


@pytest.mark.parametrize("name", WAYS)
def test_the_conformance_reports_with_and_without_the_proxy_are_equal(name, home):
    if not (PROGRAMS / "node").exists():
        pytest.skip("the suite needs Node.js 22: run `make test-hosts`")
    port, listening = free_port(), free_port()
    with served(home, WAYS[name], port, PORT=str(port)) as direct:
        command = proxied(home, "--url", direct, "--listen", f"127.0.0.1:{listening}")
        with served(home, command, listening) as through:
            first, second = conformance(home, direct), conformance(home, through)
    assert len(first) > 25
    assert _untimed(second, listening) == _untimed(first, port)
    told = json.loads(REPORT.read_text()).get("conformance", {}) if REPORT.is_file() else {}
    told[name] = {scenario: _counted(checks, second[scenario]) for scenario, checks in first.items()}
    told["version"] = json.loads((MODULES / SCOPE / "conformance" / "package.json").read_text())["version"]
    note("conformance", told)


def _untimed(results: dict[str, list[list[str]]], port: int) -> dict[str, list[list[str]]]:
    return {name: [[each.replace(str(port), "PORT") for each in check] for check in of] for name, of in results.items()}


def _counted(*both: list[list[str]]) -> list[list[int]]:
    """Checks that passed and failed, directly and through the proxy."""
    return [[sum(check[1] == status for check in of) for status in ("SUCCESS", "FAILURE")] for of in both]
