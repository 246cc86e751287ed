"""The main job against the loopback server: real SDKs, real sockets, the real store."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from toolmem import ToolMemApp
from toolmem.flow.runner import SystemClock
from toolmem.models import FlowResponse
from toolmem.research.evaluation import Evaluator
from toolmem.research.recordings import read_recording
from toolmem.research.report.findings import Evaluation
from toolmem.testing.model_server import ModelRequest, ModelServer


class QuickClock(SystemClock):
    """The real time, with short naps: a test does not wait out the pauses between attempts."""

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(min(seconds, 0.02))


class Job:
    """What the tests of this folder do: apps on a server, recordings, and looks at what came of them."""

    key = "sk-0123456789abcdef-never-shown"

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @staticmethod
    def record(number: int, **more: Any) -> dict[str, Any]:
        """Distinct calls of two tools; every third one failed."""
        failed = number % 3 == 2
        return {
            "tool_name": f"tool_{number % 2}",
            "input": {"query": f"orders of customer {number}", "limit": 10},
            "output": "Error: limit must not exceed 5" if failed else f'[{{"order": {number}}}]',
            "success": not failed,
            "create_time": f"2026-03-01T{number // 60 % 24:02}:{number % 60:02}:00+00:00",
            **more,
        }

    def records(self, count: int, **more: Any) -> list[dict[str, Any]]:
        return [self.record(n, **more) for n in range(count)]

    def recording(self, count: int, **more: Any) -> Path:
        """A file of so many calls."""
        path = self.folder / "calls.jsonl"
        path.write_text("".join(json.dumps(record) + "\n" for record in self.records(count, **more)), encoding="utf-8")
        return path

    def request(self, count: int, **more: Any) -> Path:
        """A request file for `toolmem run add_tool_call_result`."""
        path = self.folder / "request.json"
        path.write_text(
            json.dumps({"workspace_id": "team", "tool_call_results": self.records(count), **more}), encoding="utf-8"
        )
        return path

    def overrides(self, server: ModelServer, backend: str = "dashscope", store: str = "memory.db") -> list[str]:
        """What a user would write to have everything judged and summarized by this server, unpaced."""
        url = server.dashscope_url if backend == "dashscope" else server.openai_url
        return [
            f"vector_store.default.params.path='{self.folder / store}'",
            f"llm.default.backend={backend}",
            "llm.default.model_name=qwen-plus",
            f"llm.default.params.base_url={url}",
            f"llm.default.params.api_key={self.key}",
            "op.parse_tool_call_result_op.params.evaluation_sleep_interval=0",
            "op.summary_tool_memory_op.params.summary_sleep_interval=0",
            "op.retry_evaluations_op.params.evaluation_sleep_interval=0",
            "op.rejudge_op.params.evaluation_sleep_interval=0",
        ]

    def app(
        self, server: ModelServer, *overrides: str, store: str = "memory.db", backend: str = "dashscope", **given: Any
    ) -> ToolMemApp:
        given.setdefault("clock", QuickClock())
        return ToolMemApp(overrides=[*self.overrides(server, backend, store), *overrides], **given)

    @staticmethod
    async def evaluated(app: ToolMemApp, path: Path, **options: Any) -> Evaluation:
        """The main job in process: judge, store, summarize three times, retrieve."""
        async with app:
            return await Evaluator(app, read_recording(app, [path]), **options).run()

    @staticmethod
    async def add(app: ToolMemApp, records: list[dict[str, Any]], workspace: str = "team", **more: Any) -> FlowResponse:
        return await app.run_flow("add_tool_call_result", workspace_id=workspace, tool_call_results=records, **more)

    @staticmethod
    async def kept(app: ToolMemApp, workspace: str = "team") -> list[dict[str, Any]]:
        """All kept calls of the workspace, by tool and order of arrival."""
        listed = await app.run_flow("vector_store", workspace_id=workspace, action="list")
        return [call for memory in listed.metadata["memory_list"] for call in memory["tool_call_results"]]

    @staticmethod
    def asked(server: ModelServer) -> Counter[str]:
        """How often each prompt came."""
        return Counter(request.prompt for request in server.requests)

    @staticmethod
    def evaluations(server: ModelServer) -> list[ModelRequest]:
        """The requests that asked for a verdict."""
        return [request for request in server.requests if '"score"' in request.prompt]


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path)


@pytest.fixture
def command(run_command: Callable[..., Any]) -> Callable[..., Any]:
    """The command line in this process."""
    return run_command
