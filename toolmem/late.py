"""Made when it is first used: a hook is a process of its own, and uses little of what it imports."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    import logging

_METHODS = ("search", "match", "fullmatch", "finditer", "findall", "sub", "subn", "split")


class _LatePattern:
    def __init__(self, text: str, flags: int) -> None:
        self._as_given = text, flags

    def __getattr__(self, name: str) -> Any:
        """Of the compiled one, whose methods are found without this from now on."""
        compiled = re.compile(*self._as_given)
        self.__dict__.update((method, getattr(compiled, method)) for method in _METHODS)
        return getattr(compiled, name)


def late_pattern(text: str, flags: int = 0) -> re.Pattern[str]:
    """A regular expression that is compiled when it is first used."""
    return cast("re.Pattern[str]", _LatePattern(text, flags))


_waiting: list[Callable[[], None]] = []


def before_logging(work: Callable[[], None]) -> None:
    """Done once, before a late logger is first used: what says where its words go."""
    _waiting.append(work)


class _LateLogger:
    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        import logging  # 5 ms, and most processes say nothing

        while _waiting:
            _waiting.pop()()
        return getattr(logging.getLogger(self._name), name)


def late_logger(name: str) -> logging.Logger:
    """The logger of this name."""
    return cast("logging.Logger", _LateLogger(name))
