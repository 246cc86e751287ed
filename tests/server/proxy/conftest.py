"""Real proxies in front of real servers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp.client.stdio import StdioServerParameters

from toolmem import ToolMem

HERE = Path(__file__).parent
MAIL = [sys.executable, str(HERE / "mail_server.py")]
SCRIPTED = [sys.executable, str(HERE / "scripted_server.py")]
PROXY = [sys.executable, "-P", "-m", "toolmem", "mcp", "proxy"]
SARAH = "never email Sarah at sarah@example.com"


class Lines:
    """A client that writes and reads lines, and knows nothing of the protocol."""

    def __init__(self, command: list[str], folder: Path, **environment: str) -> None:
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=folder,
            env={**os.environ, "HOME": str(folder / "home"), **environment},
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._in, self._out = self.process.stdin, self.process.stdout

    def send(self, message: bytes | dict[str, Any]) -> None:
        self._in.write((message if isinstance(message, bytes) else json.dumps(message).encode()) + b"\n")
        self._in.flush()

    def line(self) -> bytes:
        return self._out.readline()

    def read(self) -> dict[str, Any]:
        told: dict[str, Any] = json.loads(self.line())
        return told

    def ask(self, message: bytes | dict[str, Any]) -> dict[str, Any]:
        self.send(message)
        return self.read()

    def call(self, tool: str, arguments: Any, id: Any = 1, **params: Any) -> dict[str, Any]:
        return self.ask(call(tool, arguments, id, **params))

    def end(self) -> tuple[int, bytes, str]:
        """Close stdin: exit code, what was still written, and stderr."""
        rest, errors = self.process.communicate(timeout=60)
        return self.process.returncode, rest, errors.decode()


def call(tool: str, arguments: Any, id: Any = 1, **params: Any) -> dict[str, Any]:
    params = {"name": tool, "arguments": arguments, **params}
    return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}


def initialize(**capabilities: Any) -> dict[str, Any]:
    client = {"name": "lines", "version": "1"}
    params = {"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": client}
    return {"jsonrpc": "2.0", "id": "init", "method": "initialize", "params": params}


def text_of(answer: dict[str, Any]) -> str:
    return "\n".join(block["text"] for block in answer["result"]["content"])


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


@pytest.fixture
def start(tmp_path: Path, store: Path) -> Iterator[Callable[..., Lines]]:
    """Starts proxies; what still runs at the end is killed."""
    started: list[Lines] = []

    def one(*options: str, server: list[str] = SCRIPTED, **environment: str) -> Lines:
        command = [*PROXY, "--store", str(store), *options, "--", *server]
        started.append(Lines(command, tmp_path, **environment))
        return started[-1]

    yield one
    for each in started:
        each.process.kill()
        each.process.communicate()


@pytest.fixture
def told(store: Path) -> Callable[..., None]:
    """Puts rules into the store, as their user says them."""

    def put(*sentences: str, tool: str = "send_email") -> None:
        with ToolMem(store) as memory:
            for sentence in sentences:
                memory.rules.put(tool, sentence, priority="critical")

    return put


@pytest.fixture
def kept(store: Path) -> Callable[[], list[Any]]:
    """The calls in the store, oldest first."""

    def calls() -> list[Any]:
        with ToolMem(store) as memory:
            return sorted(memory.calls(), key=lambda each: each.create_time)

    return calls


def parameters(store: Path, *options: str, server: list[str] = MAIL) -> StdioServerParameters:
    """For the SDK's client."""
    command = [*PROXY, "--store", str(store), *options, "--", *server]
    return StdioServerParameters(command=command[0], args=command[1:])
