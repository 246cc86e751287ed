"""The prompt of the MCP server, and completions for what a person types into a host."""

from __future__ import annotations

from collections.abc import Mapping

from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CompleteRequestParams,
    CompleteResult,
    Completion,
    GetPromptResult,
    ListPromptsResult,
    Prompt,
    PromptArgument,
    PromptMessage,
    PromptReference,
    TextContent,
)

from toolmem.app import ToolMemApp
from toolmem.config.nearest_names import hint
from toolmem.errors import RequestError
from toolmem.flow.checks import check_workspace
from toolmem.operations.prompt import prompt as system_prompt
from toolmem.ops.tool_rules_prompt import read_prompt_tools
from toolmem.readers.plain_text import name_shown
from toolmem.server.mcp.declarations import WORKSPACE
from toolmem.server.mcp.resources import RULES_TEMPLATE, TOOL_TEMPLATE

PROMPT = "tool_memory"
TOOLS = "tools"
_MAX_COMPLETIONS = 100  # the protocol's limit

PROMPTS = ListPromptsResult(
    prompts=[
        Prompt(
            name=PROMPT,
            title="Tool memory",
            description="The user's rules for the tools named, and what was learnt from the calls of these tools.",
            arguments=[
                PromptArgument(
                    name=TOOLS,
                    title="Tools",
                    description="Names of tools, separated by commas. Left out: the rules of all tools, no guidance.",
                    required=False,
                ),
                PromptArgument(
                    name=WORKSPACE,
                    title="Workspace",
                    description="The workspace whose memory is meant.",
                    required=False,
                ),
            ],
        )
    ]
)


class McpPrompts:
    """Answers `prompts/get` and `completion/complete`."""

    def __init__(self, app: ToolMemApp, workspace: str) -> None:
        self._app = app
        self._workspace = workspace

    async def get(self, name: str, arguments: Mapping[str, str] | None) -> GetPromptResult:
        """One message: the pinned rules, then guidance, as the system prompt of an AgentSession holds them."""
        if name != PROMPT:
            raise MCPError(INVALID_PARAMS, f"unknown prompt {name[:100]!r} ({hint(name, [PROMPT])})")
        given = dict(arguments or {})
        for key in given:
            if key not in (TOOLS, WORKSPACE):
                raise MCPError(INVALID_PARAMS, f"{key[:100]}: unknown ({hint(key, [TOOLS, WORKSPACE])})")
        try:
            workspace = check_workspace(given.get(WORKSPACE) or self._workspace)
            tools = [str(tool) for tool in read_prompt_tools(given.get(TOOLS, ""))]
        except RequestError as error:
            raise MCPError(INVALID_PARAMS, str(error)) from None
        names = ", ".join(map(name_shown, tools))
        told = await system_prompt.run(self._app.services, {"tools": tools, "workspace_id": workspace})
        text = told or f"No rule is pinned and no guidance is known{f' for {names}' if tools else ''}."
        about = f"Rules and guidance for {names}" if tools else "The rules of all tools"
        message = PromptMessage(role="user", content=TextContent(text=text))
        return GetPromptResult(description=f"{about} ({workspace})", messages=[message])

    async def complete(self, params: CompleteRequestParams) -> CompleteResult:
        """Names of tools and workspaces that begin as what was typed so far; of several tools, the last one."""
        argument, typed = params.argument.name, params.argument.value
        context = (params.context.arguments if params.context else None) or {}
        if isinstance(params.ref, PromptReference):
            known = {TOOLS, WORKSPACE} if params.ref.name == PROMPT else set()
        else:
            known = {RULES_TEMPLATE: {"workspace"}, TOOL_TEMPLATE: {"workspace", "tool"}}.get(params.ref.uri, set())
        if argument not in known:
            raise MCPError(INVALID_PARAMS, f"nothing to complete: {argument[:100]!r} ({hint(argument, known)})")
        store = await self._app.services.store_named()
        if argument in (WORKSPACE, "workspace"):
            return _those_that_begin(typed, await store.workspaces())
        before, comma, last = typed.rpartition(",") if argument == TOOLS else ("", "", typed)
        workspace = context.get("workspace") or context.get(WORKSPACE) or self._workspace
        names = await store.tool_names(workspace)
        return _those_that_begin(last.strip(), names, prefix=before + comma)


def _those_that_begin(typed: str, names: list[str], prefix: str = "") -> CompleteResult:
    found = [prefix + name for name in names if name.lower().startswith(typed.lower())]
    return CompleteResult(
        completion=Completion(values=found[:_MAX_COMPLETIONS], total=len(found), has_more=len(found) > _MAX_COMPLETIONS)
    )
