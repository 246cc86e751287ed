"""What users and their programs can name: written down in `surface.json`, so that a change is seen and said.

python tests/snapshots/surface.py          print what changed
python tests/snapshots/surface.py --write  write it down; name each difference in CHANGELOG.md
"""

from __future__ import annotations

import contextlib
import inspect
import json
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest import mock

import typer

from toolmem import cli
from toolmem.operations.operation import Operation

FILE = Path(__file__).parents[1] / "surface.json"
MODULES = (
    *("toolmem", "toolmem.errors", "toolmem.models", "toolmem.protocols", "toolmem.client", "toolmem.session"),
    *(
        "toolmem.engine",
        "toolmem.formats",
        "toolmem.providers",
        "toolmem.research.report",
        "toolmem.research.backtest",
        "toolmem.ops",
        "toolmem.config",
    ),
)


def surface() -> dict[str, Any]:
    """Everything, as JSON."""
    return {
        "command line": command_line(),
        "exit codes": exit_codes(),
        "exports": exports(),
        "errors": error_classes(),
        "configuration": configuration(),
        "ops": ops(),
        "flows": flows(),
        "json-rpc": rpc_methods(),
        "agent tools": agent_tools(),
        "mcp tools": mcp_tools(),
        "openapi": openapi(),
    }


# ---------------------------------------------------------------- command line


def command_line() -> dict[str, Any]:
    """The tree of commands with their parameters and help."""
    from toolmem.cli.commands import app

    found: dict[str, Any] = {}
    waiting: list[tuple[str, Any]] = [("toolmem", typer.main.get_command(app))]
    while waiting:
        name, command = waiting.pop()
        found[name] = {
            "help": " ".join((command.help or "").split()),
            "parameters": {_parameter_name(each): _parameter(each) for each in command.params},
        }
        waiting += [(f"{name} {key}", each) for key, each in getattr(command, "commands", {}).items()]
    return found


def _parameter_name(parameter: Any) -> str:
    if type(parameter).__name__.endswith("Argument"):
        return str(parameter.name)
    return ", ".join((*parameter.opts, *parameter.secondary_opts))


def _parameter(parameter: Any) -> dict[str, Any]:
    default = parameter.default() if callable(parameter.default) else parameter.default
    return {
        "help": getattr(parameter, "help", None) or "",
        "type": str(parameter.type_descriptor.annotation).replace("pathlib._local", "pathlib"),  # since Python 3.13
        "required": parameter.required,
        "default": default if isinstance(default, str | int | float | bool | None) else repr(default),
    }


def exit_codes() -> dict[str, int]:
    """What the shell is told for each kind of error that ends a command."""
    from toolmem import errors

    kinds: list[type[BaseException]] = [KeyboardInterrupt, BrokenPipeError]
    kinds += [
        *(errors.Refused, errors.ConfigError, errors.RequestError, errors.RecordError, errors.StoreError),
        *(errors.ModelError, errors.BudgetReached, errors.RunStopped, errors.ServiceError),
    ]
    return {kind.__name__: _exit_code(kind) for kind in kinds}


def _exit_code(kind: type[BaseException]) -> int:
    def raising(*_: Any) -> None:
        raise kind("surface")

    with (
        open(os.devnull, "w") as nowhere,
        contextlib.redirect_stderr(nowhere),
        mock.patch("toolmem.cli.commands.arrange", raising),
    ):
        try:
            cli.main([])
        except SystemExit as left:
            return int(left.code or 0)
    return 0


# ---------------------------------------------------------------- Python


def exports() -> dict[str, Any]:
    """The public names of the public modules, with their signatures."""
    found: dict[str, Any] = {}
    for module_name in MODULES:
        module = import_module(module_name)
        names = getattr(module, "__all__", None) or [
            name
            for name, value in vars(module).items()
            if not name.startswith("_") and getattr(value, "__module__", "") == module_name
        ]
        found[module_name] = {name: _described(getattr(module, name)) for name in sorted(names)}
    return found


def _described(value: Any) -> Any:
    if inspect.isclass(value):
        methods = {
            name: _signature(each.signature if isinstance(each, Operation) else each)
            for name, each in inspect.getmembers(value)
            if not name.startswith("_") and _is_method(each)
        }
        return {"signature": _signature(value), "methods": methods}
    return _signature(value) if callable(value) else type(value).__name__


def _is_method(value: Any) -> bool:
    if isinstance(value, Operation):
        return True
    ours = str(getattr(value, "__module__", "") or "").startswith("toolmem")
    return callable(value) and ours and not inspect.isclass(value)


def _signature(value: Any) -> str:
    """Names of parameters, in order; those that may be left out end in `=`."""
    try:
        signature = value if isinstance(value, inspect.Signature) else inspect.signature(value)
    except (TypeError, ValueError):
        return "(...)"
    bare = [each.replace(annotation=each.empty, default=each.empty) for each in signature.parameters.values()]
    shown = [
        f"{plain}{'' if each.default is each.empty else '='}"
        for each, plain in zip(signature.parameters.values(), bare, strict=True)
    ]
    keywords = [n for n, each in enumerate(bare) if each.kind is each.KEYWORD_ONLY]
    if keywords:
        shown.insert(keywords[0], "*")
    return f"({', '.join(shown)})"


