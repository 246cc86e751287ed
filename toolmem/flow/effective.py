"""Every effective value of a configuration with its origin: what `toolmem config show` prints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import BaseModel, SecretStr

from toolmem.config.hidden_values import HIDDEN, is_secret, masked_value, without
from toolmem.config.layers import CLASS_DEFAULT, DEFAULT
from toolmem.config.problems import dotted
from toolmem.config.scalars import write_scalar
from toolmem.config.settings import STORE_PARAMS, BackendParams, StoreSettings

if TYPE_CHECKING:
    from toolmem.flow.configure import Configured


class Effective(NamedTuple):
    """One setting as it is in effect, and where it comes from."""

    name: str  # dotted
    value: str  # as an override would write it; secrets are hidden
    origin: str  # default, <file>:<line>, override, environment <NAME>, literal in flow <flow>, class default


def effective(configured: Configured) -> list[Effective]:
    """Sections in the order of `Settings`; of an op, what its flows use, one line for each value that differs."""
    rows: list[Effective] = []
    for name in type(configured.settings).model_fields:
        value = getattr(configured.settings, name)
        if name == "op":
            rows += _ops(configured)
        else:
            rows += [
                Effective(dotted(path), _shown(configured, path[-1], leaf), _origin(configured, path))
                for path, leaf in _leaves((name,), value)
            ]
    return rows


def _ops(configured: Configured) -> Iterator[Effective]:
    keys = dict.fromkeys([*configured.settings.op, *(bound.key for bound in configured.bound)])
    for key in keys:
        entry = configured.settings.op.get(key)
        if entry is not None and entry.backend:
            origin = configured.loaded.origins.of(("op", key, "backend"))
            yield Effective(f"op.{key}.backend", entry.backend, origin)
        lines: dict[Effective, None] = {}
        for bound in configured.bound:
            if bound.key == key:
                lines.update(
                    dict.fromkeys(
                        Effective(f"op.{key}.{name}", _shown(configured, name, value.value), value.origin)
                        for name, value in bound.values.items()
                    )
                )
        yield from sorted(lines, key=lambda line: line.name)


def _origin(configured: Configured, path: tuple[str, ...]) -> str:
    origin = configured.loaded.origins.of(path)
    return DEFAULT if origin == CLASS_DEFAULT else origin  # "class default" is said of ops alone


def _leaves(path: tuple[str, ...], value: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(value, StoreSettings):
        ours = STORE_PARAMS.get(value.backend, ())
        yield (*path, "backend"), value.backend
        yield (*path, "embedding_model"), value.embedding_model
        yield from (((*path, "params", name), getattr(value.params, name)) for name in ours)
        yield from (((*path, "params", name), own) for name, own in (value.params.own or {}).items())
    elif isinstance(value, BackendParams) and value.own is not None:
        yield from (((*path, name), own) for name, own in value.own.items())
    elif isinstance(value, BaseModel):
        for name in type(value).model_fields:
            yield from _leaves((*path, name), getattr(value, name))
    elif isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from _leaves((*path, str(name)), inner)
    else:
        yield path, value


def _shown(configured: Configured, name: str, value: Any) -> str:
    return without(_written(name, value), configured.loaded.secrets)


def _written(name: str, value: Any) -> str:
    if isinstance(value, SecretStr) or (is_secret(name) and isinstance(value, str) and value):
        return HIDDEN
    if isinstance(value, BaseModel):
        value = value.model_dump(mode="json")
    if value == "":
        return "''"
    value = masked_value(value)
    try:
        return write_scalar(value)
    except (TypeError, ValueError):
        return str(value)
