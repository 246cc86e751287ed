"""`shell`: commands in the scratch folder, really run by /bin/sh, with a time-out and a fixed set of programs."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

from examples.recording.tools.scratch import SHOWN_AS
from examples.recording.tools.tool import Answer, Arguments, Tool, done, failure, object_schema

PROGRAMS = (
    *("ls", "cat", "head", "tail", "wc", "sort", "uniq", "cut", "tr", "grep", "sed", "awk", "find", "diff", "tee"),
    *("mkdir", "cp", "mv", "rm", "touch", "basename", "sleep", "xargs"),
)
_SHOWN_CHARACTERS = 9000
_OUTSIDE = re.compile(r"(?:^|[\s'\"=<>])(?P<path>/(?!dev/null)[^\s'\"]*|[^\s'\"]*\.\.(?:/[^\s'\"]*)?)(?=$|[\s'\"])")


def make_toolbox(folder: Path) -> None:
    """A folder of links to `PROGRAMS`: the only ones that a command finds, so that "not found" is the same anywhere."""
    folder.mkdir()
    for program in PROGRAMS:
        found = shutil.which(program, path="/usr/bin:/bin")
        if found is None:
            raise RuntimeError(f"the recorder needs the program {program!r}, which is part of Debian's base system")
        (folder / program).symlink_to(found)


class Shell(Tool):
    name = "shell"
    description = "Run a command line with /bin/sh in the working folder and get what it prints."
    parameters = object_schema(
        ("command",),
        command={"type": "string", "description": "The command line. Paths are relative to the working folder."},
        timeout_seconds={
            "type": "number",
            "minimum": 0.1,
            "maximum": 30,
            "default": 10,
            "description": "The command is stopped after this time.",
        },
    )

    def __init__(self, folder: Path, toolbox: Path) -> None:
        self._folder = folder
        self._environment = {"PATH": str(toolbox), "HOME": str(folder), "LC_ALL": "C", "TZ": "UTC"}

    def run(self, arguments: Arguments) -> Answer:
        command = str(arguments["command"])
        outside = _OUTSIDE.search(command)
        if outside is not None:
            return failure(f"refused: '{outside['path']}' is outside of the working folder")
        seconds = float(arguments.get("timeout_seconds", 10))
        process = subprocess.Popen(
            ["/bin/sh", "-c", command],
            cwd=self._folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            raw, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            # What was printed until then depends on the machine's speed: it is thrown away.
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return failure(f"Command timed out after {seconds:g} s and was stopped.\n[exit code: 124]")
        text = raw.decode("utf-8", errors="replace").replace(str(self._folder), SHOWN_AS).rstrip("\n")
        if len(text) > _SHOWN_CHARACTERS:
            text = text[:_SHOWN_CHARACTERS] + f"\n[... {len(text) - _SHOWN_CHARACTERS} more characters cut off]"
        if process.returncode == 0:
            return done(text)
        return failure(f"{text}\n[exit code: {process.returncode}]".lstrip("\n"))
