"""`toolmem mcp`: the MCP server, the proxy before another server, and who puts it there."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from importlib.util import find_spec
from typing import Any

import anyio
import click

from toolmem.cli import options
from toolmem.cli.serve import listen
from toolmem.errors import ConfigError


class _ServesByDefault(click.Group):
    """`toolmem mcp --workspace team` serves, as hosts' settings write it."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        if not args or args[0] not in (*self.commands, "--help"):
            args = ["serve", *args]
        return super().parse_args(context, args)


@click.group(cls=_ServesByDefault)
def mcp() -> None:
    """Serve MCP (the default), or stand before another server.

    \b
    Examples:
      toolmem mcp --workspace team
      toolmem mcp mcp.transport=streamable-http mcp.port=8001
      toolmem mcp proxy --name files -- npx -y @modelcontextprotocol/server-filesystem .
      toolmem mcp wrap files --file .mcp.json
    """


@mcp.command()
@options.memory_options
def serve(workspace: str, **where: Any) -> None:
    """Serve MCP over stdin and stdout, for a host that starts this command; or over HTTP.

    Over HTTP any address but this machine's own needs a token: TOOLMEM_TOKEN, or auth.token_file.
    """
    _require_sdk()
    from toolmem.server.mcp.server import McpService

    with redirect_stdout(sys.stderr):  # modules of ops may print while they are imported
        memory = options.open_memory(workspace=workspace, **where)
    with memory:
        service = McpService(memory, workspace)
        memory.rules.is_guarded()  # a store that cannot be opened is told now
        section = memory.engine.configuration.settings.mcp
        if section.transport == "stdio":
            anyio.run(service.serve_stdio)
            return
        listen(memory, "mcp", service.application, "/mcp")


def _require_sdk() -> None:
    if find_spec("mcp") is None:
        raise ConfigError(["the MCP SDK is not installed; install toolmem[mcp]"])
