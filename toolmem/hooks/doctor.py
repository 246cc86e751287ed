"""Check that an installed hook works, by starting its command as the agent would.

Hooks that do nothing are the most common failure, and no agent reports it.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from toolmem.config.sections import WORKSPACE
from toolmem.errors import ConfigError
from toolmem.guard.stores import open_stores
from toolmem.hooks.agents import Agent
from toolmem.hooks.handle import guard_is_on
from toolmem.hooks.install_notes import Install, installed
from toolmem.hooks.installs import files_of, is_temporary, read_text
from toolmem.hooks.session_state import NAMESPACE, Session, SessionState
from toolmem.memory.toolmem import ToolMem
from toolmem.rules.identity import SESSION_PREFIX
from toolmem.text.display import counted

TIMEOUT = 20.0  # seconds that the hook has to answer
_VARIABLES = ("HOME", "XDG_STATE_HOME", "USERPROFILE", "SYSTEMROOT")  # that the hook is given


class Finding(Struct, frozen=True):
    """The result of one check."""

    level: Literal["ok", "note", "problem"]
    text: str


def examine(agent: Agent, project: str) -> list[Finding]:
    """Check the hooks that this user installed for all projects and for `project` ("": none).

    Each is run with a sample event. Hooks that others installed are never run.
    """
    installs = [n for n in installed() if n.agent == agent.name and n.project in (project, "")]
    if not installs:
        where = f"in {project}" if project else "for the user"
        text = f"no hook is installed {where}: toolmem hook install"
        files = files_of(agent, project, os.environ)
        if unknown := [str(path) for path in files if "toolmem" in (read_text(path) or "")]:
            text = (
                f"no hook is installed {where} that is known here: that in {', '.join(unknown)} is "
                "somebody else's, or the folder was moved since, or the state folder was lost: "
                f"toolmem hook uninstall {agent.name}, then toolmem hook install {agent.name}"
            )
        return [Finding("problem", text)]
    found: list[Finding] = []
    for install in installs:
        found += [*_check_files(install), _run(agent, install)]
        if is_temporary(install.command[0]):
            text = f"{install.command[0]} is in a folder for temporary files"
            found.append(Finding("note", text))
    if len(installs) > 1:
        found.append(Finding("note", "the hook is installed in the project and for the user"))
    if not guard_is_on(os.environ):
        found.append(Finding("note", "TOOLMEM_GUARD is off: no call is stopped"))
    stores = open_stores(project)
    found += [Finding("problem", line) for line in stores.warnings]
    sessions = stores.main.list_records(WORKSPACE, NAMESPACE, key_prefix=SESSION_PREFIX)
    calls = sum(len(record.read(Session).calls) for record in sessions)
    noted = f"{counted(len(sessions), 'session')} with {counted(calls, 'call')} noted"
    return [*found, Finding("note", f"{noted} in {stores.main.location}")]


def _check_files(install: Install) -> list[Finding]:
    found = []
    for path in map(Path, install.files):
        data = read_text(path)
        if data is None or "toolmem" not in data:
            found.append(Finding("problem", f"{path}: the hook is gone; install it again"))
        elif '"disableAllHooks": true' in data:
            found.append(Finding("problem", f"{path}: disableAllHooks is set"))
    if config := install.option("--config"):
        try:
            ToolMem(config).close()
        except ConfigError as error:
            found += [Finding("problem", problem) for problem in error.problems]
    return found or [Finding("ok", f"the hook is in {', '.join(install.files)}")]


def _run(agent: Agent, install: Install) -> Finding:
    """Send the hook an event of a new session, with few variables, and delete the session again."""
    session = f"doctor-{os.urandom(4).hex()}"
    folder = install.project or str(Path.home())
    environment = {name: os.environ[name] for name in _VARIABLES if name in os.environ}
    began = time.monotonic()
    try:
        ran = subprocess.run(
            install.command,
            input=json.dumps(sample_event(agent, session, folder)).encode(),
            capture_output=True,
            cwd=folder,
            env={**environment, "PATH": os.defpath},
            timeout=TIMEOUT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Finding("problem", f"the hook cannot be started: {error}; install it again")
    seconds = time.monotonic() - began
    store = open_stores(folder, install.option("--store")).main
    state = SessionState(store, session)
    is_recorded = bool(state.read()[0].events)
    store.delete(WORKSPACE, NAMESPACE, state.key)
    if ran.returncode or not is_recorded:
        errors = ran.stderr.decode("utf-8", "replace").strip()[-300:]
        problem = errors or "it recorded nothing; see hooks.log in the state folder"
        return Finding("problem", f"the hook does not work: {problem}")
    return Finding("ok", f"the hook answered in {seconds:.2f} s")


def sample_event(agent: Agent, session: str, folder: str) -> dict[str, Any]:
    """Return the payload that this agent sends when its user enters an empty prompt."""
    own_names = {ours: theirs for theirs, ours in agent.rename.items()}
    event = next(own for own, name in agent.events.items() if name == "UserPromptSubmit")
    payload = {
        "hook_event_name": event,
        "session_id": session,
        "cwd": folder,
        "prompt": "",
        "prompt_id": session,
        "timestamp": session,
    }
    return {own_names.get(name, name): value for name, value in payload.items()}
