"""What the service can be asked, as OpenAPI 3.1 and as a page."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

import msgspec

from toolmem import __version__
from toolmem.config.sections import Argument, FlowSection
from toolmem.operations.operation import OPERATIONS

_WORKSPACE = {"type": "string", "description": "The workspace."}
_PAGE = """<!doctype html><meta charset="utf-8"><title>toolmem</title>
<style>body{{font:16px/1.5 system-ui;max-width:60rem;margin:2rem auto;padding:0 1rem}}
code{{background:#8882;padding:.1em .3em}}dt{{margin-top:1rem;font-weight:600}}</style>
<h1>toolmem {version}</h1><p>Every name is asked by <code>POST /name</code> with a JSON object;
<a href="openapi.json">openapi.json</a> has it for programs, <code>POST /rpc</code> is JSON-RPC.</p>
<dl>{entries}</dl>"""


def described(flows: Mapping[str, FlowSection]) -> dict[str, Any]:
    """The OpenAPI document. `flows`: those that can be run."""
    paths: dict[str, Any] = {}
    for name, section in flows.items():
        schema = flow_schema(section.input_schema)
        schema["properties"]["workspace_id"] = _WORKSPACE
        paths[f"/{name}"] = _post(name, section.description, schema)
    for name, operation in OPERATIONS.items():
        declared = operation.schema()
        properties = {**declared["properties"], "workspace_id": _WORKSPACE}
        doc = (operation.__doc__ or "").partition("\n\n")[0]
        paths[f"/{name}"] = _post(name, doc, {**declared, "properties": properties})
    return {
        "openapi": "3.1.0",
        "info": {"title": "toolmem", "version": __version__},
        "paths": paths,
    }


def flow_schema(arguments: Mapping[str, Argument]) -> dict[str, Any]:
    """JSON Schema of a flow's request, as far as its arguments say it."""
    properties = {}
    for key, each in arguments.items():
        told = msgspec.to_builtins(each)
        properties[key] = {k: v for k, v in told.items() if k != "required" and v}
    required = [key for key, each in arguments.items() if each.required]
    return {"type": "object", "properties": properties, "required": required}


def _post(name: str, summary: str, schema: dict[str, Any]) -> dict[str, Any]:
    required = sorted({*schema.get("required", ()), "workspace_id"})
    body = {"application/json": {"schema": {**schema, "required": required}}}
    return {
        "post": {
            "operationId": name,
            "summary": summary,
            "requestBody": {"required": True, "content": body},
            "responses": {"200": {"description": "The result as JSON."}},
        }
    }


def page(document: dict[str, Any]) -> str:
    """The same for people."""
    entries = []
    for path, told in document["paths"].items():
        post = told["post"]
        schema = post["requestBody"]["content"]["application/json"]["schema"]
        fields = ", ".join(
            f"<code>{escape(name)}{'' if name in schema['required'] else '?'}</code>"
            for name in schema["properties"]
        )
        entries.append(f"<dt>{escape(path)}</dt><dd>{escape(post['summary'])}<br>{fields}</dd>")
    return _PAGE.format(version=escape(__version__), entries="".join(entries))
