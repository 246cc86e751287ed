"""docs/mcp.md: what it shows to be pasted works, and its tables are what the server declares."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from toolmem.config import Settings
from toolmem.config.settings import McpSettings
from toolmem.server.mcp import McpService
from toolmem.server.mcp.offered_prompts import PROMPTS
from toolmem.server.mcp.resources import TEMPLATES

PAGE = (Path(__file__).parents[2] / "docs" / "mcp.md").read_text(encoding="utf-8")
SNIPPETS: list[dict[str, Any]] = [
    json.loads(block)["mcpServers"]["toolmem"] for block in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
]


def rows(heading: str) -> list[list[str]]:
    """The cells of the table whose first column has this heading."""
    table = re.search(rf"^\| {heading} \|.*\n\|[-|]+\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
    assert table is not None
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table[1].splitlines()]


@pytest.mark.parametrize(
    "snippet", [each for each in SNIPPETS if "command" in each], ids=lambda each: str(each["args"])
)
async def test_a_host_that_reads_the_snippet_gets_a_server(snippet, tmp_path):
    assert snippet["command"] == "/path/to/toolmem/.venv/bin/toolmem"
    env = {"HOME": str(tmp_path), **snippet.get("env", {})}
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "toolmem", *snippet["args"]], env=env, cwd=tmp_path
    )
    async with Client(server) as client:
        workspace = snippet["args"][snippet["args"].index("--workspace") + 1]
        tools = (await client.list_tools()).tools
        assert tools[0].input_schema["properties"]["workspace_id"]["default"] == workspace
        given = {"tool_name": "send_email", "rule": "never email Sarah", "priority": "high"}
        assert not (await client.call_tool("memory_tools_put", given)).is_error
        rules = await client.read_resource(f"toolmem://{workspace}/rules")
        assert "never email Sarah" in rules.contents[0].text
    assert (tmp_path / ".toolmem" / "memory.db").is_file()


def test_the_lines_that_try_a_server_run_as_written(tmp_path):
    (program,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    ran = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert "'memory_tools_put'" in ran.stdout
    assert "## Noted by an agent" in ran.stdout
    assert "- [high] ask before you email Sarah" in ran.stdout


def test_the_http_snippets_show_the_address_of_the_server():
    plain, guarded = (each for each in SNIPPETS if "url" in each)
    port = McpSettings().port
    assert plain == {"type": "http", "url": f"http://127.0.0.1:{port}/mcp"}
    assert guarded["url"].endswith(f":{port}/mcp")
    token = re.search(r"TOOLMEM_TOKEN=(\S+)", PAGE)
    assert token is not None
    assert guarded["headers"] == {"Authorization": f"Bearer {token[1]}"}
    assert Settings().auth.token_env == "TOOLMEM_TOKEN"
    assert "8 million" in PAGE
    assert Settings().http.max_body_bytes == 8_000_000


async def test_the_tables_hold_what_the_server_declares(make_app):
    async with McpService(make_app()) as service:
        offered = [tool.name for tool in service._tools.declared]
    async with McpService(make_app("mcp.tools=all")) as service:
        declared = {tool.name: tool.annotations for tool in service._tools.declared}
    told = {cells[0].strip("`"): cells[2] for cells in rows("tool")}
    assert list(told) == list(declared)
    assert [cells[0].strip("`") for cells in rows("tool") if cells[3] == "yes"] == offered
    for name, hints in declared.items():
        assert (told[name] == "no") == hints.read_only_hint
        assert (told[name] in ("replaces", "deletes", "may delete")) == hints.destructive_hint
    assert [cells[0].strip("`") for cells in rows("resource")] == [
        template.uri_template for template in TEMPLATES.resource_templates
    ]
    (prompt,) = PROMPTS.prompts
    (cells,) = rows("prompt")
    assert cells[0].strip("`") == prompt.name
    assert all(f"`{argument.name}`" in cells[1] for argument in prompt.arguments or [])
