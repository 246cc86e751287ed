"""One node: its process, its folder, its two loopback ports."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from elasticsearch_nodes.installation import Installation, installed

HEAP = os.environ.get("TOOLMEM_ELASTICSEARCH_HEAP", "512m")
START_SECONDS = 120.0
_LOG_CONFIGURATION = """\
status = error
appender.file.type = File
appender.file.name = file
appender.file.fileName = ${sys:es.logs.base_path}${sys:file.separator}node.log
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d %p %c{1.} %m%n
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
"""


def free_ports(count: int) -> list[int]:
    """Ports of the loopback interface that nobody listens on now; all different."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


class Node:
    """A node that was started here. Killing it and starting it again keeps its data and its ports."""

    def __init__(
        self,
        settings: Mapping[str, str] | None = None,
        *,
        name: str = "node",
        ports: tuple[int, int] | None = None,
        heap: str = HEAP,
    ) -> None:
        """`settings`: of the server, e.g. {"discovery.type": "single-node"} (which is the default)."""
        self._installation: Installation = installed()
        self._home = Path(tempfile.mkdtemp(prefix="toolmem-elasticsearch-"))
        http, transport = ports or tuple(free_ports(2))
        self.http_port: int = http
        self.transport_port: int = transport
        self._heap = heap
        self._settings = {
            "path.home": str(self._home),
            "node.name": name,
            "cluster.name": f"toolmem-test-{transport}" if settings is None else "toolmem-test",
            "network.host": "127.0.0.1",
            "http.port": str(http),
            "transport.port": str(transport),
            # A disk that the machine has filled for other reasons must not stop the tests.
            "cluster.routing.allocation.disk.threshold_enabled": "false",
            **({"discovery.type": "single-node"} if settings is None else settings),
        }
        config = self._home / "config"
        config.mkdir()
        (self._home / "plugins").mkdir()
        (config / "elasticsearch.yml").touch()
        (config / "log4j2.properties").write_text(_LOG_CONFIGURATION, encoding="utf-8")
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.http_port}"

    @property
    def runs(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def resident_mb(self) -> float:
        """Memory of the process, MB."""
        status = Path(f"/proc/{self.pid}/status").read_text(encoding="ascii")
        return int(status.split("VmRSS:")[1].split()[0]) / 1024

    def launch(self) -> None:
        """Start the process; `wait` tells when it is ready. It ends by itself when this process does."""
        jars, modules, launcher = self._installation.jars, self._installation.modules, self._installation.launcher
        command = ["java", f"-Xms{self._heap}", f"-Xmx{self._heap}", "-XX:+UseSerialGC"]
        command += ["-Djava.awt.headless=true", "-Des.networkaddress.cache.ttl=60", f"-Djava.io.tmpdir={self._home}"]
        command += ["-p", str(jars), "--add-modules", "jdk.net,org.elasticsearch.server", "-cp", str(launcher)]
        command += ["Launcher", str(modules), *(f"{name}={value}" for name, value in self._settings.items())]
        with (self._home / "console.log").open("ab") as console:
            self._process = subprocess.Popen(command, stdout=console, stderr=console, stdin=subprocess.PIPE)

    def start(self) -> Node:
        """Launch, and wait until every shard that there is can be read (yellow)."""
        self.launch()
        self.wait()
        return self

    def wait(self, nodes: int = 1, seconds: float = START_SECONDS) -> None:
        give_up = time.monotonic() + seconds
        while True:
            if not self.runs:
                raise RuntimeError(f"the node ended while it started:\n{self._log_tail()}")
            health = self.ask("/_cluster/health", timeout=2)
            if health and health["status"] != "red" and health["number_of_nodes"] >= nodes:
                return
            if time.monotonic() > give_up:
                raise RuntimeError(f"the node was not ready after {seconds:g} s ({health}):\n{self._log_tail()}")
            time.sleep(0.1)

    def wait_until_green(self, nodes: int, seconds: float = 60) -> None:
        """Until this node agrees with the others: all of them there, every copy in step."""
        path = f"/_cluster/health?wait_for_status=green&wait_for_nodes={nodes}&timeout={seconds:g}s"
        give_up = time.monotonic() + seconds
        while True:
            health = self.ask(path, timeout=seconds + 5)
            if health and not health["timed_out"]:
                return
            if time.monotonic() > give_up:
                raise RuntimeError(f"not green after {seconds:g} s: {health}")
            time.sleep(0.2)

    def ask(self, path: str, body: Any = None, *, method: str | None = None, timeout: float = 30) -> Any:
        """A request of a test to its own server, past the store; None where there is no answer."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self.url + path, data=data, headers={"Content-Type": "application/json"}, method=method
        )
        try:
            with urllib.request.urlopen(request, timeout=timeout) as answer:
                return json.loads(answer.read() or b"null")
        except (OSError, urllib.error.URLError, json.JSONDecodeError):
            return None

    def kill(self) -> None:
        """SIGKILL: nothing is closed in an orderly way."""
        self._end(signal.SIGKILL)

    def pause(self) -> None:
        """SIGSTOP: connections stay open and nothing answers."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def stop(self) -> None:
        """End the process and remove its folder."""
        if self.runs:
            self._end(signal.SIGKILL)  # its data goes anyway
        shutil.rmtree(self._home, ignore_errors=True)

    def _end(self, number: int) -> None:
        assert self._process is not None
        self._process.send_signal(number)
        self._process.wait(30)
        if self._process.stdin is not None:
            self._process.stdin.close()

    def _log_tail(self) -> str:
        lines: list[str] = []
        for log in (self._home / "console.log", self._home / "logs" / "node.log"):
            if log.is_file():
                lines += log.read_text(encoding="utf-8", errors="replace").splitlines()[-25:]
        return "\n".join(lines)

    def __enter__(self) -> Node:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()
