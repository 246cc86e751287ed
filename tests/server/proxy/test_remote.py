"""The proxy before a server with an address: a real one of the SDK, over HTTP, in both eras."""

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import anyio
import pytest
from mcp import ClientSession, StdioServerParameters, stdio_client
from ports import free_ports

from toolmem import ToolMem

SERVER = '''
import sys
from mcp.server.mcpserver import Context, MCPServer
from pydantic import BaseModel

class Name(BaseModel):
    name: str

server = MCPServer("mail", title="Mail of today")

@server.tool()
async def send_email(to: str, ctx: Context) -> str:
    """Send."""
    await ctx.report_progress(1, 2)
    return f"sent to {to}"

@server.tool()
async def greet(ctx: Context) -> str:
    """Ask for a name."""
    answer = await ctx.elicit("who?", schema=Name)
    return f"hello {answer.data.name}"

@server.resource("mail://inbox")
def inbox() -> str:
    return "empty"

server.run("streamable-http", port=int(sys.argv[1]))
'''


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mail")
    Path(folder / "server.py").write_text(SERVER)
    [port] = free_ports(1)
    with open(folder / "log", "wb") as log:
        process = subprocess.Popen(
            [sys.executable, "server.py", str(port)], cwd=folder, stdout=log, stderr=log
        )
    for _ in range(400):
        if socket.socket().connect_ex(("127.0.0.1", port)) == 0:
            break
        time.sleep(0.05)
    yield f"http://127.0.0.1:{port}/mcp"
    process.terminate()
    process.wait(timeout=20)


def proxied(tmp_path, url):
    arguments = ["-m", "toolmem", "mcp", "proxy", "--store", "m.db", "--url", url]
    how = {"args": arguments, "env": dict(os.environ), "cwd": tmp_path}
    return StdioServerParameters(command=sys.executable, **how)


def test_calls_are_held_and_kept_and_everything_else_survives(url, tmp_path):
    with ToolMem(tmp_path / "m.db") as memory:
        memory.capture_rules("never email sarah@example.com", tools=["send_email"])
    seen = []

    async def fill_in(context, params):
        from mcp_types import ElicitResult

        return ElicitResult(action="accept", content={"name": "Ann"})

    async def on_progress(progress, total, message):
        seen.append((progress, total))

    async def work():
        async with (
            stdio_client(proxied(tmp_path, url)) as streams,
            ClientSession(*streams, elicitation_callback=fill_in) as session,
        ):
            told = await session.initialize()
            tools = {t.name: t.description for t in (await session.list_tools()).tools}
            bob, shown = {"to": "bob"}, {"progress_callback": on_progress}
            allowed = await session.call_tool("send_email", bob, **shown)
            denied = await session.call_tool("send_email", {"to": "sarah@example.com"})
            greeted = await session.call_tool("greet", {})
            read = await session.read_resource("mail://inbox")
            return told, tools, allowed, denied, greeted, read

    told, tools, allowed, denied, greeted, read = anyio.run(work)
    assert (told.server_info.name, told.server_info.title) == ("mail", "Mail of today")
    assert "never email sarah@example.com" in tools["send_email"]
    assert tools["greet"] == "Ask for a name."
    assert allowed.content[0].text == "sent to bob" and allowed.structured_content
    assert seen == [(1, 2)]
    assert denied.is_error and "never email sarah" in denied.content[0].text
    assert greeted.content[0].text == "hello Ann"
    assert read.contents[0].text == "empty"
    with ToolMem(tmp_path / "m.db") as memory:
        kept = [(call.tool_name, call.success) for call in memory.calls()]
    assert sorted(kept) == [("greet", True), ("send_email", True)]


def started(folder, url, asked):
    """The proxy before the server of an address, with a first line on its input."""
    server, pipe = proxied(folder, url), subprocess.PIPE
    command = [server.command, *server.args]
    process = subprocess.Popen(command, cwd=folder, stdin=pipe, stdout=pipe)
    process.stdin.write(json.dumps(asked).encode() + b"\n")
    process.stdin.flush()
    return process


def test_a_client_of_the_stateless_protocol_is_served_without_a_handshake(url, tmp_path):
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    given = {"name": "send_email", "arguments": {"to": "bob"}, "_meta": meta}
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": given}
    process = started(tmp_path, url, asked)
    answers = [json.loads(process.stdout.readline())]
    while "id" not in answers[-1]:
        answers.append(json.loads(process.stdout.readline()))
    process.stdin.close()
    assert process.wait(timeout=20) == 0
    assert answers[-1]["result"]["content"][0]["text"] == "sent to bob"


def test_a_server_that_is_not_there_is_an_error_of_the_request(tmp_path):
    asked = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    process = started(tmp_path, "http://127.0.0.1:9/mcp", asked)
    answer = json.loads(process.stdout.readline())
    assert answer["id"] == 1 and "error" in answer
    process.stdin.close()
    process.wait(timeout=20)
