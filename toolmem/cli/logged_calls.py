"""The log of calls of a workspace, and its rules, as `toolmem guard replay` reads them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from toolmem.cli.console import in_app, require_store
from toolmem.errors import RequestError

if TYPE_CHECKING:
    from toolmem.app import ToolMemApp
    from toolmem.guard.decision import CheckedRule
    from toolmem.models import ToolCallResult
    from toolmem.protocols import MemoryStore

_PAGE = 1000


class LoggedPast(NamedTuple):
    """What a workspace's store knows of the past."""

    calls: list[tuple[int, ToolCallResult]]  # by their times, numbered as they came
    rules: dict[str, list[CheckedRule]]  # active ones, by the tools that were called; "": of every tool


def logged_past(
    workspace: str | None, config: Sequence[Path] | None, overrides: Sequence[str] | None
) -> LoggedPast | None:
    """Of the workspace (None: the default one). None where nobody named it and nothing was logged."""

    async def work(app: ToolMemApp) -> LoggedPast | None:
        try:
            require_store(app, "default")
        except RequestError:
            if workspace is not None:
                raise
            return None
        name = workspace or "default"
        calls = await _calls(await app.services.store_named(), name)
        if not calls:
            if workspace is not None:
                raise RequestError(f"--workspace: no call of workspace {workspace!r} was logged", field="workspace_id")
            return None
        return LoggedPast(calls, await _rules(app, name, {call.tool_name for _, call in calls}))

    return in_app(work, config, overrides)


async def _calls(store: MemoryStore, workspace: str) -> list[tuple[int, ToolCallResult]]:
    from toolmem.guidance.outcomes import place_in_conversation

    found: list[Any] = []
    while page := await store.call_log(workspace, after=found[-1].position if found else 0, limit=_PAGE):
        found += page
    numbered = enumerate(each.call for each in found)
    return sorted(numbered, key=lambda each: (*place_in_conversation(each[1]), each[0]))


async def _rules(app: ToolMemApp, workspace: str, tools: set[str]) -> dict[str, list[CheckedRule]]:
    from toolmem.operations.tool_rules import rule_store
    from toolmem.rules.checked_rules import checked_rules
    from toolmem.rules.identity import folded_name

    stored, _ = await (await rule_store(app.services, workspace)).all_rules()
    checked = checked_rules(stored, app.clock.now())
    bound = {tool: checked.get(folded_name(tool), []) for tool in tools} | {"": checked.get("", [])}
    return {tool: those for tool, rules in bound.items() if (those := [each for each in rules if each.checkable])}
