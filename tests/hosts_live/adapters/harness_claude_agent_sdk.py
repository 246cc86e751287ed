"""The Claude Agent SDK with the Claude Code that it ships, whose model is a scripted one on loopback."""

from __future__ import annotations

import asyncio
import tempfile

from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, create_sdk_mcp_server, query, tool
from harness import Seen
from tools_at_hand import crash, delete_file, now, send_email, wait

from toolmem.hosts.adapters.claude_agent_sdk import toolmem_hooks
from toolmem.testing.agent_server import AgentServer, AskedCall

name = "claude_agent_sdk"
ways = ("async", "stream")
shows_prompt = hears_user = True
takes_notes = False
tells_error = "no such file: gone.txt"

_PARAMETERS = {
    send_email: {"to": str, "text": str},
    delete_file: {"path": str},
    crash: {"path": str},
    now: {},
    wait: {"name": str},
}


def run(memory, steps, *, say="go on", way="", conversation="c1", **options):
    seen = Seen()
    asked = [[AskedCall(f"mcp__tools__{named}", dict(args)) for named, args in step] for step in steps]
    with AgentServer(*asked, "done") as server, tempfile.TemporaryDirectory() as home:
        hooks = toolmem_hooks(memory, conversation=conversation, **options)
        try:
            asyncio.run(_run(say, way, _options(server.url, home, hooks)))
        except Exception as error:
            seen.raised = error
        turns = server.turns
    seen.prompts = [turn.text for turn in turns]
    ids = [call.id for turn in turns if turn.turn for call in turn.turn.calls]
    for number, step in enumerate(steps):
        told = [turns[-1].answer_to(each) for each in ids[: len(step)]] if turns else []
        ids = ids[len(step) :]
        seen.results += [each.text if each else "" for each in told]
        if len(step) == 1 and seen.results and number + 1 < len(turns):  # what hooks add stands beside the result
            seen.results[-1] = "\n".join([seen.results[-1], *turns[number + 1].texts[len(turns[number].texts) :]])
    return seen


async def _run(say, way, options):
    if way == "stream":
        options.include_partial_messages = True
        async with ClaudeSDKClient(options=options) as client:
            await client.query(say)
            async for _ in client.receive_response():
                pass
    else:
        async for _ in query(prompt=say, options=options):
            pass


def _options(url, home, hooks):
    given = [tool(each.__name__, each.__doc__, schema)(_async(each)) for each, schema in _PARAMETERS.items()]
    return ClaudeAgentOptions(
        system_prompt="You are an agent.",
        mcp_servers={"tools": create_sdk_mcp_server(name="tools", tools=given)},
        allowed_tools=[f"mcp__tools__{each.__name__}" for each in _PARAMETERS],
        tools=[],
        setting_sources=[],
        hooks=hooks,
        cwd=home,
        env={
            "HOME": home,
            "CLAUDE_CONFIG_DIR": f"{home}/.claude",
            "ANTHROPIC_API_KEY": "none",
            "ANTHROPIC_BASE_URL": url,
            "DISABLE_TELEMETRY": "1",
            "DISABLE_AUTOUPDATER": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "IS_SANDBOX": "1",
        },
    )


def _async(function):
    async def called(args):
        return {"content": [{"type": "text", "text": await asyncio.to_thread(function, **args)}]}

    return called
