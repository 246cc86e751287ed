"""What a call of git does: its own options gone, aliases opened, a push with the branches that it pushes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from toolmem.guard.shell_words import UNKNOWN
from toolmem.late_dataclasses import dataclass, field

_TAKE_VALUES = frozenset(("-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env"))
_PUSH_VALUES = frozenset(("-o", "--push-option", "--receive-pack", "--exec", "--repo"))
_MOST_ALIASES = 4  # of aliases


@dataclass(slots=True)
class GitReader:
    """Reads one call after the other, and keeps the aliases that they set."""

    aliases: dict[str, str] = field(default_factory=dict)
    directory: Path | None = None  # in which the last one runs

    def read(self, words: Sequence[str], directory: Path | None) -> tuple[list[str], str]:
        """(the arguments without git's own options, the text of an alias that a shell runs)."""
        rest = list(words)
        for _ in range(_MOST_ALIASES):
            rest, directory = self._without_options(rest, directory)
            self._learn(rest)
            text = self.aliases.get(rest[0]) if rest else None
            if text is None:
                break
            self.directory = directory
            if text.startswith("!"):
                return rest, text[1:]
            rest = [*_split(text), *rest[1:]]
        self.directory = directory
        if rest[:1] == ["send-pack"]:
            rest[0] = "push"
        return (_push(rest, directory) if rest[:1] == ["push"] else rest), ""

    def _without_options(self, words: list[str], directory: Path | None) -> tuple[list[str], Path | None]:
        at = 0
        while at < len(words) and words[at].startswith("-"):
            name, _, value = words[at].partition("=")
            takes = name in _TAKE_VALUES and not value
            value = words[at + 1] if takes and at + 1 < len(words) else value
            if name == "-C":
                inner = Path(value)
                directory = inner if inner.is_absolute() or directory is None else directory / inner
            elif name == "-c":
                self._alias(*value.partition("=")[::2])
            at += 2 if takes else 1
        return words[at:], directory

    def _learn(self, words: Sequence[str]) -> None:
        if words[:1] == ["config"]:
            given = [word for word in words[1:] if not word.startswith("-") and word != "set"]
            if len(given) > 1:
                self._alias(given[0], given[1])

    def _alias(self, name: str, text: str) -> None:
        if name.lower().startswith("alias."):
            self.aliases[name[len("alias.") :]] = text


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def _push(words: list[str], directory: Path | None) -> list[str]:
    """`git push` as it would act: without a branch, or with HEAD, it pushes the branch that is checked out."""
    if {"--all", "--mirror", "--branches"} & set(words):
        return [*words, UNKNOWN]
    named: list[str] = []
    after = ""
    for word in words[1:]:
        if not word.startswith("-") and after not in _PUSH_VALUES:
            named.append(word)
        after = word
    branches = [_pushed(spec, directory) for spec in named[1:]]
    if "--tags" in words and not branches:
        return words
    return [*words, *(branches or [_checked_out(directory)])]


def _pushed(spec: str, directory: Path | None) -> str:
    """The branch that a refspec changes: `HEAD:main`, `+main`, `:main` and `refs/heads/main` are main."""
    target = spec.lstrip("+").rpartition(":")[2].removeprefix("refs/").removeprefix("heads/")
    if target.casefold() in {"head", "@"}:
        return _checked_out(directory)
    if target.startswith("tags/"):
        return target
    return UNKNOWN if "$" in target or "*" in target or "`" in target else target


def _checked_out(directory: Path | None) -> str:
    for folder in (directory, *directory.parents) if directory is not None else ():
        try:
            head = (folder / ".git" / "HEAD").read_text(encoding="utf-8", errors="replace")[:1000]
        except (OSError, ValueError):
            continue
        found = re.match(r"ref: refs/heads/(\S+)", head)
        return found[1].casefold() if found else UNKNOWN
    return UNKNOWN
