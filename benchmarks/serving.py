"""Print what a request over HTTP costs beside a bare Starlette route on the same server.

    python benchmarks/serving.py

`toolmem serve` and the bare route run in processes of their own on loopback; one client asks each
of them in turns, over one connection.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import httpx
from shared import PROJECT, Table, publish

from toolmem import ToolMem
from toolmem.rules.store import RuleInput

ROUNDS = 300
BARE = """
import sys, uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route
async def answer(request):
    await request.json()
    return JSONResponse({"action": "allow"})
app = Starlette(routes=[Route("/bare", answer, methods=["POST"])])
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="error")
"""


def free_port() -> int:
    import socket

    with socket.socket() as opened:
        opened.bind(("127.0.0.1", 0))
        return int(opened.getsockname()[1])


def fill(path: Path) -> None:
    """Twenty rules, and a tool with guidance."""
    with ToolMem(path) as memory:
        memory.add([{"tool_name": "search", "input": {"q": n}, "output": "[]"} for n in range(30)])
        memory.summarize()
        for n in range(20):
            rule = RuleInput(tool_name="search", rule=f"Never ask for {n}", effect="deny")
            rule.when = [{"target": f"^forbidden {n}$"}]
            memory.rules.put_rule(rule)


def milliseconds(ask: Callable[[], httpx.Response]) -> float:
    started = time.perf_counter()
    ask().raise_for_status()
    return 1000 * (time.perf_counter() - started)


def wait_for(client: httpx.Client, url: str) -> None:
    for _ in range(200):
        try:
            client.get(url)
            return
        except httpx.ConnectError:
            time.sleep(0.05)
    raise SystemExit(f"{url} does not answer")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, httpx.Client() as client:
        store = Path(folder) / "memory.db"
        fill(store)
        ports = (free_port(), free_port())
        serve = ["-m", "toolmem", "serve", "--store", str(store), f"http.port={ports[0]}"]
        processes = [
            subprocess.Popen([sys.executable, *command], cwd=PROJECT, stderr=subprocess.DEVNULL)
            for command in (serve, ["-c", BARE, str(ports[1])])
        ]
        try:
            ours, bare = (f"http://127.0.0.1:{port}" for port in ports)
            wait_for(client, f"{ours}/health")
            wait_for(client, f"{bare}/bare")
            call = {"workspace": "default", "tool_name": "search", "input": {"q": "rain"}}
            named = {"workspace": "default", "tool_names": ["search"]}
            asked = {
                "a bare route": lambda: client.post(f"{bare}/bare", json=call),
                "check_tool_call, 20 rules": lambda: client.post(
                    f"{ours}/operations/check_tool_call", json=call
                ),
                "guidance of one tool": lambda: client.post(f"{ours}/guidance", json=named),
            }
            times: dict[str, list[float]] = {name: [] for name in asked}
            for _ in range(ROUNDS):
                for name, ask in asked.items():
                    times[name].append(milliseconds(ask))
        finally:
            for process in processes:
                process.terminate()
                process.wait(20)
    plain = statistics.median(times["a bare route"])
    rows = []
    for name, found in times.items():
        p50, p99 = statistics.median(found), statistics.quantiles(found, n=100)[98]
        rows.append((name, p50, p99, p50 / plain))
    columns = ("request", "p50 ms", "p99 ms", "p50 beside bare")
    publish("serving", "Requests over HTTP", Table("One client, loopback", columns, rows))


if __name__ == "__main__":
    main()
