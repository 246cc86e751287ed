"""The simple commands of a shell text, each as its words: wrappers, pipes and substitutions opened.

Not a shell: what it cannot take apart is said (`Argv.hides`), never guessed. Linear in the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from toolmem.guard.word_lists import split
from toolmem.readers.shell import looks_like_command

UNKNOWN = "\0unknown"  # stands for a word that only the shell or the repository knows
_MOST = 100_000  # characters of a command that are read
_DEEPEST = 8  # `sh -c` within `sh -c`
_WRAPPERS = {  # program -> its options that take a value
    "sudo": split("-u -g -h -p -C -D -R -T -U -r -t"),
    "doas": split("-u -C"),
    "env": frozenset(("-u", "-C", "-S", "--unset", "--chdir")),
    "nice": split("-n"),
    "ionice": frozenset(("-c", "-n", "-p")),
    "nohup": frozenset(),
    "setsid": frozenset(),
    "time": split("-f -o"),
    "timeout": split("-k -s"),
    "stdbuf": frozenset(("-i", "-o", "-e")),
    "xargs": split("-I -n -P -L -d -E -s -a -i"),
    "command": frozenset(),
    "builtin": frozenset(),
    "exec": split("-a"),
    "busybox": frozenset(),
    "chroot": frozenset(),
    "watch": split("-n"),
    "then": frozenset(),
    "do": frozenset(),
    "else": frozenset(),
    "if": frozenset(),
    "elif": frozenset(),
    "while": frozenset(),
    "until": frozenset(),
    "!": frozenset(),
    "{": frozenset(),
    "(": frozenset(),
}
_SHELLS = split("sh bash zsh dash ksh ash fish")
_ASSIGNED = re.compile(r"[A-Za-z_]\w*\+?=")
_GIT_VALUES = frozenset(("-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path"))
_DECODERS = split("base64 base32 xxd openssl gpg uudecode rev tr")


@dataclass(frozen=True, slots=True)
class Argv:
    """One simple command."""

    words: tuple[str, ...]  # the program as its basename, then its arguments
    hides: bool = False  # it runs text that cannot be read here


def is_command(text: str, named_so: bool) -> bool:
    """Is a value a command line? One of a parameter that is named so, or one that begins with a known program."""
    return bool(text) and (named_so or looks_like_command(text[:200]))


def simple_commands(text: str, directory: Path | None = None, depth: int = 0) -> list[Argv]:
    """Each simple command of a shell text."""
    found: list[Argv] = []
    piped = False  # something stands before it in the same pipe
    for words, ends, nested in _segments(text[:_MOST]):
        for inner in nested if depth < _DEEPEST else ():
            found += simple_commands(inner, directory, depth + 1)
        opened = list(_opened(words, directory, depth, piped, bool(nested)))
        found += opened
        piped = ends == "|"
    return found


def _opened(words: Sequence[str], directory: Path | None, depth: int, piped: bool, nested: bool) -> Iterator[Argv]:
    """A command without what only wraps it; where it runs a text as a command, those of the text too."""
    if words and words[0].rsplit("/", 1)[-1] in {"sudo", "doas"}:
        yield Argv((words[0].rsplit("/", 1)[-1], *words[1:]))
    words = list(_unwrapped(words))
    if not words:
        return
    program = words[0].rsplit("/", 1)[-1].lstrip("\\")
    rest = words[1:]
    if program in _SHELLS:
        yield from _shell(program, rest, directory, depth, piped)
    elif program == "eval":
        text = " ".join(rest)
        yield Argv((program, *rest), hides="$" in text or "`" in text or nested)
        if depth < _DEEPEST:
            yield from simple_commands(text, directory, depth + 1)
    elif program in {"find", "fd"} and (handed := _handed_on(rest)):
        yield Argv((program, *rest))
        yield from _opened(handed, directory, depth + 1, False, nested)
    elif program == "git":
        yield Argv(("git", *_git(rest, directory)))
    else:
        yield Argv((program, *rest), hides=program.startswith(("$", "`")) or UNKNOWN in program)
    for path in _written(program, rest):
        yield Argv((">", path))


def _written(program: str, rest: Sequence[str]) -> Sequence[str]:
    """The files that a program writes, moves or takes away, as far as its name says so."""
    plain = [word for word in rest if not word.startswith("-")]
    if program in {"rm", "unlink", "shred", "mv", "tee", "touch", "truncate", "mkdir", "rmdir"}:
        return plain
    if program in {"cp", "ln", "install", "rsync", "scp"}:
        return plain[-1:]
    if program in {"chmod", "chown", "chgrp"}:
        return plain[1:]
    if program == "sed" and any(re.match(r"-[a-z]*i|--in-place", word) for word in rest):
        return plain[1:]
    if program == "dd":
        return [word[len("of=") :] for word in rest if word.startswith("of=")]
    if program in {"vi", "vim", "nano", "emacs", "ed", "ex"}:
        return plain
    return ()


def _shell(program: str, rest: Sequence[str], directory: Path | None, depth: int, piped: bool) -> Iterator[Argv]:
    """`sh -c TEXT` runs the text; a shell at the end of a pipe runs what comes through it."""
    text = next((rest[i + 1] for i, word in enumerate(rest[:-1]) if re.fullmatch(r"-[a-z]*c[a-z]*", word)), None)
    through_pipe = text is None and piped
    yield Argv((program, *rest), hides=through_pipe or (text is not None and ("$" in text or "`" in text)))
    if text is not None and depth < _DEEPEST:
        yield from simple_commands(text, directory, depth + 1)


def _unwrapped(words: Sequence[str]) -> Sequence[str]:
    """Without `sudo -u root`, `env A=1`, `xargs -n 1` and the like in front."""
    at = 0
    while at < len(words):
        word = words[at].rsplit("/", 1)[-1].lstrip("\\")
        if _ASSIGNED.match(word):
            at += 1
        elif word in _WRAPPERS:
            takes = _WRAPPERS[word]
            at += 1
            while at < len(words) and (words[at].startswith("-") or _ASSIGNED.match(words[at])):
                at += 2 if words[at] in takes else 1
            if word in {"timeout", "chroot"} and at < len(words):
                at += 1
        else:
            break
    return words[at:]


def _handed_on(words: Sequence[str]) -> Sequence[str]:
    """What find runs on each file."""
    for at, word in enumerate(words):
        if word in {"-exec", "-execdir", "-ok", "-okdir", "-x", "--exec"}:
            return [each for each in words[at + 1 :] if each not in {";", "+", "{}"}]
    return ()


def _git(words: Sequence[str], directory: Path | None) -> list[str]:
    """Git's arguments without its global options; a push names the branches that it pushes."""
    at = 0
    while at < len(words) and words[at].startswith("-"):
        if words[at] == "-C" and at + 1 < len(words):
            inner = Path(words[at + 1])
            directory = inner if inner.is_absolute() or directory is None else directory / inner
        at += 2 if words[at] in _GIT_VALUES else 1
    rest = list(words[at:])
    return _push(rest, directory) if rest[:1] == ["push"] else rest


