"""Describe flows and operations as OpenAPI 3.1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from toolmem import __version__
from toolmem.config.sections import Argument
from toolmem.flow.binding import Flow
from toolmem.flow.checks import WORKSPACE_KEY
from toolmem.models.decisions import Decision
from toolmem.models.tools import FlowResponse
from toolmem.operations.operation import OPERATIONS, Operation
from toolmem.operations.results import NEXT_HEADER, Calls

WORKSPACE = {"type": "string", "description": "The name of the workspace."}


def openapi_document(flows: Mapping[str, Flow]) -> dict[str, Any]:
    """Make the OpenAPI document of all operations and of `flows` (by name)."""
    kinds = [_answer_type(operation) for operation in OPERATIONS.values()]
    (flow_answer, *answers), schemas = msgspec.json.schema_components(
        [FlowResponse, *kinds], ref_template="#/components/schemas/{name}"
    )
    paths = {}
    for name, flow in flows.items():
        paths[f"/{name}"] = _post(name, flow.description, flow_schema(flow.arguments), flow_answer)
    for (name, operation), answer in zip(OPERATIONS.items(), answers, strict=True):
        place = f"/operations/{name}" if name in flows else f"/{name}"
        paths[place] = _post(
            place.strip("/").replace("/", "_"), operation.summary, operation.schema(), answer
        )
        if operation.signature.return_annotation is Calls:
            text = "Pass it as `before` to read older calls. It is absent if there are none."
            header = {NEXT_HEADER: {"description": text, "schema": {"type": "integer"}}}
            paths[place]["post"]["responses"]["200"]["headers"] = header
    info = {"title": "toolmem", "version": __version__}
    return {"openapi": "3.1.0", "info": info, "paths": paths, "components": {"schemas": schemas}}


def _answer_type(operation: Operation) -> Any:
    """The type of the answer to a request for an operation."""
    kind = operation.signature.return_annotation
    return FlowResponse if kind is Decision else getattr(kind, "sent_as", kind)


def flow_schema(arguments: Mapping[str, Argument]) -> dict[str, Any]:
    """Make the JSON Schema of a flow's request from its `input_schema`."""
    properties = {}
    for key, each in arguments.items():
        fields = msgspec.to_builtins(each).items()
        properties[key] = {k: v for k, v in fields if k != "required" and v}
    required = [key for key, each in arguments.items() if each.required]
    return {"type": "object", "properties": properties, "required": required}


def _post(
    name: str, summary: str, schema: dict[str, Any], answer: dict[str, Any]
) -> dict[str, Any]:
    properties = {**schema["properties"], WORKSPACE_KEY: WORKSPACE}
    required = sorted({*schema.get("required", ()), WORKSPACE_KEY})
    body = {**schema, "properties": properties, "required": required}
    return {
        "post": {
            "operationId": name,
            "summary": summary,
            "requestBody": {"required": True, "content": _json(body)},
            "responses": {"200": {"description": "The result.", "content": _json(answer)}},
        }
    }


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}
