"""What holds an agent is changed by the user alone: a call that writes to toolmem's stores or settings is stopped.

A call that only looks is not stopped. Where it cannot be told what a call does to them, the user is asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Any, Literal

from toolmem.guard.decision import Finding, Mode, quoted
from toolmem.guard.effects import may_write, reads_only
from toolmem.guard.own_commands import calls_for_change, changes_toolmem, unread_request
from toolmem.guard.own_paths import OWN, OwnPaths
from toolmem.guard.shell_commands import Argv
from toolmem.guard.shell_words import UNKNOWN
from toolmem.guard.view import View, names_command, patched_files, plain, scalars
from toolmem.guard.word_lists import split
from toolmem.late import late_pattern
from toolmem.readers.sql import read_statement

_Stop = Literal["deny", "ask"]
_Told = tuple[_Stop, str]

_CARRY = split(
    "sudo doas ssh watch docker podman nerdctl kubectl oc eval trap su runuser script find sh bash zsh dash ksh"
)
_PLACES = split("source src from target dst dest location store db")
_SENDERS = split("curl wget http https httpie xh nc ncat telnet socat")
_INTERPRETERS = late_pattern(
    r"(?:python|pypy|node|deno|bun|perl|ruby|php|lua|rscript|osascript|pwsh|powershell|awk|gawk)[\d.]*"
)
_COPIERS = split("cp rsync scp install tar zip gzip sqlite3")
_TAKE_AWAY = split("rm unlink shred mv truncate sh bash")
_REPLACE = split("ln chmod chown chgrp dd tee truncate touch patch")  # what else a program may suffer
_STANDS = late_pattern(r"[-/~$\0{]")  # a word that is no path, or none against the folder
_CLEANS = late_pattern(r"-[a-z]*x[a-z]*")
_RECURSIVE = late_pattern(r"-[a-z]*r[a-z]*|--recursive")
_NAME_WORD = late_pattern(r"[a-z]+|[A-Z][a-z]*|[A-Z]+")
_WRITING = split(
    "write edit delete remove create move rename update replace append insert save put copy touch truncate apply patch "
    "unlink rm mv mkdir rmdir chmod overwrite modify erase set upload"
)
_LOOKING = split("grep glob ls cat head tail stat exists tree diff lint open load")
_SAFE_SQL = split("SELECT EXPLAIN SHOW VALUES WITH")
_SAFE_DOTS = late_pattern(
    r"\.(?:tables|schema|dump|headers?|mode|indexes|databases|dbinfo|fullschema|width|help|quit|exit)\b"
)
_SWITCHES_OFF = late_pattern(
    r"disableallhooks[\"']?\s{0,9}[:=]\s{0,9}[\"']?true|\btoolmem_guard[\"']?\s{0,9}[:=]\s{0,9}[\"']?(?:off|false|no|0)\b"
)
TOKEN = "service-token"  # the file of the user's state folder
_SPLIT = late_pattern(r"[=:,@<]")
_PROSE = late_pattern(r"\.(?:md|rst|txt|adoc|html)$")
# What changes toolmem holds one of these.
_MARKS = (TOKEN, "disableallhooks", "toolmem", "memory.", "_rule", "vector_store", "delete_")


def against_self(
    tool_name: str,
    arguments: Any,
    view: View,
    protected: Sequence[str],
    *,
    directory: Path | None = None,
    hints: Mapping[str, Any] | None = None,
    mode: Mode = "enforce",
) -> list[Finding]:
    """What stands against a call that would change what holds the agent. `protected`: files, folders and addresses."""
    own = OwnPaths(protected, directory)
    told = [*_of_commands(view, own), *_of_requests(view, own), *_of_files(tool_name, arguments, view, own, hints)]
    told += [*_of_switches(tool_name, view), *_of_token(view, own)]
    told.sort(key=lambda each: each[0] != "deny")
    return [Finding("self", action, _reason(action, what), mode) for action, what in told[:1]]


def may_touch(arguments: Any, protected: Sequence[str], directory: Path | None) -> bool:
    """Is a call worth a closer look? Every command is, and what names something of toolmem's."""
    if isinstance(arguments, Mapping) and any(names_command(str(name)) for name in arguments):
        return True
    if directory is not None and ".toolmem" in directory.parts:
        return True
    names = [plain(path).replace("\\", "/").rstrip("/").rpartition("/")[2] for path in protected]
    marks = (*_MARKS, *filter(None, names))
    given = arguments if isinstance(arguments, Mapping) else {"": arguments}
    texts = (plain(str(value)) for _, _, value in scalars(given))
    return any(mark in text for text in texts for mark in marks)


