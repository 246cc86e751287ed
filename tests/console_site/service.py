"""Start and stop a real `toolmem serve`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import httpx
from ports import free_ports

Process = subprocess.Popen[bytes]


def start(
    folder: Path,
    *overrides: str,
    token: str = "",
    store: str | Path = "m.db",
    command: Sequence[str] = ("serve",),
    section: str = "http",
) -> tuple[str, Process]:
    """Start it in a folder, on a free port; returns its address once it answers."""
    [port] = free_ports(1)
    service = [sys.executable, "-m", "toolmem", *command, "--store", str(store)]
    process = subprocess.Popen(
        [*service, f"{section}.port={port}", *overrides],
        cwd=folder,
        env={**os.environ, "TOOLMEM_TOKEN": token},
        stderr=subprocess.PIPE,
    )
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


def stop(process: Process) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    process.wait(timeout=40)
    process.stderr.close()
