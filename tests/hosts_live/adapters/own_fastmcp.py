"""What is FastMCP's alone: sessions of clients, the id that a client gives a call, structured results."""

from __future__ import annotations

import asyncio

from fastmcp import Client, FastMCP
from tools_at_hand import send_email

from toolmem.hosts.adapters.fastmcp import ToolMemServerMiddleware


def _server(mem, *tools, **options):
    server = FastMCP("tools")
    server.add_middleware(ToolMemServerMiddleware(mem, **options))
    for each in tools:
        server.tool(each)
    return server


async def _called(server, *calls, **given):
    async with Client(server) as client:
        return [await client.call_tool(name, args, raise_on_error=False, **given) for name, args in calls]


def test_a_call_is_kept_under_the_id_that_claude_code_gives_it(mem):
    call = ("send_email", {"to": "bob@example.com"})
    asyncio.run(_called(_server(mem, send_email), call, meta={"claudecode/toolUseId": "toolu_1"}))
    assert [each.id for each in mem.calls(["send_email"])] == ["toolu_1"]


def test_a_structured_result_stays_and_is_kept(mem):
    def weather(place: str) -> dict:
        return {"place": place, "rain": True}

    (result,) = asyncio.run(_called(_server(mem, weather), ("weather", {"place": "Rome"})))
    assert result.structured_content == {"place": "Rome", "rain": True}
    (call,) = mem.calls(["weather"])
    assert '"rain"' in call.output.replace(" ", "")


def test_arguments_that_the_tool_refuses_are_kept_as_its_error(mem):
    (result,) = asyncio.run(_called(_server(mem, send_email), ("send_email", {"whom": "x"})))
    assert result.is_error
    (call,) = mem.calls(["send_email"])
    assert call.success is False
    assert "whom" in call.output or "to" in call.output
