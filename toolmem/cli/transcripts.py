"""Find the sessions of coding agents in the user's home, and the project that each belongs to.

A session belongs to the project around the folder that its agent was started in. Only that project
learns from its calls, because they may hold data that no other project should see.
"""

from __future__ import annotations

import os
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path

import click
import msgspec
from msgspec import Struct

from toolmem.cli.console import confirm
from toolmem.errors import RequestError
from toolmem.formats.files import unpacked
from toolmem.formats.sources import find_files, opencode_folders
from toolmem.guard.self_protection import TRANSCRIPTS
from toolmem.guard.stores import project_root, store_path
from toolmem.hooks.agents import AGENTS
from toolmem.hooks.install_notes import installed
from toolmem.text.display import counted, plain

HEADS = (1 << 16, 1 << 23)  # bytes of a session that are searched for its folder
MAX_PATH = 4_096  # characters
MAX_LISTED = 20  # projects
_PATTERNS = {  # of session files below an agent's folder
    "Claude Code": "*.jsonl",
    "Codex": "rollout-*.jsonl",
    "Gemini CLI": "chats/session-*.json*",
    "OpenCode": "opencode.db",  # beside folders that hold many other files
}
# Gemini CLI names the folder by a digest. Its path is in the first message to the model.
_FOLDER_LINE = re.compile(rb"\\n {1,8}- (/[^\\\"]{1,4096})\\n")


def agent_folders(home: Path, variables: Mapping[str, str] | None = None) -> dict[str, Path]:
    """Return the folder of each agent's sessions. `variables` None: those of the environment."""
    environment = os.environ if variables is None else variables
    return {
        agent: Path(environment.get(variable) or home / folder) / part
        for agent, (variable, folder, part) in TRANSCRIPTS.items()
    }


class Session(Struct, frozen=True):
    """A session file of an agent. A database of OpenCode is one session for each folder in it."""

    agent: str
    path: Path
    size: int  # bytes
    folder: str = ""  # that the agent was started in; "": unknown
    place: str = ""  # the name of the agent's subfolder that holds the file

    @property
    def project(self) -> str:
        """The root of the project around the folder; "" if that is unknown."""
        return _project_around(self.folder) if self.folder else ""

    @property
    def where(self) -> str:
        """The project; if it is unknown, the agent's subfolder."""
        return self.project or self.place


_project_around = cache(project_root)


def find_sessions(
    home: Path,
    known: Sequence[str] = (),
    variables: Mapping[str, str] | None = None,
    unreadable: Callable[[OSError], None] | None = None,
) -> list[Session]:
    """Find the sessions of all coding agents below `home`. Symbolic links are not followed.

    `known`: folders to try where a session has only a digest of its folder, as of Gemini CLI.
    `unreadable` is called for each folder that cannot be read.
    """
    found: list[Session] = []
    for agent, root in agent_folders(home, variables).items():
        pattern = _PATTERNS[agent]
        place = root / pattern if agent == "OpenCode" else root
        for path in find_files([place], unreadable) if os.path.exists(place) else ():
            if path.match(pattern) and _size(path) is not None:
                found += _sessions_in(agent, path, path.relative_to(root).parts[0], known)
    return found


def _sessions_in(agent: str, path: Path, place: str, known: Sequence[str]) -> Iterator[Session]:
    if folders := opencode_folders(path):
        yield from (Session("OpenCode", path, size, folder, place) for folder, size in folders)
    elif (size := _size(path)) is not None:
        yield Session(agent, path, size, _folder_of(path, known), place)


def _folder_of(path: Path, known: Sequence[str]) -> str:
    """The folder that a transcript was started in; "" if it names none."""
    for length in HEADS:
        start = b""
        with suppress(OSError, EOFError, zlib.error), unpacked(path) as file:
            start = file.read(length)
        if folder := _started_in(start, known):
            return folder
        if len(start) < length:
            break
    return ""


def _started_in(start: bytes, known: Sequence[str]) -> str:
    """The folder that the first lines of a transcript name; "" if they name none."""
    for text in (start, *start.split(b"\n")):
        line = None
        with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            line = msgspec.json.decode(text)
        if not isinstance(line, dict):
            continue
        payload = line.get("payload")
        for part in (line, payload if isinstance(payload, dict) else {}):
            folder = part.get("cwd")
            if isinstance(folder, str) and _is_absolute_path(folder):
                return folder
        if digest := line.get("projectHash"):
            named = [each.decode("utf-8", "replace") for each in _FOLDER_LINE.findall(start)]
            return next((each for each in (*known, *named) if _digest(each) == digest), "")
    return ""


