"""The table of agents that hooks are installed in: their names of events, tools and settings.

The comment beside each title is the version whose payloads were recorded.
"""

from __future__ import annotations

from msgspec import Struct, field

EVERYWHERE = frozenset(("session_start", "subagent_start", "prompt", "before_call", "after_call"))


def _tools(classes: str) -> dict[str, str]:
    """Tool -> class, from `shell: Bash; read: Read Glob`; `own`: plans, subagents, questions."""
    rows = (row.partition(":") for row in classes.split(";"))
    return {name: kind.strip() for kind, _, names in rows for name in names.split()}


def _names(pairs: str) -> dict[str, str]:
    """The agent's name -> Claude Code's, from `theirs=ours`, or one word where they are equal."""
    split = [pair.partition("=") for pair in pairs.split()]
    return {theirs: ours or theirs for theirs, _, ours in split}


_CLAUDE_EVENTS = _names(
    "SessionStart SubagentStart UserPromptSubmit PreToolUse PostToolUse PostToolUseFailure "
    "SessionEnd"
)
_PLUGIN_KEYS = _names(
    "event=hook_event_name sessionID=session_id session=session_id key=prompt_id "
    "callID=tool_use_id callId=tool_use_id tool=tool_name server=mcp_server args=tool_input "
    "input=tool_input output=tool_response milliseconds=duration_ms"
)


class Agent(Struct, frozen=True, kw_only=True):
    """One agent: how it differs from Claude Code's protocol, and where its settings are."""

    name: str
    title: str
    tools: dict[str, str]
    events: dict[str, str] = field(default_factory=_CLAUDE_EVENTS.copy)  # its own -> Claude Code's
    rename: dict[str, str] = {}  # its payload's key -> Claude Code's
    call_ids: bool = True  # False: events are matched by time, a call's end by tool and input
    mcp_name: str = r"mcp__(?P<server>.+?)__(?P<tool>.+)"
    project_variable: str = ""
    dialect: str = "claude"
    asks: bool = False  # it can ask its user about a call
    times_calls: bool = False  # it tells how long a call took
    context_at: frozenset[str] = EVERYWHERE  # events whose answer may have context for the model
    notice_at: frozenset[str] = frozenset()  # events whose answer may have a notice for the user
    files: dict[str, str]  # path below project or home -> form; `settings`: shared with others
    user_files: dict[str, str] = {}  # below home, if these differ
    home_variable: str = ""  # environment variable in place of their first folder below home
    form: str = "shell"  # of a command in settings: shell, or exec (without one)
    timeout: int = 10  # in its own unit
    end_timeout: int = 0  # at a session's end; 0: the agent's default
    closed: dict[str, object] = {}  # settings that stop a call if the hook cannot run
    after_install: str = ""  # what the user has to do then


