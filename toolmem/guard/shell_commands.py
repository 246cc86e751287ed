"""The simple commands of a shell text, each as its words: wrappers, pipes and substitutions opened.

Not a shell: what it cannot take apart is said (`Argv.hides`), never guessed. Linear in the length of the text.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from toolmem.guard.git_commands import GitReader
from toolmem.guard.shell_output import output_of
from toolmem.guard.shell_words import UNKNOWN as UNKNOWN
from toolmem.guard.shell_words import Segment, segments
from toolmem.guard.word_lists import split
from toolmem.late import late_pattern
from toolmem.late_dataclasses import dataclass
from toolmem.readers.shell import looks_like_command

_MOST = 100_000  # characters of a command that are read
_DEEPEST = 8  # `sh -c` within `sh -c`
_DEEPEST_OUTPUT = 3  # substitutions within each other whose output is worked out
_LONGEST_OUTPUT = 2_000  # characters of such a substitution
_LONGEST_PATH = 1_000  # characters of a folder that is gone to
_WRAPPERS = {  # program -> its options that take a value
    "sudo": split("-u -g -h -p -C -D -R -T -U -r -t --user --group --chdir"),
    "doas": split("-u -C"),
    "env": split("-u -C --unset --chdir"),
    "nice": split("-n"),
    "ionice": split("-c -n -p"),
    "nohup": frozenset(),
    "setsid": frozenset(),
    "time": split("-f -o"),
    "timeout": split("-k -s"),
    "stdbuf": split("-i -o -e"),
    "xargs": split("-I -n -P -L -d -E -s -a -i"),
    "parallel": split("-j -n -N -I -a --jobs"),
    "command": frozenset(),
    "builtin": frozenset(),
    "exec": split("-a"),
    "busybox": frozenset(),
    "chroot": frozenset(),
    "strace": split("-e -o -p -u -P"),
    "ltrace": split("-e -o -p -u"),
    "flock": split("-w -E"),
    "unbuffer": frozenset(),
    "gosu": frozenset(),
    "su-exec": frozenset(),
    "taskset": frozenset(),
    **dict.fromkeys(split("pkexec caffeinate torsocks proxychains proxychains4 systemd-run firejail"), frozenset()),
    **dict.fromkeys(split("coproc then do else if elif while until ! { ("), frozenset()),
}
_ONE_BEFORE = split("timeout chroot flock gosu su-exec taskset")  # their first word is their own
_INTO = frozenset(("-C", "--chdir", "-D"))  # options of wrappers that change the folder
_JOINED = {  # programs that run their words as one text -> options that take a value, words of their own before
    "ssh": (split("-b -c -D -E -e -F -I -i -J -L -l -m -O -o -p -Q -R -S -W -w"), 1),
    "watch": (split("-n -d --interval"), 0),
}
_INSIDE = split("docker podman nerdctl kubectl oc")  # programs that run another one somewhere else
_RUNNERS = split("uv poetry pipenv pdm hatch rye pixi conda mamba")
_READS_COMMANDS = split("ssh at batch")  # what they read, they run
_INSIDE_VALUES = split("-e -u -w -v -p -c -n -m --env --user --workdir --volume --name --network --mount --entrypoint")
_SHELLS = split("sh bash zsh dash ksh ash fish")
_ASSIGNED = late_pattern(r"[A-Za-z_]\w*\+?=")
_PARAMETER = late_pattern(r"\"?\$(?:\{?[@*]\}?|\{?([1-9])\}?)\"?")
_GLOB = late_pattern(r"[*?]|\[.")


@dataclass(frozen=True, slots=True)
class Argv:
    """One simple command."""

    words: tuple[str, ...]  # the program as its basename, then its arguments
    hides: bool = False  # it runs text that cannot be read here
    place: str = ""  # the folder that `cd` led to before it


def is_command(text: str, named_so: bool) -> bool:
    """Is a value a command line? One of a parameter that is named so, or one that begins with a known program."""
    return bool(text) and (named_so or looks_like_command(text[:200]))


def simple_commands(text: str, directory: Path | None = None) -> list[Argv]:
    """Each simple command of a shell text that is run in `directory`."""
    return list(_ShellReader(directory).commands(text[:_MOST]))


class _ShellReader:
    """What one shell text says, and what it sets on its way: variables, aliases, files, the working directory."""

    def __init__(self, directory: Path | None) -> None:
        self.git = GitReader()
        self.directory = directory
        self.moved: Path | None = None  # where `cd` has led, against `directory` unless it is absolute
        self.variables: dict[str, str] = {}
        self.aliases: dict[str, str] = {}
        self.files: dict[str, str] = {}  # what the text itself has written into a file
        self.room = 4 * _MOST  # characters that may be read a second time
        self.outputs = 0  # substitutions whose output is being worked out

    def commands(self, text: str, depth: int = 0) -> Iterator[Argv]:
        if depth > _DEEPEST or len(text) > self.room:
            return
        self.room -= len(text) if depth else 0
        folders: list[Path | None] = []
        piped, given = False, None
        for segment in segments(text, self.variables, self.printed):
            if segment.ends == "(":
                folders.append(self.moved)
            elif segment.ends == ")":
                self.moved = folders.pop() if folders else self.moved
            else:
                given = self._input(segment, given)
                for inner in segment.nested:
                    yield from self.commands(inner, depth + 1)
                yield from self._opened(segment.words, depth, _Incoming(piped, given, segment))
                for path in segment.written:
                    yield Argv((">", self._placed(path)))
                self._learn(segment, given)
                piped = segment.ends == "|"
                given = output_of(segment.words, given) if piped else None

    def printed(self, text: str) -> str | None:
        """What a substitution prints, where its text says it: one pipe of commands whose output is known."""
        if len(text) > _LONGEST_OUTPUT or self.outputs >= _DEEPEST_OUTPUT:
            return None
        self.outputs += 1
        try:
            given, ended = None, False
            for segment in segments(text, dict(self.variables), self.printed):
                if ended or segment.ends in "()" or segment.written:
                    return None
                given = output_of(segment.words, self._input(segment, given))
                ended = segment.ends != "|"
            return given
        finally:
            self.outputs -= 1

    def _input(self, segment: Segment, given: str | None) -> str | None:
        if segment.fed is not None:
            return segment.fed
        return self.files.get(segment.read[-1]) if segment.read else given

    def _learn(self, segment: Segment, given: str | None) -> None:
        words = segment.words
        if words[:1] in (["cd"], ["pushd"]) and len(words) > 1 and not words[-1].startswith("-"):
            self._enter(words[-1])
        elif words[:1] == ["alias"]:
            self.aliases |= dict(word.split("=", 1) for word in words[1:] if "=" in word)
        if segment.written or "tee" in words[:1]:
            output = output_of(words, given)
            for path in [*segment.written, *words[1:]] if output is not None else ():
                self.files[path.removeprefix("./")] = output or ""

    def _enter(self, folder: str) -> None:
        if UNKNOWN in folder or "$" in folder:
            return
        moved = Path(folder) if self.moved is None or folder.startswith("~") else self.moved / folder
        if len(str(moved)) <= _LONGEST_PATH:
            self.moved = moved

    @property
    def _place(self) -> str:
        return "" if self.moved is None else str(self.moved)

    def _placed(self, path: str) -> str:
        """A path against the folder that the text has gone to."""
        if self.moved is None or path.startswith(("/", "~", "$", UNKNOWN)):
            return path
        return f"{self.moved}/{path}"

    # -- one command

    def _opened(self, words: Sequence[str], depth: int, given: _Incoming) -> Iterator[Argv]:
        """A command without what only wraps it; where it runs a text as a command, those of the text too."""
        if words and _program(words[0]) in {"sudo", "doas"}:
            yield Argv((_program(words[0]), *words[1:]))
        words = self._unwrapped(words)
        if not words or depth > _DEEPEST:
            return
        program, rest = _program(words[0]), words[1:]
        if program in self.aliases and depth < _DEEPEST:
            meant = self.aliases.pop(program)  # an alias does not mean itself
            yield from self.commands(" ".join([meant, *map(_quoted, rest)]), depth + 1)
            self.aliases[program] = meant
        elif program in _SHELLS:
            yield from self._shell(program, rest, depth, given)
        elif program == "git":
            yield from self._git(rest, depth)
        elif (text := _run_as_text(program, rest)) is not None and not (program == "ssh" and given.text is not None):
            hides = "$" in text or "`" in text or UNKNOWN in text
            yield Argv((program, *rest), hides and program == "eval")
            yield from self.commands(text, depth + 1)
        elif program in {".", "source"} or words[0].removeprefix("./") in self.files:
            yield Argv((program, *rest))
            yield from self._script(rest[0] if program in {".", "source"} and rest else words[0], depth, given)
        elif " " in words[0] and not words[0].startswith(("/", ".")):  # `parallel 'rm {}'`
            yield from self.commands(" ".join(words), depth + 1)
        elif handed := _handed_on(program, rest):
            yield Argv((program, *rest), place=self._place)
            yield from self._opened(handed, depth + 1, given)
        else:
            yield from self._plain(program, rest)
            if program in _READS_COMMANDS and given.text is not None:
                yield from self.commands(given.text, depth + 1)

    def _plain(self, program: str, rest: Sequence[str]) -> Iterator[Argv]:
        hides = program.startswith(("$", "`")) or UNKNOWN in program or is_glob(program)
        yield Argv((program, *rest), hides, self._place)
        placed = [word if word.startswith("-") else self._placed(word) for word in rest]
        if placed != list(rest) and program not in {"cd", "pushd", "echo", "printf"}:
            yield Argv((program, *placed))  # as it stands, and where it leads
        for path in written(program, rest):
            yield Argv((">", self._placed(path)))

    def _git(self, rest: Sequence[str], depth: int) -> Iterator[Argv]:
        directory = self.directory
        if self.moved is not None:
            directory = self.moved if self.directory is None else self.directory / self.moved
        words, text = self.git.read(rest, directory)
        yield Argv(("git", *words), place=self._place)
        if text:
            yield from self.commands(text, depth + 1)

    def _shell(self, program: str, rest: Sequence[str], depth: int, given: _Incoming) -> Iterator[Argv]:
        """`sh -c TEXT` runs the text; without one, a file, or what comes in."""
        at = next((i for i, word in enumerate(rest[:-1]) if re.fullmatch(r"-[a-z]*c[a-z]*", word)), None)
        text = None if at is None else _with_parameters(rest[at + 1], rest[at + 3 :])
        if text is not None:
            yield Argv((program, *rest), hides="$" in text or "`" in text or UNKNOWN in text)
            yield from self.commands(text, depth + 1)
            return
        file = next((word for word in rest if not word.startswith(("-", "+"))), None)
        if file is not None:
            yield Argv((program, *rest))
            yield from self._script(file, depth, given)
            return
        yield Argv((program, *rest), hides=given.piped and given.text is None)
        if given.text is not None:
            yield from self.commands(given.text, depth + 1)

    def _script(self, file: str, depth: int, given: _Incoming) -> Iterator[Argv]:
        """A file that is run: one that the text itself has written, or a substitution."""
        text = self.files.get(file.removeprefix("./"))
        if file == UNKNOWN and given.segment.nested:
            text = self.printed(given.segment.nested[-1])
        if text is not None:
            yield from self.commands(text, depth + 1)

    def _unwrapped(self, words: Sequence[str]) -> Sequence[str]:
        """Without `sudo -u root`, `env A=1`, `xargs -n 1` and the like in front."""
        at = 0
        while at < len(words):
            word = _program(words[at])
            if _ASSIGNED.match(word):
                at += 1
                continue
            if word not in _WRAPPERS or (word == "command" and words[at + 1 : at + 2] in (["-v"], ["-V"])):
                break
            at = self._past(words, at + 1, word)
        return _before_inputs(words[at:]) if "parallel" in words[:at] else words[at:]

    def _past(self, words: Sequence[str], at: int, wrapper: str) -> int:
        """Behind the options of a wrapper."""
        takes = _WRAPPERS[wrapper]
        while at < len(words) and (words[at].startswith("-") or _ASSIGNED.match(words[at])):
            if wrapper == "env" and words[at] in {"-S", "--split-string"}:
                break
            if wrapper in {"env", "sudo"} and words[at] in _INTO and at + 1 < len(words):
                self._enter(words[at + 1])
            at += 2 if words[at] in takes else 1
        return at + 1 if wrapper in _ONE_BEFORE and at < len(words) else at


@dataclass(frozen=True, slots=True)
class _Incoming:
    """What a command reads."""

    piped: bool  # from a command before it
    text: str | None  # where that is known
    segment: Segment


def is_glob(program: str) -> bool:
    """Is it a pattern that only the files at hand complete?"""
    return _GLOB.search(program) is not None


def written(program: str, rest: Sequence[str]) -> Sequence[str]:
    """The files that a program writes, moves or takes away, as far as its name says so."""
    plain = [word for word in rest if not word.startswith("-")]
    if program in {"rm", "unlink", "shred", "mv", "tee", "touch", "truncate", "mkdir", "rmdir"}:
        return plain
    if program in {"cp", "ln", "install", "rsync", "scp"}:
        return _into(rest) or plain[-1:]
    if program in {"chmod", "chown", "chgrp"}:
        return plain[1:]
    if program == "sed" and any(re.match(r"-[a-zA-Z]*i|--in-place", word) for word in rest):
        return plain[1:]
    if program == "dd":
        return [word[len("of=") :] for word in rest if word.startswith("of=")]
    if program in {"vi", "vim", "nano", "emacs", "ed", "ex"}:
        return plain
    return ()


def _into(rest: Sequence[str]) -> list[str]:
    """The folder of `cp -t FOLDER`."""
    for at, word in enumerate(rest):
        if word.startswith("--target-directory="):
            return [word.partition("=")[2]]
        if word in {"-t", "--target-directory"}:
            return list(rest[at + 1 : at + 2])
    return []


def _program(word: str) -> str:
    return word.rsplit("/", 1)[-1].lstrip("\\")


def _quoted(word: str) -> str:
    return word if "$" in word else shlex.quote(word)


def _run_as_text(program: str, rest: Sequence[str]) -> str | None:
    """The text that a program runs as a shell would."""
    if program == "eval":
        return " ".join(rest)
    if program == "trap":
        return next((word for word in rest if not word.startswith("-")), None) if len(rest) > 1 else None
    if program in {"-S", "--split-string"}:  # of env
        return " ".join(rest)
    if program in {"su", "runuser", "script"}:
        return next((rest[at + 1] for at, word in enumerate(rest[:-1]) if word in {"-c", "--command"}), None)
    if program in _JOINED:
        takes, own = _JOINED[program]
        behind = _behind_options(rest, takes)[own:]
        return " ".join(behind) or None
    return None


def _with_parameters(text: str, given: Sequence[str]) -> str:
    """The text of `sh -c TEXT NAME A B` with A and B in their places."""
    if not given or len(text) + sum(map(len, given)) > _LONGEST_OUTPUT:
        return text
    every = " ".join(map(_quoted, given))
    return _PARAMETER.sub(lambda found: every if not found[1] else " ".join(given[int(found[1]) - 1 :][:1]), text)


def _behind_options(words: Sequence[str], takes: frozenset[str]) -> Sequence[str]:
    at = 0
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in takes else 1
    return words[at:]


def _handed_on(program: str, words: Sequence[str]) -> Sequence[str]:
    """What a program runs on each file, or somewhere else."""
    if program in {"find", "fd"}:
        for at, word in enumerate(words):
            if word in {"-exec", "-execdir", "-ok", "-okdir", "-x", "--exec"}:
                return [each for each in words[at + 1 :] if each not in {";", "+", "{}"}]
    if program in _RUNNERS and words[:1] == ["run"]:
        return _behind_options(words[1:], _INSIDE_VALUES)
    if program in _INSIDE:
        if "--" in words:
            return words[words.index("--") + 1 :]
        at = next((at for at, word in enumerate(words) if word in {"exec", "run"}), len(words))
        return _behind_options(words[at + 1 :], _INSIDE_VALUES)[1:]
    return ()


def _before_inputs(words: Sequence[str]) -> Sequence[str]:
    """The command of `parallel`, without what it is run on."""
    return words[: words.index(":::")] if ":::" in words else words
