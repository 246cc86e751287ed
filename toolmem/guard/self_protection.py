"""Ask the user about calls that may change toolmem itself.

These are calls that name its store, a `.toolmem` folder, its state folder, a protected file, the
transcripts of agents or the `toolmem` command, unless they only read. A guard under the agent's own
account is no sandbox, and an agent may get past it. If it deletes rules, their copy binds
(`toolmem.guard.rule_copies`).
"""

from __future__ import annotations

import os.path
from collections.abc import Iterator, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase

from msgspec.structs import replace

from toolmem.config.sections import OWN_FOLDER
from toolmem.guard.decision import ASK_OR_OMIT, Finding, Mode, quoted
from toolmem.models.decisions import DecisionSource
from toolmem.models.protocols import Store
from toolmem.models.rules import TEAM_FILE
from toolmem.store.sqlite.trust import state_folder
from toolmem.text.forms import normalized, word_set
from toolmem.text.patterns import late_pattern
from toolmem.view.effects import CallEffects
from toolmem.view.known_programs import only_reads
from toolmem.view.parameters import words_of
from toolmem.view.shell import SimpleCommand
from toolmem.view.shell_programs import INTERPRETERS, PRINTERS, WRITING_PROGRAMS
from toolmem.view.shell_words import UNKNOWN
from toolmem.view.view import CallView

_STORE = "memory.db"
# Commands of toolmem that only read: the subcommand, and the words that may follow it.
_READS: dict[str, frozenset[str]] = {
    "rules": word_set("list show prompt review log capture"),
    "guard": word_set("check log replay"),
    "hook": word_set("doctor status"),
    "run": word_set("retrieve_tool_memory advise_tool_call check_tool_call"),
    "store": word_set("info"),
    "config": word_set("show"),
}
_READING_COMMANDS = word_set("tools evaluate testing")  # whatever follows but "forget-line"
_INTERPRETERS = late_pattern(rf"(?:{'|'.join(sorted(INTERPRETERS))}|pwsh|powershell|sqlite3)[\d.]*")
_UNINSTALLERS = word_set("pip pip3 uv pipx conda mamba poetry pdm rm del")
_REMOVES = word_set("uninstall remove -e")
# Programs that only read the files they name, whatever their options.
_READERS = PRINTERS | word_set(
    "ls cat bat grep egrep fgrep zgrep rg ag head tail wc cut file diff cmp which whereis less "
    "more jq stat md5sum sha1sum sha256sum sha512sum md5 du df strings hexdump od locate readlink "
    "realpath basename dirname cd pushd type zcat source . test [ pytest ruff mypy get-content "
    "select-string"
)
_WRITES_OF_GIT = word_set(
    "archive bundle checkout restore clone mv apply am worktree init format-patch"
)
_REMOVERS = word_set("rm rmdir unlink shred trash srm mv find del rd remove-item move-item")
_INSIDE = late_pattern(
    r"(?:^|[\s/'\"`;|&(])toolmem\s+(?:rules|hook|note|mcp|guard|store|run|tools\s+forget-line)\b"
)
# `tar -czf MADE FILE` writes the archive and only reads the files.
_ARCHIVES = late_pattern(
    r"(?:(?:bsd)?tar (?:-?[vzjJahp]{0,5}c[vzjJahp]{0,5}f |--create --file[= ])|zip -[rqy\d]{1,4} )"
    r"(?P<made>\S+)(?: (?:-C |--exclude=)?[^-\s]\S*)*"
)
_READ_ONLY = late_pattern(r"--?readonly|file:[^?]*\?(?:mode=ro|immutable=1)")
_MORE_THAN_READS = late_pattern(
    r"(?i)attach|writefile|edit\s*\(|vacuum|extension|-init|-cmd|-append|\A\s*\.(?!(?:tables|schema"
    r"|indexes|dump|mode|headers?|stats|databases)\b|[\w-]+/)"
)
_SWITCHES_OFF = late_pattern(r"\btoolmem_guard[\"']?\s{0,9}[:=]\s{0,9}[\"']?(?:off|false|no|0)\b")
_CLEANS_IGNORED = late_pattern(r"-[a-zA-Z]*[xX][a-zA-Z]*")  # `git clean` also removes ignored files
_FORCES = late_pattern(r"-[a-zA-Z]*f[a-zA-Z]*|--force")
_GLOB = late_pattern(r"[*?\[]")
_CONTENT = word_set(
    "content contents text string str body data description html message note notes query "
    "pattern glob regex prompt summary title search diff patch edits"
)
MAX_PATH = 500  # characters of an argument that may be a path
# Where agents keep transcripts: the variable that names the agent's folder, its default in the home
# folder, and the part of it with the transcripts.
TRANSCRIPTS = {
    "Claude Code": ("CLAUDE_CONFIG_DIR", ".claude", "projects"),
    "Codex": ("CODEX_HOME", ".codex", "sessions"),
    "Gemini CLI": ("GEMINI_CLI_HOME", ".", ".gemini/tmp"),
    "OpenCode": ("XDG_DATA_HOME", ".local/share", "opencode"),
}


