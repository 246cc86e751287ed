"""What FastAPI makes the OpenAPI document of: request models from the operations, and the answers.

FastAPI describes and routes. It does not read requests: `limits` does, within bounds, and `flow.checks` says what is
wrong with one, as everywhere else.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import NoneType
from typing import Annotated, Any, Literal

from fastapi import Body
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema, create_model
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.staticfiles import StaticFiles

from toolmem.config.settings import Argument
from toolmem.flow.checks import WORKSPACE_KEY, WORKSPACE_PATTERN
from toolmem.operations.operation import DEFAULT_WORKSPACE, Operation, Parameter
from toolmem.server.http.responses import MEANINGS

Answer = Callable[[Request], Awaitable[Response]]

# ---------------------------------------------------------------- routes


class Route(APIRoute):
    """FastAPI describes its endpoint; a request goes to the endpoint's `answer` as it came."""

    def get_route_handler(self) -> Any:
        return self.endpoint.answer  # type: ignore[attr-defined]


def endpoint(answer: Answer, body: Any = None, shown: Mapping[str, Any] | None = None) -> Callable[[], None]:
    """What FastAPI is to describe: `body` is the model of the requests that `answer` answers."""

    def described() -> None: ...

    if body is not None:
        annotation = Annotated[body, Body(openapi_examples=dict(shown) if shown else None)]
        parameter = inspect.Parameter("body", inspect.Parameter.KEYWORD_ONLY, annotation=annotation)
        described.__signature__ = inspect.Signature([parameter])  # type: ignore[attr-defined]
    described.answer = answer  # type: ignore[attr-defined]
    return described


# ---------------------------------------------------------------- requests


def request_model(
    name: str, arguments: Mapping[str, Argument], *, most: int | None = None, workspace: str | None = None
) -> type[BaseModel]:
    """Of what `arguments` say. `most`: items of a list; `workspace`: the one that is meant where none is given."""
    every = {WORKSPACE_KEY: _workspace(workspace), **arguments}
    fields: dict[str, Any] = {
        # Numbered, since an argument may have any name; the alias is what counts.
        f"field_{n}": (
            Annotated[Any, WithJsonSchema(_schema(each, most))],
            Field(alias=key) if each.required else Field(default_factory=NoneType, alias=key),
        )
        for n, (key, each) in enumerate(every.items())
    }
    return create_model(name, __config__=ConfigDict(extra="forbid"), **fields)


def _workspace(default: str | None) -> Parameter:
    more = {"pattern": f"^{WORKSPACE_PATTERN.pattern}$", **({} if default is None else {"default": default})}
    about = "Whose memories. Workspaces never see each other."
    return Parameter(type="string", description=about, required=default is None, more=more)


def _schema(argument: Argument, most: int | None) -> dict[str, Any]:
    """Null stands for an optional argument that is left out."""
    schema = argument.as_json_schema()
    if "array" in argument.types and most is not None:
        schema["maxItems"] = most
    if not argument.required:
        schema["type"] = [*argument.types, "null"]
        schema |= {"enum": [*argument.enum, None]} if argument.enum is not None else {}
    return schema


def rpc_request(operation: Operation[Any, Any]) -> type[BaseModel]:
    """One request of JSON-RPC that asks for this operation."""
    name = f"rpc_{operation.name}"
    params = request_model(f"{name}_params", operation.arguments, workspace=DEFAULT_WORKSPACE)
    needed = any(each.required for each in operation.arguments.values())
    fields: dict[str, Any] = {
        "jsonrpc": Literal["2.0"],
        "id": (int | str | None, Field(default_factory=NoneType, description="Left out: nothing is answered.")),
        "method": Literal[operation.method],
        "params": (params, ... if needed else Field(default_factory=NoneType)),
    }
    return create_model(name, __doc__=operation.description, **fields)


# ---------------------------------------------------------------- answers


class Problem(BaseModel):
    """One thing that is wrong with a request."""

    type: str = Field(description="The kind of error, e.g. RequestError.")
    message: str
    field: str = Field(default_factory=str, description="The part of the request that is wrong.")
    index: int = Field(default_factory=int, description="The record that is wrong, from 0.")


class Problems(BaseModel):
    """What is wrong with a request."""

    errors: list[Problem] = Field(min_length=1)


# In the document it has this name.
RefusalBody = create_model(
    "Refusal",
    __doc__="A FlowResponse that tells why nothing, or not all, was done.",
    answer=(str, Field(description="What is wrong, where, and what would be right.")),
    success=(Literal[False], ...),
    metadata=(Problems, ...),
)

BEFORE_ANY = (401, 403, 408, 413, 415, 500, 503)  # answered whatever is asked
OF_A_FLOW = (409, 422, 429, 502)
FLOW_DONE = "Done. Where only a part could be done, or something named was not found, `success` is false."


def refusals(statuses: Sequence[int]) -> dict[int | str, dict[str, Any]]:
    """These statuses, as the document describes them."""
    return {status: {"description": MEANINGS[status], "model": RefusalBody} for status in statuses}


# ---------------------------------------------------------------- JSON-RPC

RPC_DESCRIPTION = """\
One JSON-RPC 2.0 request, or a batch of them as a list. `workspace_id` is optional everywhere (default: "default").
Errors of JSON-RPC (-32700, -32600, -32601, -32602, -32603, -32000) are answered with status 200; where there are only
notifications the status is 204.
"""
_PUT = {"tool_name": "send_email", "rule": "never email Sarah at sarah@example.com", "priority": "critical"}
_ONE = {"jsonrpc": "2.0", "id": 1, "method": "memory.tool_rule_put", "params": {WORKSPACE_KEY: "team", **_PUT}}
_TWO = {"jsonrpc": "2.0", "id": 2, "method": "memory.tool_rules_for_prompt", "params": {WORKSPACE_KEY: "team"}}
RPC_EXAMPLES = {
    "one": {"summary": "One request", "value": _ONE},
    "batch": {"summary": "A batch", "value": [_ONE, _TWO]},
}
RPC_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The answer, or a list of them for a batch.",
        "content": {"application/json": {"schema": {"type": ["object", "array"]}}},
    },
    204: {"description": "There were only notifications."},
    "default": {"description": "Any other refusal.", "model": RefusalBody},
}


# ---------------------------------------------------------------- for people

PAGE_FILES = "/docs/files"


def page_files() -> StaticFiles:
    """What is served at `PAGE_FILES`: Swagger UI, from an installed package, and what starts it."""
    return StaticFiles(packages=[("fastapi_offline", "static"), ("toolmem.server.http", "page")])


def page() -> Response:
    """Swagger UI. The browser loads from nobody but this service, and runs nothing that stands in the page."""
    return HTMLResponse(_PAGE, headers={"Content-Security-Policy": _POLICY})


_PAGE = f"""\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>toolmem</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href=".{PAGE_FILES}/swagger-ui.css">
</head>
<body>
<div id="swagger-ui"></div>
<script src=".{PAGE_FILES}/swagger-ui-bundle.js"></script>
<script src=".{PAGE_FILES}/start.js"></script>
</body>
</html>
"""
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
