"""Resources of the MCP server: the pinned rules, and the guidance of each tool.

    toolmem://{workspace}/rules         the block of critical and high rules, as a system prompt holds it
    toolmem://{workspace}/tools/{tool}  the guidance of one tool; its name percent-encoded

Any workspace can be read; the list shows the default one, page by page.
"""

from __future__ import annotations

import base64
import binascii
import re
from urllib.parse import quote, unquote

from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    Annotations,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextResourceContents,
)

from toolmem.app import ToolMemApp
from toolmem.flow.checks import WORKSPACE_PATTERN
from toolmem.operations.tool_rules import rules_for_prompt
from toolmem.readers.plain_text import name_shown

PAGE = 100  # resources
MARKDOWN = "text/markdown"
RULES_TEMPLATE = "toolmem://{workspace}/rules"
TOOL_TEMPLATE = "toolmem://{workspace}/tools/{tool}"
_ADDRESS = re.compile(r"toolmem://(?P<workspace>[^/]+)/(?:(?P<rules>rules)|tools/(?P<tool>[^/]+))")
_FOR_THE_MODEL = Annotations(audience=["assistant"], priority=1.0)
_ON_DEMAND = Annotations(audience=["assistant"], priority=0.5)

TEMPLATES = ListResourceTemplatesResult(
    resource_templates=[
        ResourceTemplate(
            name="rules",
            title="Pinned rules of a workspace",
            uri_template=RULES_TEMPLATE,
            description="What the user demands: the critical and high rules of all tools, for the system prompt.",
            mime_type=MARKDOWN,
            annotations=_FOR_THE_MODEL,
        ),
        ResourceTemplate(
            name="tool_guidance",
            title="Guidance of a tool",
            uri_template=TOOL_TEMPLATE,
            description="What was learnt from a tool's recorded calls. The tool's name is percent-encoded.",
            mime_type=MARKDOWN,
            annotations=_ON_DEMAND,
        ),
    ]
)


def rules_uri(workspace: str) -> str:
    """The address of a workspace's pinned rules."""
    return f"toolmem://{workspace}/rules"


def tool_uri(workspace: str, tool: str) -> str:
    """The address of a tool's guidance."""
    return f"toolmem://{workspace}/tools/{quote(tool, safe='')}"


class McpResources:
    """Answers `resources/list` and `resources/read`."""

    def __init__(self, app: ToolMemApp, workspace: str) -> None:
        self._app = app
        self._workspace = workspace

    async def list(self, cursor: str | None) -> ListResourcesResult:
        """The rules first, then the tools by name. `cursor`: as the page before gave it; else MCPError."""
        after = None if cursor is None else _name_in(cursor)
        store = await self._app.services.store_named()
        names = await store.tool_names(self._workspace)
        left = names if after is None else [name for name in names if name > after]
        page = [self._tool(name) for name in left[:PAGE]]
        if after is None:
            page.insert(0, self._rules())
        more = _cursor(left[PAGE - 1]) if len(left) > PAGE else None
        return ListResourcesResult(resources=page, next_cursor=more)

    def _rules(self) -> Resource:
        return Resource(
            name="rules",
            title="Pinned rules",
            uri=rules_uri(self._workspace),
            description="What the user demands of the agent: put it into the system prompt of every session.",
            mime_type=MARKDOWN,
            annotations=_FOR_THE_MODEL,
        )

    def _tool(self, name: str) -> Resource:
        shown = name_shown(name)
        return Resource(
            name=shown,
            title=f"Guidance: {shown}",
            uri=tool_uri(self._workspace, name),
            description="What was learnt from the recorded calls of this tool.",
            mime_type=MARKDOWN,
            annotations=_ON_DEMAND,
        )

    async def read(self, uri: str) -> ReadResourceResult:
        """Raises MCPError where there is no such resource."""
        found = _ADDRESS.fullmatch(uri)
        workspace = unquote(found["workspace"]) if found else ""
        if found is None or not WORKSPACE_PATTERN.fullmatch(workspace):
            raise MCPError(
                INVALID_PARAMS, f"unknown resource {uri[:200]!r}; there are {RULES_TEMPLATE} and {TOOL_TEMPLATE}"
            )
        if found["rules"]:
            text = (await rules_for_prompt.run(self._app.services, {"workspace_id": workspace})).rendered
        else:
            text = await self._guidance(workspace, unquote(found["tool"]), uri)
        return ReadResourceResult(contents=[TextResourceContents(uri=uri, mime_type=MARKDOWN, text=text)])

    async def _guidance(self, workspace: str, tool: str, uri: str) -> str:
        store = await self._app.services.store_named()
        records = await store.records(workspace, [tool])
        if not records:
            raise MCPError(
                INVALID_PARAMS, f"unknown resource {uri[:200]!r}: nothing is known of that tool", {"uri": uri}
            )
        # Not at the top: it reads guidance, whose grammar no start should wait for.
        from toolmem.guidance.shown import guidance_text, said_to_be_data

        guidance = records[0].guidance
        text = guidance_text(guidance.text) if guidance is not None else ""
        said = said_to_be_data("zh" if self._app.settings.language == "zh" else "")
        known = f"{said}\n\n{text}" if text else "(no guidance yet)"
        return f"# `{name_shown(tool)}`\n\n{known}"


def _cursor(name: str) -> str:
    return base64.urlsafe_b64encode(name.encode()).decode()


def _name_in(cursor: str) -> str:
    try:
        return base64.b64decode(cursor.encode(), altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        raise MCPError(INVALID_PARAMS, "cursor: not one that this server gave") from None
