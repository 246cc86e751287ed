"""A server of the SDK's, for both protocol eras: mail and a few awkward tools."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from mcp_types import ToolAnnotations
from pydantic import BaseModel


class Order(BaseModel):
    """What the user fills in."""

    pieces: int


server = MCPServer("mail", instructions="Write to people.")


@server.tool(annotations=ToolAnnotations(destructive_hint=True))
def send_email(to: str, text: str = "") -> str:
    """Send one mail."""
    return f"sent to {to}"


@server.tool()
def fail(text: str) -> str:
    raise ValueError(text)


@server.tool()
def weather(city: str) -> dict[str, Any]:
    """The weather of a city."""
    return {"city": city, "degrees": 21.5}


@server.tool()
async def wait(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "waited"


@server.tool()
def size(text: str) -> str:
    return str(len(text))


@server.tool()
def large(characters: int) -> str:
    return "x" * characters


@server.tool()
def noise() -> str:
    os.write(1, b"debug: this is no message\n")
    return "quiet again"


@server.tool()
async def order(ctx: Context) -> str:
    """Ask the user what to order."""
    answer = await ctx.elicit("How many?", schema=Order)
    return f"ordered {answer.data.pieces}" if answer.action == "accept" else "nothing ordered"


@server.tool()
def die() -> str:
    os._exit(7)


@server.tool()
async def count(ctx: Context, to: int) -> str:
    for number in range(to):
        await ctx.report_progress(number + 1, to)
    return "counted"


if __name__ == "__main__":
    print("the server's own stderr", file=sys.stderr, flush=True)
    if len(sys.argv) > 1:
        server.run("streamable-http", port=int(sys.argv[1]), json_response="json" in sys.argv)
    else:
        server.run("stdio")
