"""`toolmem run`: one flow, its request and its response as JSON."""

from __future__ import annotations

import sys
from typing import Any, BinaryIO

import click

from toolmem.cli import options
from toolmem.cli.console import print_json, progress_bar
from toolmem.errors import RequestError
from toolmem.flow.report import Event
from toolmem.formats.files import read_json


@click.command()
@click.argument("flow")
@click.option(
    "--request",
    "source",
    required=True,
    type=click.File("rb"),
    help="A file with a JSON object, or - for stdin.",
)
@options.config
@options.store
@options.workspace(None)
@options.overrides
def run(flow: str, source: BinaryIO, workspace: str | None, **where: Any) -> None:
    """Run one flow. The response alone is printed, as JSON.

    Exit code 0: done; 1: partly done, or something was not found; 2: refused before any work;
    3: the budget is reached; 5: stopped by the guard; 130: interrupted.

    \b
    Examples:
      echo '{"tool_names": "search"}' | toolmem run retrieve_tool_memory --request - \\
          --workspace default
      toolmem run add_tool_call_result --request calls.json llm.default.backend=dashscope
    """
    request = read_json(source.read())
    if not isinstance(request, dict):
        raise RequestError(f"--request: expected a JSON object, got {type(request).__name__}")
    if workspace is not None:
        request.setdefault("workspace_id", workspace)
    if "workspace_id" not in request:
        raise RequestError("workspace_id: missing; name it in the request or by --workspace")
    with options.open_memory(**where) as memory, progress_bar(flow) as progress:

        def tell(event: Event) -> None:
            if event.kind == "progress":
                progress(event.done, event.total)

        memory.engine.listeners.append(tell)
        response = memory.run(flow, **request)
    print_json(response)
    if response.metadata.get("budget_reached"):
        sys.exit(3)
    if response.metadata.get("decision", {}).get("action") in ("ask", "deny"):
        sys.exit(5)
    if not response.success or response.metadata.get("partial"):
        sys.exit(1)
