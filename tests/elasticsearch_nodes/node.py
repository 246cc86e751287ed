"""Nodes of their own: a process, a folder and two loopback ports each."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Mapping
from http.client import HTTPException
from pathlib import Path
from typing import Any

from ports import free_ports

from elasticsearch_nodes.installation import installed

CACHE = Path(__file__).parents[2] / ".elasticsearch"
START_SECONDS = 120.0
LOG_CONFIGURATION = """\
status = error
appender.file.type = File
appender.file.name = file
appender.file.fileName = ${sys:es.logs.base_path}${sys:file.separator}node.log
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d %p %c{1.} %m%n
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
"""


class Node:
    """One node. It ends by itself when this process does."""

    def __init__(
        self,
        settings: Mapping[str, str] | None = None,
        *,
        name: str = "node-0",
        ports: tuple[int, int] | None = None,
        heap: str = "512m",
    ) -> None:
        """`settings` None: a cluster of its own. Raises Missing."""
        self._installation = installed(CACHE)
        self._home = Path(tempfile.mkdtemp(prefix="toolmem-elasticsearch-"))
        http, transport = ports or tuple(free_ports(2))
        self.url = f"http://127.0.0.1:{http}"
        self.name = name
        self._heap = heap
        self._settings = {
            "path.home": str(self._home),
            "node.name": name,
            "cluster.name": "toolmem-test",
            "network.host": "127.0.0.1",
            "http.port": str(http),
            "transport.port": str(transport),
            "cluster.routing.allocation.disk.threshold_enabled": "false",
            **({"discovery.type": "single-node"} if settings is None else settings),
        }
        config = self._home / "config"
        config.mkdir()
        (self._home / "plugins").mkdir()
        (config / "elasticsearch.yml").touch()
        (config / "log4j2.properties").write_text(LOG_CONFIGURATION, encoding="utf-8")
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def runs(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def launch(self) -> None:
        """Start the process; `wait` tells when it is ready."""
        jars, modules, launcher = self._installation
        command = ["java", f"-Xms{self._heap}", f"-Xmx{self._heap}", "-XX:+UseSerialGC"]
        command += ["-Djava.awt.headless=true", f"-Djava.io.tmpdir={self._home}"]
        command += [f"-Duser.home={self._home}"]  # where its libraries keep files
        command += ["-p", str(jars), "--add-modules", "jdk.net,org.elasticsearch.server"]
        command += ["-cp", str(launcher), "Launcher", str(modules)]
        command += [f"{name}={value}" for name, value in self._settings.items()]
        with (self._home / "console.log").open("ab") as console:
            pipes = {"stdout": console, "stderr": console, "stdin": subprocess.PIPE}
            self._process = subprocess.Popen(command, **pipes)

    def start(self) -> Node:
        """Launch, and wait until every shard that there is can be read."""
        self.launch()
        self.wait()
        return self

    def wait(self, nodes: int = 1, status: str = "yellow") -> None:
        """Until this node sees so many nodes, and no shard is worse than `status`."""
        path = f"/_cluster/health?wait_for_status={status}&wait_for_nodes=>={nodes}&timeout=1s"
        give_up = time.monotonic() + START_SECONDS
        while (health := self.ask(path)) is None or health["timed_out"]:
            if not self.runs or time.monotonic() > give_up:
                raise RuntimeError(f"the node is not ready ({health}):\n{self._log_tail()}")
            time.sleep(0.1)

    def ask(self, path: str, body: Any = None, method: str | None = None) -> Any:
        """A request past the store; None where there is no answer."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return json.loads(answer.read() or b"null")
        except (OSError, HTTPException, json.JSONDecodeError):
            return None

    def kill(self) -> None:
        """SIGKILL: nothing is closed in an orderly way."""
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        self._process.wait(30)
        if self._process.stdin is not None:
            self._process.stdin.close()

    def stop(self) -> None:
        """End the process and remove its folder."""
        if self.runs:
            self.kill()
        shutil.rmtree(self._home, ignore_errors=True)

    def _log_tail(self) -> str:
        logs = [self._home / "console.log", self._home / "logs" / "node.log"]
        lines = [line for log in logs if log.is_file() for line in log.read_text().splitlines()]
        return "\n".join(lines[-25:])


class Cluster:
    """Three nodes with equal roles, on loopback; two are a quorum."""

    def __init__(self, size: int = 3) -> None:
        ports = free_ports(2 * size)
        names = [f"node-{number}" for number in range(size)]
        settings = {
            "discovery.seed_hosts": ",".join(f"127.0.0.1:{port}" for port in ports[size:]),
            "cluster.initial_master_nodes": ",".join(names),
            # A lost node is noticed after seconds, by default after half a minute.
            "cluster.fault_detection.leader_check.timeout": "2s",
            "cluster.fault_detection.follower_check.timeout": "2s",
        }
        self.nodes = [
            Node(settings, name=name, ports=pair, heap="384m")
            for name, pair in zip(names, zip(ports[:size], ports[size:], strict=True), strict=True)
        ]

    @property
    def urls(self) -> list[str]:
        return [node.url for node in self.nodes]

    def mend(self) -> None:
        """Start what does not run, and wait until every copy is in step."""
        for node in self.nodes:
            if not node.runs:
                node.launch()
        for node in self.nodes:
            node.wait(len(self.nodes), "green")

    def elected(self) -> Node:
        """The elected master."""
        for node in self.nodes:
            if answer := node.ask("/_cluster/state/master_node,nodes"):
                name = answer["nodes"][answer["master_node"]]["name"]
                return next(each for each in self.nodes if each.name == name)
        raise RuntimeError("no node answers")

    def stop(self) -> None:
        for node in self.nodes:
            node.stop()
