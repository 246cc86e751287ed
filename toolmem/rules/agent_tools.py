"""Tools that an agent gets for its own memory: their schemas, and what a call of one does."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from toolmem.config.names import hint
from toolmem.errors import RequestError
from toolmem.rules.general_memory import LIMIT, MAX_LIMIT, GeneralMemory
from toolmem.rules.identity import MAX_RULE
from toolmem.rules.rows import PRIORITIES
from toolmem.rules.rule_store import ToolMemoryStore

_TEXT = {"type": "string"}
_TAGS = {"type": "array", "items": {"type": "string"}, "description": "Labels."}
_NAMESPACE = {
    "type": "string",
    "description": "global, skill-<id>, or tool-<name>, which holds the rules of the tool as well.",
    "default": "global",
}

# name -> (description, properties, required)
_TOOLS: dict[str, tuple[str, dict[str, Any], list[str]]] = {
    "memory_tools_put": (
        "Note a rule for a tool, for later sessions. A critical one waits for a person to approve it.",
        {
            "tool_name": {**_TEXT, "description": "The tool's name."},
            "rule": {**_TEXT, "description": f"One sentence of at most {MAX_RULE} characters."},
            "priority": {"type": "string", "enum": list(PRIORITIES), "default": "normal"},
            "tags": _TAGS,
            "id": {**_TEXT, "description": "Of a rule to change."},
        },
        ["tool_name", "rule"],
    ),
    "memory_tools_list": (
        "List the rules of a tool, the most urgent first.",
        {"tool_name": {**_TEXT, "description": "The tool's name."}},
        ["tool_name"],
    ),
    "memory_recall": (
        "Look up what was stored: the entries that fit a query best, or the newest ones without a query.",
        {
            "query": {**_TEXT, "description": "What you want to know.", "default": ""},
            "namespace": _NAMESPACE,
            "limit": {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": LIMIT},
        },
        [],
    ),
    "memory_store": (
        "Store a short text to be recalled later.",
        {
            "content": {**_TEXT, "description": "What to remember."},
            "namespace": _NAMESPACE,
            "tags": _TAGS,
            "id": {**_TEXT, "description": "Of an entry to replace."},
        },
        ["content"],
    ),
    "memory_forget": (
        "Delete a stored text. Rules cannot be deleted by this tool.",
        {"id": {**_TEXT, "description": "Of the entry."}, "namespace": _NAMESPACE},
        ["id"],
    ),
}


class AgentMemoryTools:
    """The five tools over one workspace.

    What an agent puts is stored as an agent's, whatever handle is given here: normal and high rules are notes, a
    critical one waits for a person. Rules of the user and of their programs it cannot change.
    """

    def __init__(self, rules: ToolMemoryStore, memory: GeneralMemory) -> None:
        self._rules = rules.for_agent()
        self._memory = memory
        self._calls: dict[str, Callable[..., Awaitable[Any]]] = {
            "memory_tools_put": self._put_rule,
            "memory_tools_list": self._list_rules,
            "memory_recall": self._recall,
            "memory_store": self._store,
            "memory_forget": self._forget,
        }

    @staticmethod
    def openai_schemas() -> list[dict[str, Any]]:
        """`{"type": "function", "function": {...}}`, as OpenAI's chat API takes them."""
        return [
            {"type": "function", "function": {"name": name, "description": text, "parameters": _object(own, required)}}
            for name, (text, own, required) in _TOOLS.items()
        ]

    @staticmethod
    def mcp_schemas() -> list[dict[str, Any]]:
        """`{"name", "description", "inputSchema"}`, as MCP lists them."""
        return [
            {"name": name, "description": text, "inputSchema": _object(own, required)}
            for name, (text, own, required) in _TOOLS.items()
        ]

    async def call(self, name: str, arguments: Mapping[str, Any] | None = None) -> Any:
        """The result as JSON values. Raises RequestError that names the tool or the argument, and StoreError."""
        if name not in self._calls:
            raise RequestError(f"no memory tool is called {name!r} ({hint(name, self._calls)})", field="name")
        given = {} if arguments is None else arguments
        if not isinstance(given, Mapping):
            raise RequestError(f"arguments: expected an object, got {type(given).__name__}", field="arguments")
        _, properties, required = _TOOLS[name]
        for argument in given:
            if argument not in properties:
                raise RequestError(f"{argument}: unknown ({hint(str(argument), properties)})", field=str(argument))
        for argument in required:
            if given.get(argument) is None:
                raise RequestError(f"{argument}: missing", field=argument)
        return await self._calls[name](**{key: value for key, value in given.items() if value is not None})

    async def _put_rule(self, **given: Any) -> dict[str, Any]:
        return (await self._rules.put_rule(**given)).model_dump(mode="json")

    async def _list_rules(self, tool_name: str) -> list[dict[str, Any]]:
        return [rule.model_dump(mode="json") for rule in await self._rules.list_rules(tool_name)]

    async def _recall(self, **given: Any) -> list[dict[str, Any]]:
        entries = await self._memory.recall(**given)
        return [entry.model_dump(mode="json", exclude_none=True) for entry in entries]

    async def _store(self, **given: Any) -> dict[str, Any]:
        return (await self._memory.remember(**given)).model_dump(mode="json", exclude_none=True)

    async def _forget(self, **given: Any) -> bool:
        return await self._memory.forget(**given)


def _object(properties: Mapping[str, Any], required: list[str]) -> dict[str, Any]:
    return {"type": "object", "properties": dict(properties), "required": required, "additionalProperties": False}
