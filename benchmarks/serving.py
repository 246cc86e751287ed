"""What the HTTP service costs: its start, a retrieval, the rules of a prompt, and ten thousand mixed requests at once.

    python benchmarks/serving.py [--quick] [--json FILE]

Real processes on loopback. Beside each figure stands its baseline from the same run: the same web server with an empty
FastAPI route, or the same flow inside one process. The generator of the load shares the cores with the service; how
much of them it takes is told.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import uvloop
from flows import fill
from http_load import Answered, Asked, Load, drive, http_request, mixed
from rules import PRIORITIES
from tables import Figure, arguments, show

from toolmem import Client, ToolMemApp
from toolmem.testing.service_process import ServiceProcess

WORKSPACE = "bench"
CLIENTS = 64
FLAT = 10.0  # MB of growth, per process: what counts as flat between 2,000 and 10,000 requests
_EMPTY = """
from fastapi import FastAPI

app = FastAPI(openapi_url=None)

@app.post("/retrieve_tool_memory")
async def empty() -> dict[str, bool]:
    return {"success": True}
"""


def main() -> None:
    options = arguments(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        show(uvloop.run(measure(Path(folder), options.quick)), options.json)


async def measure(folder: Path, quick: bool) -> list[Figure]:
    tools, calls, asked = (50, 20, 400) if quick else (1000, 100, 4000)
    logging.getLogger("toolmem").setLevel(logging.ERROR)  # what the caps leave out is said at every prompt
    figures = cold_start(folder, 3 if quick else 7)
    inside = await prepare(folder / "served", tools, calls, asked // 4)
    retrieved = await retrieving(folder / "served", tools, calls, asked, inside)
    figures += retrieved
    figures += await checking(folder / "guarded", 100 if quick else 1000, asked, retrieved[0].value)
    figures += await rules(folder / "served", 100 if quick else 1000, asked // 10)
    return figures + await load(folder / "load", 2000 if quick else 10_000)


# ---------------------------------------------------------------- cold start


def cold_start(folder: Path, runs: int) -> list[Figure]:
    """From the start of the process to the answer of GET /health; the baselines in turn with it."""
    ours, used, empty = [], [], []
    for run in range(runs):
        with ServiceProcess(folder / f"start-{run}") as service:
            ours.append(service.cold_start)
            used.append(cpu_seconds(service.pid))
        with empty_service(folder / "empty") as bare:
            empty.append(bare.cold_start)
    basis = f"median of {runs} processes"
    return [
        Figure("cold start to /health", statistics.median(ours), "s", 1.5, "6.6 s", basis),
        Figure("  processor time until then", statistics.median(used), "s", None, "", basis),
        Figure("  an empty FastAPI route under the same uvicorn", statistics.median(empty), "s", None, "", basis),
    ]


class Bare(NamedTuple):
    """A server with an empty route."""

    port: int
    pid: int
    cold_start: float  # seconds until it answered


@contextlib.contextmanager
def empty_service(folder: Path, workers: int = 1) -> Iterator[Bare]:
    folder.mkdir(exist_ok=True)
    (folder / "empty_route.py").write_text(_EMPTY, encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "uvicorn", "empty_route:app", "--port", str(port), "--workers", str(workers)]
    began = time.perf_counter()
    process = subprocess.Popen([*command, "--log-level", "critical", "--no-access-log"], cwd=folder)
    try:
        while not _answers(port):
            time.sleep(0.01)
        yield Bare(port, process.pid, time.perf_counter() - began)
    finally:
        process.terminate()
        process.wait()


def _answers(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1.0) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            return connection.recv(5) == b"HTTP/"
    except OSError:
        return False


# ---------------------------------------------------------------- retrieving


async def prepare(folder: Path, tools: int, calls: int, asked: int) -> float:
    """Fill the store, with guidance for every tool; answers the median of the flow inside this process, in ms."""
    overrides = [f"vector_store.default.params.path='{folder / 'memory.db'}'"]
    overrides.append("op.summary_tool_memory_op.params.summary_sleep_interval=0")
    async with ToolMemApp(overrides=overrides) as app:
        await fill(app, tools, calls)
        await app.run_flow("summary_tool_memory", workspace_id=WORKSPACE, tool_names=[_tool(n) for n in range(tools)])
        taken = []
        for number in range(asked):
            began = time.perf_counter()
            await app.run_flow("retrieve_tool_memory", workspace_id=WORKSPACE, tool_names=_tool(number * 7 % tools))
            taken.append(time.perf_counter() - began)
    return statistics.median(taken) * 1000


async def retrieving(folder: Path, tools: int, calls: int, asked: int, inside: float) -> list[Figure]:
    def requests() -> Iterator[Asked]:
        for number in range(asked):
            body = {"workspace_id": WORKSPACE, "tool_names": _tool(number * 7 % tools)}
            yield Asked(number, http_request("/retrieve_tool_memory", body))

    with ServiceProcess(folder) as service:
        alone = await measured(service, requests, 1)
    with empty_service(folder) as bare:
        empty = await measured(bare, requests, 1)
    with ServiceProcess(folder, workers=2) as service:
        many = await measured(service, requests, 16)
    with empty_service(folder, workers=2) as bare:
        empty_many = await measured(bare, requests, 16)
    data = f"{tools:,} tools x {calls} calls"
    one, sixteen = f"{data}, 1 client, {asked:,} requests", f"{data}, 16 clients, {asked:,} requests"
    return [
        Figure("retrieve by name over HTTP, p50", alone.load.quantile(0.5), "ms", 5, "250 ms", one),
        Figure("  p99", alone.load.quantile(0.99), "ms", None, "", one),
        Figure("  processor time of the service per request", alone.cpu_per_request, "ms", None, "", one),
        Figure("  the flow inside one process, p50", inside, "ms", None, "", data),
        Figure("  an empty FastAPI route, p50", empty.load.quantile(0.5), "ms", None, "", f"{asked:,} requests"),
        Figure(
            "retrieve by name over HTTP, 2 workers",
            many.load.per_second,
            "requests/s",
            800,
            "4 requests/s",
            f"{sixteen}; {many.shares}",
            at_least=True,
        ),
        Figure("  p50 under that load", many.load.quantile(0.5), "ms", None, "", sixteen),
        Figure(
            "  an empty FastAPI route, 2 workers",
            empty_many.load.per_second,
            "requests/s",
            None,
            "",
            f"16 clients, {asked:,} requests; {empty_many.shares}",
        ),
    ]


class Measured(NamedTuple):
    load: Load
    cpu: float  # seconds of processor time that the service used

    @property
    def cpu_per_request(self) -> float:
        """Milliseconds; unlike a time on the clock, it hardly depends on what else the machine does."""
        return self.cpu / self.load.answers * 1000

    @property
    def shares(self) -> str:
        elapsed = self.load.elapsed
        return (
            f"of {os.cpu_count()} cores the service took {self.cpu / elapsed:.2f}, "
            f"the generator {self.load.own_cpu / elapsed:.2f}"
        )


async def measured(service: ServiceProcess | Bare, requests: Callable[[], Iterable[Asked]], clients: int) -> Measured:
    """The second of two runs: the first one warms caches and connections."""
    load, cpu = Load(), 0.0
    for _ in range(2):
        before = cpu_seconds(service.pid)
        load = await drive(service.port, requests(), clients=clients)
        cpu = cpu_seconds(service.pid) - before
        assert set(load.statuses) == {200}, load.statuses
    return Measured(load, cpu)


def cpu_seconds(pid: int) -> float:
    return sum(sum(each.cpu_times()[:2]) for each in _processes(pid))


def _processes(pid: int) -> list[psutil.Process]:
    process = psutil.Process(pid)
    return [process, *process.children(recursive=True)]


def _tool(number: int) -> str:
    return f"tool_{number:04}"


# ---------------------------------------------------------------- rules


async def rules(folder: Path, count: int, asked: int) -> list[Figure]:
    overrides = [f"vector_store.default.params.path='{folder / 'memory.db'}'"]
    async with ToolMemApp(overrides=overrides) as app:
        store = await app.rule_store(WORKSPACE)
        for number in range(count):
            await store.put_rule(
                f"tool_{number % 200}", f"never publish the data of customer {number}", priority=PRIORITIES[number % 3]
            )
        taken = []
        for _ in range(asked):
            began = time.perf_counter()
            await app.run_flow("tool_rules_for_prompt", workspace_id=WORKSPACE)
            taken.append(time.perf_counter() - began)
    params = {"workspace_id": WORKSPACE}
    body = {"jsonrpc": "2.0", "id": 1, "method": "memory.tool_rules_for_prompt", "params": params}
    asks = http_request("/rpc", body)
    with ServiceProcess(folder) as service:
        over_http = await measured(service, lambda: (Asked(n, asks) for n in range(asked)), 1)
    basis = f"{count} rules over 200 tools, 1 client, {asked} requests"
    return [
        Figure("rpc tool_rules_for_prompt, all tools, p50", over_http.load.quantile(0.5), "ms", 10, "", basis),
        Figure("  processor time of the service per request", over_http.cpu_per_request, "ms", None, "", basis),
        Figure("  the flow inside one process, p50", statistics.median(taken) * 1000, "ms", None, "", basis),
    ]


# ---------------------------------------------------------------- the guard


def checked_rule(number: int) -> dict[str, Any]:
    """What a rule checks: an address among the call's targets."""
    there = {"type": "array", "contains": {"const": f"customer{number}@example.com"}}
    return {"type": "object", "required": ["targets"], "properties": {"targets": there}}