CLAUDE_CODE = Agent(
    name="claude-code",
    title="Claude Code",  # 2.1.330
    tools=_tools(
        "shell: Bash PowerShell; read: Read; write: Write Edit MultiEdit NotebookEdit; "
        "search: Glob Grep LSP; fetch: WebFetch; web: WebSearch; "
        "own: BashOutput KillShell Task Agent TaskOutput TaskStop TodoWrite Skill AskUserQuestion "
        "EnterPlanMode ExitPlanMode"
    ),
    project_variable="CLAUDE_PROJECT_DIR",
    asks=True,
    times_calls=True,
    notice_at=frozenset(("session_start", "prompt", "before_call", "after_call")),
    files={".claude/settings.local.json": "settings"},
    user_files={".claude/settings.json": "settings"},
    home_variable="CLAUDE_CONFIG_DIR",
    form="exec",
    closed={"onFailure": "block"},
)
CODEX = Agent(
    name="codex",
    title="Codex",  # 0.169.0
    tools=_tools("shell: Bash; write: apply_patch"),
    events=_names("SessionStart SubagentStart UserPromptSubmit PreToolUse PostToolUse SessionEnd"),
    rename=_names("turn_id=prompt_id"),
    notice_at=frozenset(("session_start", "prompt")),
    files={".codex/hooks.json": "settings"},
    home_variable="CODEX_HOME",
    end_timeout=3,  # Codex warns of more at each start
    after_install="Codex runs no hook that its user has not trusted: start codex, enter /hooks, "
    "and trust toolmem's.",
)
COPILOT = Agent(
    name="copilot",
    title="GitHub Copilot CLI",  # 1.0.102
    tools=_tools(
        "shell: Bash PowerShell bash powershell write_bash; read: Read view; "
        "write: Write Edit create edit apply_patch; search: Grep Glob grep glob; "
        "fetch: WebFetch web_fetch; web: WebSearch web_search; "
        "own: Agent task read_bash stop_bash list_bash read_agent list_agents write_agent skill "
        "sql ask_user report_intent"
    ),
    rename=_names("sessionId=session_id parent_agent_id=parent_id tool_result=tool_response"),
    call_ids=False,
    mcp_name=r"(?P<server>github-mcp-server|[^-]+)-(?P<tool>.+)",
    project_variable="COPILOT_PROJECT_DIR",
    dialect="copilot",
    asks=True,
    files={".github/hooks/toolmem.json": "copilot"},
    user_files={".copilot/hooks/toolmem.json": "copilot"},
    home_variable="COPILOT_HOME",
    after_install="Copilot runs a repository's hooks only where you trust its folder: it asks when "
    "it starts there.",
)
GEMINI = Agent(
    name="gemini",
    title="Gemini CLI",  # 0.61.0
    tools=_tools(
        "shell: run_shell_command; read: read_file read_many_files; write: write_file replace; "
        "search: list_directory glob grep_search search_file_content; fetch: web_fetch; "
        "web: google_web_search; "
        "own: save_memory update_topic write_todos ask_user invoke_agent activate_skill "
        "enter_plan_mode exit_plan_mode"
    ),
    events=_names(
        "SessionStart BeforeAgent=UserPromptSubmit BeforeTool=PreToolUse AfterTool=PostToolUse "
        "SessionEnd"
    ),
    call_ids=False,
    mcp_name=r"mcp_(?P<server>[^_]+)_(?P<tool>.+)",
    project_variable="GEMINI_PROJECT_DIR",
    dialect="gemini",
    context_at=frozenset(("session_start", "prompt", "after_call")),
    notice_at=frozenset(("session_start", "prompt", "before_call", "after_call")),
    files={".gemini/settings.json": "settings"},
    timeout=10_000,
    after_install="Gemini CLI runs a project's hooks only where you trust its folder: it asks, or "
    "enter /permissions.",
)
CURSOR = Agent(
    name="cursor",
    title="Cursor",  # its documentation of September 2026, not run
    tools=_tools(
        "shell: Shell; read: Read; write: Write Edit StrReplace TabWrite; "
        "search: Grep Glob LS SemanticSearch; fetch: WebFetch; web: WebSearch; delete: Delete; "
        "own: Task TodoWrite ReadLints AskQuestion SwitchMode"
    ),
    events=_names(
        "sessionStart=SessionStart beforeSubmitPrompt=UserPromptSubmit preToolUse=PreToolUse "
        "postToolUse=PostToolUse postToolUseFailure=PostToolUseFailure sessionEnd=SessionEnd"
    ),
    rename=_names(
        "conversation_id=session_id parent_conversation_id=parent_id generation_id=prompt_id "
        "tool_output=tool_response error_message=error duration=duration_ms"
    ),
    mcp_name=r"(?P<server>MCP):(?P<tool>.+)",
    project_variable="CURSOR_PROJECT_DIR",
    dialect="cursor",
    times_calls=True,
    context_at=frozenset(("session_start", "after_call")),
    files={".cursor/hooks.json": "settings"},
    closed={"failClosed": True},
    after_install="Hooks of a project run only in a workspace that you trust: see Settings, Hooks.",
)
OPENCODE = Agent(
    name="opencode",
    title="OpenCode",  # 1.18.33
    tools=_tools(
        "shell: bash; read: read; write: write edit multiedit patch apply_patch; "
        "search: list glob grep codesearch lsp; fetch: webfetch; web: websearch; "
        "own: task todowrite todoread skill question invalid execute plan_enter plan_exit"
    ),
    events=_names(
        "session.start=SessionStart chat.message=UserPromptSubmit "
        "tool.execute.before=PreToolUse tool.execute.after=PostToolUse "
        "tool.error=PostToolUseFailure"
    ),
    rename=_PLUGIN_KEYS,
    mcp_name="",
    dialect="plugin",
    times_calls=True,
    notice_at=frozenset(("prompt",)),
    files={".opencode/plugin/toolmem.js": "plugins/opencode.js"},
    user_files={".config/opencode/plugin/toolmem.js": "plugins/opencode.js"},
    home_variable="XDG_CONFIG_HOME",
    after_install="Start OpenCode anew: it loads plugins when it starts.",
)
CLINE = Agent(
    name="cline",
    title="Cline",  # 3.0.65
    tools=_tools(
        "shell: run_commands execute_command; read: read_files read_file; "
        "write: apply_patch editor write_to_file replace_in_file; "
        "search: list_files search_codebase search_files list_code_definition_names; "
        "fetch: fetch_web_content web_fetch; web: web_search; "
        "own: ask_question ask_followup_question spawn_agent skills attempt_completion "
        "submit_and_exit"
    ),
    events=_names("start=SessionStart prompt=UserPromptSubmit call=PreToolUse result=PostToolUse"),
    rename={**_PLUGIN_KEYS, "subagent": "agent_id"},
    mcp_name=r"(?P<server>.+?)__(?P<tool>.+)",
    dialect="plugin",
    times_calls=True,
    files={".cline/plugins/toolmem.js": "plugins/cline.js"},
    home_variable="CLINE_DIR",
    after_install="Start Cline anew: it loads plugins when a session starts.",
)
GOOSE = Agent(
    name="goose",
    title="Goose",  # its documentation of October 2026, not run
    tools=_tools(
        "shell: developer__shell; read: developer__read_image; "
        "write: developer__write developer__edit; search: developer__tree"
    ),
    events=_names(
        "SessionStart UserPromptSubmit PreToolUse PostToolUse PostToolUseFailure SessionEnd"
    ),
    rename=_names(
        "event=hook_event_name working_dir=cwd message=prompt tool_call_id=tool_use_id "
        "tool_output=tool_response"
    ),
    mcp_name=r"(?P<server>.+?)__(?P<tool>.+)",
    dialect="goose",
    context_at=frozenset(),
    files={
        ".agents/plugins/toolmem/plugin.json": "goose_plugin",
        ".agents/plugins/toolmem/hooks/hooks.json": "goose",
    },
    closed={"on_failure": "block"},
    after_install="Start Goose anew: it looks for plugins when it starts.",
)
_ALL = (CLAUDE_CODE, CODEX, GEMINI, COPILOT, CURSOR, OPENCODE, CLINE, GOOSE)
AGENTS = {agent.name: agent for agent in _ALL}
