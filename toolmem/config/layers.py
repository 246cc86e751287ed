"""Layers of configuration, merged by OmegaConf, and the origin of each value of the result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from toolmem.errors import ConfigError

Key = tuple[str, ...]

DEFAULT = "default"  # origin of what default.yaml says
CLASS_DEFAULT = "class default"
OVERRIDE = "override"


@dataclass(frozen=True)
class Layer:
    """A tree of values, and the origin of each."""

    name: str
    tree: dict[str, Any]
    origin: Callable[[Key], str]


@dataclass
class Origins:
    """Where each value of a merged tree came from."""

    tree: dict[str, Any] = field(default_factory=dict)
    sections: dict[Key, str] = field(default_factory=dict)  # where the last layer that has a section begins it

    def add(self, tree: dict[str, Any], origin: Callable[[Key], str]) -> None:
        self._add(self.tree, tree, origin, ())

    def _add(self, into: dict[str, Any], tree: dict[str, Any], origin: Callable[[Key], str], path: Key) -> None:
        for key, value in tree.items():
            here = (*path, key)
            if isinstance(value, dict):
                self.sections[here] = origin(here)
                below = into.get(key)
                if not isinstance(below, dict):
                    below = into[key] = {}
                self._add(below, value, origin, here)
            else:
                into[key] = origin(here)

    def put(self, path: Key, origin: str) -> None:
        here = self.tree
        for part in path[:-1]:
            below = here.get(part)
            if not isinstance(below, dict):
                below = here[part] = {}
            here = below
        here[path[-1]] = origin

    def of(self, path: Key) -> str:
        """`class default` for what no layer says."""
        here: Any = self.tree
        for part in path:
            if not isinstance(here, dict):
                break  # inside a list: where the list came from
            here = here.get(part)
        return here if isinstance(here, str) else CLASS_DEFAULT

    def near(self, path: Key) -> str:
        """As `of`; of a section, or of what is missing in one, where the section begins."""
        while path:
            origin = self.of(path)
            if origin != CLASS_DEFAULT or path in self.sections:
                return origin if origin != CLASS_DEFAULT else self.sections[path]
            path = path[:-1]
        return CLASS_DEFAULT

    def all_of(self, path: Key) -> set[str]:
        """The origins of a value and of all that is in it."""
        here: Any = self.tree
        for part in path:
            here = here.get(part) if isinstance(here, dict) else here
        return _leaves(here)


def _leaves(here: Any) -> set[str]:
    if isinstance(here, dict):
        return set().union(*(_leaves(value) for value in here.values()))
    return {here} if isinstance(here, str) else set()


def merge(layers: Sequence[Layer]) -> tuple[dict[str, Any], Origins]:
    """Sections are merged key by key, later layers win; lists and scalars are replaced.

    `${section.key}` refers to another value of the merged configuration. Raises ConfigError where such a reference
    leads nowhere.
    """
    origins = Origins()
    try:
        if any(_refers(layer.tree) for layer in layers):  # OmegaConf takes almost as long to load as all of toolmem
            return _merged_with_references(layers, origins), origins
        tree: dict[str, Any] = {}
        for layer in layers:
            _merge_into(tree, layer.tree)
            origins.add(layer.tree, layer.origin)
        return tree, origins
    except RecursionError:
        raise ConfigError("configuration: nested too deeply") from None


def _refers(value: Any) -> bool:
    """Does a text in it mean more to OmegaConf than itself: a reference, or a value that is still missing?"""
    if isinstance(value, dict):
        return any(_refers(inner) for inner in value.values())
    if isinstance(value, list):
        return any(_refers(inner) for inner in value)
    return isinstance(value, str) and ("${" in value or value == "???")


def _merge_into(tree: dict[str, Any], above: dict[str, Any]) -> None:
    for key, value in above.items():
        if isinstance(value, dict):
            below = tree.get(key)
            if not isinstance(below, dict):
                below = tree[key] = {}
            _merge_into(below, value)
        else:
            tree[key] = value


def _merged_with_references(layers: Sequence[Layer], origins: Origins) -> dict[str, Any]:
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    merged: Any = OmegaConf.create({})
    for layer in layers:
        try:
            merged = OmegaConf.unsafe_merge(merged, OmegaConf.create(layer.tree))  # both are ours: nothing is copied
        except RecursionError:
            raise ConfigError(f"{layer.name}: nested too deeply") from None
        except OmegaConfBaseException as error:
            raise ConfigError(f"{layer.name}: {_first_line(error)}") from error
        origins.add(layer.tree, layer.origin)
    try:
        tree = OmegaConf.to_container(merged, resolve=True)
    except RecursionError:
        raise ConfigError("configuration: a reference is nested too deeply") from None
    except OmegaConfBaseException as error:
        raise ConfigError(f"{getattr(error, 'full_key', '') or 'configuration'}: {_first_line(error)}") from error
    assert isinstance(tree, dict)
    return {str(key): value for key, value in tree.items()}


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0]


def nested(path: Key, value: Any) -> dict[str, Any]:
    """`{"a": {"b": value}}` for the path a.b."""
    for part in reversed(path):
        value = {part: value}
    tree: dict[str, Any] = value
    return tree
