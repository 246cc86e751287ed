"""The MCP server, asked by the SDK's own client: over stdin, and over HTTP."""

import json
import os
import sys

import anyio
import httpx
import pytest
from command_line import run
from mcp import ClientSession, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from toolmem import ToolMem

CALLS = [{"tool_name": "search", "input": {"q": "rain"}, "output": "[]", "success": True}]
PUT = {"tool_name": "send_email", "rule": "Never email Sarah", "priority": "critical"}


def asked(tmp_path, work, *overrides):
    """What `work(session)` answers, in a session with a server of its own."""

    async def ask():
        command = ["-m", "toolmem", "mcp", "--store", str(tmp_path / "m.db"), *overrides]
        server = StdioServerParameters(
            command=sys.executable, args=command, env=dict(os.environ), cwd=tmp_path
        )
        with open(tmp_path / "stderr", "w") as stderr:
            async with stdio_client(server, errlog=stderr) as streams, ClientSession(*streams) as s:
                await s.initialize()
                return await work(s)

    return anyio.run(ask)


async def text_of(session, tool, **arguments):
    result = await session.call_tool(tool, arguments)
    return result.is_error, result.content[0].text


def test_what_works_is_kept_and_handed_out(tmp_path):
    async def work(session):
        told = [
            await text_of(session, "add_tool_call_result", tool_call_results=CALLS),
            await text_of(session, "summary_tool_memory"),
            await text_of(session, "retrieve_tool_memory", tool_names="search"),
        ]
        listed = [each.uri for each in (await session.list_resources()).resources]
        read = await session.read_resource("toolmem://default/tools/search")
        prompt = await session.get_prompt("tool_memory", {"tools": "search"})
        return told, listed, read.contents[0].text, prompt.messages[0].content.text

    told, listed, read, prompt = asked(tmp_path, work, 'mcp.tools=["summary_tool_memory"]')
    assert [failed for failed, _ in told] == [False, False, False]
    assert told[0][1] == "Successfully evaluated 1 tool calls"
    assert listed == ["toolmem://default/rules", "toolmem://default/tools/search"]
    with ToolMem(tmp_path / "m.db") as memory:
        [tool] = memory.tools()
    assert tool.calls_ever == 1
    for text in (told[2][1], read, prompt):
        assert tool.guidance.splitlines()[-1] in text


def test_a_critical_rule_of_an_agent_is_a_proposal_and_a_users_rule_is_held(tmp_path):
    with ToolMem(tmp_path / "m.db") as memory:
        memory.capture_rules("never email bob@example.com", tools=["send_email"])

    async def work(session):
        await text_of(session, "memory_tools_put", **PUT)
        listed = await text_of(session, "memory_tools_list", tool_name="send_email")
        to_bob = {"tool_name": "send_email", "input": {"to": "bob@example.com"}}
        decided = await text_of(session, "check_tool_call", **to_bob)
        rules = await session.read_resource("toolmem://default/rules")
        return json.loads(listed[1]), json.loads(decided[1]), rules.contents[0].text

    listed, decided, rules = asked(tmp_path, work)
    assert [rule["rule"] for rule in listed] == ["never email bob@example.com"]
    assert decided["action"] == "deny" and "bob@example.com" in decided["reason"]
    assert "bob@example.com" in rules and "Sarah" not in rules
    with ToolMem(tmp_path / "m.db") as memory:
        proposed = memory.rules.requests()
    assert [rule.rule for rule in proposed] == [PUT["rule"]]