def own_paths(*stores: Store) -> list[str]:
    """Return paths that only the user changes: stores, the state folder, agents' transcripts."""
    paths = [each.location for each in stores if os.path.exists(each.location)]
    for variable, folder, part in TRANSCRIPTS.values():
        root = os.environ.get(variable) or os.path.expanduser(os.path.join("~", folder))
        paths += [os.path.normpath(os.path.join(root, part))] if os.path.isabs(root) else []
    with suppress(OSError):  # this user has no home folder
        paths.append(str(state_folder()))
    return paths


def check_self(view: CallView, protected: Sequence[str], mode: Mode) -> list[Finding]:
    """Return a finding that asks, if a call may change toolmem or a `protected` path; else []."""
    what = _changed_part(view, [normalized(os.path.abspath(path)) for path in protected])
    if not what:
        return []
    text = f"This may change toolmem itself ({what}), which only the user does."
    return [Finding(DecisionSource(kind="self"), "ask", text, ASK_OR_OMIT, mode=mode)]


def _changed_part(view: CallView, protected: Sequence[str]) -> str:
    """Name the part of toolmem that a call may change; return "" if it may change none."""
    texts = [text for text in view.texts if len(text) > 3]
    names = [OWN_FOLDER, _STORE, *(_telling_part(path) for path in protected)]
    names_it = any(name in text for text in texts for name in names if name != "toolmem")
    is_near = names_it or any("tool" in text for text in texts)
    for unit in view.units:
        removes = unit.command is None or unit.command.words[:1] and _removes(unit.command)
        for path in unit.writes:
            if _is_own(path, protected, deep=bool(removes)) or (
                removes and _is_above(path, protected)
            ):
                return quoted(path)
    every_command = [command for text in view.shells for command in text.commands]
    for command in every_command if is_near else ():
        if path := _named_by_command(command, protected):
            return quoted(path)
    if names_it and any(text.unread for text in view.shells):
        return "a text that is too large to read and names it"
    for command in view.commands:
        if _changes_toolmem(command) or _cleans(command, protected):
            return quoted(" ".join(command.words))
        if names_it and _runs_hidden_text(command):
            return "a program whose text names it"
    if view.shells:
        return "its guard" if any(map(_SWITCHES_OFF.search, view.texts)) else ""
    return _named_by_argument(view, protected) if is_near else ""


def _telling_part(path: str) -> str:
    """Return the end of a path by which a text names it: its name, or its last two names."""
    folder, name = os.path.split(path)
    is_alone = name.endswith(".db") or name in ("toolmem", TEAM_FILE)
    return name if is_alone else os.path.join(os.path.basename(folder), name)


def _named_by_argument(view: CallView, protected: Sequence[str]) -> str:
    """Return a path of toolmem that is an argument of a tool that may write; "" if none is."""
    if "@read" in view.classes and "@write" not in view.classes:
        return ""
    if not CallEffects(view.tool, view.arguments).may_write():
        return ""
    for _, name, value in view.scalars:
        if not isinstance(value, str) or len(value) > MAX_PATH or words_of(name) & _CONTENT:
            continue
        path = os.path.normpath(os.path.join(normalized(view.folder), normalized(value)))
        if not any(map(str.isspace, value.strip())) and _is_own(path, protected):
            return quoted(value)
    return ""


def _named_by_command(command: SimpleCommand, protected: Sequence[str]) -> str:
    """Return a path of toolmem that a command names and may write; "" if there is none."""
    if not command.words:
        return ""
    program = command.words[0].lower()
    line = " ".join(command.words)
    is_known = program in WRITING_PROGRAMS or _only_reads(program, command.words[1:])
    if (is_known and "--remove-files" not in command.words) or _reads_database(command):
        return ""
    if archives := _ARCHIVES.fullmatch(line):  # reads all but the archive
        command = replace(command, words=(program, archives["made"]))
    exact = (path for path in _paths(command) if not _GLOB.search(path) or "tool" in path)
    own = (path for path in exact if _is_own(path, protected))
    reads_files = only_reads(command.words)  # the team's file is text that many programs read
    return next((path for path in own if not (reads_files and path.endswith(TEAM_FILE))), "")


def _only_reads(program: str, rest: Sequence[str]) -> bool:
    """Whether a command only reads the files that it names."""
    if program == "git":
        return not _WRITES_OF_GIT & set(rest[:1]) and not any("output" in word for word in rest)
    if program == "find":  # the paths that it deletes are checked as writes
        return not any(word.startswith(("-fprint", "-fls")) for word in rest)
    return program in _READERS


def _reads_database(command: SimpleCommand) -> bool:
    """Whether a command is sqlite3 and opens a store only to read and show it."""
    program, *rest = command.words or ("",)
    return (
        program == "sqlite3"
        and any(map(_READ_ONLY.fullmatch, rest))
        and not any(map(_MORE_THAN_READS.search, rest))
    )