def error_classes() -> dict[str, Any]:
    """Each error with the one that it is a kind of."""
    from toolmem import errors

    return {
        name: value.__bases__[0].__name__
        for name, value in vars(errors).items()
        if inspect.isclass(value) and issubclass(value, Exception) and value.__module__ == errors.__name__
    }


# ---------------------------------------------------------------- configuration, ops and flows


def configuration() -> dict[str, Any]:
    """Every key with its type and default, by its dotted path."""
    from toolmem.config.settings import Settings

    schema = Settings.model_json_schema()
    found: dict[str, Any] = {}
    _flatten(schema, schema.get("$defs", {}), "", found)
    return found


def _flatten(schema: dict[str, Any], known: dict[str, Any], path: str, found: dict[str, Any]) -> None:
    schema = _resolved(schema, known)
    for key, each in schema.get("properties", {}).items():
        place = f"{path}.{key}" if path else key
        each = _resolved(each, known)
        found[place] = {
            name: each[name] for name in ("type", "enum", "default", "minimum", "maximum", "pattern") if name in each
        }
        _flatten(each, known, place, found)
    beside = schema.get("additionalProperties")
    if isinstance(beside, dict):
        _flatten(beside, known, f"{path}.<name>", found)
    for option in schema.get("anyOf", []):
        _flatten(option, known, path, found)


def _resolved(schema: dict[str, Any], known: dict[str, Any]) -> dict[str, Any]:
    if "$ref" not in schema:
        return schema
    return {**known[schema["$ref"].rpartition("/")[2]], **{k: v for k, v in schema.items() if k != "$ref"}}


def ops() -> dict[str, Any]:
    """The ops that flows may name, with their params."""
    from toolmem.flow.registry import known_ops

    known = known_ops()
    return {name: _params(known[name]) for name in sorted(known) if known[name].__module__.startswith("toolmem.")}


def _params(op_class: Any) -> dict[str, Any]:
    schema = op_class.Params.model_json_schema() if hasattr(op_class, "Params") else {}
    return {
        name: {key: each[key] for key in ("type", "default", "enum", "minimum", "exclusiveMinimum") if key in each}
        for name, each in schema.get("properties", {}).items()
    }


def flows() -> dict[str, Any]:
    """The flows of the default configuration with their arguments."""
    from toolmem import ToolMemApp

    settings = ToolMemApp().settings
    return {
        name: {
            "flow_content": flow.flow_content,
            "arguments": {
                key: {"type": each.type, "required": each.required, "enum": each.enum}
                for key, each in flow.input_schema.items()
            },
        }
        for name, flow in settings.flow.items()
    }


# ---------------------------------------------------------------- services


def rpc_methods() -> dict[str, Any]:
    """The methods of JSON-RPC with their parameters, in the order in which positional ones are read."""
    from toolmem.server.rpc import alias, methods

    return {
        name: {
            "alias": alias(name),
            "parameters": [
                f"{key}: {each.in_words()}{', required' if each.required else ''}"
                for key, each in operation.arguments.items()
            ],
        }
        for name, operation in methods().items()
    }


def agent_tools() -> dict[str, Any]:
    """What an agent is offered without a server."""
    from toolmem.operations.agent_tools import AgentTools

    return {schema["name"]: schema for schema in AgentTools.mcp_schemas()}


def mcp_tools() -> dict[str, Any]:
    """What an MCP host is told of the tools, before any configuration of its own."""
    from toolmem import ToolMemApp
    from toolmem.server.mcp.server import McpService

    declared = McpService(ToolMemApp())._tools.declared
    return {tool.name: tool.model_dump(mode="json", exclude_none=True, by_alias=True) for tool in declared}


def openapi() -> dict[str, Any]:
    """The HTTP service's own document."""
    from fastapi.testclient import TestClient

    from toolmem.server.http.application import application
    from toolmem.server.http.preparing import prepare

    with TestClient(application(*prepare([], [])), base_url="http://127.0.0.1:8002") as client:
        return _without_examples(client.get("/openapi.json").json())


def _without_examples(value: Any) -> Any:
    """Nobody programs against an example."""
    if isinstance(value, dict):
        return {key: _without_examples(each) for key, each in value.items() if key not in ("examples", "example")}
    return [_without_examples(each) for each in value] if isinstance(value, list) else value


if __name__ == "__main__":
    now = json.loads(json.dumps(surface()))
    if "--write" in sys.argv:
        FILE.write_text(json.dumps(now, indent=1, ensure_ascii=False, sort_keys=True) + "\n", encoding="utf-8")
    else:
        from differences import differences

        print("\n".join(differences(json.loads(FILE.read_text("utf-8")), now)) or "nothing changed")
