"""Plan, show, write and remove the hooks in an agent's settings.

Every other byte of a settings file stays. `install_notes` remembers what was written: uninstalling
cuts exactly that out of an unchanged file, and toolmem's entries out of a changed one.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from difflib import unified_diff
from hashlib import blake2b
from pathlib import Path
from typing import Any

from msgspec import Struct

from toolmem.errors import RequestError, StoreUnavailable
from toolmem.files import replace_file
from toolmem.hooks.agents import Agent
from toolmem.hooks.install_notes import INSTALLS, FileNote, Install, installed, write_notes
from toolmem.hooks.json_text import with_entries, without_entries, without_spans
from toolmem.text.patterns import late_pattern

MAX_BYTES = 10_000_000  # of a settings file
_OURS = late_pattern(r"-m\W{1,4}toolmem\.hooks\W")
# Parts of the paths of temporary environments, made by `uvx`, `uv run` and `pipx run`.
_TEMPORARY = ("/uv/archive-v", "/uv/builds-v", "/uv/environments-v", "/.cache/uv/", "/pipx/.cache/")


class FileChange(Struct, frozen=True):
    """A planned change of a file. None: the file does not exist."""

    path: Path
    before: str | None
    after: str | None
    spans: list[tuple[int, int]] = []  # (start, end) of inserted characters

    def difference(self) -> str:
        """The change as a unified diff."""
        states = (self.before, self.after)
        old, new = ((each or "").splitlines() for each in states)
        old_name, new_name = (os.devnull if each is None else str(self.path) for each in states)
        return "\n".join(unified_diff(old, new, old_name, new_name, lineterm=""))


def hook_command(
    agent: Agent, project: str, store: str = "", on_error: str = "open", config: str = ""
) -> list[str]:
    """The command that the agent starts for each event. Raises RequestError."""
    options = {"--project": project, "--store": store, "--config": config}
    options["--on-error"] = on_error if on_error != "open" else ""
    words = [part for name, value in options.items() if value for part in (name, value)]
    return [*interpreter(), "-m", "toolmem.hooks", agent.name, *words]


def interpreter() -> list[str]:
    """The words to start toolmem's Python. Raises RequestError if its environment is temporary."""
    python = sys.executable
    if any(part in python for part in _TEMPORARY):
        problem = "belongs to an environment that is thrown away; install toolmem where it stays"
        raise RequestError(f"interpreter: {python} {problem}", "interpreter")
    probe = [python, "-P", "-E", "-c", "import toolmem.hooks"]
    is_found = subprocess.run(probe, capture_output=True, cwd="/", check=False).returncode == 0
    # Without -E where only PYTHONPATH finds toolmem.
    return [python, "-P", "-E"] if is_found else [python, "-P"]


def is_temporary(path: str) -> bool:
    """Whether a file is in a folder for temporary files."""
    real = os.path.realpath(path)
    folders = {os.path.realpath(tempfile.gettempdir()), "/tmp", "/var/tmp"}
    return any(real.startswith(f"{folder}{os.sep}") for folder in folders)


def plan_install(
    agent: Agent, project: str, command: list[str], environment: Mapping[str, str]
) -> list[FileChange]:
    """Plan to add the hooks. Raises RequestError if settings have them or a file is in the way."""
    changes = []
    for path, form in files_of(agent, project, environment).items():
        before = read_text(path)
        if form == "settings":
            changes.append(_with_hooks(agent, path, before, command))
            continue
        text = _own_text(agent, form, command)
        if before not in (None, text):
            problem = "is there, and is not this toolmem's: move it away first"
            raise RequestError(f"settings: {path} {problem}", "settings")
        changes.append(FileChange(path, before, text))
    return changes


def _with_hooks(agent: Agent, path: Path, before: str | None, command: list[str]) -> FileChange:
    base = agent.new_settings if before is None else before
    if _OURS.search(_words(base)):
        again = f"to install it again, first: toolmem hook uninstall {agent.name}"
        raise RequestError(f"settings: {path} holds toolmem's hook already; {again}", "settings")
    try:
        text, spans = with_entries(base, _entries(agent, command))
    except ValueError as error:
        raise RequestError(f"settings: {path}: {error}. Nothing was changed", "settings") from None
    return FileChange(path, before, text, [] if before is None else spans)


def plan_uninstall(
    agent: Agent, project: str, environment: Mapping[str, str]
) -> tuple[list[FileChange], list[Path]]:
    """Plan to remove the hooks. Returns changes, and toolmem's files that a user edited."""
    own = [n for n in installed() if (n.agent, n.project) == (agent.name, project)]
    notes = own[0].files if own else {}
    changes: list[FileChange] = []
    changed: list[Path] = []
    for path, form in files_of(agent, project, environment).items():
        before = read_text(path)
        known = notes.get(str(path))
        if before is None:
            continue
        if known is not None and known.digest == _digest(before):
            after = without_spans(before, known.spans) if known.spans else None
            changes.append(FileChange(path, before, after))
        elif form == "settings":
            try:
                left = without_entries(before, is_ours)
            except ValueError as error:
                raise RequestError(f"settings: {path}: {error}", "settings") from None
            if left != before:
                changes.append(FileChange(path, before, left))
        else:
            changed.append(path)
    return changes, changed


