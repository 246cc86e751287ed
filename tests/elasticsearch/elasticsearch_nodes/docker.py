"""The official image in a Docker engine, where one runs."""

from __future__ import annotations

import shutil
import subprocess
import time
import urllib.request

from elasticsearch_nodes.installation import VERSION, Missing

IMAGE = f"elasticsearch:{VERSION}"
START_SECONDS = 180.0


class Container:
    """One node without security, on a free loopback port."""

    def __init__(self) -> None:
        if shutil.which("docker") is None:
            raise Missing("there is no docker")
        if _docker("version", "--format", "{{.Server.Version}}").returncode:
            raise Missing("no Docker engine runs")
        self._id = ""
        self.url = ""

    def start(self) -> Container:
        settings = ["discovery.type=single-node", "xpack.security.enabled=false", "ES_JAVA_OPTS=-Xms512m -Xmx512m"]
        options = [part for setting in settings for part in ("-e", setting)]
        started = _docker("run", "-d", "--rm", "-p", "127.0.0.1::9200", *options, IMAGE)
        if started.returncode:
            raise Missing(f"docker could not start {IMAGE}: {started.stderr.strip()[-300:]}")
        self._id = started.stdout.strip()
        address = _docker("port", self._id, "9200/tcp").stdout.splitlines()[0]
        self.url = f"http://{address}"
        give_up = time.monotonic() + START_SECONDS
        while not self._answers():
            if time.monotonic() > give_up:
                self.stop()
                raise Missing(f"{IMAGE} did not answer within {START_SECONDS:g} s")
            time.sleep(0.5)
        return self

    def _answers(self) -> bool:
        address = f"{self.url}/_cluster/health?wait_for_status=yellow&timeout=1s"
        try:
            with urllib.request.urlopen(address, timeout=3) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def stop(self) -> None:
        if self._id:
            _docker("rm", "-f", self._id)


def _docker(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["docker", *arguments], capture_output=True, text=True, check=False, timeout=600)
