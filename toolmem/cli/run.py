"""`toolmem run`: run one flow, with its request and response as JSON."""

from __future__ import annotations

import sys
from typing import Any, BinaryIO

import click

from toolmem.cli import options
from toolmem.cli.console import print_json, progress_bar
from toolmem.errors import RequestError
from toolmem.flow.checks import WORKSPACE_KEY
from toolmem.flow.report import Event
from toolmem.flow.runner import with_new_names
from toolmem.models.calls import with_all_fields
from toolmem.operations import OPERATIONS


@click.command()
@click.argument("flow")
@click.option(
    "--request",
    "source",
    required=True,
    type=click.File("rb"),
    help="Read the request, a JSON object, from this file, or from standard input (-).",
)
@options.config
@options.store
@click.option("--workspace", help="Use this workspace. Needed if the request names none.")
@options.overrides
def run(flow: str, source: BinaryIO, workspace: str | None, **where: Any) -> None:
    """Run one flow or operation, and print its response as JSON.

    FLOW is a flow that `toolmem config check` lists, or an operation: a method of ToolMem such as
    `tool_rules`, whose arguments are the request. Exit code 0: done; 1: failed, partly done, or a
    demand was not kept; 2: refused before any work; 3: the budget is reached; 5: the guard's
    decision is ask or deny.

    \b
    Examples:
      echo '{"tool_names": "search"}' | toolmem run retrieve_tool_memory --request - \\
          --workspace default
      toolmem run add_tool_call_result --request calls.json llm.default.backend=dashscope
    """
    hint = '; calls stand in it as {"tool_call_results": [...]}'
    request = with_new_names(options.read_object(source, "--request", hint))
    if workspace is not None:
        request.setdefault(WORKSPACE_KEY, workspace)
    with options.open_memory(**where) as memory, progress_bar(flow) as progress:

        def show(event: Event) -> None:
            if event.kind == "progress":
                progress(event.done, event.total)

        memory.engine.listeners.append(show)
        flows = {*memory.engine.flows.ready, *memory.engine.flows.left_out}
        if WORKSPACE_KEY not in request and flow in {*flows, *OPERATIONS}:
            raise RequestError("workspace: missing; name it in the request or by --workspace")
        if flow in OPERATIONS and flow not in flows:
            place = memory.workspace(request.pop(WORKSPACE_KEY))
            response = with_all_fields(place.perform(OPERATIONS[flow], request))
        else:
            if flow in flows and "tool_call_results" not in request:
                named_by = "`workspace`" if workspace != request[WORKSPACE_KEY] else "--workspace"
                options.require_workspace(memory, request[WORKSPACE_KEY], named_by)
            response = with_all_fields(memory.run(flow, **request))
    print_json(response)
    sys.exit(_exit_code(response if isinstance(response, dict) else {}))


def _exit_code(response: dict[str, Any]) -> int:
    """The exit code for a response: of a flow, which has `metadata`, or of an operation."""
    found = response.get("metadata", response)
    if found.get("budget_reached"):
        return 3
    if found.get("decision", found).get("action") in ("ask", "deny"):
        return 5
    has_failed = not response.get("success", True) or found.get("partial")
    return 1 if has_failed or found.get("outcome") in ("refused", "request") else 0
