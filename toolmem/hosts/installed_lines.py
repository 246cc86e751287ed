"""Which command lines of toolmem stand in an agent's own files, and what becomes of an event that is handed to one.

Read from the files as the agent reads them, and run as the agent runs them: nothing here asks what an install wrote.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from toolmem.errors import RequestError
from toolmem.hosts.receipts import Install
from toolmem.hosts.settings_files import HookPlace, settings_value
from toolmem.late import late_pattern

_OURS = late_pattern(r"\btoolmem[.-]hosts?\b|\btoolmem[-.]hook\b|\btoolmem(?:\.exe)?[\"']? hook\b")
_PLUGIN = late_pattern(r"(?m)^const COMMAND = (\[.{1,4000}\])$")  # of our plugins
_COMMANDS = ("command", "exec", "bash")
_KEPT = ("HOME", "XDG_STATE_HOME", "USERPROFILE", "LOCALAPPDATA", "SYSTEMROOT", "TMPDIR")
_SECONDS = 30


@dataclass(frozen=True, slots=True)
class InstalledLine:
    """A command line: in exec form as its parts, else as the text that a shell reads."""

    path: Path  # of the file
    parts: tuple[str, ...] = ()
    shell: str = ""

    @property
    def shown(self) -> str:
        return self.shell or shlex.join(self.parts)

    @property
    def words(self) -> list[str]:
        if self.parts:
            return list(self.parts)
        with suppress(ValueError):
            return shlex.split(self.shell)
        return []

    @property
    def to_run(self) -> list[str]:
        return list(self.parts) or (["cmd", "/c", self.shell] if os.name == "nt" else ["/bin/sh", "-c", self.shell])

    def option(self, name: str) -> str:
        """The value that the line gives to an option; "" where it gives none."""
        return next((value for key, value in pairwise(self.words) if key == name), "")


@dataclass(frozen=True, slots=True)
class TriedLine:
    """What came of an event: the answer, or what was wrong with it."""

    problem: str
    answer: dict[str, Any]
    seconds: float


def installed_lines(place: HookPlace) -> list[InstalledLine]:
    """Each line of ours in this place's files, once. Raises RequestError where a settings file cannot be read."""
    found: dict[str, InstalledLine] = {}
    for path in _files(place):
        with suppress(OSError):
            data = path.read_bytes()
            for line in _lines(path, data, comments=place.host.comments):
                found.setdefault(line.shown, line)
    return list(found.values())


def was_installed(place: HookPlace, line: InstalledLine, known: Iterable[Install]) -> bool:
    """Did an install of this user write the line, or would one now? Others are not run: a folder may be anybody's."""
    commands, words = [list(each.command) for each in known], line.words
    if line.parts == (str(line.path),):
        return any(place.own_files(each).get(line.path, "").encode() == line.path.read_bytes() for each in commands)
    if not line.shell.isprintable():
        return False
    if any(words[: len(each)] == each for each in commands):
        return True
    plain = [each for each in words[1:] if each not in ("-P", "-E")]
    if line.shell and shlex.join(words) != line.shell:
        return False
    return words[:1] == [sys.executable] and plain[:3] == ["-m", "toolmem.hosts", place.host.name]


def try_line(line: InstalledLine, payload: Mapping[str, Any], cwd: Path) -> TriedLine:
    """Hand one event to a line in a process of its own, with nothing of this process's environment but its home."""
    environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
    environment["PATH"] = os.defpath
    began = time.monotonic()
    try:
        ran = subprocess.run(
            line.to_run,
            input=json.dumps(payload).encode(),
            capture_output=True,
            cwd=cwd,
            env=environment,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return TriedLine(f"it did not answer within {_SECONDS} seconds", {}, time.monotonic() - began)
    except OSError as error:
        return TriedLine(f"it cannot be started: {error.strerror or error}", {}, 0.0)
    problem, answer = _answer(ran)
    return TriedLine(problem, answer, time.monotonic() - began)


def _answer(ran: subprocess.CompletedProcess[bytes]) -> tuple[str, dict[str, Any]]:
    said = ran.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
    if ran.returncode:
        return f"it ended with exit code {ran.returncode}{': ' + said[0][:300] if said else ''}", {}
    if not ran.stdout.strip():
        return "", {}
    try:
        answer = json.loads(ran.stdout)
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict):
        return f"what it answered is no JSON object: {ran.stdout[:100].decode('utf-8', 'replace')!r}", {}
    return "", answer


def _files(place: HookPlace) -> list[Path]:
    own = place.own_files(["toolmem-hook", place.host.name])
    return [*([place.settings] if place.settings else []), *own]


def _lines(path: Path, data: bytes, *, comments: bool) -> Iterator[InstalledLine]:
    if data.startswith(b"#!"):
        if _OURS.search(data.decode("utf-8", "replace")):
            yield InstalledLine(path, (str(path),))
    elif path.suffix == ".js" and (command := _PLUGIN.search(data.decode("utf-8", "replace"))) is not None:
        with suppress(ValueError, TypeError):
            yield InstalledLine(path, tuple(map(str, json.loads(command[1]))))
    elif path.suffix in (".json", ".jsonc"):
        yield from _in_value(path, settings_value(data, path, comments=comments))


def _in_value(path: Path, value: Any) -> Iterator[InstalledLine]:
    if isinstance(value, list):
        for each in value:
            yield from _in_value(path, each)
    elif isinstance(value, dict):
        for name in _COMMANDS:
            if isinstance(value.get(name), str) and (line := _line(path, value[name], value.get("args"))):
                yield line
        for each in value.values():
            yield from _in_value(path, each)


def _line(path: Path, command: str, arguments: Any) -> InstalledLine | None:
    parts = [each for each in arguments if isinstance(each, str)] if isinstance(arguments, list) else None
    if not _OURS.search(" ".join([command, *(parts or [])])):
        return None
    return InstalledLine(path, shell=command) if parts is None else InstalledLine(path, (command, *parts))


def places_beside(place: HookPlace, known: Iterable[Install]) -> list[HookPlace]:
    """Where else hooks of this agent stand that act in the same folder: the other scope, and projects above it."""
    folders = [place.project, *place.project.parents]
    projects = [Path(each.place) for each in known if each.place and Path(each.place) in folders]
    beside = [("user", place.project), *(("project", each) for each in (place.project, *projects))]
    found = []
    for scope, project in dict.fromkeys(beside):
        other = HookPlace(place.host, scope, project, place.home, place.environment)  # type: ignore[arg-type]
        is_home = scope == "project" and project.resolve() == place.home.resolve()
        if (scope, other.where) != (place.scope, place.where) and not is_home and stands_in(other):
            found.append(other)
    return found


def stands_in(place: HookPlace) -> bool:
    """Does a hook of ours stand in this place's files?"""
    with suppress(RequestError):
        own = place.own_files(["toolmem-hook", place.host.name])
        return bool(installed_lines(place)) or any(path.exists() for path in own)
    return False


def option_of(place: HookPlace) -> str:
    """How a command names the place."""
    return "--user" if place.scope == "user" else f"--project {shlex.quote(str(place.project))}"


def other_installs(place: HookPlace) -> list[Path]:
    """Files of the agent's other scope that name toolmem as well."""
    scope = "user" if place.scope == "project" else "project"
    if scope == "project" and place.project.resolve() == place.home.resolve():
        return []
    other = HookPlace(place.host, scope, place.project, place.home, place.environment)  # type: ignore[arg-type]
    with suppress(RequestError):
        return sorted({line.path for line in installed_lines(other)})
    return []
