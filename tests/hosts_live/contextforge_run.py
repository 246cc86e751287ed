"""In the environment of the gateway's package: its own plugin manager with toolmem's plugin, as the gateway calls it.

python contextforge_run.py CONFIG.yaml      prints what became of each call, as JSON
"""

from __future__ import annotations

import asyncio
import json
import sys
from importlib.metadata import version

from cpex.framework import GlobalContext, PluginManager, ToolHookType, ToolPostInvokePayload, ToolPreInvokePayload

CALLS = [
    ("send_email", {"to": "sarah@example.com"}, None),
    ("send_email", {"to": "bob@example.com"}, {"content": [{"type": "text", "text": "sent"}], "isError": False}),
    ("send_email", {"to": "nobody"}, {"content": [{"type": "text", "text": "no such person"}], "isError": True}),
]


async def main() -> None:
    manager = PluginManager(sys.argv[1])
    await manager.initialize()
    told = []
    for number, (tool, arguments, result) in enumerate(CALLS):
        context = GlobalContext(request_id=f"r{number}", user="a@example.com")
        before, kept = await manager.invoke_hook(
            ToolHookType.TOOL_PRE_INVOKE, ToolPreInvokePayload(name=tool, args=arguments), context
        )
        told.append([before.continue_processing, before.violation.reason if before.violation else ""])
        if before.continue_processing:
            payload = ToolPostInvokePayload(name=tool, result=result)
            await manager.invoke_hook(ToolHookType.TOOL_POST_INVOKE, payload, context, local_contexts=kept)
    await manager.shutdown()
    print(json.dumps({"version": version("mcp-contextforge-gateway"), "calls": told}))


asyncio.run(main())
