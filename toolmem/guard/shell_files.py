"""Paths in commands: where they lead from a folder, which programs take them, which files a command writes or reads."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from toolmem.guard.shell_words import UNKNOWN
from toolmem.guard.shell_wrappers import looked_through, program_of
from toolmem.guard.word_lists import split
from toolmem.late import late_pattern

_LONGEST = 2_000  # characters of a path
_HOME = late_pattern(r"\$(?:HOME\b|\{HOME\}|home\b|\{home\})")
_HERE = late_pattern(r"\$(?:PWD\b|\{PWD\}|pwd\b|\{pwd\})")
_DRIVE = late_pattern(r"[A-Za-z]:[\\/]")
_NO_PATH = late_pattern(r"[-!$({]|[\w.+-]{1,30}://|[\w.-]{1,80}@?[\w.-]{1,80}:")  # `host:/path` lies elsewhere
_ROUNDABOUT = late_pattern(r"//|/\.|\\")
_SEPARATORS = late_pattern(r"[/\\]")
_LISTERS = split("ls dir tree du stat realpath readlink")  # print the paths that they are given, or what lies in them
_FILTERS = split("grep egrep fgrep rg sort uniq head tail tee shuf tac cat")  # print some of what they read
_OPENERS = split(
    "cat less more head tail nl tac strings xxd od hexdump grep egrep fgrep rg awk gawk sed bat view file stat wc cut "
    "sort uniq diff cmp cp mv ln rm rmdir unlink shred mkdir touch truncate tee chmod chown chgrp install rsync scp dd "
    "tar zip unzip gzip gunzip ls tree du find fd vi vim nano emacs ed ex source . srm trash trash-put rimraf del "
    "erase rd base64 md5sum sha256sum"
)
_OF_GIT = split("rm mv clean add stage restore checkout")
_WRITERS = split("rm unlink shred mv tee touch truncate mkdir rmdir")
_COPIERS = split("cp ln install rsync scp")
_EDITORS = split("vi vim nano emacs ed ex")


def whole_path(path: str, directory: Path | str | None) -> str:
    """A path against the directory of the call, `.` and `..` taken out, links not followed."""
    if path[:1] == "/" and path[-1:] != "/" and not _ROUNDABOUT.search(path):
        return path
    text = path.replace("\\", "/")
    if directory is not None and text[:1] not in {"/", "~"} and not _DRIVE.match(text):
        text = f"{directory}/{text}"
    root = text[:1] == "/"
    kept: list[str] = []
    for part in text.split("/"):
        if part == "" or part == ".":
            continue
        if part != "..":
            kept.append(part)
        elif kept and kept[-1] not in {"..", "~"}:
            kept.pop()
        elif not root:
            kept.append(part)
    joined = "/".join(kept)
    return f"/{joined}" if root else joined or "."


def with_home(path: str) -> str:
    """A path with `$HOME` as `~`, `$PWD` as `.`."""
    if "$" not in path:
        return path
    return _HERE.sub(".", _HOME.sub("~", path, count=1), count=1)


def other_form(path: str, home: str) -> str:
    """A path below the home folder by its other name: `~/x` and `/home/me/x`; "" where it has none."""
    if path == "~" or path.startswith("~/"):
        return home + path[1:]
    return "~" + path[len(home) :] if path == home or path.startswith(home + "/") else ""


def led(program: str, rest: Sequence[str], folder: str, *, moved: bool) -> list[str] | None:
    """A command's words with its paths as they lead from `folder`; None where none of them changes.

    `moved`: a `cd` led there, so that every word counts; else those that a program which takes files is given.
    """
    if program in {"cd", "pushd", "echo", "printf", "export", "alias"}:
        return None
    files = program in _OPENERS or (program == "git" and rest[:1] and rest[0] in _OF_GIT)
    first = 1 if program == "git" else 0
    found = list(rest[:first])
    for word in rest[first:]:
        found += _leads(word, folder, files or moved)
    if program == "git" and rest[:1] == ["clean"] and all(word.startswith("-") for word in rest[1:]):
        found.append(folder or ".")
    if program == "find" and looked_through(program, rest) == ["."]:
        found.insert(0, folder or ".")
    return found if found != list(rest) else None


def _leads(word: str, folder: str, files: bool) -> Iterator[str]:
    """A word as it leads; the path of an option stands behind it, too."""
    if len(word) > _LONGEST:
        yield word
        return
    if word.startswith("-") or _is_setting(word):
        yield word
        _, equals, value = word.partition("=")
        if equals and _SEPARATORS.search(value):
            yield from _leads(value, folder, files)
        return
    word = with_home(word)
    if not word or UNKNOWN in word or _NO_PATH.match(word) or not (files or _SEPARATORS.search(word)):
        yield word
    else:
        whole = whole_path(word, folder or None)
        yield whole
        if other := other_form(whole, str(Path.home())):
            yield other


def _is_setting(word: str) -> bool:
    name, equals, _ = word.partition("=")
    return bool(equals) and name.isidentifier()


def listed_by(words: Sequence[str], given: Sequence[str]) -> Sequence[str]:
    """The paths that a command prints or lies above, as `xargs` would read them; `given`: those that it reads."""
    program = program_of(words[0]) if words else ""
    operands = [word for word in words[1:] if not word.startswith("-")]
    if program in {"find", "fd"}:
        return looked_through(program, words[1:])
    if program == "git" and operands[:1] == ["ls-files"]:
        return operands[1:] or ["."]
    if program in _LISTERS:
        return operands or ["."]
    return given if program in _FILTERS else ()


def written(program: str, rest: Sequence[str]) -> Sequence[str]:
    """The files that a program writes, moves or takes away, as far as its name says so."""
    plain = [word for word in rest if not word.startswith("-")]
    if program in _WRITERS or program in _EDITORS:
        return plain
    if program in _COPIERS:
        return _into(rest) or plain[-1:]
    if program in {"chmod", "chown", "chgrp"}:
        return plain[1:]
    if program == "sed" and any(re.match(r"-[a-zA-Z]*i|--in-place", word) for word in rest):
        return plain[1:]
    if program == "dd":
        return [word[len("of=") :] for word in rest if word.startswith("of=")]
    return ()


def _into(rest: Sequence[str]) -> list[str]:
    """The folder of `cp -t FOLDER`."""
    for at, word in enumerate(rest):
        if word.startswith("--target-directory="):
            return [word.partition("=")[2]]
        if word in {"-t", "--target-directory"}:
            return list(rest[at + 1 : at + 2])
    return []
