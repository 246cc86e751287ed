"""The table of agents that hooks are installed in: their names of events and settings.

The comment beside each title is the version whose payloads were recorded.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

from toolmem.formats import tool_names
from toolmem.formats.tool_names import ToolNames

# What says whether a call failed. `flags`: fields of the payload. `recording`: what Codex records.
# `wrapping`: the last lines of Gemini CLI's output. `result_type`: Copilot's field and last line.
Outcome = Literal["flags", "recording", "wrapping", "result_type"]
EVERYWHERE = frozenset(("session_start", "subagent_start", "prompt", "before_call", "after_call"))


def _names(pairs: str) -> dict[str, str]:
    """Read pairs `agents_name=claudes_name`; one word alone is the name in both."""
    split = [pair.partition("=") for pair in pairs.split()]
    return {name: claudes or name for name, _, claudes in split}


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
    """How one agent differs from Claude Code's protocol, and where its settings are."""

    name: str
    title: str
    names: ToolNames  # of its tools, as it passes them to hooks
    events: dict[str, str] = field(default_factory=_CLAUDE_EVENTS.copy)  # its own -> Claude Code's
    rename: dict[str, str] = {}  # its payload's key -> Claude Code's
    call_ids: bool = True  # False: an event is known by its time, a call by its tool and input
    project_variable: str = ""
    dialect: str = "claude"
    asks: bool = False  # it can ask its user about a call
    times_calls: bool = False  # its payloads say how long a call took
    unnamed_events: dict[str, str] = {}  # key of a payload without a name -> its event's
    json_texts: bool = False  # a tool's input and response come as JSON in a text
    quotes_prompts: bool = False  # a prompt of its command line keeps the quotation marks
    output_key: str = ""  # the one key with the text of a response, if there is one
    outcome: Outcome = "flags"
    aborted_output: str = ""  # the output of a call that its user stopped
    rejected_output: str = ""  # begins the output of a call that its user rejected
    context_at: frozenset[str] = EVERYWHERE  # events whose answer may have context for the model
    notice_at: frozenset[str] = frozenset()  # events whose answer may have a notice for the user
    notice_in_context: frozenset[str] = frozenset()  # events whose notice the model has to pass on
    no_context_at: frozenset[str] = frozenset()  # its own names of events that take no context
    files: dict[str, str]  # path below project or home -> form; `settings`: shared with others
    user_files: dict[str, str] = {}  # below home, if these differ
    home_variable: str = ""  # environment variable in place of their first folder below home
    new_settings: str = ""  # the text that a settings file begins with
    groups_hooks: bool = True  # the settings have a list of groups of hooks for each event
    form: str = "shell"  # of a command in settings: shell, or exec (without one)
    timeout: int = 10  # in its own unit
    end_timeout: int = 0  # at a session's end; 0: the agent's default
    closed: dict[str, object] = {}  # settings that stop a call if the hook cannot run
    after_install: str = ""  # what the user has to do after the install

    @property
    def tools(self) -> dict[str, str]:
        """The class, such as `shell`, of each of the agent's own tools, by the tool's name."""
        return self.names.own


CLAUDE_CODE = Agent(
    name="claude-code",
    title="Claude Code",  # 2.1.330
    names=tool_names.CLAUDE_CODE,
    project_variable="CLAUDE_PROJECT_DIR",
    asks=True,
    times_calls=True,
    rejected_output="The user doesn't want to proceed with this tool use.",
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
    names=tool_names.CODEX,
    events=_names("SessionStart SubagentStart UserPromptSubmit PreToolUse PostToolUse SessionEnd"),
    rename=_names("turn_id=prompt_id"),
    outcome="recording",
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
    names=tool_names.COPILOT,
    rename=_names("sessionId=session_id parent_agent_id=parent_id tool_result=tool_response"),
    call_ids=False,
    project_variable="COPILOT_PROJECT_DIR",
    dialect="copilot",
    asks=True,
    unnamed_events={"agentName": "SubagentStart"},
    output_key="text_result_for_llm",
    outcome="result_type",
    files={".github/hooks/toolmem.json": "copilot"},
    user_files={".copilot/hooks/toolmem.json": "copilot"},
    home_variable="COPILOT_HOME",
    after_install="Copilot runs a repository's hooks only where you trust its folder: it asks when "
    "it starts there.",
)
GEMINI = Agent(
    name="gemini",
    title="Gemini CLI",  # 0.61.0
    names=tool_names.GEMINI,
    events=_names(
        "SessionStart BeforeAgent=UserPromptSubmit BeforeTool=PreToolUse AfterTool=PostToolUse "
        "SessionEnd"
    ),
    call_ids=False,
    project_variable="GEMINI_PROJECT_DIR",
    dialect="gemini",
    outcome="wrapping",
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
    names=tool_names.CURSOR,
    events=_names(
        "sessionStart=SessionStart beforeSubmitPrompt=UserPromptSubmit preToolUse=PreToolUse "
        "postToolUse=PostToolUse postToolUseFailure=PostToolUseFailure sessionEnd=SessionEnd"
    ),
    rename=_names(
        "conversation_id=session_id parent_conversation_id=parent_id generation_id=prompt_id "
        "tool_output=tool_response error_message=error duration=duration_ms"
    ),
    project_variable="CURSOR_PROJECT_DIR",
    dialect="cursor",
    times_calls=True,
    json_texts=True,
    context_at=frozenset(("session_start", "after_call")),
    no_context_at=frozenset(("postToolUseFailure",)),
    files={".cursor/hooks.json": "settings"},
    new_settings='{\n  "version": 1\n}\n',
    groups_hooks=False,
    closed={"failClosed": True},
    after_install="Hooks of a project run only in a workspace that you trust: see Settings, Hooks.",
)
OPENCODE = Agent(
    name="opencode",
    title="OpenCode",  # 1.18.33
    names=tool_names.OPENCODE,
    events=_names(
        "session.start=SessionStart chat.message=UserPromptSubmit "
        "tool.execute.before=PreToolUse tool.execute.after=PostToolUse "
        "tool.error=PostToolUseFailure"
    ),
    rename=_PLUGIN_KEYS,
    dialect="plugin",
    times_calls=True,
    quotes_prompts=True,
    aborted_output="Tool execution aborted",
    notice_at=frozenset(("prompt",)),
    files={".opencode/plugin/toolmem.js": "plugins/opencode.js"},
    user_files={".config/opencode/plugin/toolmem.js": "plugins/opencode.js"},
    home_variable="XDG_CONFIG_HOME",
    after_install="Start OpenCode anew: it loads plugins when it starts.",
)
CLINE = Agent(
    name="cline",
    title="Cline",  # 3.0.65
    names=tool_names.CLINE,
    events=_names("start=SessionStart prompt=UserPromptSubmit call=PreToolUse result=PostToolUse"),
    rename={**_PLUGIN_KEYS, "subagent": "agent_id"},
    dialect="plugin",
    times_calls=True,
    notice_in_context=frozenset(("prompt",)),  # it shows its user none
    files={".cline/plugins/toolmem.js": "plugins/cline.js"},
    home_variable="CLINE_DIR",
    after_install="Start Cline anew: it loads plugins when a session starts.",
)
GOOSE = Agent(
    name="goose",
    title="Goose",  # its documentation of October 2026, not run
    names=tool_names.GOOSE,
    events=_names(
        "SessionStart UserPromptSubmit PreToolUse PostToolUse PostToolUseFailure SessionEnd"
    ),
    rename=_names(
        "event=hook_event_name working_dir=cwd message=prompt tool_call_id=tool_use_id "
        "tool_output=tool_response"
    ),
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
