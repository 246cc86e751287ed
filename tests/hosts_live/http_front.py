"""An HTTP front for a server that speaks over stdin: one process for each session.

    python http_front.py PORT COMMAND...

The conformance suite asks servers by address; what it is told with and without the proxy behind the
same front is compared.
"""

import subprocess
import sys
import uuid

import anyio
import anyio.to_thread
import uvicorn
from mcp.server.streamable_http import StreamableHTTPServerTransport
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter
from starlette.requests import Request

OPEN = TransportSecuritySettings(enable_dns_rebinding_protection=False)
sessions = {}


async def bridge(transport, task_status):
    """Carry messages between a transport and a process of its own."""
    command = sys.argv[2:]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        async with transport.connect() as (requests, answers):

            async def down():
                while line := await anyio.to_thread.run_sync(process.stdout.readline):
                    message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                    await answers.send(SessionMessage(message))

            async with anyio.create_task_group() as group:
                group.start_soon(down)
                task_status.started()
                async for each in requests:
                    if not isinstance(each, Exception):
                        text = each.message.model_dump_json(by_alias=True, exclude_unset=True)
                        process.stdin.write(text.encode() + b"\n")
                        process.stdin.flush()
                process.stdin.close()


class Front:
    def __init__(self):
        self.group = None

    async def __call__(self, scope, receive, send):
        if scope["type"] == "lifespan":
            async with anyio.create_task_group() as self.group:
                await receive()
                await send({"type": "lifespan.startup.complete"})
                await receive()
                self.group.cancel_scope.cancel()
            await send({"type": "lifespan.shutdown.complete"})
            return
        name = Request(scope).headers.get("mcp-session-id")
        transport = sessions.get(name)
        if transport is None:
            own = uuid.uuid4().hex
            transport = sessions[own] = StreamableHTTPServerTransport(own, security_settings=OPEN)
            await self.group.start(lambda task_status: bridge(transport, task_status))
        await transport.handle_request(scope, receive, send)


if __name__ == "__main__":
    uvicorn.run(Front(), port=int(sys.argv[1]), log_level="warning")
