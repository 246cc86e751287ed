"""A host and a server, with the proxy between them: real processes and their pipes."""

import json
import queue
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from toolmem import ToolMem

SERVER = Path(__file__).with_name("small_server.py")


class Host:
    """A host that starts the proxy before the small server, and talks to it line by line."""

    def __init__(self, folder, *options, capabilities=None, server=SERVER):
        self.folder = folder
        command = [sys.executable, "-m", "toolmem", "mcp", "proxy", "--store", "m.db", *options]
        self.process = subprocess.Popen(
            [*command, "--", sys.executable, str(server), str(folder / "got")],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._lines = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        if capabilities is not None:
            self.ask("initialize", {"capabilities": capabilities})

    def _read(self):
        for line in self.process.stdout:
            self._lines.put(line.rstrip(b"\n"))

    def write(self, line):
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def send(self, message):
        self.write(json.dumps({"jsonrpc": "2.0", **message}).encode())

    def line(self):
        return self._lines.get(timeout=20)

    def message(self):
        return json.loads(self.line())

    def ask(self, method, params=None, id=1):
        self.send({"id": id, "method": method, **({"params": params} if params else {})})
        return self.message()

    def begin(self, tool, arguments, id):
        params = {"name": tool, "arguments": arguments}
        self.send({"id": id, "method": "tools/call", "params": params})

    def call(self, tool, arguments, id=1, **more):
        return self.ask("tools/call", {"name": tool, "arguments": arguments, **more}, id)["result"]

    def close(self):
        """The exit code, and what stood on stderr."""
        self.process.stdin.close()
        code = self.process.wait(timeout=30)
        stderr = self.process.stderr.read().decode()
        self.process.stderr.close()
        return code, stderr

    @property
    def got(self):
        """The lines that reached the server."""
        path = self.folder / "got"
        return path.read_bytes().splitlines() if path.exists() else []

    def kept(self):
        with ToolMem(self.folder / "m.db") as memory:
            return memory.calls()


@pytest.fixture
def host(tmp_path):
    started = []

    def start(*options, said="", **more):
        if said:
            with ToolMem(tmp_path / "m.db") as memory:
                assert memory.capture_rules(said, tools=["send_email", "delete_file"]).kept
        started.append(Host(tmp_path, *options, **more))
        return started[-1]

    yield start
    for each in started:
        if each.process.poll() is None:
            each.close()
