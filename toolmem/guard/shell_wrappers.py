"""Programs that only run another one: `sudo`, `xargs`, `find -exec`, `ssh`; where what they run begins."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from itertools import takewhile

from toolmem.guard.word_lists import split
from toolmem.late import late_pattern
from toolmem.late_dataclasses import dataclass

_WRAPPERS = {  # program -> its options that take a value
    "sudo": split("-u -g -h -p -C -D -R -T -U -r -t --user --group --host --prompt --chdir --chroot --role --type"),
    "doas": split("-u -C"),
    "env": split("-u -C --unset --chdir"),
    "nice": split("-n --adjustment"),
    "ionice": split("-c -n -p --class --classdata"),
    "nohup": frozenset(),
    "setsid": frozenset(),
    "time": split("-f -o --format --output"),
    "timeout": split("-k -s --kill-after --signal"),
    "stdbuf": split("-i -o -e --input --output --error"),
    "xargs": split("-I -n -P -L -d -E -s -a --replace --max-args --max-procs --delimiter --arg-file"),
    "parallel": split("-j -n -N -I -a --jobs --arg-file"),
    "command": frozenset(),
    "builtin": frozenset(),
    "exec": split("-a"),
    "busybox": frozenset(),
    "chroot": frozenset(),
    "strace": split("-e -o -p -u -P"),
    "ltrace": split("-e -o -p -u"),
    "flock": split("-w -E --timeout --conflict-exit-code"),
    "unbuffer": frozenset(),
    "gosu": frozenset(),
    "su-exec": frozenset(),
    "taskset": frozenset(),
    "chrt": frozenset(),
    "unshare": frozenset(),
    "xvfb-run": split("-n -s -e -f -w --server-num --server-args"),
    **dict.fromkeys(split("pkexec caffeinate torsocks proxychains proxychains4 systemd-run firejail"), frozenset()),
    **dict.fromkeys(split("dbus-run-session rlwrap chronic setarch prlimit run0"), frozenset()),
}
_ONE_BEFORE = split("timeout chroot flock gosu su-exec taskset chrt setarch")  # their first word is their own
_KEYWORDS = split("then do else if elif while until ! { ( coproc")  # of the shell: no command of their own
_INTO = split("-C --chdir -D")  # options of wrappers that change the folder
_JOINED = {  # programs that run their words as one text -> options that take a value, words of their own before
    "ssh": (split("-b -c -D -E -e -F -I -i -J -L -l -m -O -o -p -Q -R -S -W -w"), 1),
    "watch": (split("-n -d --interval"), 0),
    "hyperfine": (split("-w -r --warmup --runs"), 0),
}
_INSIDE = split("docker podman nerdctl kubectl oc")  # programs that run another one somewhere else
_RUNNERS = split("uv poetry pipenv pdm hatch rye pixi conda mamba")
_PACKAGE_RUNNERS = split("npx bunx uvx")  # their first word is the program of a package
_EXECUTES = split("npm pnpm yarn bun bundle pipx")  # -> as `npm exec`, `pnpm dlx`, `bundle exec`, `pipx run`
_PACKAGE_VALUES = split("-p --package --from --with --python -c --call")
_PYTHON = late_pattern(r"python[\d.]*|pypy[\d.]*")
_PYTHON_VALUES = split("-W -X")
_INSIDE_VALUES = split("-e -u -w -v -p -c -n -m --env --user --workdir --volume --name --network --mount --entrypoint")
_EXEC = split("-exec -execdir -ok -okdir -x -X --exec --exec-batch")
_LONGEST_FILLED = 2_000  # characters of a text whose parameters are put in
ASSIGNED = late_pattern(r"[A-Za-z_]\w*\+?=")
_PARAMETER = late_pattern(r"\"?\$(?:\{?[@*]\}?|\{?([1-9])\}?)\"?")


@dataclass(frozen=True, slots=True)
class Wrapped:
    """What a wrapper runs."""

    at: int  # where its words begin
    keeps: bool = True  # the wrapper is a command of its own, and no word of the shell's grammar
    folder: str = ""  # to which it changes first
    reads: bool = False  # it adds words that it reads
    place: str = ""  # in place of this; "" at the end


def program_of(word: str) -> str:
    """A program as its basename."""
    return word.rsplit("/", 1)[-1].lstrip("\\")


def wrapped(words: Sequence[str], at: int) -> Wrapped | None:
    """What the words from `at` on only wrap; None where they are a command themselves."""
    word = program_of(words[at])
    if ASSIGNED.match(word):
        end = at
        while end < len(words) and ASSIGNED.match(words[end]):
            end += 1
        return Wrapped(end)
    if word in _KEYWORDS or word == "function":
        return Wrapped(at + (2 if word == "function" else 1), keeps=False)
    if word not in _WRAPPERS or (word == "command" and words[at + 1 : at + 2] in (["-v"], ["-V"])):
        return None
    return _past(words, at + 1, word)


def _past(words: Sequence[str], at: int, wrapper: str) -> Wrapped:
    """Behind the options of a wrapper."""
    takes, folder, place = _WRAPPERS[wrapper], "", ""
    while at < len(words) and (words[at].startswith("-") or ASSIGNED.match(words[at])):
        if wrapper == "env" and words[at] in {"-S", "--split-string"}:
            break
        following = words[at + 1] if at + 1 < len(words) else ""
        if wrapper in {"env", "sudo"} and words[at] in _INTO:
            folder = following
        if wrapper in {"xargs", "parallel"} and words[at].startswith("-I"):
            place = words[at][2:] or following
        at += 2 if words[at] in takes else 1
    at += wrapper in _ONE_BEFORE and at < len(words)
    return Wrapped(at, folder=folder, place=place, reads=wrapper in {"xargs", "parallel"})


def filled(words: Sequence[str], place: str, given: Sequence[str]) -> list[str]:
    """A command with the words that it is given: in place of `place`, else at the end."""
    if ":::" in words:  # of parallel
        at = list(words).index(":::")
        words, given = words[:at], [each for each in words[at + 1 :] if each != ":::"] or given
    place = place or "{}"
    if not any(place in word for word in words):
        return [*words, *given]
    found: list[str] = []
    for word in words:
        found += [word] if place not in word else list(given) if word == place else _each(word, place, given)
    return found


def _each(word: str, place: str, given: Sequence[str]) -> list[str]:
    parts = len(word) * len(given)
    return [word.replace(place, each) for each in given] if parts < 10 * _LONGEST_FILLED else [word]


def run_as_text(program: str, rest: Sequence[str]) -> str | None:
    """The text that a program runs as a shell would."""
    if program == "eval":
        return " ".join(rest)
    if program == "trap":
        return next((word for word in rest if not word.startswith("-")), None) if len(rest) > 1 else None
    if program in {"-S", "--split-string", "-c"}:  # of env, of flock
        return " ".join(rest)
    if program in {"su", "runuser", "script"}:
        return next((rest[at + 1] for at, word in enumerate(rest[:-1]) if word in {"-c", "--command"}), None)
    if program in _JOINED:
        takes, own = _JOINED[program]
        behind = _behind_options(rest, takes)[own:]
        return " ".join(behind) or None
    return None


def with_parameters(text: str, given: Sequence[str]) -> str:
    """The text of `sh -c TEXT NAME A B` with A and B in their places."""
    if not given or len(text) + sum(map(len, given)) > _LONGEST_FILLED:
        return text
    every = " ".join(map(quoted, given))
    return _PARAMETER.sub(lambda found: every if not found[1] else " ".join(given[int(found[1]) - 1 :][:1]), text)


def quoted(word: str) -> str:
    """A word as a shell would read it again, its variables open."""
    return word if "$" in word else shlex.quote(word)


def looked_through(program: str, rest: Sequence[str]) -> list[str]:
    """Where `find` and `fd` begin."""
    operands = list(takewhile(lambda word: not word.startswith("-") and word not in {"(", "!"}, rest))
    if program == "fd":
        operands = [word for word in rest if not word.startswith("-")][1:]
    return operands or ["."]


def handed_on(program: str, words: Sequence[str]) -> Iterator[Sequence[str]]:
    """What a program runs on each file (`{}` stands for it), or somewhere else."""
    if program in {"find", "fd"}:
        at = 0
        while at < len(words):
            if words[at] in _EXEC:
                ran = list(takewhile(lambda word: word not in {";", "+"}, words[at + 1 :]))
                yield ran
                at += len(ran)
            at += 1
    elif program in _RUNNERS and words[:1] == ["run"]:
        yield _behind_options(words[1:], _INSIDE_VALUES)
    elif _PYTHON.fullmatch(program):
        yield _module(words)
    elif program in _PACKAGE_RUNNERS:
        yield _behind_options(words, _PACKAGE_VALUES)
    elif program in _EXECUTES and words[:1] in (["exec"], ["dlx"], ["x"], ["run"] if program == "pipx" else []):
        yield _behind_options(words[1:], _PACKAGE_VALUES)
    elif program in _INSIDE:
        if "--" in words:
            yield words[words.index("--") + 1 :]
            return
        at = next((at for at, word in enumerate(words) if word in {"exec", "run"}), len(words))
        yield _behind_options(words[at + 1 :], _INSIDE_VALUES)[1:]


def _module(words: Sequence[str]) -> Sequence[str]:
    """What `python -m MODULE ...` runs."""
    at = 0
    while at < len(words) and words[at].startswith("-") and words[at] != "-m":
        at += 2 if words[at] in _PYTHON_VALUES else 1
    return words[at + 1 :] if words[at : at + 1] == ["-m"] else ()


def _behind_options(words: Sequence[str], takes: frozenset[str]) -> Sequence[str]:
    at = 0
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in takes else 1
    return words[at:]
