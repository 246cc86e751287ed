"""MCP resources and a prompt: the pinned rules and the guidance of tools.

toolmem://{workspace}/rules         the rules for the system prompt
toolmem://{workspace}/tools/{tool}  the guidance of one tool; its name is percent-encoded
prompt `tool_memory`                both, for the named tools
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import quote, unquote

import mcp_types as types

from toolmem.config.names import hint
from toolmem.errors import RequestError
from toolmem.flow.checks import WORKSPACE_KEY
from toolmem.memory.toolmem import ToolMem
from toolmem.server.openapi import WORKSPACE
from toolmem.server.rpc import split_workspace
from toolmem.text.display import shown_name

PAGE = 100  # resources per response
PROMPT = "tool_memory"
_MARKDOWN = "text/markdown"
_RULES = "toolmem://{workspace}/rules"
_TOOL = "toolmem://{workspace}/tools/{tool}"
_ADDRESS = re.compile(r"toolmem://(?P<workspace>[^/]+)/(?:rules|tools/(?P<tool>[^/]+))")
_ABOUT_RULES = "The user's rules for the agent. They belong in the system prompt of every session."
_ABOUT_TOOL = "The guidance of a tool, made from its recorded calls."

TEMPLATES = [
    types.ResourceTemplate(name=name, uri_template=uri, description=about, mime_type=_MARKDOWN)
    for name, uri, about in (("rules", _RULES, _ABOUT_RULES), ("guidance", _TOOL, _ABOUT_TOOL))
]
PROMPTS = [
    types.Prompt(
        name=PROMPT,
        description="The user's rules on these tools, and the guidance made from their calls.",
        arguments=[
            types.PromptArgument(
                name="tools",
                description="The names of the tools, separated by commas. The default is all.",
            ),
            types.PromptArgument(name=WORKSPACE_KEY, description=WORKSPACE["description"]),
        ],
    )
]


class McpReading:
    """Serves the resources and the prompt. Raises RequestError for an unknown one."""

    def __init__(self, memory: ToolMem, workspace: str) -> None:
        self.memory = memory
        self.workspace = workspace

    def resources(self, cursor: str | None) -> types.ListResourcesResult:
        """List a page: rules, then tools. `cursor`: `next_cursor` of the page before, else None."""
        if cursor is not None and not (cursor.isascii() and cursor.isdecimal()):
            raise RequestError("cursor: this server gave no such cursor", "cursor")
        start = int(cursor or 0)
        names = sorted(self.memory.services.store().tool_names(self.workspace))
        page = names[start : start + PAGE]
        shown = [self._resource(shown_name(n), _TOOL, _ABOUT_TOOL, quote(n, safe="")) for n in page]
        if not start:
            shown.insert(0, self._resource("rules", _RULES, _ABOUT_RULES))
        more = str(start + PAGE) if start + PAGE < len(names) else None
        return types.ListResourcesResult(resources=shown, next_cursor=more)

    def _resource(self, name: str, address: str, about: str, tool: str = "") -> types.Resource:
        uri = address.format(workspace=self.workspace, tool=tool)
        return types.Resource(name=name, uri=uri, description=about, mime_type=_MARKDOWN)

    def read(self, uri: str) -> types.ReadResourceResult:
        found = _ADDRESS.fullmatch(uri)
        if found is None:
            raise RequestError(f"there is no {shown_name(uri)}; there are {_RULES} and {_TOOL}")
        workspace = self.memory.workspace(unquote(found["workspace"]))
        if found["tool"] is None:
            text = workspace.tool_rules_for_prompt().rendered
        else:
            guidance = workspace.guidance([unquote(found["tool"])])
            if guidance.not_found:
                raise RequestError(f"there is no {shown_name(uri)}: the tool is not known")
            text = guidance.text
        contents = types.TextResourceContents(uri=uri, mime_type=_MARKDOWN, text=text)
        return types.ReadResourceResult(contents=[contents])

    def prompt(self, name: str, arguments: Mapping[str, str] | None) -> types.GetPromptResult:
        if name != PROMPT:
            raise RequestError(f"there is no prompt {shown_name(name)} ({hint(name, [PROMPT])})")
        workspace_name, given = split_workspace(arguments or {}, self.workspace)
        tools = [tool.strip() for tool in given.get("tools", "").split(",") if tool.strip()]
        workspace = self.memory.workspace(workspace_name)
        nothing = "No rule is pinned, and nothing is known of these tools."
        text = workspace.prompt(tools or None) or nothing
        message = types.PromptMessage(role="user", content=types.TextContent(text=text))
        return types.GetPromptResult(messages=[message])
