"""Whether an installed hook works: its line is started as the agent would start it.

Hooks that do nothing are the commonest failure in the field, and no agent tells of it.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from toolmem.guard.stores import WORKSPACE, open_stores
from toolmem.hooks.agents import Agent
from toolmem.hooks.installs import is_temporary, read_text
from toolmem.hooks.ledger import NAMESPACE, Ledger, Session
from toolmem.hooks.state import Install, installed

SECONDS = 20.0  # a line has to answer within
_KEPT = ("HOME", "XDG_STATE_HOME", "USERPROFILE", "SYSTEMROOT")  # of the environment


class Finding(Struct, frozen=True):
    """One thing that was looked at."""

    level: Literal["ok", "note", "problem"]
    text: str


def examine(agent: Agent, project: str) -> list[Finding]:
    """What is installed for this agent, here or for the user, and whether it answers.

    A line in a folder's settings that this user did not install is named and not started.
    """
    known = [n for n in installed() if n.agent == agent.name and n.project in (project, "")]
    if not known:
        where = f"in {project}" if project else "for the user"
        return [Finding("problem", f"no hook is installed {where}: toolmem hook install")]
    found: list[Finding] = []
    for install in known:
        found += [*_files(install), _answer(agent, install)]
        if is_temporary(install.command[0]):
            told = f"{install.command[0]} lies in a folder for temporary files"
            found.append(Finding("note", told))
    if len(known) > 1:
        found.append(Finding("note", "the hook is installed in the project and for the user"))
    if os.environ.get("TOOLMEM_GUARD", "").lower() in ("off", "false", "no", "0"):
        found.append(Finding("note", "TOOLMEM_GUARD is off: no call is stopped"))
    stores = open_stores(project)
    if stores.untrusted:
        found.append(Finding("problem", stores.untrusted))
    sessions = stores.main.list_records(WORKSPACE, NAMESPACE, key_prefix="session/")
    calls = sum(len(record.read(Session).calls) for record in sessions)
    told = f"{len(sessions)} session(s) with {calls} call(s) are noted in {stores.main.location}"
    return [*found, Finding("note", told)]


def _files(install: Install) -> list[Finding]:
    found = []
    for path in map(Path, install.files):
        data = read_text(path)
        if data is None or "toolmem" not in data:
            found.append(Finding("problem", f"{path}: the hook is gone; install it again"))
        elif '"disableAllHooks": true' in data:
            found.append(Finding("problem", f"{path}: disableAllHooks is set"))
    return found or [Finding("ok", f"the hook stands in {', '.join(install.files)}")]


def _answer(agent: Agent, install: Install) -> Finding:
    """Hand it an event of a session of its own, in an empty environment; its record is removed."""
    session = f"doctor-{os.urandom(4).hex()}"
    folder = install.project or str(Path.home())
    environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
    began = time.monotonic()
    try:
        ran = subprocess.run(
            install.command,
            input=json.dumps(sample_event(agent, session, folder)).encode(),
            capture_output=True,
            cwd=folder,
            env={**environment, "PATH": os.defpath},
            timeout=SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Finding("problem", f"the hook cannot be started: {error}; install it again")
    seconds = time.monotonic() - began
    words = install.command
    named = words[words.index("--store") + 1] if "--store" in words else ""
    store = open_stores(folder, named).main
    kept = Ledger(store, session)
    is_recorded = bool(kept.read()[0].calls)
    store.delete(WORKSPACE, NAMESPACE, kept.key)
    if ran.returncode or not is_recorded:
        told = ran.stderr.decode("utf-8", "replace").strip()[-300:]
        told = told or "it recorded nothing; see hooks.log in the state folder"
        return Finding("problem", f"the hook does not work: {told}")
    return Finding("ok", f"the hook answered in {seconds:.2f} s")


def sample_event(agent: Agent, session: str, folder: str) -> dict[str, Any]:
    """A payload as this agent writes it before a call that reads a file."""
    tool = next(name for name, kind in agent.tools.items() if kind in ("read", "shell"))
    back = {theirs: ours for ours, theirs in agent.rename.items()}
    event = next(own for own, name in agent.events.items() if name == "PreToolUse")
    told = {
        "hook_event_name": event,
        "session_id": session,
        "cwd": folder,
        "tool_name": tool,
        "tool_input": {"path": "toolmem-doctor", "command": "true"},
        "tool_use_id": f"call_{session}",
    }
    return {back.get(name, name): value for name, value in told.items()}
