"""Runs a notebook in a kernel: the Python that is running now, whatever kernels are registered on the machine."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from toolmem.errors import ToolMemError

SECONDS_PER_CELL = 600
LONGEST_SOCKET_PATH = 95  # 104 bytes on macOS, 108 on Linux, less the number that is appended


def execute(notebook: Any, directory: Path, environment: dict[str, str]) -> None:
    """Execute the cells of a notebook node in place, with `directory` as the working directory of the kernel.

    The kernel's home for profiles and start-up files is an empty folder: what a user's own IPython does at start
    has no part in a report. Raises ToolMemError with the cell and the message where a cell fails.
    """
    from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
    from jupyter_client.manager import AsyncKernelManager
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

    class RunningPython(KernelSpecManager):
        """A registered `python3` may belong to another environment; this one is the interpreter that asks."""

        def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
            command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
            return KernelSpec(argv=command, display_name="Python 3", language="python")

    with TemporaryDirectory(prefix="toolmem-kernel-") as home:

        class Manager(AsyncKernelManager):
            """A class, because nbclient shuts down only kernels whose manager it made itself."""

            def __init__(self, **given: Any) -> None:
                place = {"connection_file": str(Path(home) / "kernel.json"), **_transport(home)}
                super().__init__(**given, **place, kernel_spec_manager=RunningPython())

        client = NotebookClient(
            notebook,
            kernel_manager_class=Manager,
            timeout=SECONDS_PER_CELL,
            resources={"metadata": {"path": str(directory)}},
        )
        try:
            _run(client, _environment(home) | environment)
        except CellExecutionError as error:
            raise ToolMemError(_failure(notebook, f"{error.ename}: {error.evalue}")) from error
        except CellTimeoutError as error:
            raise ToolMemError(_failure(notebook, f"took more than {SECONDS_PER_CELL} s")) from error
        except DeadKernelError as error:
            raise ToolMemError(_failure(notebook, "the kernel died (out of memory?)")) from error


def _run(client: Any, environment: dict[str, str]) -> None:
    """In a thread with an event loop of its own: so it works inside a running loop, too, and Ctrl-C reaches the
    caller (nbclient would take the signal and report a dead kernel). The kernel is shut down in any case.
    """
    started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = Future()

    async def work() -> None:
        task = asyncio.current_task()
        assert task is not None
        started.set_result((asyncio.get_running_loop(), task))
        await client.async_execute(env=environment)

    with ThreadPoolExecutor(max_workers=1) as pool:
        done = pool.submit(lambda: asyncio.run(work()))
        try:
            done.result()
        except KeyboardInterrupt:
            loop, task = started.result()
            if not done.done():
                loop.call_soon_threadsafe(task.cancel)
            raise


def _transport(home: str) -> dict[str, str]:
    """Sockets in the temporary folder where the system has them: nobody else on the machine can reach the kernel."""
    place = str(Path(home) / "k")
    if hasattr(socket, "AF_UNIX") and len(place) < LONGEST_SOCKET_PATH:
        return {"transport": "ipc", "ip": place}
    return {}


def _environment(home: str) -> dict[str, str]:
    source = str(Path(__file__).resolve().parents[3])  # so that the kernel has the toolmem that is running now
    paths = [source, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        **os.environ,
        "IPYTHONDIR": home,
        "JUPYTER_CONFIG_DIR": home,
        "PYTHONPATH": os.pathsep.join(paths),
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    }


def _failure(notebook: Any, message: str) -> str:
    """Names the cell that failed: the last one that started."""
    started = [
        (number, cell)
        for number, cell in enumerate(notebook.cells, 1)
        if cell.cell_type == "code" and (cell.get("execution_count") or cell.get("outputs"))
    ]
    if not started:
        return f"the report notebook failed before its first cell: {message}"
    number, cell = started[-1]
    return f"cell {number} of the report notebook failed: {message}\n\n{cell.source}"
