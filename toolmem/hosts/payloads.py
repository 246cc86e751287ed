"""What the files of several agents need to read their payloads and recordings. Nothing here raises."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any


def tools_by_class(none: str = "", **classes: str) -> dict[str, tuple[str, ...]]:
    """An agent's own tools, their names separated by spaces: `shell="bash", read="view list"`; `none`: of no class."""
    named = {name: (each,) for each, names in classes.items() for name in names.split()}
    return named | dict.fromkeys(none.split(), ())


def json_object(line: str) -> Mapping[str, Any]:
    """One line of a recording; {} for what cannot be read."""
    try:
        read = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return read if isinstance(read, Mapping) else {}


def objects_in(value: Any) -> list[Mapping[str, Any]]:
    """The objects of a list; [] of anything else."""
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []


def object_in(payload: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A field that is an object; {} where it is not there, or something else."""
    value = payload.get(name)
    return value if isinstance(value, Mapping) else {}


def alike(tool: str, arguments: Any) -> str:
    """What calls have in common that are one and the same to an agent which gives them no ids."""
    from hashlib import sha256

    try:
        told = json.dumps([tool, arguments], sort_keys=True, default=str)
    except (TypeError, ValueError, RecursionError):
        told = tool
    return sha256(told.encode("utf-8", "replace")).hexdigest()[:24]


def moment_key(moment: Any, tool: str = "", arguments: Any = None) -> str:
    """What tells an event from the next where the agent gives it no id: of a call what it is, and its moment."""
    return f"{alike(tool, arguments)} {moment if isinstance(moment, str | int | float) else ''}"


def newest(files: Iterable[Any], most: int = 200) -> list[Any]:
    """Paths, the one that was last written first."""
    timed = []
    for path in files:
        try:
            timed.append((path.stat().st_mtime, str(path), path))
        except OSError:
            continue
    return [path for _, _, path in sorted(timed, reverse=True)[:most]]


def milliseconds_in(payload: Mapping[str, Any], name: str) -> float | None:
    """A field of milliseconds, in seconds."""
    value = payload.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value / 1000 if 0 <= value < 1e12 else None


def plugin_text(name: str, command: list[str]) -> str:
    """A plugin of ours, with the command that it starts."""
    from pathlib import Path

    text = Path(__file__).with_name("plugins").joinpath(name).read_text("utf-8")
    return text.replace('["@COMMAND@"]', json.dumps(command, ensure_ascii=False))
