"""The operations that an agent may use itself, as its tools: their schemas, and what a call of one does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolmem.config.nearest_names import hint
from toolmem.errors import RequestError
from toolmem.operations.operation import AgentTool, Operation, Parameter
from toolmem.operations.table import OPERATIONS
from toolmem.protocols import Services
from toolmem.rules.speakers import speaking_as


def agent_operations() -> dict[str, Operation[Any, Any]]:
    """By the names that an agent knows them by."""
    return {each.agent.name: each for each in OPERATIONS.values() if each.agent is not None}


def input_schema(operation: Operation[Any, Any]) -> dict[str, Any]:
    """JSON schema of the arguments that an agent gives."""
    assert operation.agent is not None
    own = {name: each for name, each in operation.arguments.items() if name not in operation.agent.without}
    defaults = operation.agent.defaults
    return {
        "type": "object",
        "properties": {
            name: _declared_as(each, operation.agent) | ({"default": defaults[name]} if name in defaults else {})
            for name, each in own.items()
        },
        "required": [name for name, each in own.items() if each.required],
        "additionalProperties": False,
    }


def _declared_as(argument: Parameter, tool: AgentTool) -> dict[str, Any]:
    schema = argument.as_json_schema()
    return {key: each for key, each in schema.items() if key != "description"} if tool.tells_arguments else schema


class AgentTools:
    """The tools over one workspace.

    What an agent puts is stored as an agent's: normal and high rules are notes, a critical one waits for a person.
    Rules of the user and of their programs it cannot change.
    """

    def __init__(self, services: Services, workspace: str = "default") -> None:
        self._services = services
        self._workspace = workspace

    @staticmethod
    def openai_schemas() -> list[dict[str, Any]]:
        """`{"type": "function", "function": {...}}`, as OpenAI's chat API takes them."""
        return [
            {"type": "function", "function": {"name": name, "description": said, "parameters": schema}}
            for name, said, schema in _declared()
        ]

    @staticmethod
    def mcp_schemas() -> list[dict[str, Any]]:
        """`{"name", "description", "inputSchema"}`, as MCP lists them."""
        return [{"name": name, "description": said, "inputSchema": schema} for name, said, schema in _declared()]

    async def call(self, name: str, arguments: Mapping[str, Any] | None = None) -> Any:
        """The result as JSON values. Raises RequestError that names the tool or the argument, and StoreError."""
        known = agent_operations()
        operation = known.get(name)
        if operation is None:
            raise RequestError(f"no memory tool is called {name!r} ({hint(name, known)})", field="name")
        given = {} if arguments is None else arguments
        if not isinstance(given, Mapping):
            raise RequestError(f"arguments: expected an object, got {type(given).__name__}", field="arguments")
        properties = input_schema(operation)["properties"]
        for argument in given:
            if argument not in properties:
                raise RequestError(f"{argument}: unknown ({hint(str(argument), properties)})", field=str(argument))
        request = operation.checked({**given, "workspace_id": self._workspace})
        with speaking_as("agent"):
            return operation.to_json(await operation.run(self._services, request))


def _declared() -> list[tuple[str, str, dict[str, Any]]]:
    """Name, description and schema of the arguments of each."""
    return [
        (name, each.agent.description, input_schema(each)) for name, each in agent_operations().items() if each.agent
    ]
