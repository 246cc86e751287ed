"""What a shell command is made of: programs, their flags, and how they are joined."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_QUOTED = re.compile(r"'[^']*'|\"(?:[^\"\\]|\\.)*+(?:\"|(?P<open>\Z))", re.DOTALL)
_COMMENT = re.compile(r"^[^\S\n]*+#[^\n]*", re.MULTILINE)
_JOINT = re.compile(r"\|\||&&|\||;|\n|&(?!\d)|\$\(|`|(?<!\\)\)")  # $( ... ) holds another command
_HIDING = frozenset(
    {"|", ";", "\n", "||"}
)  # after these a failure of what stands before is not told
_WORD = re.compile(r"[\w./+-]{1,80}")
_ASSIGNMENT = re.compile(r"^[A-Za-z_]\w*=")
_PROGRAM = re.compile(r"^(?=[\w./+@-]*[A-Za-z])[\w./+@-]+$")
_FLAG = re.compile(r"^--?[A-Za-z][\w-]*")
_WRAPPERS = _words("sudo env time nohup exec command builtin then do else if elif while until !")
_HANDS_ON = frozenset(
    {"-exec", "-execdir", "-ok", "-okdir"}
)  # find: what follows is another program
COMMON_PROGRAMS = _words(
    "ls cd cat echo find grep sed awk head tail sort uniq wc cut tr xargs cp mv rm mkdir rmdir touch chmod chown ln "
    "tar gzip gunzip zip unzip curl wget git make cmake gcc python python3 pip pip3 node npm npx yarn go cargo rustc "
    "java javac mvn docker kubectl ssh scp rsync ps kill top df du file diff which pwd whoami uname date export source "
    "bash sh printf test tee apt apt-get yum brew systemctl mount ping openssl base64 xxd strings pytest tree less "
    "more sqlite3 mysql psql jq rev comm join nl md5sum sha256sum stat man who history"
)
_PARTS = (
    ("a pipe", re.compile(r"(?<!\|)\|(?!\|)")),
    ("&&", re.compile(r"&&")),
    ("||", re.compile(r"\|\|")),
    ("a redirection", re.compile(r"(?<![<>&\d])\d?>>?(?!\()")),
    ("$(...)", re.compile(r"\$\(|`")),
    ("a wildcard", re.compile(r"(?<!\S)[^\s'\"]*\*")),
    ("a here-document", re.compile(r"<<-?\s*['\"]?\w+")),
    ("cd", re.compile(r"(?:^|[;&|]\s*)cd\s")),
)


@dataclass(frozen=True, slots=True)
class Command:
    """What one shell command holds."""

    program: str  # the first program; "" where it does not begin with one
    programs: tuple[str, ...]  # in order, each once
    flags: frozenset[str]  # "find -exec": with the program that they belong to
    parts: frozenset[str]  # how it is joined: pipe, redirection, ...
    arguments: tuple[str, ...]  # everything that is neither program nor flag, in order
    balanced: bool  # every quote is closed


def looks_like_command(text: str) -> bool:
    """It begins with a well-known program, or a path to one."""
    first = text.split(None, 1)[0] if text.split() else ""
    return first.rsplit("/", 1)[-1] in COMMON_PROGRAMS or first.startswith(("./", "/"))


def _without_quotes(text: str) -> tuple[str, list[str]]:
    """The text with a mark for each quotation, without comments; and the quotations."""
    quotes: list[str] = []

    def keep(found: re.Match[str]) -> str:
        if found["open"] is not None:
            return found.group()  # never closed: the rest stays as it is
        quotes.append(found.group())
        return f"\0{len(quotes) - 1}\0"

    return _QUOTED.sub(keep, _COMMENT.sub("", text.replace("\0", ""))), quotes


def read_command(text: str) -> Command:
    """Read one command; `text` should be cut to a few thousand characters by the caller."""
    bare, quotes = _without_quotes(text)
    programs: dict[str, None] = {}
    flags: set[str] = set()
    arguments: list[str] = []
    for segment in _JOINT.split(bare):
        words = list(itertools.dropwhile(_wraps, segment.split()))
        if not words:
            continue
        program = words[0].rsplit("/", 1)[-1] if _PROGRAM.match(words[0]) else ""
        if program:
            programs.setdefault(program)
        handed_on = program == "xargs"
        for word in words[1:]:
            found = _FLAG.match(word)
            if found and program:
                flags.add(f"{program} {found.group()}")
                handed_on = handed_on or word in _HANDS_ON
            elif handed_on and _PROGRAM.match(word):
                program, handed_on = word.rsplit("/", 1)[-1], False
            else:
                arguments.append(re.sub(r"\0(\d+)\0", lambda m: quotes[int(m.group(1))], word))
    first = bare.split(None, 1)[0] if bare.split() else ""
    return Command(
        program=next(iter(programs)) if programs and not first.startswith("\0") else "",
        programs=tuple(programs),
        flags=frozenset(flags),
        parts=frozenset(name for name, pattern in _PARTS if pattern.search(bare)),
        arguments=tuple(arguments),
        balanced="'" not in bare and '"' not in bare,
    )


def _wraps(word: str) -> bool:
    """A word before the program: `sudo`, or a variable that is set for it."""
    return word in _WRAPPERS or _ASSIGNMENT.match(word) is not None
