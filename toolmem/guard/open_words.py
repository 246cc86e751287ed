"""Words of commands that only the shell completes: patterns of files, parameters of functions, what a command prints.

They may stand for what a rule names. A call that holds such a word is asked about where they would break the rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from toolmem.guard.shell_words import UNKNOWN
from toolmem.late import late_pattern

if TYPE_CHECKING:
    from toolmem.guard.view import View

_GLOB = late_pattern(r"[*?]|\[[^\]]")
_GIVEN = late_pattern(r"\$(?:\{?[@*1-9]\}?)|\{\}")
_LONGEST = 500  # characters of such a word
_MOST = 200  # commands with one that are looked at
_TESTS = frozenset(("command", "word", "path", "target", "text"))  # of alternatives
_OF_COMMANDS = frozenset(("commands", "command_lines", "programs", "paths", "hosts", "emails"))


def open_commands(commands: Iterable[Sequence[str]]) -> list[Sequence[str]]:
    """The commands with a word that only the shell completes."""
    return [words for words in commands if any(map(_is_open, words[1:]))][:_MOST]


def with_literals(view: View, literals: Iterable[str]) -> dict[str, Any]:
    """The commands of a view as they are if such a word stands for a literal of a rule; {} where none can."""
    known = list(dict.fromkeys(literals))
    named = [each for each in known if any(each in value for value in view.fields["values"])]
    found = [_completed(words, known, named) for words in view.open]
    made = [words for words in found if words]
    return {"commands": made} if made else {}


def may_bind(when: Any) -> bool:
    """Does a condition speak of what a command line holds?"""
    if isinstance(when, list):
        return any(map(may_bind, when))
    if not isinstance(when, dict):
        return False
    named = {*map(str, when.get("required", ())), *(each for each in when if each in _TESTS)}
    return bool((_OF_COMMANDS | _TESTS) & named) or any(map(may_bind, when.values()))


def _is_open(word: str) -> bool:
    return len(word) <= _LONGEST and (
        UNKNOWN in word or _GLOB.search(word) is not None or _GIVEN.search(word) is not None
    )


def _completed(words: Sequence[str], known: Sequence[str], named: Sequence[str]) -> list[str]:
    """A command with each literal that one of its words may stand for; [] where none may."""
    meant = [each for word in words[1:] if _is_open(word) for each in _meant(word, known, named)]
    return [*words, *dict.fromkeys(meant)] if meant else []


def _meant(word: str, known: Sequence[str], named: Sequence[str]) -> Sequence[str]:
    if UNKNOWN in word or _GIVEN.search(word):
        return named
    return [_below(literal, word) for literal in known if _fits(word, literal)]


def _below(literal: str, pattern: str) -> str:
    """A path with what a longer pattern says of what lies below it."""
    parts = pattern.split("/")[literal.count("/") + 1 :] if "/" in literal else []
    return "/".join([literal, *parts])


def _fits(pattern: str, literal: str) -> bool:
    """Do the parts of a pattern fit those of a path, as far as both go? A `*` stands for no leading dot."""
    if "/" not in literal:
        folder, _, name = pattern.rpartition("/")
        return (not folder or name.strip("*?") != "") and _GLOB.search(name) is not None and _like(name, literal)
    if not literal.startswith(("/", "~")) or pattern[:1] != literal[:1]:
        return False
    parts = list(zip(pattern.split("/"), literal.split("/"), strict=False))
    return len(parts) > 1 and all(_like(part, name) for part, name in parts)


def _like(part: str, name: str) -> bool:
    return fnmatchcase(name, part) and (part.startswith(".") >= name.startswith("."))
