"""Many clients at once, and processes that end while they ask: what was acknowledged is in the store."""

from __future__ import annotations

import asyncio
import json
import signal
from collections import defaultdict
from typing import Any

import psutil
import pytest

from toolmem import AsyncClient, Client
from toolmem.errors import ServiceUnreachable
from toolmem.testing.model_script import Script
from toolmem.testing.model_server import ModelServer

WORKSPACE = "load"
CLIENTS = 64


class Acknowledged:
    """What the service said that it had stored: ids of calls by tool, and the texts of rules by tool and id."""

    def __init__(self) -> None:
        self.calls: dict[str, set[str]] = defaultdict(set)
        self.rules: dict[tuple[str, str], str] = {}
        self.unexpected: list[Any] = []

    def note(self, answered: Any) -> None:
        kind, what = answered.tag
        if answered.status == 0:  # no answer, no promise
            return
        body = json.loads(answered.body)
        if kind == "rpc":
            self._note_rule(what, answered, body)
        elif kind == "add":
            if answered.status == 200 and body["success"] and body["metadata"]["evaluation"]["failed"] == 0:
                self.calls[what[0]].add(what[1])
            else:
                self.unexpected.append((answered.tag, answered.status, body))
        elif answered.status != 200 or not (body["success"] or body["metadata"]["not_found"]):
            self.unexpected.append((answered.tag, answered.status, body))

    def _note_rule(self, what: Any, answered: Any, body: Any) -> None:
        method, params = what
        if answered.status != 200 or "error" in body:
            self.unexpected.append((answered.tag, answered.status, body))
        elif method == "memory.tool_rule_put":
            self.rules[params["tool_name"], body["result"]["id"]] = params["rule"]

    def missing(self, url: str) -> list[str]:
        """What the service does not have, that it had acknowledged."""
        with Client(url, workspace_id=WORKSPACE) as client:
            kept = {memory.when_to_use: {call.id for call in memory.tool_call_results} for memory in client.memories()}
            tools = {tool for tool, _ in self.rules}
            rules = {(tool, rule.id): rule.rule for tool in tools for rule in client.rules.list(tool)}
        lost = [f"{tool}: {call}" for tool, calls in self.calls.items() for call in calls - kept.get(tool, set())]
        return lost + [f"{tool}: {id}" for (tool, id), text in self.rules.items() if rules.get((tool, id)) != text]

    @property
    def count(self) -> int:
        return sum(map(len, self.calls.values()))


def resident(service: Any) -> float:
    """Megabytes of the service's processes."""
    process = psutil.Process(service.pid)
    return sum(each.memory_info().rss for each in [process, *process.children(recursive=True)]) / 1e6


@pytest.mark.slow
async def test_sixty_four_clients_lose_nothing_and_the_memory_stays_flat(serve, http_load):
    """The full size, 10,000 requests, is run by benchmarks/serving.py."""
    service = serve()
    told = Acknowledged()
    warm = await http_load.drive(
        service.port, http_load.mixed(600, workspace=WORKSPACE), clients=CLIENTS, on_answer=told.note
    )
    before = resident(service)
    load = await http_load.drive(
        service.port, http_load.mixed(1400, workspace=WORKSPACE, first=600), clients=CLIENTS, on_answer=told.note
    )
    assert told.unexpected == []
    assert (warm.statuses, load.statuses) == ({200: 600}, {200: 1400})
    assert told.count == 800
    assert told.missing(service.url) == []
    assert resident(service) - before < 20  # MB, of which the store's page cache is most
    assert service.stop() == 0


async def test_two_workers_on_one_store_lose_nothing_of_one_tool(serve, http_load):
    service = serve(workers=2)
    told = Acknowledged()
    requests = http_load.mixed(450, workspace=WORKSPACE, tools=3)
    load = await http_load.drive(service.port, requests, clients=16, on_answer=told.note)
    assert told.unexpected == []
    assert load.statuses == {200: 450}
    assert {tool: len(calls) for tool, calls in told.calls.items()} == {"tool_000": 90, "tool_001": 90}
    assert told.missing(service.url) == []
    assert len(psutil.Process(service.pid).children()) >= 2
    assert service.stop() == 0


