"""What a call over MCP costs: over stdio, beside the SDK's empty tool, and how soon the server answers.

    python benchmarks/mcp_calls.py [--quick] [--json FILE]

Real processes and the SDK's own client. The baseline is a server of the same SDK with one tool that does nothing; the
calls of all tools are interleaved, one after the other in one run, so that whatever else the machine does hits them
alike. Medians; the goal is a ratio of medians.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from flows import fill, record
from tables import Figure, arguments, show

GOAL = 1.3  # times the empty tool
YOUNG = 10  # calls of a tool that has not been used long; the others have a full window

EMPTY_SERVER = """
from mcp.server import MCPServer

server = MCPServer("empty")


@server.tool()
def empty() -> None:
    return None


server.run("stdio")
"""

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "benchmark", "version": "1"},
    },
}


async def prepare(folder: Path, tools: int, calls: int) -> None:
    """A store as `toolmem mcp` finds it in that folder: tools with calls, guidance of a hundred, three rules."""
    from toolmem import ToolMemApp

    path = folder / ".toolmem" / "memory.db"
    async with ToolMemApp(overrides=[f"vector_store.default.params.path='{path}'"]) as app:
        await fill(app, tools, calls)
        young = [{**record(tool, n), "tool_name": f"young_{tool:04}"} for tool in range(50) for n in range(YOUNG)]
        await app.run_flow("add_tool_call_result", workspace_id="bench", tool_call_results=young)
        names = [f"{kind}_{tool:04}" for kind in ("tool", "young") for tool in range(50)]
        await app.run_flow("summary_tool_memory", workspace_id="bench", tool_names=names)
        rules = await app.rule_store("bench")
        for number in range(3):
            await rules.put_rule("tool_0000", f"ask before query {number}", priority="high")


def toolmem_command() -> list[str]:
    return [sys.executable, "-m", "toolmem", "mcp", "--workspace", "bench"]


async def calls(folder: Path, tools: int, times: int) -> list[Figure]:
    from mcp import Client
    from mcp.client.stdio import StdioServerParameters

    command, *args = toolmem_command()
    ours = StdioServerParameters(command=command, args=args, cwd=folder)
    empty = StdioServerParameters(command=sys.executable, args=["-c", EMPTY_SERVER], cwd=folder)
    taken: dict[str, list[float]] = {"empty": [], "young": [], "full": [], "rules": []}

    async with Client(ours) as memory, Client(empty) as nothing:

        async def timed(kind: str, client: Client, tool: str, given: dict[str, Any]) -> None:
            begun = time.perf_counter()
            answer = await client.call_tool(tool, given)
            taken[kind].append(time.perf_counter() - begun)
            assert not answer.is_error, answer

        for number in range(-times // 10, times):
            if number == 0:  # until here: warming up
                for measured in taken.values():
                    measured.clear()
            await timed("empty", nothing, "empty", {})
            await timed("young", memory, "retrieve_tool_memory", {"tool_names": f"young_{number % 50:04}"})
            await timed("full", memory, "retrieve_tool_memory", {"tool_names": f"tool_{number % 50:04}"})
            await timed("rules", memory, "memory_tools_list", {"tool_name": "tool_0000"})

    middle = {kind: statistics.median(measured) * 1000 for kind, measured in taken.items()}
    basis = f"{tools} tools, median of {times}, interleaved"
    figures = [Figure("MCP over stdio: the SDK's empty tool", middle["empty"], "ms", None, "", basis)]
    for kind, what in (
        ("rules", "memory_tools_list, 3 rules"),
        ("young", f"retrieve_tool_memory by name, {YOUNG} calls kept"),
        ("full", "retrieve_tool_memory by name, 100 calls kept"),
    ):
        figures.append(Figure(f"MCP over stdio: {what}", middle[kind], "ms", None, "", basis))
        figures.append(Figure("  times the empty tool", middle[kind] / middle["empty"], "x", GOAL, "", basis))
    return figures


def seconds_to_initialize(command: list[str], folder: Path) -> float:
    """From the start of the process to its answer to `initialize`."""
    begun = time.perf_counter()
    with subprocess.Popen(
        command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(json.dumps(INITIALIZE).encode() + b"\n")
        server.stdin.flush()
        answer = json.loads(server.stdout.readline())
        taken = time.perf_counter() - begun
        assert answer["result"]["capabilities"]["tools"] is not None
        server.stdin.close()
        server.wait(timeout=30)
    return taken


def start_up(folder: Path, times: int) -> list[Figure]:
    ours, empty = [], []
    for _ in range(times):
        empty.append(seconds_to_initialize([sys.executable, "-c", EMPTY_SERVER], folder))
        ours.append(seconds_to_initialize(toolmem_command(), folder))
    basis = f"a new process, median of {times}, interleaved"
    return [
        Figure(
            "start to the answer of initialize: an empty server of the SDK", statistics.median(empty), "s", basis=basis
        ),
        Figure("start to the answer of initialize: toolmem mcp", statistics.median(ours), "s", None, "6.6 s", basis),
    ]


def main() -> None:
    options = arguments(__doc__)
    tools, times = (50, 100) if options.quick else (1000, 500)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        asyncio.run(prepare(folder, tools, 100))
        figures = asyncio.run(calls(folder, tools, times))
        show([*figures, *start_up(folder, 3 if options.quick else 9)], options.json)


if __name__ == "__main__":
    main()
