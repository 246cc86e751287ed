"""A real `toolmem serve`, in a process of its own, for each test that asks for one."""

import os
import signal
import socket
import subprocess
import sys
import time

import httpx
import pytest


@pytest.fixture
def serve(tmp_path):
    """Starts services in the test's own folder."""
    yield from _starter(tmp_path)


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    """One service for the tests of a module, each with a workspace of its own."""
    starter = _starter(tmp_path_factory.mktemp("service"))
    yield next(starter)()[0]
    next(starter, None)


def _starter(folder):
    running = []

    def start(*overrides, token="", store=None, command=("serve",), section="http"):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        environment = {**os.environ, "TOOLMEM_TOKEN": token}
        service = [sys.executable, "-m", "toolmem", *command, "--store", store or "m.db"]
        process = subprocess.Popen(
            [*service, f"{section}.port={port}", *overrides],
            cwd=folder,
            env=environment,
            stderr=subprocess.PIPE,
        )
        running.append(process)
        url = f"http://127.0.0.1:{port}"
        for _ in range(400):
            try:
                httpx.get(f"{url}/health", trust_env=False)
                break
            except httpx.TransportError:
                if process.poll() is not None:
                    raise AssertionError(process.stderr.read().decode()) from None
                time.sleep(0.05)
        return url, process

    yield start
    for process in running:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        process.wait(timeout=40)
        process.stderr.close()
