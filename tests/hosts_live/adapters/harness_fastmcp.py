"""A FastMCP server in memory, and its own client in the place of an agent."""

from __future__ import annotations

import asyncio

from fastmcp import Client, FastMCP
from harness import Seen
from tools_at_hand import TOOLS

from toolmem.hosts.adapters.fastmcp import ToolMemServerMiddleware

name = "fastmcp"
ways = ("async",)
shows_prompt = hears_user = False
takes_notes = False
tells_error = "no such file: gone.txt"


def run(memory, steps, *, say="go on", way="", conversation="c1", **options):
    seen = Seen()
    server = FastMCP("tools")
    server.add_middleware(ToolMemServerMiddleware(memory, conversation=conversation, **options))
    for tool in TOOLS:
        server.tool(tool)
    try:
        asyncio.run(_calls(server, steps, seen))
    except Exception as error:
        seen.raised = error
    return seen


async def _calls(server, steps, seen):
    async with Client(server) as client:
        for step in steps:
            asked = [client.call_tool(tool, dict(args), raise_on_error=False) for tool, args in step]
            for result in await asyncio.gather(*asked):
                seen.results.append("\n".join(part.text for part in result.content))
