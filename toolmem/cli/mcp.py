"""`toolmem mcp`: the MCP server."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolmem.cli.console import Config, Overrides, logs_to_stderr, say

if TYPE_CHECKING:
    from toolmem.server.mcp import McpService


def mcp(
    overrides: Overrides = None,
    workspace: Annotated[
        str, typer.Option("--workspace", help="The workspace that is meant where a call names none.")
    ] = "default",
    config: Config = None,
) -> None:
    """Serve MCP over stdin and stdout, for a host that starts this command; or over streamable HTTP.

    toolmem mcp --workspace team

    toolmem mcp mcp.transport=streamable-http mcp.port=8001

    Over HTTP any address but this machine's own needs a bearer token (the variable TOOLMEM_TOKEN, or auth.token_file).
    """
    start(config or [], overrides or [], workspace)


def start(files: list[Path], overrides: list[str], workspace: str = "default") -> None:
    """Serve as `mcp.transport` says, until the client leaves or a signal comes.

    Raises ConfigError before anything is served, StoreError where the store cannot be opened.
    """
    from toolmem.config.extras import need
    from toolmem.server import loading

    need("toolmem mcp", "serve")
    with logs_to_stderr():
        with loading():
            from toolmem.app import ToolMemApp
            from toolmem.hosts.notes_over_mcp import noted_by_client
            from toolmem.server.mcp import McpService

            service = McpService(ToolMemApp(files, overrides), workspace, noted_by_client=noted_by_client)
        if service.app.settings.mcp.transport == "stdio":
            asyncio.run(service.serve_stdio())
            return
    _serve_http(service)


def _serve_http(service: McpService) -> None:
    from toolmem.server.http.access_log import log_to_stderr
    from toolmem.server.mcp.http import serve_http

    log_to_stderr()
    settings = service.app.settings
    if settings.mcp.transport == "sse":
        say("mcp.transport: 'sse' is no longer part of the protocol; serving streamable HTTP")
    asyncio.run(serve_http(service, settings, lambda address: say(f"toolmem serves MCP at {address}")))
