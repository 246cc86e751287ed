"""`toolmem run`: one flow or operation, request and response as JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolmem.cli.console import Config, Overrides, ProgressLine, exit_code, in_app, print_json_text
from toolmem.errors import RequestError

if TYPE_CHECKING:
    from toolmem.app import ToolMemApp
    from toolmem.models import FlowResponse


def run(
    flow: Annotated[str, typer.Argument(help="A flow, e.g. add_tool_call_result, or an operation, e.g. tools.")],
    overrides: Overrides = None,
    request: Annotated[str, typer.Option("--request", help="A JSON file, or - for stdin.")] = "-",
    workspace: Annotated[
        str | None, typer.Option("--workspace", help="Used where the request holds no workspace_id.")
    ] = None,
    reports: Annotated[Path | None, typer.Option("--reports", help="Folder in which the run's report is kept.")] = None,
    config: Config = None,
) -> None:
    """Run one flow, or an operation that is no flow. The response alone goes to stdout, as JSON.

    toolmem run add_tool_call_result --request calls.json

    toolmem run calls --request - --workspace team <<< '{"tool_names": ["search"], "recent": 5}'

    toolmem run summary_tool_memory --request - op.summary_tool_memory_op.params.recent_call_count=50 < request.json
    """
    body = read_request(request)
    if workspace is not None:
        body.setdefault("workspace_id", workspace)
    with ProgressLine() as progress:
        response = in_app(lambda app: _run(app, flow, body, reports, progress), config, overrides)
    if isinstance(response, str):
        print_json_text(response)
        return
    print_json_text(response.model_dump_json(indent=2))
    raise typer.Exit(exit_code(response))


async def _run(
    app: ToolMemApp, flow: str, body: dict[str, Any], reports: Path | None, progress: ProgressLine
) -> FlowResponse | str:
    """The response of a flow, or the result of an operation as JSON text."""
    from toolmem.operations.table import OPERATIONS

    app.listeners.append(progress)
    operation = OPERATIONS.get(flow)
    if operation is not None and not operation.flow and flow not in app.flows:
        result = await operation.run(app.services, operation.checked(body))
        return json.dumps(operation.to_json(result), ensure_ascii=False, indent=2)
    response = await app.run_flow(flow, **body)
    if reports is not None and app.last_report is not None:
        app.last_report.save(reports)
    return response


def read_request(source: str) -> dict[str, Any]:
    """The request's JSON object. Raises RequestError that says where the text stops being JSON."""
    if source == "-":
        if sys.stdin.isatty():
            raise RequestError("--request: expected a JSON object on stdin; or name a file", field="request")
        raw = sys.stdin.buffer.read()
        name = "stdin"
    else:
        path = Path(source)
        if not path.is_file():
            raise RequestError(f"--request: there is no file {source}", field="request")
        raw = path.read_bytes()
        name = path.name
    try:
        body = json.loads(raw.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise RequestError(f"{name}: not UTF-8 (byte {error.start})", field="request") from None
    except json.JSONDecodeError as error:
        raise RequestError(f"{name}, line {error.lineno}, column {error.colno}: {error.msg}", field="request") from None
    except RecursionError:
        raise RequestError(f"{name}: nested too deeply", field="request") from None
    if not isinstance(body, dict):
        raise RequestError(f"{name}: expected a JSON object, got {type(body).__name__}", field="request")
    return body