def test_a_note_over_mcp_waits_for_the_user_who_was_not_heard(tmp_path):
    quote = "never commit with --no-verify"
    commit = [{"tool": "@shell", "arguments": {"command": "git commit --no-verify"}}]
    when = [{"command": "^git commit", "word": "--no-verify"}]
    note = {"quote": quote, "effect": "deny", "tools": ["@shell"], "when": when, "stops": commit}
    note["passes"] = [{"tool": "@shell", "arguments": {"command": "git commit -m wip"}}]

    async def work(session):
        forged = await text_of(session, "note_demand", **note, user_message=quote)
        assert "session_id: unknown" in (await text_of(session, "note_demand", session_id="s"))[1]
        return forged, await text_of(session, "note_demand", **note)

    (forged, why), (failed, told) = asked(tmp_path, work)
    assert forged and "user_message: unknown" in why
    assert not failed and json.loads(told)["outcome"] == "request", told


def test_every_argument_is_described_and_no_workspace_is_deleted(tmp_path):
    async def work(session):
        tools = {t.name: t.input_schema["properties"] for t in (await session.list_tools()).tools}
        gone = {"action": "delete_workspace", "confirm": "default"}
        return tools, await text_of(session, "vector_store", **gone)

    tools, (failed, told) = asked(tmp_path, work, "mcp.tools=[all]")
    assert all("description" in each for tool in tools.values() for each in tool.values())
    assert "delete_workspace" not in tools["vector_store"]["action"]["enum"]
    assert failed and "confirm: unknown" in told


def test_a_misspelt_argument_is_refused_and_nothing_is_done(tmp_path):
    async def work(session):
        refused = await text_of(session, "memory_store", contents="x")
        left_out = await text_of(session, "memory_recall", query=None)
        unknown = await text_of(session, "memory_stor")
        with pytest.raises(MCPError, match="there are toolmem://"):
            await session.read_resource("file:///etc/passwd")
        return refused, left_out, unknown

    refused, left_out, unknown = asked(tmp_path, work)
    assert refused[0] and "did you mean 'content'" in refused[1]
    assert left_out == (False, "[]")
    assert unknown[0] and "did you mean 'memory_store'" in unknown[1]


def test_what_is_printed_never_reaches_the_client(tmp_path):
    (tmp_path / "noisy.py").write_text(
        "import os\nfrom toolmem.flow.op import Op\n"
        "from toolmem.flow.op import register\nprint('import')\n\n"
        "@register\nclass NoisyOp(Op):\n    def run(self, context):\n"
        "        print('print')\n        os.system('echo child')\n"
        "        context.response.answer = 'quiet'\n"
    )
    (tmp_path / "c.yaml").write_text(
        "op_modules: [noisy]\nflow: {noise: {flow_content: NoisyOp()}}\nmcp: {tools: [noise]}\n"
    )

    async def work(session):
        return await text_of(session, "noise")

    told = asked(tmp_path, work, "--config", str(tmp_path / "c.yaml"))
    assert told == (False, "quiet")
    assert "child" in (tmp_path / "stderr").read_text()


def test_over_http_agents_are_served_and_strangers_are_not(serve, tmp_path):
    url, _ = serve("mcp.transport=streamable-http", command=["mcp"], section="mcp")

    async def work():
        async with streamable_http_client(f"{url}/mcp") as streams, ClientSession(*streams) as s:
            await s.initialize()
            return await text_of(s, "memory_store", content="blue is staging")

    assert not anyio.run(work)[0]
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    for header in ({"Host": "evil.com"}, {"Origin": "https://evil.com"}):
        assert httpx.post(f"{url}/mcp", json=ping, headers=header).status_code == 403
    guarded, _ = serve(
        "mcp.transport=http", command=["mcp"], section="mcp", token="secret", store="other.db"
    )
    assert httpx.post(f"{guarded}/mcp", json=ping).status_code == 401


def test_a_flow_that_is_none_and_an_open_address_are_refused_at_the_start(tmp_path):
    for override, told in (
        ("mcp.tools=[retrieve_tool_memry]", "did you mean 'retrieve_tool_memory'"),
        ("mcp.host=0.0.0.0", "set TOOLMEM_TOKEN"),
    ):
        done = run(tmp_path, "mcp", "--store", "m.db", override, "mcp.transport=http")
        assert done.returncode == 2 and told in done.stderr, done.stderr
