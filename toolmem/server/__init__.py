"""Services: toolmem for programs that are not Python, or not in this process.

    http    every flow as `POST /<flow>`, and JSON-RPC as `POST /rpc`
    mcp     flows, memory tools, rules and guidance for any host that speaks MCP, over stdio or streamable HTTP
    rpc     JSON-RPC 2.0, text in and text out (carrying it is the host's affair)

A request over HTTP: the connection (`http.protocol`) -> `http.access_log` -> access control (`http.access_layer`) ->
its body (`http.limits`, `json_text`) -> the app's flow, or `rpc` -> `http.responses`. A message over MCP: `mcp.stdio`,
or `mcp.http` behind that access control -> `mcp.server` -> `mcp.tool_calls`, `mcp.resources` or `mcp.offered_prompts`
-> the app's flow. `loading` makes the start of either quick.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def loading() -> Iterator[None]:
    """Nothing is collected while code is loaded, and what was loaded is never looked through again.

    Modules and models are several hundred thousand objects, and all of them stay. Searching them for rubbish over and
    over takes a fifth of a start, and time from every later collection.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()