def _push(words: list[str], directory: Path | None) -> list[str]:
    """`git push` as it would act: without a branch, or with HEAD, it pushes the branch that is checked out."""
    if {"--all", "--mirror", "--branches"} & set(words):
        return [*words, UNKNOWN]
    takes = {"-o", "--push-option", "--receive-pack", "--exec", "--repo"}
    named: list[str] = []
    after = ""
    for word in words[1:]:
        if not word.startswith("-") and after not in takes:
            named.append(word)
        after = word
    branches = [_pushed(spec, directory) for spec in named[1:]]
    if "--tags" in words and not branches:
        return words
    return [*words, *(branches or [_checked_out(directory)])]


def _pushed(spec: str, directory: Path | None) -> str:
    """The branch that a refspec changes: `HEAD:main`, `+main`, `:main` and `refs/heads/main` are main."""
    target = spec.lstrip("+").rpartition(":")[2].removeprefix("refs/heads/")
    if target.casefold() in {"head", "@"}:
        return _checked_out(directory)
    return UNKNOWN if "$" in target or "*" in target or "`" in target else target


def _checked_out(directory: Path | None) -> str:
    for folder in (directory, *directory.parents) if directory is not None else ():
        try:
            head = (folder / ".git" / "HEAD").read_text(encoding="utf-8", errors="replace")[:1000]
        except OSError:
            continue
        found = re.match(r"ref: refs/heads/(\S+)", head)
        return found[1].casefold() if found else UNKNOWN
    return UNKNOWN


# ---------------------------------------------------------------- words


