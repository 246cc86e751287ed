"""Ask the user about calls that may change toolmem itself.

These are calls that write or remove toolmem's store or a folder above it, run a `toolmem` command
which changes rules, hooks or settings, or run an interpreter whose text names these. Nothing else
is covered: a guard under the agent's own account is no sandbox.
"""

from __future__ import annotations

import os.path
import re
from collections.abc import Sequence

from toolmem.guard.decision import Finding, Mode, quoted
from toolmem.models.decisions import DecisionSource
from toolmem.text.forms import normalized, word_set
from toolmem.text.patterns import late_pattern
from toolmem.view.shell import SimpleCommand
from toolmem.view.view import CallView

_FOLDER = ".toolmem"  # of a project, or of the user
_CHANGES = word_set("rules hook note mcp guard store run")  # subcommands, unless _READS follows
_READS = word_set(
    "list show prompt review export log check replay doctor status capture retrieve_tool_memory "
    "advise_tool_call check_tool_call tools calls guidance"
)
_INTERPRETERS = late_pattern(
    r"(?:python|pypy|node|deno|bun|perl|ruby|php|lua|rscript|osascript|pwsh|powershell|sqlite3)[\d.]*"
)
_SWITCHES_OFF = late_pattern(r"\btoolmem_guard[\"']?\s{0,9}[:=]\s{0,9}[\"']?(?:off|false|no|0)\b")
_CLEANS_IGNORED = late_pattern(r"-[a-z]*x[a-z]*")  # `git clean` also removes ignored files


def check_self(view: CallView, protected: Sequence[str], mode: Mode) -> list[Finding]:
    """Find what of toolmem a call may change. `protected`: paths of files and folders."""
    what = _changed_part(view, [normalized(os.path.abspath(path)) for path in protected])
    if not what:
        return []
    text = f"This may change toolmem itself ({what}), which only the user does."
    remedy = "Get their consent, or leave it out."
    return [Finding(DecisionSource(kind="self"), "ask", text, remedy, mode)]


def _changed_part(view: CallView, protected: Sequence[str]) -> str:
    """Name the part of toolmem that a call may change; "" where there is none."""
    names = [_FOLDER, *(os.path.basename(path) for path in protected)]
    for unit in view.units:
        for path in unit.writes:
            if _is_own(path, protected):
                return quoted(path)
    names_it = any(name in text for text in view.texts for name in names)
    for command in view.commands:
        words = command.words or ("",)
        if _changes_toolmem(command):
            return quoted(" ".join(words))
        program = os.path.basename(words[0].lower())
        if names_it and (command.hides or _INTERPRETERS.fullmatch(program)):
            return "a program whose text names it"
        if program == "git" and "clean" in words and any(map(_CLEANS_IGNORED.fullmatch, words)):
            return quoted(" ".join(words))
    return "its guard" if any(map(_SWITCHES_OFF.search, view.texts)) and view.shells else ""


def _is_own(path: str, protected: Sequence[str]) -> bool:
    """Whether a path belongs to toolmem, or is a folder above."""
    clean = path.rstrip("/") or "/"
    if f"/{_FOLDER}/" in f"/{clean}/":
        return True
    above = clean.rstrip("/") + "/"
    return any(
        own == clean
        or own.startswith(above)
        or clean.startswith((f"{own}/", f"{own}-wal", f"{own}-shm"))
        for own in protected
    )


def _changes_toolmem(command: SimpleCommand) -> bool:
    words = [word.lower() for word in command.words] or [""]
    if "-m" in words and re.fullmatch(r"(?:.*/)?python[\d.]*", words[0]):
        words = words[words.index("-m") + 1 :] or [""]
    program = os.path.basename(words[0])
    if program == "toolmem-hook" or program.startswith("toolmem.hooks"):
        return True  # an event that the agent makes up would count as typed by the user
    if program != "toolmem":
        return False
    rest = [word for word in words[1:] if not word.startswith("-")]
    return bool(rest) and rest[0] in _CHANGES and not (len(rest) > 1 and rest[1] in _READS)
