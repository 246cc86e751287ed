"""What a flow costs on a store of some size, inside one process.

    python benchmarks/flows.py [--quick] [--json FILE]

Adding a call runs the whole flow (reading, judging by the rule-based check, storing, answering); `benchmarks/store.py`
measures the commit alone. Medians.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

from tables import Figure, arguments, median_ms, show


def record(tool: int, number: int) -> dict[str, Any]:
    return {
        "tool_name": f"tool_{tool:04}",
        "input": {"query": f"orders of customer {number}", "limit": number % 7},
        "output": "no such table: orders" if number % 5 == 0 else f'[{{"id": {number}, "total": {number * 3}}}]',
        "success": number % 5 != 0,
        "create_time": "2026-01-01T00:00:00+00:00",
        "time_cost": 0.1,
    }


async def fill(app: Any, tools: int, calls: int) -> None:
    for first in range(0, tools, 50):
        records = [record(tool, n) for tool in range(first, min(first + 50, tools)) for n in range(calls)]
        await app.run_flow("add_tool_call_result", workspace_id="bench", tool_call_results=records)


async def measure(folder: Path, quick: bool) -> list[Figure]:
    from toolmem import ToolMemApp

    tools, times = (50, 50) if quick else (1000, 300)
    figures = []
    path = folder / "memory.db"
    async with ToolMemApp(overrides=[f"vector_store.default.params.path='{path}'"]) as app:
        await fill(app, tools, 100)

        async def add(number: int) -> None:
            records = [record(number % tools, 1000 + number)]
            await app.run_flow("add_tool_call_result", workspace_id="bench", tool_call_results=records)

        basis = f"{tools} tools x 100 calls, median of {times}"
        figures.append(
            Figure("flow: add 1 call, judged", await median_ms(times, add), "ms", None, "3690 ms (1000 tools)", basis)
        )

        async def add_told(number: int) -> None:
            records = [{**record(number % tools, 5000 + number), "conversation_id": f"c{number % 20}"}]
            await app.run_flow("add_tool_call_result", workspace_id="bench", tool_call_results=records)

        question = "  one that names its conversation, a fifth of them failed"
        figures.append(Figure(question, await median_ms(times, add_told), "ms", None, "", basis))
        fifty = [f"tool_{tool:04}" for tool in range(50)]
        await app.run_flow("summary_tool_memory", workspace_id="bench", tool_names=fifty)
        before = _bytes(path)

        async def idle(_: int) -> None:
            response = await app.run_flow("summary_tool_memory", workspace_id="bench", tool_names=fifty)
            assert len(response.metadata["skipped"]) == 50, response.answer

        figures.append(
            Figure("flow: summary of 50 tools, nothing new", await median_ms(50, idle), "ms", 5, "", "median of 50")
        )
        figures.append(Figure("  bytes written by it", float(_bytes(path) - before), "B", 0, "2.2 MB", "50 runs"))

        if not quick:
            figures += await nothing_new_anywhere(app, path, [f"tool_{tool:04}" for tool in range(tools)])

        async def retrieve(number: int) -> None:
            name = fifty[number % 50]
            response = await app.run_flow("retrieve_tool_memory", workspace_id="bench", tool_names=name)
            assert response.success

        figures.append(
            Figure("flow: retrieve by name", await median_ms(times, retrieve), "ms", None, "250 ms (1000 tools)", basis)
        )
    return figures


async def nothing_new_anywhere(app: Any, path: Path, names: list[str]) -> list[Figure]:
    """A summary of every tool of the store, none of which has a new call."""
    await app.run_flow("summary_tool_memory", workspace_id="bench", tool_names=names)
    before = _bytes(path)

    async def idle(_: int) -> None:
        response = await app.run_flow("summary_tool_memory", workspace_id="bench", tool_names=names)
        assert len(response.metadata["skipped"]) == len(names), response.answer

    question = f"flow: summary of {len(names)} tools, nothing new"
    return [
        Figure(question, await median_ms(20, idle), "ms", 50, "", "median of 20"),
        Figure("  bytes written by it", float(_bytes(path) - before), "B", 0, "", "20 runs"),
    ]


def _bytes(path: Path) -> int:
    return sum(p.stat().st_size for p in path.parent.glob(path.name + "*") if not p.name.endswith("-shm"))


def main() -> None:
    options = arguments(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        show(asyncio.run(measure(Path(folder), options.quick)), options.json)


if __name__ == "__main__":
    main()