def _segments(text: str) -> Iterator[tuple[list[str], str, list[str]]]:
    """The words of each simple command, how it ends ("|", ";", ...), and the texts of its substitutions."""
    words: list[str] = []
    nested: list[str] = []
    written: list[str] = []
    word: list[str] | None = None
    into = ""  # "<" or ">" while the file of a redirection is read
    at = 0

    def flush() -> None:
        nonlocal word, into
        if word is not None:
            if not into:
                words.append("".join(word))
            elif into == ">":
                written.append("".join(word))
            into, word = "", None

    while at < len(text):
        mark = text[at]
        if mark in "'\"":
            word = [] if word is None else word
            at, quoted, inside = _quoted(text, at)
            word.append(quoted)
            nested += inside
        elif mark == "\\" and at + 1 < len(text):
            word = [] if word is None else word
            if text[at + 1] != "\n":
                word.append(text[at + 1])
            at += 2
        elif text.startswith("$'", at):
            word = [] if word is None else word
            at, quoted = _ansi(text, at + 1)
            word.append(quoted)
        elif text.startswith(("$(", "<(", ">("), at) or mark == "`":
            word = [] if word is None else word
            at, inner = _substituted(text, at)
            nested.append(inner)
            word.append(UNKNOWN)
        elif mark == "#" and word is None:
            end = text.find("\n", at)
            at = len(text) if end < 0 else end
        elif mark in " \t\r":
            flush()
            at += 1
        elif mark in "|;&\n()":
            if mark == "&" and text[at + 1 : at + 2] == ">":
                at += 1  # &> redirects
                continue
            flush()
            yield from (([">", path], ";", []) for path in written)
            written.clear()
            ends = "|" if mark == "|" and text[at + 1 : at + 2] != "|" else ";"
            if words:
                yield words, ends, nested
            words, nested = [], []
            at += 2 if text[at : at + 2] in {"||", "&&", "|&", ";;"} else 1
        elif mark in "<>":
            if word is not None and "".join(word).isdigit():
                word = None  # 2> names a descriptor
            flush()
            into = mark
            at += 2 if text[at : at + 2] in {">>", "<<", ">|", "<>", ">&", "<&"} else 1
            if text[at : at + 1] == "<":
                at += 1
            if text[at - 1] == "&" and (found := re.compile(r"[\d-]+").match(text, at)):
                at, into = found.end(), ""  # 2>&1
        else:
            word = [] if word is None else word
            start = at
            while at < len(text) and text[at] not in "'\"\\$`# \t\r|;&\n()<>":
                at += 1
            at = max(at, start + 1)
            word.append(text[start:at])
    flush()
    yield from (([">", path], ";", []) for path in written)
    if words:
        yield words, "", nested


def _quoted(text: str, at: int) -> tuple[int, str, list[str]]:
    """A quotation that begins at `at`: where it ends, what it says, and the substitutions in it."""
    mark = text[at]
    if mark == "'":
        end = text.find("'", at + 1)
        end = len(text) if end < 0 else end
        return end + 1, text[at + 1 : end], []
    said: list[str] = []
    nested: list[str] = []
    at += 1
    while at < len(text) and text[at] != '"':
        if text[at] == "\\" and at + 1 < len(text):
            said.append(text[at + 1] if text[at + 1] in '"\\$`' else text[at : at + 2])
            at += 2
        elif text.startswith("$(", at) or text[at] == "`":
            at, inner = _substituted(text, at)
            nested.append(inner)
            said.append(UNKNOWN)
        else:
            said.append(text[at])
            at += 1
    return at + 1, "".join(said), nested


def _ansi(text: str, at: int) -> tuple[int, str]:
    """$'...' with its escapes."""
    end = at + 1
    while end < len(text) and text[end] != "'":
        end += 2 if text[end] == "\\" else 1
    raw = text[at + 1 : end]

    def escaped(found: re.Match[str]) -> str:
        code = found[1]
        if code[0] == "x":
            return chr(int(code[1:], 16))
        return chr(int(code, 8)) if code[0].isdigit() else {"n": "\n", "t": "\t"}.get(code, code)

    return end + 1, re.sub(r"\\(x[0-9a-fA-F]{1,2}|[0-7]{1,3}|.)", escaped, raw, flags=re.DOTALL)


def _substituted(text: str, at: int) -> tuple[int, str]:
    """$(...), <(...) or `...` that begins at `at`: where it ends, and the commands in it."""
    if text[at] == "`":
        end = text.find("`", at + 1)
        end = len(text) if end < 0 else end
        return end + 1, text[at + 1 : end]
    depth, start = 1, at + 2
    at = start
    while at < len(text) and depth:
        if text[at] == "\\":
            at += 1
        elif text[at] in "()":
            depth += 1 if text[at] == "(" else -1
        at += 1
    return at, text[start : at - 1 if depth == 0 else at]
