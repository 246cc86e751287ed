"""Imports the modules that `op_modules` names, so that the ops which they register are known."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

KEY = "op_modules"


def import_op_modules(tree: Mapping[str, Any], place: Callable[[tuple[str, ...]], str]) -> list[str]:
    """Import what the merged configuration names; answers the problems, one line for each module that cannot be.

    A module that this process has imported before is not run again. What is no list of texts is left to the check of
    the settings.
    """
    names = tree.get(KEY)
    problems = []
    for name in names if isinstance(names, list) else ():
        if not isinstance(name, str):
            continue
        try:
            importlib.import_module(name)
        except Exception as error:  # whatever a module of somebody else's raises
            where = place((KEY,))
            problems.append(f"{KEY}: {name!r} cannot be imported ({_reason(error)}){f' [{where}]' if where else ''}")
    return problems


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
