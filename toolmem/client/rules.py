"""The rule methods of `POST /rpc` as calls, and `call` for any other method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from toolmem.client.calls import WORKSPACE, RpcCall

if TYPE_CHECKING:
    from toolmem.schema import ToolMemoryRule

Priority = Literal["critical", "high", "normal"]
Source = Literal["user_explicit", "post_turn", "programmatic"]


@dataclass(frozen=True, slots=True)
class PromptRules:
    """What belongs in a system prompt."""

    rendered: str  # the block as text; "" where no rule is pinned
    rules: list[ToolMemoryRule]  # as the block orders them
    left_out: list[dict[str, str]]  # high rules that the caps left no room for: tool_name, id
    damaged: list[str]  # records that could not be read


def call(method: str, /, **params: Any) -> RpcCall[Any]:
    """Any JSON-RPC method by name, e.g. `memory.recall`. Never sent twice once it may have arrived."""
    return RpcCall(method, params, _as_it_is)


def put_rule(
    tool_name: str,
    rule: str,
    *,
    priority: Priority | None = None,
    source: Source | None = None,
    tags: Sequence[str] | None = None,
    id: str | None = None,
    workspace_id: str | None = None,
) -> RpcCall[ToolMemoryRule]:
    """Store a rule; with the `id` of a stored one, change it: what is left out keeps its stored value."""
    params = {
        "tool_name": tool_name,
        "rule": rule,
        "priority": priority,
        "source": source,
        "tags": None if tags is None else list(tags),
        "id": id,
        WORKSPACE: workspace_id,
    }
    return RpcCall("memory.tool_rule_put", params, _rule, repeatable=id is not None)


def get_rule(tool_name: str, id: str, *, workspace_id: str | None = None) -> RpcCall[ToolMemoryRule | None]:
    """The rule, or None."""
    params = {"tool_name": tool_name, "id": id, WORKSPACE: workspace_id}
    return RpcCall("memory.tool_rule_get", params, _rule_or_none, repeatable=True)


def list_rules(tool_name: str, *, workspace_id: str | None = None) -> RpcCall[list[ToolMemoryRule]]:
    """The rules of a tool: by priority, then the freshest first."""
    params = {"tool_name": tool_name, WORKSPACE: workspace_id}
    return RpcCall("memory.tool_rule_list", params, _rules, repeatable=True)


def delete_rule(tool_name: str, id: str, *, workspace_id: str | None = None) -> RpcCall[bool]:
    """True where it was there."""
    params = {"tool_name": tool_name, "id": id, WORKSPACE: workspace_id}
    return RpcCall("memory.tool_rule_delete", params, bool)


def rules_for_prompt(
    tools: Sequence[str | Mapping[str, Any]] | None = None,
    *,
    language: str | None = None,
    workspace_id: str | None = None,
) -> RpcCall[PromptRules]:
    """The block for the system prompt, for these tools (names or schemas), or for all that have rules."""
    params = {"tools": None if tools is None else list(tools), "language": language, WORKSPACE: workspace_id}
    return RpcCall("memory.tool_rules_for_prompt", params, _prompt_rules, repeatable=True)


def rules_json(tool_name: str, *, workspace_id: str | None = None) -> RpcCall[list[dict[str, Any]]]:
    """The rules of a tool as they are stored, damaged ones included."""
    params = {"tool_name": tool_name, WORKSPACE: workspace_id}
    return RpcCall("memory.tool_rules_json", params, list, repeatable=True)


def _as_it_is(value: Any) -> Any:
    return value


def _rule(value: Any) -> ToolMemoryRule:
    from toolmem.schema import ToolMemoryRule

    return ToolMemoryRule.model_validate(value)


def _rule_or_none(value: Any) -> ToolMemoryRule | None:
    return None if value is None else _rule(value)


def _rules(value: Any) -> list[ToolMemoryRule]:
    return [_rule(each) for each in value]


def _prompt_rules(value: Any) -> PromptRules:
    return PromptRules(
        rendered=value["rendered"],
        rules=_rules(value["rules"]),
        left_out=list(value.get("left_out", [])),
        damaged=list(value.get("damaged", [])),
    )
