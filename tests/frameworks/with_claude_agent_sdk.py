"""The Claude Agent SDK with the Claude Code that it ships; its model is scripted, on loopback."""

from __future__ import annotations

import asyncio
import tempfile

from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, create_sdk_mcp_server, query, tool
from hosts_live.model import Asked, Model

from frameworks.harness import Seen
from frameworks.tools_at_hand import crash, delete_file, now, send_email, wait
from toolmem.adapters.claude_agent_sdk import toolmem_hooks

ways = ("async", "stream")
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
    model = Model()
    model.then(
        *([Asked(f"mcp__tools__{named}", dict(args)) for named, args in step] for step in steps)
    )
    with tempfile.TemporaryDirectory() as home:
        hooks = toolmem_hooks(memory, conversation_id=conversation, **options)
        try:
            asyncio.run(_run(say, way, _options(model.url, home, hooks)))
        except Exception as error:
            seen.raised = error
    model.close()
    seen.prompts = [request.text for request in model.requests]
    last = model.requests[-1].results if model.requests else {}
    ids = [each for request in model.requests for each in request.calls]
    seen.results = [last.get(each, "") for each in ids]
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
    given = [
        tool(each.__name__, each.__doc__, schema)(_async(each))
        for each, schema in _PARAMETERS.items()
    ]
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