@pytest.mark.slow
async def test_two_services_write_to_one_tool_of_one_store(serve, http_load):
    services = [serve(), serve()]
    told = Acknowledged()
    loads = await asyncio.gather(
        *(
            http_load.drive(
                service.port,
                http_load.mixed(200, workspace=WORKSPACE, tools=1, first=1000 * number),
                clients=8,
                on_answer=told.note,
            )
            for number, service in enumerate(services)
        )
    )
    assert told.unexpected == []
    assert [load.statuses for load in loads] == [{200: 200}, {200: 200}]
    assert told.count == 160
    for service in services:
        # The window holds 100 of the 160 calls: the store counts all of them.
        with Client(service.url, workspace_id=WORKSPACE) as client:
            (memory,) = client.retrieve("tool_000")
        assert memory.metadata["lifetime"]["calls"] == 160


@pytest.mark.parametrize("workers", [1, 2])
async def test_told_to_stop_it_finishes_what_is_in_flight(serve, http_load, workers):
    service = serve(workers=workers)
    told = Acknowledged()
    load = await _interrupted(service, http_load, told, service.terminate)
    assert service.wait() == 0
    assert told.unexpected == []
    # Requests that crossed with the closing of an idle connection, or waited at the closed door: nothing was promised.
    assert load.statuses[0] <= 2 * CLIENTS
    assert told.count > 0
    _start_again(service)
    assert told.missing(service.url) == []


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
async def test_a_request_that_takes_its_time_is_finished_before_the_service_stops(serve, workers):
    with ModelServer(Script(latency=1.5)) as model:
        service = serve(
            "llm.default.backend=openai_compatible",
            "llm.default.model_name=qwen-plus",
            f"llm.default.params.base_url={model.openai_url}",
            workers=workers,
            env={"FLOW_LLM_API_KEY": "any"},
        )
        async with AsyncClient(service.url, workspace_id=WORKSPACE, retries=0) as client:
            adding = asyncio.create_task(client.add([{"tool_name": "slow", "output": "ok"}]))
            while not model.in_flight:
                await asyncio.sleep(0.01)
            service.terminate()
            await asyncio.sleep(0.1)
            with pytest.raises(ServiceUnreachable):  # nobody new comes in
                async with AsyncClient(service.url, workspace_id=WORKSPACE, retries=0, timeout=1.0) as late:
                    await late.retrieve("slow")
            assert (await adding).success
        assert await asyncio.to_thread(service.wait) == 0
    _start_again(service)
    with Client(service.url, workspace_id=WORKSPACE) as client:
        (memory,) = client.retrieve("slow", include_calls=True)
        assert memory.tool_call_results[0].evaluation_status == "ok"


async def test_killed_it_keeps_what_it_had_acknowledged(serve, http_load):
    service = serve(workers=2)
    told = Acknowledged()
    await _interrupted(service, http_load, told, service.kill)
    # Whether a request was under way nobody can tell: a load generator that waits for a core reads its answers late.
    assert service.wait() == -signal.SIGKILL
    assert told.unexpected == []
    assert told.count > 0
    _start_again(service)
    assert told.missing(service.url) == []
    with Client(service.url, workspace_id=WORKSPACE) as client:  # and it goes on
        assert client.add([{"tool_name": "after", "output": "ok"}]).success


def _start_again(service: Any) -> None:
    service.workers = 1  # enough to look, and sooner there
    service.start()


async def _interrupted(service: Any, http_load: Any, told: Acknowledged, end: Any) -> Any:
    """Load until the service is ended in the middle of it."""

    async def after_a_while() -> None:
        while told.count < 60:
            await asyncio.sleep(0.005)
        await asyncio.to_thread(end)

    requests = http_load.mixed(100_000, workspace=WORKSPACE, tools=80)
    load, _ = await asyncio.gather(
        http_load.drive(service.port, requests, clients=CLIENTS, on_answer=told.note), after_a_while()
    )
    return load
