"""A call in the steps that it runs one after the other: which worked if a later one runs, and which write files.

pytest && git commit     two steps: where the second runs, the first has worked
pytest; git commit       two: of the first nobody knows how it ended
pytest || true           nobody knows that of either
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from toolmem.guard.effects import reads_only, starts_background
from toolmem.guard.handed_commands import handed_lines
from toolmem.guard.shell_commands import Argv, read_in_steps
from toolmem.guard.shell_files import written
from toolmem.guard.shell_words import Segment
from toolmem.guard.shell_wrappers import program_of
from toolmem.guard.tool_classes import scopes_of
from toolmem.guard.units import units_of, with_units
from toolmem.guard.view import View, lowered, visible
from toolmem.guard.word_lists import split, words
from toolmem.late import late_pattern
from toolmem.late_dataclasses import dataclass

_SHELLS = split("sh bash zsh dash ksh ash fish")
_RUNS_TEXT = late_pattern(r"-[a-z]*c[a-z]*")
_DEEPEST = 4  # shells that only run a text, in each other
_GRAMMAR = split("if then elif else fi for while until do done case esac select function { } ! coproc alias eval trap")
_FILES = frozenset(("@write", "@delete"))
_FIXES = late_pattern(r"--(?:[a-z]+-)?fix(?:-[a-z]+)*|--write|--in-place|--autofix|--apply|--update")
_OUTPUT = late_pattern(r"-[a-zA-Z]*[oO]|--(?:output|remote-name|output-dir)\b.*")
_INDEX_OF_GIT = split(
    "add commit push fetch tag remote config notes gc branch"
)  # they change no file that is worked on
_ELSEWHERE = words("outside_programs") - split("wget rsync scp sftp rclone ftp lftp smbclient git")
_CHECKERS = split(
    "pytest py.test tox nox unittest mypy pyright pylint flake8 bandit tsc jest vitest mocha ava eslint stylelint "
    "phpunit phpstan rspec rubocop ctest shellcheck hadolint yamllint markdownlint golangci-lint staticcheck "
    "import-linter lint-imports coverage"
)
_RUNNERS = split(
    "npm yarn pnpm bun make just task cargo go dotnet mvn gradle gradlew mix rake bazel swift deno composer"
)
_CHECKS = split("test tests check lint typecheck type-check types vet clippy verify bench build t ci")


@dataclass(frozen=True, slots=True)
class CallStep:
    """One of the steps of a call.

    Where it runs, those from `chain` on have worked of which it is `certain` that they ran.
    """

    units: Sequence[dict[str, Any]]
    writes: bool  # a file, as far as it can be read
    may_write: bool  # it may: a program of which nothing is known
    chain: int
    certain: bool


@dataclass(frozen=True, slots=True)
class CallSteps:
    """All of them, in order. Where the call has worked, so have those from `told` on of which it is certain."""

    steps: Sequence[CallStep]
    told: int

    def places(self) -> dict[str, list[int]]:
        """In which steps a line stands."""
        found: dict[str, list[int]] = {}
        for at, step in enumerate(self.steps):
            for line in dict.fromkeys(line for unit in step.units for line in unit["lines"]):
                found.setdefault(line, []).append(at)
        return found


def steps_of(view: View) -> CallSteps:
    """The steps of a call. Linear in its size."""
    name, arguments = view.fields["tool_name"], view.fields["arguments"]
    lines = [each.text for each in handed_lines(name, arguments, view.declared) if each.named]
    if not lines:
        wrote = not _FILES.isdisjoint(scopes_of(name, view.declared, arguments))
        return CallSteps([CallStep(with_units(view)["units"], wrote, False, 0, True)], 0)
    steps: list[CallStep] = []
    told = 0
    for line in lines:  # how several hang together is not told
        read, told = _of_text(line, view.directory, with_units(view)["tools"], known=len(lines) == 1)
        steps += read
    if len(lines) > 1 or starts_background(arguments, name):
        told = len(steps)
    return CallSteps(steps, told)


def _of_text(text: str, directory: Path | None, tools: Sequence[str], *, known: bool) -> tuple[list[CallStep], int]:
    segments, commands = read_in_steps(_unwrapped(visible(text)), directory)
    links, told = _links(segments)
    by_step: list[list[Argv]] = [[] for _ in segments]
    for at, each in commands:
        by_step[at].append(lowered(each))
    steps = []
    for of, (chain, certain) in zip(by_step, links, strict=True):
        units = [{**unit, "tools": tools} for unit in units_of(of, directory)]
        steps.append(CallStep(units, any(map(_writes, of)), any(map(_may_write, of)), chain, certain and known))
    return steps, told


def _unwrapped(text: str) -> str:
    """What `bash -lc TEXT` runs, where a text is nothing else."""
    for _ in range(_DEEPEST):
        segments, _ = read_in_steps(text)
        given = segments[0].words if len(segments) == 1 else []
        at = next((i for i, word in enumerate(given[:-1]) if i and _RUNS_TEXT.fullmatch(word)), 0)
        if not given or program_of(given[0]) not in _SHELLS or not at or at + 2 != len(given):
            break
        text = given[at + 1]
    return text


def _links(segments: Sequence[Segment]) -> tuple[list[tuple[int, bool]], int]:
    """For each segment where its chain begins, and whether it is certain in it; where the chain of the whole begins."""
    if any(each.ends in "()" or not _GRAMMAR.isdisjoint(each.words[:1]) for each in segments):
        return [(0, False)] * len(segments), len(segments)
    links: list[tuple[int, bool]] = []
    chain, may_be_skipped = 0, False  # it runs only where something failed
    told = 0
    for at, each in enumerate(segments):
        links.append((chain, each.ends != "|" and not may_be_skipped))
        if each.ends == "|":
            continue
        told = len(segments) if each.joint == "&" else chain
        may_be_skipped = each.joint == "||"
        chain = chain if each.joint == "&&" else at + 1
    return links, told


# ---------------------------------------------------------------- which write files


def _writes(command: Argv) -> bool:
    """Does it write a file, as it says itself?"""
    program, *rest = command.words or ("",)
    if command.kind != "runs":
        return False
    if program == ">":
        return rest[:1] != ["/dev/null"]
    return bool(written(program, rest)) or any(map(_FIXES.fullmatch, rest))


def _may_write(command: Argv) -> bool:
    """Might it, for all that is known of its program?"""
    program, *rest = command.words or ("",)
    if command.kind != "runs" or program == ">" or reads_only(command):
        return False
    if program == "git":
        return not rest or rest[0] not in _INDEX_OF_GIT
    if program in _ELSEWHERE:
        return any(map(_OUTPUT.fullmatch, rest)) and program in {"curl", "http", "https", "xh"}
    return not _is_check(program, rest)


def _is_check(program: str, rest: Sequence[str]) -> bool:
    """A run of tests, or of what looks through the code."""
    named = [word for word in rest if not word.startswith("-")]
    if re.fullmatch(r"python[\d.]*", program):
        return rest[:1] == ["-m"] and _is_check("".join(rest[1:2]), rest[2:])
    if program in {"ruff", "black", "isort", "prettier", "biome", "gofmt", "rustfmt"}:
        return "check" in named[:1] or "--check" in rest or "--diff" in rest or "-l" in rest
    if program in _RUNNERS:
        words = [word for word in named if word not in {"run", "exec"}]
        return bool(words) and words[0].split(":")[0] in _CHECKS
    return program in _CHECKERS
