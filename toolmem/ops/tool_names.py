"""Tool names as a request gives them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toolmem.errors import RequestError


def read_tool_names(given: Any) -> list[str] | None:
    """A comma-separated string, or a list (for names that hold a comma). In the order asked, each once.

    None where nothing was given. Raises RequestError.
    """
    if given is None:
        return None
    if isinstance(given, str):
        names: list[Any] = given.split(",")
    elif isinstance(given, Sequence):
        names = list(given)
    else:
        raise RequestError(
            f"tool_names: expected a comma-separated string or a list of names, got {type(given).__name__}",
            field="tool_names",
        )
    wrong = [name for name in names if not isinstance(name, str)]
    if wrong:
        raise RequestError(f"tool_names: expected names, got {wrong[0]!r}", field="tool_names")
    read = list(dict.fromkeys(name.strip() for name in names if name.strip()))
    if not read:
        raise RequestError("tool_names: names no tool", field="tool_names")
    return read
