"""`toolmem rules approve | reject`: a person decides on rules that wait."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from toolmem.cli.console import Config, say
from toolmem.cli.rules_shared import Ids, Workspace, exit_where_missing, split, with_id, with_rules

if TYPE_CHECKING:
    from toolmem.models import RuleStatus, ToolMemoryRule
    from toolmem.rules.rule_store import ToolMemoryStore


def approve(ids: Ids, workspace: Workspace = "default", config: Config = None) -> None:
    """Let rules hold that an agent proposed, or that were rejected. Exit code 1 where one is not found.

    toolmem rules approve 4e2cc2ca
    """
    _decide(ids, workspace, config, "active", lambda rule: f"approved {rule.id} of {rule.tool_name}: {rule.rule}")


def reject(ids: Ids, workspace: Workspace = "default", config: Config = None) -> None:
    """Let rules hold no longer; they are kept, and no agent brings them back. Exit code 1 where one is not found.

    toolmem rules reject 4e2cc2ca
    """
    _decide(ids, workspace, config, "withdrawn", lambda rule: f"rejected {rule.id} of {rule.tool_name}: {rule.rule}")


def _decide(
    ids: list[str], workspace: str, config: Config, status: RuleStatus, told: Callable[[ToolMemoryRule], str]
) -> None:
    words, overrides = split(ids)

    async def work(rules: ToolMemoryStore) -> list[ToolMemoryRule | None]:
        known, _ = await rules.all_rules(inactive=True)
        meant = [with_id(known, word) for word in words]  # all of them, before anything is changed
        return [None if each is None else await rules.set_status(each.id, status, each.tool_name) for each in meant]

    found = with_rules(work, workspace, config, overrides)
    for rule in found:
        if rule is not None:
            say(told(rule))
    exit_where_missing(words, found, workspace)