async def checking(folder: Path, count: int, asked: int, retrieved: float) -> list[Figure]:
    """So many rules of 200 tools, and as many calls of the conversation, every tenth of which failed."""
    overrides = [f"vector_store.default.params.path='{folder / 'memory.db'}'"]
    async with ToolMemApp(overrides=overrides) as app:
        store = await app.rule_store(WORKSPACE)
        for number in range(count):
            text = f"never write to customer {number}"
            await store.put_rule(_tool(number % 200), text, effect="deny", when=checked_rule(number))
        made = [
            {"tool_name": _tool(n % 200), "input": {"to": f"{n}@example.com"}, "output": "", "success": n % 10 > 0}
            for n in range(count)
        ]
        await app.run_flow(
            "add_tool_call_result",
            workspace_id=WORKSPACE,
            tool_call_results=[{**call, "conversation_id": "c"} for call in made],
        )
    taken = []
    async with ToolMemApp(overrides=overrides) as app:
        for number in range(asked):
            began = time.perf_counter()
            await app.run_flow("check_tool_call", **planned(number))
            taken.append(time.perf_counter() - began)

    def requests() -> Iterator[Asked]:
        return (Asked(number, http_request("/check_tool_call", planned(number))) for number in range(asked))

    with ServiceProcess(folder) as service:
        over_http = await measured(service, requests, 1)
    basis = f"{count:,} rules of 200 tools, {count:,} calls of the conversation, 1 client, {asked:,} requests"
    goal = "retrieve's p50 + 1 ms"
    return [
        Figure(
            "check_tool_call over HTTP, p50", over_http.load.quantile(0.5), "ms", retrieved + 1, "", basis + f"; {goal}"
        ),
        Figure("  p99", over_http.load.quantile(0.99), "ms", None, "", basis),
        Figure("  processor time of the service per request", over_http.cpu_per_request, "ms", None, "", basis),
        Figure("  the flow inside one process, p50", statistics.median(taken) * 1000, "ms", None, "", basis),
    ]


