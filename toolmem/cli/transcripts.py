"""Find the sessions of coding agents in their user's home, and the project that each belongs to.

A session belongs to the project around the folder that its agent was started in. Its calls are
learnt in that project alone: they may hold what was read for somebody else.
"""

from __future__ import annotations

import os
import re
import zlib
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

HEADS = (1 << 16, 1 << 23)  # bytes of a session that tell where it was started; seldom more
MAX_PATH = 4_096  # characters
MAX_LISTED = 20  # projects
_PATTERNS = {  # of files below an agent's folder
    "Claude Code": "*.jsonl",
    "Codex": "rollout-*.jsonl",
    "Gemini CLI": "chats/session-*.json*",
    "OpenCode": "opencode.db",  # beside folders that hold many other files
}
# Gemini CLI writes a digest of the folder, and tells the model its path in the first message.
_WORKSPACE = re.compile(rb"\\n {1,8}- (/[^\\\"]{1,4096})\\n")


def agent_folders(home: Path, variables: Mapping[str, str] | None = None) -> dict[str, Path]:
    """Where each agent keeps its sessions."""
    given = os.environ if variables is None else variables
    return {
        agent: Path(given.get(variable) or home / folder) / part
        for agent, (variable, folder, part) in TRANSCRIPTS.items()
    }


class Session(Struct, frozen=True):
    """One file of one agent; a database of OpenCode is one for each folder."""

    agent: str
    path: Path
    size: int  # bytes
    folder: str = ""  # that the agent was started in; "": not known
    place: str = ""  # where it lies, if the folder is not known

    @property
    def project(self) -> str:
        return _project_around(self.folder) if self.folder else ""

    @property
    def where(self) -> str:
        """The project, or what there is in the place of its name."""
        return self.project or self.place


@cache
def _project_around(folder: str) -> str:
    return project_root(folder)


def find_sessions(
    home: Path,
    known: Sequence[str] = (),
    variables: Mapping[str, str] | None = None,
    closed: Callable[[OSError], None] | None = None,
) -> list[Session]:
    """Every session of every agent. Symbolic links are not followed.

    `known`: folders by which a session is recognized that has a digest of its folder alone.
    `closed` is told of a folder that cannot be entered.
    """
    found: list[Session] = []
    for agent, root in agent_folders(home, variables).items():
        pattern = _PATTERNS[agent]
        whole = root / pattern if agent == "OpenCode" else root
        for path in find_files([whole], closed) if os.path.exists(whole) else ():
            if path.match(pattern) and _size(path) is not None:
                place = str(path.relative_to(root).parts[0])
                found += _sessions_in(agent, path, place, known)
    return found


def _sessions_in(agent: str, path: Path, place: str, known: Sequence[str]) -> Iterator[Session]:
    if folders := opencode_folders(path):
        yield from (Session("OpenCode", path, size, folder, place) for folder, size in folders)
    elif (size := _size(path)) is not None:
        yield Session(agent, path, size, _folder_of(path, known), place)


def _folder_of(path: Path, known: Sequence[str]) -> str:
    """The folder that a transcript was started in; "" where it names none."""
    for head in HEADS:
        start = b""
        with suppress(OSError, EOFError, zlib.error), unpacked(path) as file:
            start = file.read(head)
        if folder := _started_in(start, known):
            return folder
        if len(start) < head:
            break
    return ""


def _started_in(start: bytes, known: Sequence[str]) -> str:
    """The folder that the first lines of a transcript name; "" where they name none."""
    for text in (start, *start.split(b"\n")):
        line = None
        with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            line = msgspec.json.decode(text)
        if not isinstance(line, dict):
            continue
        payload = line.get("payload")
        for part in (line, payload if isinstance(payload, dict) else {}):
            folder = part.get("cwd")
            if isinstance(folder, str) and os.path.isabs(folder) and _is_path(folder):
                return folder
        if digest := line.get("projectHash"):
            told = [each.decode("utf-8", "replace") for each in _WORKSPACE.findall(start)]
            return next((each for each in (*known, *told) if _digest(each) == digest), "")
    return ""