def _reason(action: _Stop, what: str) -> str:
    if action == "deny":
        return f"This would change toolmem itself ({what}), which only the user does: leave it out, or ask them."
    return f"This may change toolmem itself ({what}), which only the user does. Get their consent, or leave it out."


# ---------------------------------------------------------------- commands


def _of_commands(view: View, own: OwnPaths) -> Iterator[_Told]:
    run = [_in_place(command) for command in view.run if command.words]
    named = [word for command in run for word in own.among(_operands(command))]
    for command in run:
        words = command.words
        if (action := changes_toolmem(words)) is not None:
            yield ("deny" if action == "deny" else "ask"), quoted(" ".join(words))
        elif words[0] == ">":
            if own.inside(words[1]):
                yield "deny", quoted(words[1])
        elif words[0] == "sqlite3":
            yield from _sqlite(words, own)
        elif (told := _of_program(command, named, own)) is not None:
            yield told
    if any(_INTERPRETERS.fullmatch(each.words[0]) or each.hides for each in view.run if each.words):
        text = "\n".join(view.fields["values"])
        if own.named_in(text) or calls_for_change(text):
            yield "ask", "a program whose text names it"


def _operands(command: Argv) -> Sequence[str]:
    """The words of a command that may be paths: what `find` looks for is none."""
    program, *rest = command.words
    return list(takewhile(lambda word: not word.startswith("-"), rest)) if program == "find" else rest


def _in_place(command: Argv) -> Argv:
    """A command whose paths are those that it has where `cd` led to."""
    if not command.place or command.words[0] == "git":
        return command
    program, *rest = command.words
    placed = [word if _STANDS.match(word) or " " in word else f"{command.place}/{word}" for word in rest]
    return Argv((program, *placed), command.hides, command.place)


def _of_program(command: Argv, named: Sequence[str], own: OwnPaths) -> _Told | None:
    program, *rest = command.words
    operands = [word for word in rest if not word.startswith("-")]
    removes = program in {"rm", "mv", "shred", "rmdir", "unlink"}
    recursive = any(_RECURSIVE.fullmatch(word) for word in rest)
    above = next((word for word in operands if own.above(word)), None)
    if above and (program == "mv" or (removes and recursive)):
        return "deny", f"it lies in {quoted(above)}"
    if program == "find" and _deletes(rest) and _found(rest, command.place, own):
        return "ask", "files that are looked for and deleted"
    if program == "git" and rest[:1] == ["clean"] and any(_CLEANS.fullmatch(word) for word in rest):
        return ("ask", "`git clean -x` deletes its folder") if own.above(command.place or ".") else None
    if program in _CARRY or reads_only(command):
        return None
    if removes and named and not [word for word in operands if not _unknown(word)]:
        return "ask", quoted(named[0])
    if program in {"chmod", "chown", "chgrp"} and recursive and above:
        return "ask", f"it lies in {quoted(above)}"
    runs = not removes and program not in _REPLACE
    if program not in _COPIERS and (hit := next(own.among(rest, runs=runs), None)) is not None:
        return "ask", quoted(hit)
    if program == "tar" and any(re.match(r"-?[a-z]*x|--extract|--delete", word) for word in rest[:2]):
        return ("ask", quoted(hit)) if (hit := next(own.among(rest), None)) else None
    return None


def _unknown(word: str) -> bool:
    return word == "{}" or "$" in word or UNKNOWN in word


def _deletes(rest: Sequence[str]) -> bool:
    if "-delete" in rest:
        return "-empty" not in rest
    at = next((at for at, word in enumerate(rest) if word.startswith(("-exec", "-ok"))), len(rest))
    return any(word.rpartition("/")[2] in _TAKE_AWAY for word in rest[at + 1 :])


def _found(rest: Sequence[str], place: str, own: OwnPaths) -> bool:
    """Would `find` come upon it?"""
    start = list(takewhile(lambda word: not word.startswith("-"), rest)) or [place or "."]
    if any(own.inside(word) for word in start):
        return True
    if not any(own.above(word) for word in start):
        return False
    names = [rest[at + 1] for at, word in enumerate(rest[:-1]) if word in {"-name", "-iname", "-path", "-wholename"}]
    names = [name.rpartition("/")[2] for name in names]
    known = own.names if ("-type", "f") in pairwise(rest) else own.names | {OWN}
    return not names or any(fnmatchcase(each, name) for name in names for each in known)


