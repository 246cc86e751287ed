"""What comes from `.env`: a file of the working directory, which may be anybody's.

It is read as the environment's stand-in, and believed less: whoever wrote an address into it does not get the key that
the user keeps in the environment, names no code, and no store that is believed.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

Key = tuple[str, ...]

NAMES_CODE = (
    "comes from .env, which may be anybody's; name the modules in the environment, a configuration or an override"
)
_ABSENT = object()


@dataclass(frozen=True)
class Surroundings:
    """The real environment, and the variables of `.env` behind it."""

    real: Mapping[str, str]
    dotenv: Mapping[str, str]

    @cached_property
    def variables(self) -> dict[str, str]:
        return {**self.dotenv, **self.real}

    def is_dotenvs(self, variable: str) -> bool:
        return variable in self.dotenv and variable not in self.real

    @cached_property
    def marked(self) -> dict[str, str] | None:
        """The variables with another value for each that only `.env` has; None where there is none."""
        marks = {name: secrets.token_hex(8) + "x" for name in self.dotenv if self.is_dotenvs(name)}
        return {**marks, **self.real} if marks else None


class Tainted:
    """Which values of a configuration come from `.env`: those that change with its variables."""

    def __init__(self, tree: Mapping[str, Any] | None = None, marked: Mapping[str, Any] | None = None) -> None:
        self._paths: set[Key] = set()
        self._marked = marked or {}
        if tree is not None:
            self._compare(tree, marked, ())

    def _compare(self, value: Any, marked: Any, path: Key) -> None:
        if isinstance(value, Mapping) and isinstance(marked, Mapping):
            for key, item in value.items():
                self._compare(item, marked.get(key, _ABSENT), (*path, str(key)))
        elif value != marked:
            self._paths.add(path)

    def without(self, path: Key) -> Any:
        """The value with marks in place of what comes from `.env`."""
        here: Any = self._marked
        for part in path:
            here = here.get(part) if isinstance(here, Mapping) else None
        return here

    def add(self, path: Key) -> None:
        self._paths.add(path)

    def holds(self, path: Key) -> bool:
        """Does this value, or a section around it, come from `.env`?"""
        return any(path[:end] in self._paths for end in range(len(path) + 1))