def is_ours(entry: Any) -> bool:
    """Whether a hook of a settings file starts toolmem."""
    return isinstance(entry, dict) and bool(_OURS.search(_words(json.dumps(entry))))


def _words(text: str) -> str:
    return re.sub(r'["\s,\[\]]+', " ", text)


def _entries(agent: Agent, command: list[str]) -> dict[str, Any]:
    """Make the entry that an install adds to the settings, for each event of the agent."""
    entries: dict[str, Any] = {}
    for event, claude_event in agent.events.items():
        hook: dict[str, Any] = {"command": shlex.join(command)}
        if agent.form == "exec":
            hook = {"command": command[0], "args": command[1:]}
        timeout = agent.timeout if claude_event != "SessionEnd" else agent.end_timeout
        hook |= {"timeout": timeout} if timeout else {}
        hook |= agent.closed if claude_event == "PreToolUse" and "closed" in command else {}
        group = {"hooks": [{"type": "command", **hook}]}
        entries[event] = group if agent.groups_hooks else hook
    return entries


def _own_text(agent: Agent, form: str, command: list[str]) -> str:
    if form.endswith(".js"):
        text = Path(__file__).with_name("plugins").joinpath(Path(form).name).read_text("utf-8")
        return text.replace('["@COMMAND@"]', json.dumps(command, ensure_ascii=False))
    value: dict[str, Any] = {"name": "toolmem", "version": "1.0.0"}
    if form == "goose":
        value = {"hooks": {name: [entry] for name, entry in _entries(agent, command).items()}}
    elif form == "copilot":
        hook = {"type": "command", "exec": command[0], "args": command[1:], "timeoutSec": 10}
        value = {"version": 1, "hooks": {event: [hook] for event in agent.events}}
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def files_of(agent: Agent, project: str, environment: Mapping[str, str]) -> dict[Path, str]:
    """The hook files of a project ("": in the user's home), with their forms (see `Agent`)."""
    files = agent.files if project else agent.user_files or agent.files
    moved = "" if project else environment.get(agent.home_variable, "")
    if moved:
        return {Path(moved, *Path(name).parts[1:]): form for name, form in files.items()}
    return {Path(project or Path.home(), name): form for name, form in files.items()}


def apply_install(
    agent: Agent, project: str, command: list[str], changes: list[FileChange]
) -> None:
    """Write what was planned, and note how to undo it. Raises RequestError, StoreUnavailable."""
    files: dict[str, FileNote] = {}
    for change in changes:
        folders = [str(each) for each in change.path.parents if not each.exists()]
        assert change.after is not None
        files[str(change.path)] = FileNote(_digest(change.after), change.spans, folders)
    others = [n for n in installed() if (n.agent, n.project) != (agent.name, project)]
    # The note first: if the process is killed then, its digest fits no file and nothing is cut.
    write_notes(INSTALLS, [*others, Install(agent.name, project, command, files)])
    for change in changes:
        write_change(change)


def apply_uninstall(agent: Agent, project: str, changes: Iterable[FileChange]) -> None:
    """Write the planned changes. Remove the record of this install, and its empty folders."""
    for change in changes:
        write_change(change)
    others: list[Install] = []
    folders: set[str] = set()
    for note in installed():
        if (note.agent, note.project) == (agent.name, project):
            folders.update(folder for file in note.files.values() for folder in file.folders)
        else:
            others.append(note)
    for folder in sorted(folders, key=len, reverse=True):
        with suppress(OSError):
            os.rmdir(folder)
    write_notes(INSTALLS, others)


def write_change(change: FileChange) -> None:
    """Write a change. Raises RequestError if its file has changed since, and StoreUnavailable."""
    target = Path(os.path.realpath(change.path))
    if read_text(target) != change.before:
        raise RequestError(f"settings: {change.path} was changed meanwhile: try again", "settings")
    try:
        if change.after is None:
            target.unlink(missing_ok=True)
        elif change.after != change.before:
            target.parent.mkdir(parents=True, exist_ok=True)
            replace_file(target, change.after.encode())
    except OSError as error:
        raise StoreUnavailable(f"cannot write {change.path}: {error.strerror}") from error


def read_text(path: Path) -> str | None:
    """Read the text of a file; None if it does not exist. Raises RequestError."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_BYTES:
            raise RequestError(f"settings: {path} is no file of at most {MAX_BYTES:,} bytes")
        return path.read_bytes().decode()  # every line end stays
    except (FileNotFoundError, NotADirectoryError):
        return None
    except UnicodeDecodeError:
        raise RequestError(f"settings: {path} is not UTF-8 text; save it as UTF-8") from None
    except OSError as error:
        raise RequestError(f"settings: cannot read {path}: {error.strerror}") from error


def _digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=16).hexdigest()
