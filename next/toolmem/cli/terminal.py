"""Is this command run by the user in a terminal of theirs, or by an agent?"""

from __future__ import annotations

import os
import sys

from toolmem.rules.changes import Actor

# Variables that agents set for the commands that they run.
_AGENTS = (
    "CLAUDECODE",
    "CLAUDE_CODE_CHILD_SESSION",
    "CODEX_SANDBOX",
    "CODEX_SANDBOX_NETWORK_DISABLED",
    "CODEX_THREAD_ID",
    "CODEX_CI",
    "GEMINI_CLI",
    "COPILOT_CLI",
    "CURSOR_AGENT",
    "OPENCODE",
    "CLINE_ACTIVE",
    "GOOSE_TERMINAL",
)


def user_actor() -> Actor:
    """The user, with evidence only where both streams are terminals and no agent runs this."""
    is_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    is_agent = any(os.environ.get(name) for name in _AGENTS)
    command = " ".join(sys.argv[1:])[:200]
    return Actor("user", "terminal" if is_terminal and not is_agent else "", command)
