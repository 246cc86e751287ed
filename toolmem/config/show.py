"""List every effective setting with its origin."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from toolmem.config.check import redact
from toolmem.config.layers import Path
from toolmem.config.load import Configuration


class ShownSetting(NamedTuple):
    """A setting without credentials. `origin`: `my.yaml:2`, `default:3` (packaged) and so on."""

    name: str
    value: Any
    origin: str


def shown_settings(
    configuration: Configuration, params: Mapping[str, tuple[Struct, Mapping[str, Any]]]
) -> list[ShownSetting]:
    """List settings by name. `params`: of each op, all in force, and those set in a flow's text."""
    layer = configuration.layer
    found = {
        path: value
        for path, value in _leaves(configuration.settings, ())
        if path[0] != "op" or path[2:3] != ("params",)
    }
    origins: dict[Path, str] = {}
    for key, (effective, literals) in params.items():
        overrides = configuration.op_params(key, overrides=True)
        for name in effective.__struct_fields__:
            path = ("op", key, "params", name)
            found[path] = getattr(effective, name)
            if name in literals and name not in overrides:
                origins[path] = "flow_content"
    return [
        ShownSetting(".".join(path), redact(path, value), origins.get(path) or _origin(layer, path))
        for path, value in sorted(found.items())
    ]


def _origin(layer: Mapping[Path, Any], path: Path) -> str:
    """Return the origin of a value, or of the nearest mapping around the value."""
    parents = (path[:end] for end in range(len(path), 0, -1))
    return next((layer[each].origin for each in parents if each in layer), "class default")


def _leaves(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    if isinstance(value, Struct):
        for field in msgspec.structs.fields(type(value)):
            yield from _leaves(getattr(value, field.name), (*path, field.encode_name))
    elif isinstance(value, dict) and value:
        for key, each in value.items():
            yield from _leaves(each, (*path, key))
    else:
        yield path, value
