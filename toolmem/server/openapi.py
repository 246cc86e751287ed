"""Describe flows and operations as OpenAPI 3.1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from toolmem import __version__
from toolmem.config.sections import Argument
from toolmem.flow.binding import Flow
from toolmem.operations.operation import OPERATIONS


def openapi_document(flows: Mapping[str, Flow]) -> dict[str, Any]:
    """`flows`: those that can be run, by name."""
    paths = {}
    for name, flow in flows.items():
        paths[f"/{name}"] = _post(name, flow.description, flow_schema(flow.arguments))
    for name, operation in OPERATIONS.items():
        doc = (operation.__doc__ or "").partition("\n\n")[0]
        place = f"/operations/{name}" if name in flows else f"/{name}"
        paths[place] = _post(place.strip("/").replace("/", "_"), doc, operation.schema())
    info = {"title": "toolmem", "version": __version__}
    return {"openapi": "3.1.0", "info": info, "paths": paths}


def flow_schema(arguments: Mapping[str, Argument]) -> dict[str, Any]:
    """JSON Schema of a flow's request."""
    properties = {}
    for key, each in arguments.items():
        fields = msgspec.to_builtins(each).items()
        properties[key] = {k: v for k, v in fields if k != "required" and v}
    required = [key for key, each in arguments.items() if each.required]
    return {"type": "object", "properties": properties, "required": required}


def _post(name: str, summary: str, schema: dict[str, Any]) -> dict[str, Any]:
    workspace = {"type": "string", "description": "The workspace."}
    properties = {**schema["properties"], "workspace_id": workspace}
    required = sorted({*schema.get("required", ()), "workspace_id"})
    body = {**schema, "properties": properties, "required": required}
    return {
        "post": {
            "operationId": name,
            "summary": summary,
            "requestBody": {"required": True, "content": {"application/json": {"schema": body}}},
            "responses": {"200": {"description": "The result as JSON."}},
        }
    }
