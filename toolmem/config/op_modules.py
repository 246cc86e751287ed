"""Imports the modules that `op_modules` names, so that the ops which they define or register are known."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from toolmem.errors import ConfigError

KEY = "op_modules"


def import_op_modules(
    tree: Mapping[str, Any],
    place: Callable[[tuple[str, ...]], str],
    imported: Callable[[ModuleType], None] | None = None,
) -> list[str]:
    """Import what the merged configuration names; answers the problems, one line for each module that cannot be.

    `imported` is handed each of the modules; what it raises as ConfigError is a problem as well.

    They may lie in the working directory, which is searched last, so that a file there hides no library, and for them
    alone: whatever else lies there is never run. A module that this process has imported before is not run again. What
    is no list of texts is left to the check of the settings.
    """
    names = tree.get(KEY)
    problems = []
    for name in names if isinstance(names, list) else ():
        if not isinstance(name, str):
            continue
        try:
            with _working_directory_searched():
                module = importlib.import_module(name)
        except Exception as error:  # whatever a module of somebody else's raises
            problems.append(f"{KEY}: {name!r} cannot be imported ({_reason(error)}){_placed(place)}")
            continue
        try:
            if imported is not None:
                imported(module)
        except ConfigError as error:
            problems += [f"{KEY}: {name!r}: {problem}{_placed(place)}" for problem in error.problems]
    return problems


def _placed(place: Callable[[tuple[str, ...]], str]) -> str:
    where = place((KEY,))
    return f" [{where}]" if where else ""


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


@contextmanager
def _working_directory_searched() -> Iterator[None]:
    if "" in sys.path:
        yield
        return
    sys.path.append("")
    try:
        yield
    finally:
        if "" in sys.path:
            sys.path.remove("")