def _is_path(text: str) -> bool:
    return len(text) <= MAX_PATH and text.isprintable()


def _digest(folder: str) -> str:
    """As Gemini CLI names a project."""
    return sha256(folder.encode("utf-8", "surrogatepass")).hexdigest()


def _size(path: Path) -> int | None:
    """The size of a file; None: there is no file to read."""
    try:
        return None if path.is_symlink() or not path.is_file() else path.stat().st_size
    except OSError:  # removed meanwhile, or in a folder that may not be read
        return None


def without_hook(title: str, project: str) -> str:
    """The name of an agent whose hook is not installed in a project; "" where it is."""
    agent = next(each for each in AGENTS.values() if each.title == title)
    places = {each.project for each in installed() if each.agent == agent.name}
    return "" if places & {project, ""} else agent.name


def in_words(sessions: Iterable[Session]) -> str:
    """`12 of Claude Code, 3 of Codex (4.1 MB)`."""
    sizes: dict[str, list[int]] = {}
    for each in sessions:
        sizes.setdefault(each.agent, []).append(each.size)
    counts = ", ".join(f"{len(some):,} of {agent}" for agent, some in sizes.items())
    return f"{counts} ({size_in_words(sum(map(sum, sizes.values())))})"


def size_in_words(size: int) -> str:
    """Bytes as kB or MB."""
    return f"{size / 1e6:,.1f} MB" if size >= 1e6 else f"{size / 1e3:,.1f} kB"


# ---------------------------------------------------------------- what is imported


class Chosen(Struct):
    """What an import reads."""

    project: str  # its root
    from_agents: bool = False
    paths: list[Path] = []  # as they were named
    searched: list[Path] = []  # files that nobody named
    folders: dict[Path, list[str]] = {}  # of a database of OpenCode: those of the project
    outside: list[Path] = []  # of the named folders: those that are not in the current one
    own: list[Session] = []  # of the project
    others: list[Session] = []  # of other projects, left out
    sources: list[str] = []  # what is read, in words


def choose(
    paths: Sequence[Path] = (),
    *,
    from_agents: bool = False,
    project: str = "",
    into_shared: bool = False,
) -> Chosen:
    """Choose what to read: what was named, and of the agents' own folders one project's sessions.

    `project`: its folder, or the name of one that has sessions; "": the current one.
    `into_shared`: everything that lies in the named folders. Raises RequestError.
    """
    here = os.getcwd()
    if project and not from_agents:
        raise RequestError("--project: it needs --from-agents", "project")
    known = [here, project_root(here), os.path.realpath(project)]
    closed: list[Path] = []  # folders and files that cannot be read: reading them says why
    if from_agents:
        sessions = find_sessions(
            Path.home(), known, closed=lambda e: closed.append(Path(e.filename))
        )
    else:
        sessions = []
    root = _project_named(project, sessions) if project else project_root(here)
    chosen = of_project(root, [each for each in sessions if each.project == root])
    chosen.from_agents = from_agents
    chosen.sources = [*(f"sessions of {root}" for _ in range(from_agents)), *map(str, paths)]
    if from_agents:
        closed += [each.path for each in sessions if not _is_open(each.path)]
        chosen.searched += closed
        others = (each for each in sessions if each.project != root and each.path not in closed)
        chosen.others = list(others)
    for path in paths:
        if path.is_dir() and not path.resolve().is_relative_to(here):
            chosen.outside.append(path)
        if into_shared:
            chosen.paths.append(path)
        else:
            _choose_in(path, chosen, known)
    if not (chosen.paths or chosen.searched):
        raise RequestError(_nothing_of(root, chosen.others), "paths")
    return chosen


def of_project(root: str, sessions: Sequence[Session]) -> Chosen:
    """These sessions, all of one project."""
    chosen = Chosen(root, from_agents=True, own=list(sessions))
    chosen.searched = list(dict.fromkeys(each.path for each in sessions))
    for each in sessions:
        if each.agent == "OpenCode":
            chosen.folders.setdefault(each.path, []).append(each.folder)
    return chosen


