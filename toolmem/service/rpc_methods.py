"""The JSON-RPC methods: their parameters, and what each one does."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter

from toolmem.config.names import hint
from toolmem.errors import RequestError
from toolmem.flow.checks import check_workspace
from toolmem.ops import ToolRulesPromptOp
from toolmem.ops.rule_store import general_memory, rule_store
from toolmem.ports import Services
from toolmem.rules.general_memory import GLOBAL, LIMIT, GeneralMemory
from toolmem.rules.rows import read_choice
from toolmem.rules.rule_store import ToolMemoryStore
from toolmem.rules.section import ToolMemoryRulesSection
from toolmem.rules.turns import read_tools
from toolmem.schema import ToolMemoryRule

WORKSPACE = "workspace_id"
DEFAULT_WORKSPACE = "default"
PREFIX = "memory."
ALIAS_PREFIX = "openhuman.memory_"  # memory.tool_rule_put is openhuman.memory_tool_rule_put there

_LANGUAGES = ("en", "zh")  # of the block's own words
_RULES = TypeAdapter(list[ToolMemoryRule])

_KINDS: dict[str, Callable[[Any], bool]] = {
    "a string": lambda value: isinstance(value, str),
    "an integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "a list": lambda value: isinstance(value, list),
    "a list of strings": lambda value: isinstance(value, list) and all(isinstance(each, str) for each in value),
}
_JSON_NAMES = {
    bool: "a boolean",
    int: "a number",
    float: "a number",
    str: "a string",
    list: "a list",
    dict: "an object",
}


@dataclass(frozen=True, slots=True)
class Param:
    """One parameter; null counts as left out."""

    kind: str = "a string"
    required: bool = False


_R = Param(required=True)
_S = Param()


@dataclass(frozen=True, slots=True)
class RpcMethod:
    """`params` in the order in which a list of positional ones is read; `workspace_id` comes last."""

    params: Mapping[str, Param]
    call: Callable[..., Awaitable[Any]]  # (services, workspace, **params)

    def read(self, given: Mapping[str, Any] | Sequence[Any]) -> dict[str, Any]:
        """The parameters by name. Raises RequestError, whose `field` is the one missing, unknown or wrong."""
        known = {**self.params, WORKSPACE: _S}
        if not isinstance(given, Mapping):
            if len(given) > len(known):
                raise RequestError(
                    f"{len(given)} parameters; there are {len(known)}: {', '.join(known)}", field="params"
                )
            given = dict(zip(known, given, strict=False))
        for name in given:
            if name not in known:
                raise RequestError(f"{name}: unknown ({hint(str(name), known)})"[:300], field=str(name)[:100])
        accepted = {name: value for name, value in given.items() if value is not None}
        for name, param in known.items():
            if name not in accepted:
                if param.required:
                    raise RequestError(f"{name}: missing (expected {param.kind})", field=name)
            elif not _KINDS[param.kind](accepted[name]):
                got = _JSON_NAMES.get(type(accepted[name]), "something else")
                raise RequestError(f"{name}: expected {param.kind}, got {got}", field=name)
        accepted[WORKSPACE] = check_workspace(accepted.get(WORKSPACE, DEFAULT_WORKSPACE))
        return accepted


# ---------------------------------------------------------------- rules


async def _rules(services: Services, workspace: str) -> ToolMemoryStore:
    return await rule_store(services, ToolRulesPromptOp(), workspace)


async def _rule_put(services: Services, workspace: str, **given: Any) -> Any:
    return (await (await _rules(services, workspace)).put_rule(**given)).model_dump(mode="json")


async def _rule_get(services: Services, workspace: str, tool_name: str, id: str) -> Any:
    rule = await (await _rules(services, workspace)).get_rule(tool_name, id)
    return None if rule is None else rule.model_dump(mode="json")


async def _rule_list(services: Services, workspace: str, tool_name: str) -> Any:
    rules = await (await _rules(services, workspace)).list_rules(tool_name)
    return [rule.model_dump(mode="json") for rule in rules]


async def _rule_delete(services: Services, workspace: str, tool_name: str, id: str) -> Any:
    return await (await _rules(services, workspace)).delete_rule(tool_name, id)


async def _rules_for_prompt(services: Services, workspace: str, tools: Sequence[Any] = (), language: str = "") -> Any:
    """What did not fit, or could not be read, is named only where there is something."""
    pinned = await (await _rules(services, workspace)).rules_for_prompt(read_tools(tools))
    chosen = read_choice(language or None, "language", _LANGUAGES) or services.settings.language
    section = ToolMemoryRulesSection(pinned, "zh" if chosen == "zh" else "")
    answer: dict[str, Any] = {
        "rendered": section.text,
        "rules": _RULES.dump_python(list(pinned.rules), mode="json"),
    }
    if pinned.left_out:
        answer["left_out"] = [each._asdict() for each in pinned.left_out]
    if pinned.damaged:
        answer["damaged"] = [f"{each.namespace}/{each.key}: {each.problem}" for each in pinned.damaged]
    return answer


async def _rules_json(services: Services, workspace: str, tool_name: str) -> Any:
    return await (await _rules(services, workspace)).rules_json(tool_name)


# ---------------------------------------------------------------- general memory


async def _memory(services: Services, workspace: str) -> GeneralMemory:
    return await general_memory(services, ToolRulesPromptOp(), workspace)


async def _recall(
    services: Services, workspace: str, query: str = "", namespace: str = GLOBAL, limit: int = LIMIT
) -> Any:
    entries = await (await _memory(services, workspace)).recall(query, namespace=namespace, limit=limit)
    return [entry.model_dump(mode="json", exclude_none=True) for entry in entries]


async def _store(services: Services, workspace: str, **given: Any) -> Any:
    entry = await (await _memory(services, workspace)).remember(**given)
    return entry.model_dump(mode="json", exclude_none=True)


async def _forget(services: Services, workspace: str, id: str, namespace: str = GLOBAL) -> Any:
    return await (await _memory(services, workspace)).forget(id, namespace=namespace)


_TAGS = Param("a list of strings")
METHODS: dict[str, RpcMethod] = {
    "memory.tool_rule_put": RpcMethod(
        {"tool_name": _R, "rule": _R, "priority": _S, "source": _S, "tags": _TAGS, "id": _S}, _rule_put
    ),
    "memory.tool_rule_get": RpcMethod({"tool_name": _R, "id": _R}, _rule_get),
    "memory.tool_rule_list": RpcMethod({"tool_name": _R}, _rule_list),
    "memory.tool_rule_delete": RpcMethod({"tool_name": _R, "id": _R}, _rule_delete),
    "memory.tool_rules_for_prompt": RpcMethod({"tools": Param("a list"), "language": _S}, _rules_for_prompt),
    "memory.tool_rules_json": RpcMethod({"tool_name": _R}, _rules_json),
    "memory.recall": RpcMethod({"query": _S, "namespace": _S, "limit": Param("an integer")}, _recall),
    "memory.store": RpcMethod({"content": _R, "namespace": _S, "id": _S, "tags": _TAGS}, _store),
    "memory.forget": RpcMethod({"id": _R, "namespace": _S}, _forget),
}


def alias(name: str) -> str:
    return ALIAS_PREFIX + name.removeprefix(PREFIX)
