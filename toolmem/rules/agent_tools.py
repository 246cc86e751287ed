"""Tools that an agent gets for its own memory: their schemas, and what a call of one does."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from toolmem.config.names import hint
from toolmem.errors import RequestError
from toolmem.rules.general_memory import LIMIT, MAX_LIMIT, GeneralMemory
from toolmem.rules.identity import MAX_RULE, same_text
from toolmem.rules.rows import PRIORITIES, RANK
from toolmem.rules.rule_store import ToolMemoryStore
from toolmem.schema import ToolMemoryRule

_TEXT = {"type": "string"}
_TAGS = {"type": "array", "items": {"type": "string"}, "description": "Labels of your choice."}
_NAMESPACE = {
    "type": "string",
    "description": "'global', 'skill-<id>' or 'tool-<name>'. A tool's namespace also holds the rules for that tool.",
    "default": "global",
}

# name -> (description, properties, required)
_TOOLS: dict[str, tuple[str, dict[str, Any], list[str]]] = {
    "memory_tools_put": (
        "Store a rule for one of your tools. Critical and high rules are shown to you in every later session.",
        {
            "tool_name": {**_TEXT, "description": "The tool that the rule is about."},
            "rule": {**_TEXT, "description": f"The rule, as one sentence of at most {MAX_RULE} characters."},
            "priority": {"type": "string", "enum": list(PRIORITIES), "default": "normal"},
            "tags": _TAGS,
            "id": {**_TEXT, "description": "The id of a rule to change. Leave it out for a new rule."},
        },
        ["tool_name", "rule"],
    ),
    "memory_tools_list": (
        "List the rules for one of your tools, the most urgent first.",
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
            "id": {**_TEXT, "description": "The id of an entry to replace. Leave it out for a new one."},
        },
        ["content"],
    ),
    "memory_forget": (
        "Delete a stored text. Rules cannot be deleted by this tool.",
        {"id": {**_TEXT, "description": "The id of the entry."}, "namespace": _NAMESPACE},
        ["id"],
    ),
}


class AgentMemoryTools:
    """The five tools over one workspace.

    An agent may add rules, and change its own. What the user said it may not weaken: putting a rule whose source is
    `user_explicit` with another text or a lower priority is refused.
    """

    def __init__(self, rules: ToolMemoryStore, memory: GeneralMemory) -> None:
        self._rules = rules
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
        await self._require_own(**given)
        return (await self._rules.put_rule(**given)).model_dump(mode="json")

    async def _require_own(self, tool_name: str, rule: str, id: str = "", priority: str = "", **_: Any) -> None:
        """Raises RequestError where the call would weaken a rule of the user."""
        if not isinstance(rule, str):
            return  # the rule store says what is wrong with it
        for stored in await self._rules.list_rules(tool_name):
            if stored.source == "user_explicit" and (stored.id == id or same_text(stored.rule) == same_text(rule)):
                _require_not_weaker(stored, rule, priority)

    async def _list_rules(self, tool_name: str) -> list[dict[str, Any]]:
        return [rule.model_dump(mode="json") for rule in await self._rules.list_rules(tool_name)]

    async def _recall(self, **given: Any) -> list[dict[str, Any]]:
        entries = await self._memory.recall(**given)
        return [entry.model_dump(mode="json", exclude_none=True) for entry in entries]

    async def _store(self, **given: Any) -> dict[str, Any]:
        return (await self._memory.remember(**given)).model_dump(mode="json", exclude_none=True)

    async def _forget(self, **given: Any) -> bool:
        return await self._memory.forget(**given)


def _require_not_weaker(stored: ToolMemoryRule, rule: str, priority: str) -> None:
    if same_text(stored.rule) != same_text(rule):
        raise RequestError(
            f"id: {stored.id!r} is a rule that the user set; its text is the user's to change", field="id"
        )
    if priority in RANK and RANK[priority] > RANK[stored.priority]:
        raise RequestError(
            f"priority: the user set this rule as {stored.priority}; it is the user's to lower", field="priority"
        )


def _object(properties: Mapping[str, Any], required: list[str]) -> dict[str, Any]:
    return {"type": "object", "properties": dict(properties), "required": required, "additionalProperties": False}
