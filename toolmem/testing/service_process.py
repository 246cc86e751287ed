"""`toolmem serve` in a process of its own, for tests and benchmarks that need the real thing.

    with ServiceProcess(folder) as service:
        client = Client(service.url, workspace_id="team")

The store, the dumps and the log lie in `folder`; a second process on the same folder serves the same store.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from toolmem.errors import ServiceUnreachable

STARTING = 120.0  # seconds at most until it answers
STOPPING = 120.0  # seconds at most from SIGTERM to the end of the process
_UNPACED = (
    "op.parse_tool_call_result_op.params.evaluation_sleep_interval=0",
    "op.summary_tool_memory_op.params.summary_sleep_interval=0",
)


class ServiceProcess:
    """A server on a free port of 127.0.0.1. `overrides` are those of the command line; models are not paced.

    `token`: what TOOLMEM_TOKEN is in its environment, "" for none. `env`: further variables. `cold_start` is how many
    seconds passed from the start of the process to its first answer. Raises ServiceUnreachable, with the end of its
    log, where it does not come up. Ended at the latest with this object, or with the interpreter.
    """

    def __init__(
        self,
        folder: Path,
        *overrides: str,
        workers: int = 1,
        token: str = "",
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = folder
        self.workers = workers
        self.cold_start = 0.0
        self.log = folder / "serve.log"
        self._overrides = overrides
        self._env = {**os.environ, "TOOLMEM_TOKEN": token, **(env or {})}
        self._process: subprocess.Popen[bytes] | None = None
        self._end: weakref.finalize[[int], Self] | None = None
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """Of the process that was started; workers are its children."""
        assert self._process is not None, "not started"
        return self._process.pid

    def start(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.port = self.port or _free_port()  # started again, it comes back where it was
        began = time.perf_counter()
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "toolmem", "serve", *self._arguments()],
                cwd=self.folder,
                env=self._env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # so that its workers can be killed with it
            )
        self._end = weakref.finalize(self, _kill_group, self._process.pid)
        while not self._answers():
            if self._process.poll() is not None or time.perf_counter() - began > STARTING:
                self.kill()
                raise ServiceUnreachable(f"`toolmem serve` did not come up; the end of its log:\n{self._end_of_log()}")
            time.sleep(0.01)
        self.cold_start = time.perf_counter() - began
        return self

    def _arguments(self) -> list[str]:
        return [
            f"http.port={self.port}",
            f"http.workers={self.workers}",
            f"vector_store.default.params.path='{self.folder / 'memory.db'}'",
            f"dump_dir='{self.folder / 'dumps'}'",
            *_UNPACED,
            *self._overrides,
        ]

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1.0) as connection:
                connection.sendall(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
                return connection.recv(5) == b"HTTP/"
        except OSError:
            return False

    def _end_of_log(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")[-2000:]

    def terminate(self) -> None:
        """SIGTERM: finish what is under way, then stop. Does not wait."""
        assert self._process is not None, "not started"
        self._process.terminate()

    def wait(self) -> int:
        """Wait for the end of the process; its exit code. Raises subprocess.TimeoutExpired."""
        assert self._process is not None, "not started"
        return self._process.wait(STOPPING)

    def stop(self) -> int:
        """SIGTERM, and wait; the exit code."""
        self.terminate()
        try:
            return self.wait()
        finally:
            self.kill()

    def kill(self) -> None:
        """SIGKILL to the process and its workers: no time to finish anything."""
        if self._process is None or self._end is None:
            return
        self._end()
        self._process.wait()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *error: object) -> None:
        self.stop()


def _kill_group(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        if hasattr(os, "killpg"):
            os.killpg(pid, signal.SIGKILL)
        else:  # Windows, where this ends a process at once; its workers see that nobody waits for them
            os.kill(pid, signal.SIGTERM)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    return port