def _is_absolute_path(text: str) -> bool:
    return os.path.isabs(text) and len(text) <= MAX_PATH and text.isprintable()


def _digest(folder: str) -> str:
    """The digest by which Gemini CLI names a project's folder."""
    return sha256(folder.encode("utf-8", "surrogatepass")).hexdigest()


def _size(path: Path) -> int | None:
    """The size of a file in bytes; None: there is no file to read."""
    try:
        return None if path.is_symlink() or not path.is_file() else path.stat().st_size
    except OSError:  # removed meanwhile, or in a folder that may not be read
        return None


def without_hook(title: str, project: str) -> str:
    """Return the name of the agent with this title; "" if the project or the user has its hook."""
    agent = next(each for each in AGENTS.values() if each.title == title)
    projects = {each.project for each in installed() if each.agent == agent.name}
    return "" if projects & {project, ""} else agent.name


def in_words(sessions: Iterable[Session]) -> str:
    """Count sessions in words: `12 of Claude Code, 3 of Codex (4.1 MB)`."""
    found = list(sessions)
    counts = Counter(each.agent for each in found)
    text = ", ".join(f"{count:,} of {agent}" for agent, count in counts.items())
    return f"{text} ({_size_in_words(sum(each.size for each in found))})"


def _size_in_words(size: int) -> str:
    """A size in bytes as kB or MB."""
    return f"{size / 1e6:,.1f} MB" if size >= 1e6 else f"{size / 1e3:,.1f} kB"


# ---------------------------------------------------------------- what is imported


class Chosen(Struct):
    """What an import reads, and what it leaves out."""

    project: str  # its root
    from_agents: bool = False
    paths: list[Path] = []  # that the user named, and that are read whole
    searched: list[Path] = []  # files that were found in folders
    folders: dict[Path, list[str]] = {}  # of each database of OpenCode, those of the project
    outside: list[Path] = []  # named folders that are not in the current one
    own: list[Session] = []  # of the project
    others: list[Session] = []  # of other projects, which are not read
    sources: list[str] = []  # what is read, in words


def choose(
    paths: Sequence[Path] = (),
    *,
    from_agents: bool = False,
    project: str = "",
    into_shared: bool = False,
) -> Chosen:
    """Choose what to read: the named paths, and one project's sessions in the agents' own folders.

    `project`: its folder, or the name of one that has sessions; "": the current one.
    `into_shared`: read all sessions in the named paths, of whatever project. Raises RequestError.
    """
    here = os.getcwd()
    if project and not from_agents:
        raise RequestError("--project: it needs --from-agents", "project")
    known = [here, project_root(here), os.path.realpath(project)]
    sessions: list[Session] = []
    unreadable: list[Path] = []  # files and folders; they are searched, to report why
    if from_agents:
        sessions = find_sessions(
            Path.home(), known, unreadable=lambda error: unreadable.append(Path(error.filename))
        )
        unreadable += [each.path for each in sessions if not _is_readable(each.path)]
    root = _project_named(project, sessions) if project else project_root(here)
    chosen = of_project(root, [each for each in sessions if each.project == root])
    chosen.from_agents = from_agents
    chosen.searched += unreadable
    others = (each for each in sessions if each.project != root)
    chosen.others = [each for each in others if each.path not in unreadable]
    chosen.sources = [f"sessions of {root}"] if from_agents else []
    chosen.sources += map(str, paths)
    for path in paths:
        if path.is_dir() and not path.resolve().is_relative_to(here):
            chosen.outside.append(path)
        if into_shared:
            chosen.paths.append(path)
        else:
            _choose_in(path, chosen, known)
    if not (chosen.paths or chosen.searched):
        raise _no_session(root, chosen.others)
    return chosen


def of_project(root: str, sessions: Sequence[Session]) -> Chosen:
    """Choose these sessions, all of one project."""
    chosen = Chosen(root, from_agents=True, own=list(sessions))
    chosen.searched = list(dict.fromkeys(each.path for each in sessions))
    for each in sessions:
        if each.agent == "OpenCode":
            chosen.folders.setdefault(each.path, []).append(each.folder)
    return chosen


