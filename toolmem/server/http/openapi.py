"""The OpenAPI document: a request model for each flow, made from its `input_schema`, the answers, and examples."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolmem.config.settings import Argument, FlowSettings
from toolmem.flow.checks import WORKSPACE_KEY, WORKSPACE_PATTERN
from toolmem.operations.operation import WORKSPACE
from toolmem.server.http.examples import Example, examples
from toolmem.server.rpc import PREFIX, methods

REFUSAL = "Refusal"
_REFUSAL_REF = {"$ref": f"#/components/schemas/{REFUSAL}"}

REFUSAL_SCHEMA: dict[str, Any] = {
    "title": REFUSAL,
    "description": "A FlowResponse that tells why nothing, or not all, was done.",
    "type": "object",
    "required": ["answer", "success", "metadata"],
    "properties": {
        "answer": {"type": "string", "description": "What is wrong, where, and what would be right."},
        "success": {"const": False},
        "metadata": {
            "type": "object",
            "required": ["errors"],
            "properties": {
                "errors": {
                    "type": "array",
                    "minItems": 1,
                    "items": {
                        "type": "object",
                        "required": ["type", "message"],
                        "properties": {
                            "type": {"type": "string", "description": "The kind of error, e.g. RequestError."},
                            "message": {"type": "string"},
                            "field": {"type": "string", "description": "The part of the request that is wrong."},
                            "index": {"type": "integer", "description": "The record that is wrong, from 0."},
                        },
                    },
                }
            },
        },
    },
}

_MEANINGS = {
    401: "The token is missing or wrong.",
    403: "Without a token the service answers to localhost and 127.0.0.1 only.",
    408: "The body did not arrive in time.",
    413: "The body, or a list in it, is too long.",
    415: "The body is not sent as application/json.",
    422: "Refused before any work: `metadata.errors` names the fields.",
    429: "The budget is spent.",
    500: "A defect of the service; its log says where.",
    502: "A model gave no usable answer.",
    503: "The store cannot do it, or too many requests are under way.",
}
_TRANSPORT = (401, 403, 408, 413, 415, 500, 503)  # before the request is looked at


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """What FastAPI is told of answers other than 200."""
    return {
        status: {"description": _MEANINGS[status], "content": {"application/json": {"schema": _REFUSAL_REF}}}
        for status in sorted({*_TRANSPORT, *statuses})
    }


# ---------------------------------------------------------------- flows


def request_name(flow: str) -> str:
    return f"{flow}_request"


def request_model(flow: str, settings: FlowSettings, max_items: int) -> dict[str, Any]:
    """The JSON schema of a flow's request: what `input_schema` says and the request is checked against."""
    arguments = {key: argument for key, argument in settings.input_schema.items() if key != WORKSPACE_KEY}
    workspace = {
        "type": "string",
        "pattern": f"^{WORKSPACE_PATTERN.pattern}$",
        "description": "Whose memories. Workspaces never see each other.",
    }
    return {
        "title": request_name(flow),
        "type": "object",
        "properties": {WORKSPACE_KEY: workspace, **{key: _schema(each, max_items) for key, each in arguments.items()}},
        "required": [WORKSPACE_KEY, *(key for key, argument in arguments.items() if argument.required)],
        "additionalProperties": False,
    }


def _schema(argument: Argument, max_items: int) -> dict[str, Any]:
    """Null stands for an optional argument that is left out."""
    types = [*argument.types, *([] if argument.required else ["null"])]
    schema: dict[str, Any] = {"type": types[0] if len(types) == 1 else types}
    if argument.description:
        schema["description"] = argument.description
    if argument.enum is not None:
        schema["enum"] = [*argument.enum, *([] if argument.required else [None])]
    if "array" in argument.types:
        schema["items"] = argument.items or ({"type": "string"} if "string" in argument.types else {})
        schema["maxItems"] = max_items
    if argument.properties is not None:
        schema["properties"] = argument.properties
    return schema