def _choose_in(path: Path, chosen: Chosen, known: Sequence[str]) -> None:
    """A named session is read, of whatever project; of a folder or database only the project's."""
    closed: list[str] = []  # folders
    files = find_files([path], lambda error: closed.append(error.filename))
    homes = _agent_homes()
    kept, is_plain = list[Path](), True
    for file in files:
        agent = _agent_around(file, homes)
        is_one_of_many = path.is_dir() or opencode_folders(file)
        if not (agent and is_one_of_many and _is_open(file)):
            kept.append(file)
            continue
        is_plain, sessions = False, list(_sessions_in(agent, file, "", known))
        own = [each for each in sessions if each.project == chosen.project]
        chosen.own += own
        chosen.others += [each for each in sessions if each not in own]
        kept += [file] if own else []
        if own and own[0].agent == "OpenCode":
            chosen.folders[file] = [each.folder for each in own]
    if is_plain:
        chosen.paths.append(path)
    else:
        chosen.searched += [*kept, *map(Path, closed)]


def _is_open(path: Path) -> bool:
    return os.access(path, os.R_OK)


def _agent_around(path: Path, homes: Sequence[tuple[str, Path]]) -> str:
    """The agent in whose own folder a file lies; "" for none."""
    real = path.resolve()
    return next((agent for agent, root in homes if real.is_relative_to(root)), "")


def _agent_homes() -> list[tuple[str, Path]]:
    """The folders that agents have in the home, and those that variables name."""
    usual = agent_folders(Path.home(), {}).items()
    wider = [(each, root if each == "OpenCode" else root.parent) for each, root in usual]
    return [(each, root.resolve()) for each, root in (*wider, *agent_folders(Path.home()).items())]


def _project_named(name: str, sessions: Iterable[Session]) -> str:
    """The root of a project by its folder, or by the name of one that has sessions."""
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


def _nothing_of(root: str, others: Sequence[Session]) -> str:
    if not others:
        return "no session of a coding agent lies there"
    list_others(others)
    return (
        f"no session of {root} lies there, all are of other projects; to learn from those of one "
        "in its own store: --from-agents --project FOLDER"
    )


def list_others(others: Sequence[Session]) -> None:
    """Print the sessions of other projects."""
    click.echo("left out, of other projects (--from-agents --project FOLDER):", err=True)
    for line in _by_project(others):
        click.echo(f"  {line}", err=True)


def _by_project(sessions: Iterable[Session]) -> list[str]:
    """A line for each project, the largest first."""
    found: dict[str, list[Session]] = {}
    for each in sessions:
        found.setdefault(each.where, []).append(each)
    ordered = sorted(found.items(), key=lambda one: -sum(each.size for each in one[1]))
    lines = [f"{plain(where or 'not known', 200)}  {in_words(own)}" for where, own in ordered]
    left = len(lines) - MAX_LISTED
    more = [f"and {counted(left, 'more project')}"] if left > 0 else []
    return lines[:MAX_LISTED] + more


def require_own_store(location: str, chosen: Chosen, into_shared: bool) -> None:
    """Raises RequestError where others may use the store, unless `into_shared`."""
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


def agree(chosen: Chosen, location: str, yes: bool) -> None:
    """Show what would be read, and ask. Raises Abort, or RequestError where nobody can be asked."""
    if chosen.from_agents:
        click.echo(f"sessions of {plain(chosen.project)}: {in_words(chosen.own)}", err=True)
    if chosen.others:
        list_others(chosen.others)
    for folder in chosen.outside:
        files = find_files([folder])
        size = size_in_words(sum(_size(file) or 0 for file in files))
        click.echo(f"{plain(str(folder))}: {counted(len(files), 'file')} ({size})", err=True)
    if chosen.from_agents or chosen.outside:
        confirm(f"Learn from them? Calls are kept in {location}", yes)