def _removes(command: SimpleCommand) -> bool:
    """Whether a command removes or moves whole folders that it names."""
    program = command.words[0].lower()
    is_found = any(line[0].lower() in ("find", "fd") for line in command.wrappers)
    deletes = program == "rsync" and "--delete" in command.words
    return is_found or deletes or program in _REMOVERS


def _paths(command: SimpleCommand) -> Iterator[str]:
    for word in command.words[1:]:
        for part in (word, *word.split("=", 1)[1:]):
            if part and len(part) <= MAX_PATH and not any(map(str.isspace, part)):
                part = os.path.expanduser(part) if part.startswith("~") else part
                yield os.path.normpath(os.path.join(normalized(command.folder), normalized(part)))


def _is_own(path: str, protected: Sequence[str], *, deep: bool = False) -> bool:
    """Whether a path or pattern is one of toolmem's. `deep`: patterns match in folders below."""
    clean = path.rstrip("/") or "/"
    parts = clean.split("/")
    if any(part == OWN_FOLDER or (OWN_FOLDER in part and "{" in part) for part in parts):
        return True
    for own in protected:
        if own == clean or clean.startswith((f"{own}/", f"{own}-wal", f"{own}-shm")):
            return True
        is_store = own.endswith(".db") and fnmatchcase(os.path.basename(own), parts[-1])
        if deep and parts[-1].strip("*?") and is_store and _is_above(os.path.dirname(path), [own]):
            return True  # `find . -name memory.db -delete`
    for at, part in enumerate(parts):  # a pattern in a folder above one of ours
        if _GLOB.search(part):
            above = "/".join(parts[:at])
            is_ours = part.startswith(".") and fnmatchcase(OWN_FOLDER, part)
            if is_ours and _is_above(above, protected):
                return True
            return any(_fits(parts, own.split("/"), deep) for own in protected)
    return False


def _fits(pattern: Sequence[str], own: Sequence[str], deep: bool) -> bool:
    """Whether a pattern of paths matches a path or, if `deep`, a folder above the path.

    A `*` does not match a leading dot.
    """
    if len(pattern) > len(own) or (len(pattern) < len(own) and not deep):
        return False
    pairs = zip(pattern, own, strict=False)
    return all(fnmatchcase(o, p) and p.startswith(".") >= o.startswith(".") for p, o in pairs)


def _is_above(path: str, protected: Sequence[str]) -> bool:
    """Whether a path is a folder above a path of toolmem."""
    above = (path.rstrip("/") or "") + "/"
    return any(own.startswith(above) for own in protected)


def _runs_hidden_text(command: SimpleCommand) -> bool:
    """Whether a command may run a text that its words do not show."""
    program = os.path.basename(command.words[0].lower()) if command.words else ""
    if program == "sqlite3" and OWN_FOLDER not in " ".join(command.words):
        return False  # another file of that name; whether it is ours is known by its path
    if command.hides or (_INTERPRETERS.fullmatch(program) and not _reads_database(command)):
        return True
    if program in ("awk", "gawk", "mawk"):
        return any("system" in word for word in command.words)
    through = any(line[0] in ("xargs", "parallel") for line in command.wrappers)
    is_open = through or any(UNKNOWN in word for word in command.words)
    return is_open and program in WRITING_PROGRAMS


def _cleans(command: SimpleCommand, protected: Sequence[str]) -> bool:
    """Whether git removes ignored files (toolmem's are) or untracked files (a hook may be)."""
    words = set(command.words[2:])
    if command.words[:2] == ("git", "stash"):
        ignored = {"-a", "--all"} & words
        untracked = {"-u", "--include-untracked"} & words
    elif command.words[:2] == ("git", "clean"):
        ignored = {word for word in words if _CLEANS_IGNORED.fullmatch(word)}
        untracked = {word for word in words if _FORCES.fullmatch(word)}
    else:
        return False
    folder = normalized(os.path.abspath(command.folder))
    hooks = [own for own in protected if not own.endswith(".db") and os.path.isfile(own)]
    return bool(ignored) or (bool(untracked) and _is_above(folder, hooks))


def _changes_toolmem(command: SimpleCommand) -> bool:
    words = [word.lower() for word in command.words] or [""]
    program = os.path.basename(words[0])
    if program in ("toolmem-hook",) or program.startswith("toolmem."):
        return True  # an event that the agent makes up would count as typed by the user
    if program in _UNINSTALLERS and "toolmem" in words and _REMOVES & set(words):
        return True
    if program != "toolmem":
        reads = program in PRINTERS or program == "git" or only_reads(words)
        return not reads and _INSIDE.search(" ".join(words)) is not None
    if len(words) == 1 or "--help" in words or "--version" in words:
        return False
    subcommand = words[1]
    following = words[2] if len(words) > 2 else ""
    if following == "forget-line":
        return True
    return subcommand not in _READING_COMMANDS and following not in _READS.get(subcommand, ())