def flow_operation(flow: str) -> dict[str, Any]:
    """What FastAPI is told of a flow's route beside its responses."""
    shown = examples().get(flow, [])
    body: dict[str, Any] = {"schema": {"$ref": f"#/components/schemas/{request_name(flow)}"}}
    if shown:
        body["examples"] = _named(shown, "request")
    return {"requestBody": {"required": True, "content": {"application/json": body}}}


def flow_answer(flow: str) -> dict[int | str, dict[str, Any]]:
    """The example answers of a flow."""
    shown = examples().get(flow, [])
    done = "Done. Where only a part could be done, or something named was not found, `success` is false."
    content = {"application/json": {"examples": _named(shown, "response")}} if shown else {}
    return {200: {"description": done, **({"content": content} if content else {})}}


def _named(shown: list[Example], part: str) -> dict[str, Any]:
    return {f"example_{n}": {"summary": each.meaning, "value": getattr(each, part)} for n, each in enumerate(shown, 1)}


# ---------------------------------------------------------------- JSON-RPC and health

_RPC_TEXT = """\
One JSON-RPC 2.0 request, or a batch of them as a list. `workspace_id` is optional everywhere (default: "default").
Errors of JSON-RPC (-32700, -32600, -32601, -32602, -32603, -32000) are answered with status 200; where there are only
notifications the status is 204.

| method | params (r = required) |
|---|---|
"""


def rpc_description() -> str:
    rows = [
        f"| `{name}` | {', '.join(key + (' r' if each.required else '') for key, each in method.arguments.items())} |"
        for name, method in methods().items()
    ]
    return _RPC_TEXT + "\n".join(rows)


def rpc_operation() -> dict[str, Any]:
    put = {"tool_name": "send_email", "rule": "never email Sarah at sarah@example.com", "priority": "critical"}
    asked = {"jsonrpc": "2.0", "id": 1, "method": f"{PREFIX}tool_rule_put", "params": {WORKSPACE: "team", **put}}
    prompt = {"jsonrpc": "2.0", "id": 2, "method": f"{PREFIX}tool_rules_for_prompt", "params": {WORKSPACE: "team"}}
    shown = {
        "one": {"summary": "One request", "value": asked},
        "batch": {"summary": "A batch", "value": [asked, prompt]},
    }
    # Anything is answered in JSON-RPC's own way, so the schema refuses nothing.
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": {}, "examples": shown}}}}


def rpc_answers() -> dict[int | str, dict[str, Any]]:
    described = "The answer, or a list of them for a batch."
    return {
        200: {"description": described, "content": {"application/json": {"schema": {"type": ["object", "array"]}}}},
        204: {"description": "There were only notifications."},
    }


HEALTH_SCHEMA: dict[str, Any] = {
    "title": "Health",
    "type": "object",
    "required": ["status"],
    "properties": {
        "status": {"const": "ok"},
        "version": {"type": "string"},
        "store": {"type": "object", "description": "The default store: its backend, and the file of an embedded one."},
        "models": {"type": "object", "description": "By name: backend and model_name."},
        "embedding_models": {"type": "object", "description": "By name: backend and model_name."},
        "flows": {"type": "array", "items": {"type": "string"}},
        "warnings": {
            "type": "array",
            "items": {"type": "string"},
            "description": "Models that the configuration names and nothing asks.",
        },
    },
}


def health_answers() -> dict[int | str, dict[str, Any]]:
    described = "The store answers. Where a token is configured, a request without it is told the status alone."
    schema = {"$ref": "#/components/schemas/Health"}
    return {200: {"description": described, "content": {"application/json": {"schema": schema}}}}


# ---------------------------------------------------------------- the whole document


def completed(
    document: dict[str, Any], flows: Mapping[str, FlowSettings], max_items: int, *, with_token: bool
) -> dict[str, Any]:
    """FastAPI's document with the models that it does not know of."""
    components = document.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    schemas.update({request_name(name): request_model(name, each, max_items) for name, each in flows.items()})
    schemas[REFUSAL] = REFUSAL_SCHEMA
    schemas["Health"] = HEALTH_SCHEMA
    if with_token:
        components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        document["security"] = [{"token": []}]
        # Whether the service is up may be asked by everybody.
        document["paths"]["/health"]["get"]["security"] = [{}, {"token": []}]
    return document
