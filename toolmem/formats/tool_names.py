"""How agents name tools. A tool in a transcript is renamed as the agent's hooks name it.

So guidance from an agent's transcripts applies to the calls that its hooks see.
"""

from __future__ import annotations

import re
import shlex
from typing import Any

from msgspec import Struct


def _tools(classes: str) -> dict[str, str]:
    """Parse `shell: Bash; read: Read Glob` into the class of each tool, by the tool's name."""
    rows = (row.partition(":") for row in classes.split(";"))
    return {name: kind.strip() for kind, _, names in rows for name in names.split()}


class ToolNames(Struct, frozen=True, kw_only=True):
    """How one agent names tools, and where its transcripts differ from its hooks."""

    own: dict[str, str]  # class by tool, of its built-in tools
    mcp: str = r"mcp__(?P<server>.+?)__(?P<tool>.+)"  # a tool of a server; "": no fixed form
    title: str = ""  # the title of a server's tool in a transcript, with the server's exact name
    commands: dict[str, tuple[str, str]] = {}  # by tool in a transcript; see `in_hook`

    def split(self, name: str, server: str = "") -> tuple[str, str]:
        """Split `mcp__github__search` into ("search", "github"); the server is "" if there is none.

        A name is never shortened to one of the agent's own tools: `mcp__x__Bash` is not `Bash`.
        """
        found = None
        if server:
            prefix = re.escape(re.sub(r"[^A-Za-z0-9_-]", "_", server))
            found = re.fullmatch(rf"(?:mcp_{{1,2}})?(?P<server>{prefix})_{{1,2}}(?P<tool>.+)", name)
        if found is None and self.mcp and name not in self.own:
            found = re.fullmatch(self.mcp, name)
        if found is None or found["tool"] in self.own:
            return name, server
        return found["tool"], server or found["server"]

    def in_hook(self, name: str, arguments: Any) -> tuple[str, Any]:
        """Convert a tool's name and arguments in a transcript into those that a hook gets.

        `commands` turns `exec_command` with {"cmd": "ls"} into `Bash` with {"command": "ls"}.
        A list of words becomes one line. If the arguments are a text, it counts as `input`.
        """
        renamed, parameter = self.commands.get(name, (name, ""))
        given = {"input": arguments} if isinstance(arguments, str) else arguments
        command = given.get(parameter) if isinstance(given, dict) else None
        if isinstance(command, list) and all(isinstance(word, str) for word in command):
            command = shlex.join(command)
        return (renamed, {"command": command}) if isinstance(command, str) else (name, arguments)


CLAUDE_CODE = ToolNames(
    own=_tools(
        "shell: Bash PowerShell; read: Read; write: Write Edit MultiEdit NotebookEdit; "
        "search: Glob Grep LSP; fetch: WebFetch; web: WebSearch; "
        "own: BashOutput KillShell Task Agent TaskOutput TaskStop TodoWrite Skill AskUserQuestion "
        "EnterPlanMode ExitPlanMode"
    ),
)
CODEX = ToolNames(
    own=_tools("shell: Bash; write: apply_patch"),
    commands={
        "exec_command": ("Bash", "cmd"),
        "shell": ("Bash", "command"),
        "shell_command": ("Bash", "command"),
        "local_shell": ("Bash", "command"),
        "apply_patch": ("apply_patch", "input"),
    },
)
COPILOT = ToolNames(
    own=_tools(
        "shell: Bash PowerShell bash powershell write_bash; read: Read view; "
        "write: Write Edit create edit apply_patch; search: Grep Glob grep glob; "
        "fetch: WebFetch web_fetch; web: WebSearch web_search; "
        "own: Agent task read_bash stop_bash list_bash read_agent list_agents write_agent skill "
        "sql ask_user report_intent"
    ),
    mcp=r"(?P<server>github-mcp-server|[^-]+)-(?P<tool>.+)",
)
GEMINI = ToolNames(
    own=_tools(
        "shell: run_shell_command; read: read_file read_many_files; write: write_file replace; "
        "search: list_directory glob grep_search search_file_content; fetch: web_fetch; "
        "web: google_web_search; "
        "own: save_memory update_topic write_todos ask_user invoke_agent activate_skill "
        "enter_plan_mode exit_plan_mode"
    ),
    mcp=r"mcp_(?P<server>[^_]+)_(?P<tool>.+)",
    title=r".+ \((?P<server>.+) MCP Server\)",
)
CURSOR = ToolNames(
    own=_tools(
        "shell: Shell; read: Read; write: Write Edit StrReplace TabWrite; "
        "search: Grep Glob LS SemanticSearch; fetch: WebFetch; web: WebSearch; delete: Delete; "
        "own: Task TodoWrite ReadLints AskQuestion SwitchMode"
    ),
    mcp=r"(?P<server>MCP):(?P<tool>.+)",
)
OPENCODE = ToolNames(
    own=_tools(
        "shell: bash; read: read; write: write edit multiedit patch apply_patch; "
        "search: list glob grep codesearch lsp; fetch: webfetch; web: websearch; "
        "own: task todowrite todoread skill question invalid execute plan_enter plan_exit"
    ),
    mcp="",
)
CLINE = ToolNames(
    own=_tools(
        "shell: run_commands execute_command; read: read_files read_file; "
        "write: apply_patch editor write_to_file replace_in_file; "
        "search: list_files search_codebase search_files list_code_definition_names; "
        "fetch: fetch_web_content web_fetch; web: web_search; "
        "own: ask_question ask_followup_question spawn_agent skills attempt_completion "
        "submit_and_exit"
    ),
    mcp=r"(?P<server>.+?)__(?P<tool>.+)",
)
GOOSE = ToolNames(
    own=_tools(
        "shell: developer__shell; read: developer__read_image; "
        "write: developer__write developer__edit; search: developer__tree"
    ),
    mcp=r"(?P<server>.+?)__(?P<tool>.+)",
)
