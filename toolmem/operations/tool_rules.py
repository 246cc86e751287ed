"""The rules of a tool: put, get, list, delete, the stored records, and the block for the prompt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, Field

from toolmem.light_models import Effect, Priority, RuleStatus, Source, ToolMemoryRule, When
from toolmem.operations.operation import DEFAULT_WORKSPACE, AgentTool, rpc_operation
from toolmem.protocols import Services
from toolmem.rules.identity import MAX_RULE

if TYPE_CHECKING:
    from toolmem.rules.rule_store import RuleStore

ToolName = Annotated[str, "The tool's name."]
Tags = Annotated[Sequence[str] | None, "Labels."]


class PromptRules(BaseModel):
    """What belongs in a system prompt."""

    rendered: str  # the block as text; "" where no rule is pinned
    rules: list[ToolMemoryRule] = Field(default_factory=list)  # as the block orders them
    left_out: list[dict[str, str]] = Field(default_factory=list)  # what the caps left no room for
    damaged: list[str] = Field(default_factory=list)  # records that could not be read


async def rule_store(services: Services, workspace_id: str | None) -> RuleStore:
    """The rules of a workspace, in the default store, with the configured caps."""
    from toolmem.ops import ToolRulesPromptOp
    from toolmem.ops.workspace_rules import rule_store as configured

    return await configured(services, ToolRulesPromptOp(), workspace_id or DEFAULT_WORKSPACE)


@rpc_operation(
    "memory.tool_rule_put",
    repeats=lambda request: "id" in request,
    agent=AgentTool(
        "memory_tools_put",
        "Note a rule for a tool, for later sessions. Critical, deny and ask wait for a person.",
        without=(
            *("source", "status", "said", "created_at", "updated_at"),
            *("unchecked", "expires_at", "superseded_by"),
        ),
        defaults={"priority": "normal"},
    ),
)
async def put_rule(
    services: Services,
    /,
    tool_name: ToolName,
    rule: Annotated[str, f"One sentence of at most {MAX_RULE} characters."],
    *,
    priority: Priority | None = None,
    source: Source | None = None,
    tags: Tags = None,
    id: Annotated[str | None, "Of a rule to change."] = None,
    status: RuleStatus | None = None,
    said: Mapping[str, Any] | None = None,
    created_at: str | None = None,
    updated_at: str | None = None,
    effect: Effect | None = None,
    when: Annotated[When | list[dict[str, Any]] | None, "Calls meant."] = None,
    expires_at: str | None = None,
    unchecked: str | None = None,
    superseded_by: str | None = None,
    workspace_id: str | None = None,
) -> ToolMemoryRule:
    """Store a rule; with the `id` of a stored one, change it: what is left out keeps its stored value.

    Where `effect` and `when` are left out, the sentence is read for what can be checked of it.
    A rule that was listed is put back as it was with all its fields; `said` never makes it more the user's than it is.
    """
    rules = await rule_store(services, workspace_id)
    return await rules.put_rule(
        tool_name,
        rule,
        id=id or "",
        priority=priority,
        source=source,
        tags=tags,
        status=status,
        said=said,
        created_at=created_at,
        updated_at=updated_at,
        effect=effect,
        when=when,
        expires_at=expires_at,
        unchecked=unchecked or "",
        superseded_by=superseded_by or "",
    )


@rpc_operation("memory.tool_rule_get", reads_only=True)
async def get_rule(
    services: Services, /, tool_name: str, id: str, *, workspace_id: str | None = None
) -> ToolMemoryRule | None:
    """The rule, or None."""
    return await (await rule_store(services, workspace_id)).get_rule(tool_name, id)


@rpc_operation(
    "memory.tool_rule_list",
    reads_only=True,
    agent=AgentTool("memory_tools_list", "List the rules of a tool, the most urgent first."),
)
async def list_rules(
    services: Services, /, tool_name: ToolName, *, workspace_id: str | None = None
) -> list[ToolMemoryRule]:
    """The rules of a tool: by priority, then the freshest first."""
    return await (await rule_store(services, workspace_id)).list_rules(tool_name)


@rpc_operation("memory.tool_rule_delete")
async def delete_rule(services: Services, /, tool_name: str, id: str, *, workspace_id: str | None = None) -> bool:
    """True where it was there."""
    return await (await rule_store(services, workspace_id)).delete_rule(tool_name, id)


@rpc_operation("memory.tool_rule_review", reads_only=True)
async def review_rules(
    services: Services, /, tool_name: str | None = None, *, workspace_id: str | None = None
) -> list[ToolMemoryRule]:
    """What the other methods pass over: rules that wait for a person (proposed), were withdrawn or superseded."""
    from toolmem.rules.identity import namespace_of

    rules, _ = await (await rule_store(services, workspace_id)).all_rules(inactive=True)
    own = None if tool_name is None else namespace_of(tool_name)
    return [rule for rule in rules if rule.status != "active" and own in (None, namespace_of(rule.tool_name))]


@rpc_operation("memory.tool_rule_set_status")
async def set_rule_status(
    services: Services,
    /,
    id: str,
    status: RuleStatus,
    *,
    tool_name: str | None = None,
    workspace_id: str | None = None,
) -> ToolMemoryRule | None:
    """Decide on a rule: `active` approves it, `withdrawn` rejects it. The rule, or None where there is none."""
    return await (await rule_store(services, workspace_id)).set_status(id, status, tool_name)


def _shown(pinned: PromptRules) -> dict[str, Any]:
    """What did not fit, or could not be read, is named only where there is something."""
    told = pinned.model_dump(mode="json")
    return {name: each for name, each in told.items() if each or name in ("rendered", "rules")}


@rpc_operation("memory.tool_rules_for_prompt", reads_only=True, shown=_shown)
async def rules_for_prompt(
    services: Services,
    /,
    tools: Sequence[str | Mapping[str, Any]] | None = None,
    *,
    language: str | None = None,
    workspace_id: str | None = None,
) -> PromptRules:
    """The block for the system prompt, for these tools (names or schemas), or for all that have rules."""
    from toolmem.rules.identity import read_choice
    from toolmem.rules.section import ToolMemoryRulesSection
    from toolmem.rules.turns import read_tools

    chosen = read_choice(language or None, "language", ("en", "zh")) or services.settings.language
    pinned = await (await rule_store(services, workspace_id)).rules_for_prompt(read_tools(tools or ()))
    return PromptRules(
        rendered=ToolMemoryRulesSection(pinned, "zh" if chosen == "zh" else "").text,
        rules=list(pinned.rules),
        left_out=[each._asdict() for each in pinned.left_out],
        damaged=list(map(str, pinned.damaged)),
    )


@rpc_operation("memory.tool_rules_json", reads_only=True)
async def rules_json(services: Services, /, tool_name: str, *, workspace_id: str | None = None) -> list[dict[str, Any]]:
    """The rules of a tool as they are stored, damaged ones included."""
    return await (await rule_store(services, workspace_id)).rules_json(tool_name)
