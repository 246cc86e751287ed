"""The one command by which a model notes a demand, as it stands in the input of a shell tool.

    /venv/bin/python -P -m toolmem note [--lift] <<'TOOLMEM'
    {"quote": "...", ...}
    TOOLMEM

One simple command, one heredoc whose end word is quoted, one JSON object, nothing before or after it. Any other text
is a command like every other.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from itertools import takewhile
from typing import TYPE_CHECKING, Any, NamedTuple

from toolmem.late import late_pattern

if TYPE_CHECKING:
    from toolmem.hosts.host import Host

LONGEST = 40_000  # characters of such a command
# What comes before the heredoc holds nothing that a shell reads as anything but words.
_BEGINNING = late_pattern(
    r"[ \t\n]{0,20}(?P<words>[\w./:@%+=,'\" -]{1,1000}?)[ \t]{1,9}"
    r"<<[ \t]?(?P<mark>['\"])(?P<end>[A-Za-z_]\w{0,40})(?P=mark)[ \t]{0,9}\n"
)
_BLANK = " \t\n"  # to a shell; other white space is part of a word
_CONTROL = late_pattern(r"[\x00-\x08\x0b-\x1f\x7f]")  # shells drop some, and terminals make others ends of lines
_FLAGS = frozenset(("-P", "-E", "-s", "-B", "-u"))


class NoteCommand(NamedTuple):
    """What such a command says."""

    text: str  # of the heredoc
    lifts: bool = False
    is_installed: bool = False  # it starts what the hooks start, with no module of the working folder


def is_note(host: Host, tool: str, arguments: Any) -> bool:
    """Is a call such a command?"""
    return note_command(host, tool, arguments) is not None


def note_command(host: Host, tool: str, arguments: Any) -> NoteCommand | None:
    """None for any other call."""
    text = _shell_text(host, tool, arguments)
    if "<<" not in text or "note" not in text or len(text) > LONGEST or _CONTROL.search(text):
        return None
    beginning = _BEGINNING.match(text)
    if beginning is None:
        return None
    lines = text[beginning.end() :].split("\n")
    if beginning["end"] not in lines:
        return None
    end = lines.index(beginning["end"])
    if any(each.strip(_BLANK) for each in lines[end + 1 :]):
        return None
    asked = _asked(beginning["words"])
    return asked._replace(text="\n".join(lines[:end])) if asked is not None else None


def asks_how_to_note(host: Host, tool: str, arguments: Any) -> bool:
    """Is it `toolmem note --help`, and nothing else?"""
    text = _shell_text(host, tool, arguments).strip(_BLANK)
    words, _, option = text.rpartition(" ")
    return option in ("--help", "-h") and len(text) < 1000 and text.isprintable() and _asked(words) is not None


def command_line() -> str:
    """The command by which this interpreter's toolmem takes a note, as a shell reads it."""
    from shlex import join

    flags = ["-P", *(["-E"] if sys.flags.ignore_environment else [])]
    return join([sys.executable, *flags, "-m", "toolmem", "note"])


def _shell_text(host: Host, tool: str, arguments: Any) -> str:
    """What a shell tool would run; "" of other tools, and of several commands."""
    if "shell" not in host.tools.get(tool, ()) or not isinstance(arguments, Mapping):
        return ""
    command, several = arguments.get("command"), arguments.get("commands")
    if isinstance(several, list) and len(several) == 1 and command is None:
        command = several[0]
    return command if isinstance(command, str) else ""


def _asked(text: str) -> NoteCommand | None:
    """The command without its heredoc, by its words."""
    from shlex import split

    try:
        words = split(text)
    except ValueError:
        return None
    program, rest = words[:1], words[1:]
    safe = False
    if program == [sys.executable]:
        flags = list(takewhile(_FLAGS.__contains__, rest))
        safe = "-P" in flags and ("-E" in flags or not sys.flags.ignore_environment)
        rest = rest[len(flags) :]
        if rest[:2] != ["-m", "toolmem"]:
            return None
        rest = rest[2:]
    elif program != ["toolmem"]:
        return None
    return NoteCommand("", lifts=len(rest) == 2, is_installed=safe) if rest in (["note"], ["note", "--lift"]) else None