def _choose_in(path: Path, chosen: Chosen, known: Sequence[str]) -> None:
    """Choose a path. Of a folder or database of sessions, choose only those of the project."""
    unreadable: list[str] = []  # folders
    files = find_files([path], lambda error: unreadable.append(error.filename))
    homes = _agent_homes()
    kept = list[Path]()
    has_sessions = False
    for file in files:
        agent = _agent_around(file, homes)
        is_one_of_many = path.is_dir() or opencode_folders(file)
        if not (agent and is_one_of_many and _is_readable(file)):
            kept.append(file)
            continue
        has_sessions = True
        sessions = list(_sessions_in(agent, file, "", known))
        own = [each for each in sessions if each.project == chosen.project]
        chosen.own += own
        chosen.others += [each for each in sessions if each not in own]
        kept += [file] if own else []
        if own and own[0].agent == "OpenCode":
            chosen.folders[file] = [each.folder for each in own]
    if has_sessions:
        chosen.searched += [*kept, *map(Path, unreadable)]
    else:
        chosen.paths.append(path)


def _is_readable(path: Path) -> bool:
    return os.access(path, os.R_OK)


def _agent_around(path: Path, homes: Sequence[tuple[str, Path]]) -> str:
    """The agent that a file belongs to, by its folder; "" for none."""
    real = path.resolve()
    return next((agent for agent, root in homes if real.is_relative_to(root)), "")


def _agent_homes() -> list[tuple[str, Path]]:
    """Each agent's folder in the home, and the one that a variable names."""
    usual = agent_folders(Path.home(), {}).items()
    wider = [(agent, root if agent == "OpenCode" else root.parent) for agent, root in usual]
    folders = [*wider, *agent_folders(Path.home()).items()]
    return [(agent, folder.resolve()) for agent, folder in folders]


def _project_named(name: str, sessions: Iterable[Session]) -> str:
    """The root of a project, by its folder or by its name in a session. Raises RequestError."""
    if os.path.isdir(name):
        return project_root(name)
    known = {each.where for each in sessions}
    found = sorted(each for each in known if name in (each, os.path.basename(each)))
    if len(found) == 1 and os.path.isdir(found[0]):
        return found[0]
    if len(found) == 1:
        problem = f"{plain(found[0], 200)} is gone, and with it the place of its store"
        raise RequestError(f"--project: {problem}", "project")
    which = f"it may be {', '.join(found)}" if found else "there is no such folder"
    raise RequestError(f"--project: {plain(name, 200)}: {which}; name a folder", "project")


def _no_session(root: str, others: Sequence[Session]) -> RequestError:
    """The error that a project has no session, after the sessions of others are printed."""
    if not others:
        return RequestError("no session of a coding agent was found", "paths")
    _print_others(others)
    problem = (
        f"no session of {root} was found, only of other projects; to learn from those of one "
        "in its own store: --from-agents --project FOLDER"
    )
    return RequestError(problem, "paths")


def _print_others(others: Sequence[Session]) -> None:
    """Print the sessions of other projects, the projects with most data first."""
    click.echo("left out, of other projects (--from-agents --project FOLDER):", err=True)
    by_project: dict[str, list[Session]] = {}
    for each in others:
        by_project.setdefault(each.where, []).append(each)
    ordered = sorted(by_project.items(), key=lambda item: -sum(each.size for each in item[1]))
    for where, sessions in ordered[:MAX_LISTED]:
        click.echo(f"  {plain(where or 'not known', 200)}  {in_words(sessions)}", err=True)
    if len(ordered) > MAX_LISTED:
        click.echo(f"  and {counted(len(ordered) - MAX_LISTED, 'more project')}", err=True)


def require_own_store(location: str, chosen: Chosen, into_shared: bool) -> None:
    """Raises RequestError if others may use the store, unless `into_shared`."""
    if into_shared:
        return
    own = store_path(chosen.project)
    is_own = os.path.realpath(location) == os.path.realpath(own)
    if "://" in location:
        problem = f"whoever uses {location} would see what is learnt"
    elif chosen.own and chosen.searched and not is_own:
        problem = f"{location} is not the store of {chosen.project} ({own}), and others may use it"
    else:
        return
    raise RequestError(f"{problem}; to put it there nevertheless: --into-shared", "into_shared")


def confirm_chosen(chosen: Chosen, location: str, yes: bool) -> None:
    """Print what would be read, and ask. Raises Abort, or RequestError if nobody can be asked."""
    if chosen.from_agents:
        click.echo(f"sessions of {plain(chosen.project)}: {in_words(chosen.own)}", err=True)
    if chosen.others:
        _print_others(chosen.others)
    for folder in chosen.outside:
        files = find_files([folder])
        size = _size_in_words(sum(_size(file) or 0 for file in files))
        click.echo(f"{plain(str(folder))}: {counted(len(files), 'file')} ({size})", err=True)
    if chosen.from_agents or chosen.outside:
        confirm(f"Learn from them? Calls are kept in {location}", yes)