def planned(number: int) -> dict[str, Any]:
    """A call that nothing speaks against: an allow writes nothing."""
    arguments = {"to": f"somebody{number}@example.org", "body": "hello"}
    return {"workspace_id": WORKSPACE, "tool_name": _tool(number % 200), "input": arguments, "conversation_id": "c"}


# ---------------------------------------------------------------- load


async def load(folder: Path, count: int) -> list[Figure]:
    """Adds, retrievals and rule methods from 64 clients; then everything acknowledged is looked for."""
    acknowledged: dict[str, set[str]] = defaultdict(set)
    failed: list[Any] = []

    def note(answered: Answered) -> None:
        kind, what = answered.tag
        body = json.loads(answered.body) if answered.status == 200 else {}
        if kind == "add" and body.get("success"):
            acknowledged[what[0]].add(what[1])
        elif kind == "add" or not body or "error" in body:
            failed.append((answered.status, answered.tag))

    tools, early = count // 100, count // 5  # so many tools that every call stays within the window
    with ServiceProcess(folder, workers=2) as service:
        requests = mixed(count, workspace=WORKSPACE, tools=tools)
        first = await drive(service.port, (next(requests) for _ in range(early)), clients=CLIENTS, on_answer=note)
        before = resident(service.pid)
        cpu = cpu_seconds(service.pid)
        rest = await drive(service.port, requests, clients=CLIENTS, on_answer=note)
        cpu = cpu_seconds(service.pid) - cpu
        after, processes = resident(service.pid), len(_processes(service.pid))
        with Client(service.url, workspace_id=WORKSPACE) as client:
            kept = {m.when_to_use: {call.id for call in m.tool_call_results} for m in client.memories()}
    lost = sum(len(calls - kept.get(tool, set())) for tool, calls in acknowledged.items())
    assert first.answers + rest.answers == count
    basis = f"{CLIENTS} clients, {count:,} requests (2 adds, 2 retrievals, 1 rule method of 5), 2 workers"
    shares = Measured(rest, cpu).shares
    stored = sum(map(len, acknowledged.values()))
    return [
        Figure("load: errors", float(len(failed)), "requests", 0, "", basis),
        Figure("load: acknowledged calls that are not in the store", float(lost), "calls", 0, "", f"{stored} calls"),
        Figure(
            f"load: growth of memory from {early:,} to {count:,} requests, per process",
            (after - before) / processes,
            "MB",
            FLAT,
            "",
            f"{after / processes:.0f} MB resident in each of {processes} processes at the end",
        ),
        Figure(
            "load: throughput",
            rest.per_second,
            "requests/s",
            None,
            "",
            f"{basis}; {shares}",
        ),
        Figure("  p50", rest.quantile(0.5), "ms", None, "", basis),
        Figure("  p99", rest.quantile(0.99), "ms", None, "", basis),
    ]


def resident(pid: int) -> float:
    """MB of all processes of a service."""
    return sum(each.memory_info().rss for each in _processes(pid)) / 1e6


if __name__ == "__main__":
    main()
