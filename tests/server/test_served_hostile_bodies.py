"""A body that is made to keep the service busy is refused or read aside: others are answered meanwhile."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from toolmem.testing.service_process import ServiceProcess

PATIENCE = 60.0  # seconds; none of it takes one, unless the machine is busy
W = '{"workspace_id": "w", '
# (address, body, status, what the answer says)
BODIES: dict[str, tuple[str, str, int, str]] = {
    "a run of stops": ("/capture_tool_rules", W + '"user_message": "' + "." * 30_000 + 'x"}', 200, "Captured 0 rules"),
    "a message of 7 MB": (
        "/capture_tool_rules",
        W + '"user_message": "' + "never email Sarah ::::: again " * 240_000 + '"}',
        200,
        "7,200,000 characters; over 100,000 it is not read for demands",
    ),
    "millions of lists": (
        "/add_tool_call_result",
        W + '"tool_call_results": [{"tool_name": "a", "input": {"a": [' + "[]," * 2_600_000 + "[]]}}]}",
        422,
        "over 400,000 brackets",
    ),
    "millions of requests": ("/rpc", "[" + "[]," * 2_600_000 + "[]]", 200, "over 400,000 brackets"),
    "a query of 7 MB": (
        "/retrieve_tool_memory",
        W + '"query": "' + "ab cd " * 1_150_000 + '"}',
        422,
        "query: 6,900,000 characters; at most 10,000",
    ),
    "lists inside each other": ("/retrieve_tool_memory", "[" * 7_000_000, 422, "brackets"),
    "objects inside each other": ("/rpc", '{"a":' * 350_000, 200, "nested more than 100 deep"),
}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with ServiceProcess(tmp_path_factory.mktemp("served")) as served:
        yield served


@pytest.mark.parametrize("name", BODIES)
def test_others_are_answered_while_a_hostile_body_is_read(service: ServiceProcess, name: str) -> None:
    path, body, status, said = BODIES[name]
    answers: list[httpx.Response] = []

    def post() -> None:
        headers = {"Content-Type": "application/json"}
        answers.append(httpx.post(service.url + path, content=body, headers=headers, timeout=PATIENCE))

    asking = threading.Thread(target=post)
    begun = time.perf_counter()
    asking.start()
    while asking.is_alive() and time.perf_counter() - begun < PATIENCE:
        assert httpx.get(service.url + "/health", timeout=PATIENCE).status_code == 200
        time.sleep(0.01)
    asking.join(PATIENCE)
    assert answers, "no answer"
    assert answers[0].status_code == status
    assert said in answers[0].text


def test_a_service_that_reads_hostile_bodies_hears_that_it_is_to_end(tmp_path: Path) -> None:
    body = json.dumps({"workspace_id": "w", "user_message": "never email Sarah ::::: again " * 3_000})
    with ServiceProcess(tmp_path) as served:
        asking = [threading.Thread(target=_post_and_forget, args=(served.url, body)) for _ in range(8)]
        for each in asking:
            each.start()
        assert served.stop() == 0
        for each in asking:
            each.join(PATIENCE)


def _post_and_forget(url: str, body: str) -> None:
    headers = {"Content-Type": "application/json"}
    with contextlib.suppress(httpx.HTTPError):  # the service has ended
        httpx.post(url + "/capture_tool_rules", content=body, headers=headers, timeout=PATIENCE)
