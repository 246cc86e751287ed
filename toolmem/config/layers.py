"""Layers of configuration, merged key by key, and the origin of each value of the result."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from toolmem.errors import ConfigError
from toolmem.late_dataclasses import dataclass, field

Key = tuple[str, ...]

DEFAULT = "default"  # origin of what default.yaml says
CLASS_DEFAULT = "class default"
OVERRIDE = "override"


class Layer(NamedTuple):
    """A tree of values, and the origin of each."""

    tree: dict[str, Any]
    origin: Callable[[Key], str]


@dataclass
class Origins:
    """Where each value of a merged tree came from."""

    tree: dict[str, Any] = field(default_factory=dict)
    sections: dict[Key, str] = field(default_factory=dict)  # where the last layer that has a section begins it

    def add(self, layer: Layer) -> None:
        self._add(self.tree, layer.tree, layer.origin, ())

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
    tree: dict[str, Any] = {}
    try:
        for layer in layers:
            _merge_into(tree, layer.tree, tree)
            origins.add(layer)
        # OmegaConf takes almost as long to load as all of toolmem.
        return (_with_references(tree) if _refers(tree) else tree), origins
    except RecursionError:
        raise ConfigError("configuration: nested too deeply") from None


def _merge_into(tree: dict[str, Any], above: dict[str, Any], whole: dict[str, Any]) -> None:
    for key, value in above.items():
        if isinstance(value, dict):
            tree[key] = _section(tree.get(key), whole)
            _merge_into(tree[key], value, whole)
        else:
            tree[key] = value


def _section(below: Any, whole: dict[str, Any]) -> dict[str, Any]:
    """The section below, or the one that a reference in its place leads to; a new one where there is neither."""
    if isinstance(below, str) and below.startswith("${"):
        below = copy.deepcopy(at(whole, below[2:-1].split(".")))
    return below if isinstance(below, dict) else {}


def _refers(value: Any) -> bool:
    """Does a text in it mean more to OmegaConf than itself?"""
    if isinstance(value, dict):
        return any(_refers(inner) for inner in value.values())
    if isinstance(value, list):
        return any(_refers(inner) for inner in value)
    return isinstance(value, str) and "${" in value


def _with_references(tree: dict[str, Any]) -> dict[str, Any]:
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    try:
        resolved = OmegaConf.to_container(OmegaConf.create(tree), resolve=True)
    except OmegaConfBaseException as error:
        where = getattr(error, "full_key", "") or "configuration"
        raise ConfigError(f"{where}: {str(error).splitlines()[0]}") from error
    assert isinstance(resolved, dict)
    return {str(key): value for key, value in resolved.items()}


def nested(path: Key, value: Any) -> dict[str, Any]:
    """`{"a": {"b": value}}` for the path a.b."""
    for part in reversed(path):
        value = {part: value}
    tree: dict[str, Any] = value
    return tree


def at(tree: Any, path: Sequence[str], default: Any = None) -> Any:
    """What stands at this path of a tree of sections."""
    for part in path:
        if not isinstance(tree, Mapping) or part not in tree:
            return default
        tree = tree[part]
    return tree