def _sqlite(words: Sequence[str], own: OwnPaths) -> Iterator[_Told]:
    operands = [word for word in words[1:] if not word.startswith("-")]
    files = [word for word in operands if own.inside(word.removeprefix("file:").partition("?")[0])]
    if not files:
        return
    if "-readonly" in words or "--readonly" in words:
        return
    statements = [part.strip() for word in operands if word not in files for part in word.split(";") if part.strip()]
    kinds = [_kind_of(each) for each in statements]
    if not kinds:
        yield "ask", quoted(files[0])
    elif not all(kinds):
        yield "deny", quoted(files[0])


def _kind_of(statement: str) -> bool:
    """Does it only look?"""
    if statement.startswith("."):
        return _SAFE_DOTS.match(statement) is not None
    if statement.lower().startswith("pragma"):
        return "=" not in statement
    return read_statement(statement).kind.upper() in _SAFE_SQL


# ---------------------------------------------------------------- requests


def _of_requests(view: View, own: OwnPaths) -> Iterator[_Told]:
    for command in view.run:
        words = command.words
        if words and words[0] in _SENDERS:
            if any(calls_for_change(word) for word in words[1:]):
                yield "deny", "a request that changes rules or deletes"
            elif unread_request(words):
                yield "ask", "a request that is read from elsewhere"
            elif any(_sent_to(server, words) for server in own.servers):
                yield "ask", "a request to its store"
    addressed = any(re.match(r"[a-z]{2,8}://", each) for each in view.fields["targets"])
    if addressed and not view.run and any(calls_for_change(each) for each in view.fields["values"]):
        yield "deny", "a request that changes rules or deletes"


def _sent_to(server: str, words: Sequence[str]) -> bool:
    """Is something written to a store on a server?"""
    host = re.sub(r"^.*://(?:[^@/]*@)?", "", plain(server)).rstrip("/")
    sends = any(
        re.fullmatch(r"-d|--data.*|-t|--upload-file|--json|-xdelete|-xput|-xpost|delete|put|post", w) for w in words
    )
    reads = any(re.search(r"/_(?:search|count|mget|cat|source)\b", word) for word in words)
    return bool(host) and sends and not reads and any(f"//{host}" in word or f"@{host}" in word for word in words)


# ---------------------------------------------------------------- switches, the token of changes


def _of_token(view: View, own: OwnPaths) -> Iterator[_Told]:
    """What tells the user from an agent is not read by one."""
    words = (
        word for command in map(_in_place, (each for each in view.run if each.words)) for word in command.words[1:]
    )
    parts = (
        part for word in (*view.fields["targets"], *words) if TOKEN in word for part in (word, *_SPLIT.split(word))
    )
    if (hit := next((part for part in parts if part.endswith(TOKEN) and own.inside(part)), None)) is not None:
        yield "deny", f"{quoted(hit)} holds the user's token"


def _of_switches(tool_name: str, view: View) -> Iterator[_Told]:
    """Hooks or the guard may be switched off in any settings file, and in the environment of an agent."""
    switch = next((found[0] for each in view.fields["values"] if (found := _SWITCHES_OFF.search(each))), None)
    if switch is None:
        return
    if view.run:
        acts = any(not reads_only(each) and each.words[0] != "git" for each in view.run if each.words)
    else:
        acts = _writes(tool_name) and any(not _PROSE.search(each) for each in view.fields["targets"])
    if acts:
        yield "ask", f"{quoted(switch)} switches its guard off"


def _writes(tool_name: str) -> bool:
    """Does a tool say so in its name?"""
    return bool(_WRITING & _words_of(tool_name))


def _words_of(tool_name: str) -> frozenset[str]:
    return frozenset(word.lower() for word in _NAME_WORD.findall(tool_name.replace("_", " ")))


# ---------------------------------------------------------------- tools for files


def _places(arguments: Any) -> Iterator[str]:
    """What else a tool is likely to change: its only argument, or one that is named so."""
    for name, value in arguments.items() if isinstance(arguments, Mapping) else ():
        if isinstance(value, str) and (len(arguments) == 1 or str(name).lower() in _PLACES):
            yield plain(value)


def _of_files(
    tool_name: str, arguments: Any, view: View, own: OwnPaths, hints: Mapping[str, Any] | None
) -> Iterator[_Told]:
    for value in view.fields["values"]:
        if "*** " in value or "+++ " in value:
            for path in patched_files(value):
                if own.inside(path):
                    yield "deny", quoted(path)
    given = [*view.fields["targets"], *_places(arguments)]
    hit = next((each for each in given if len(each) < 1_000 and own.inside(each)), None)
    if hit is None or not may_write(tool_name, arguments, hints):
        return
    if _LOOKING & _words_of(tool_name) and not _writes(tool_name):
        return
    yield ("deny" if _writes(tool_name) or view.fields["statements"] else "ask"), quoted(hit)
