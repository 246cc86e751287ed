"""Configuration layers: flat mappings from a path to its value and the place it came from.

A later layer replaces the values of earlier ones at the same path. Scalars follow one rule in files
and overrides: integers, decimals, `true`, `false` and `null` are what they look like, everything
else is text. (YAML 1.1 would read `no` as false and `12:30` as 750.)
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import yaml

from toolmem.errors import ConfigError

Path = tuple[str, ...]
OVERRIDE = "override"
BACKENDS = ("llm", "embedding_model", "vector_store")  # sections whose entries have a backend


class Setting(NamedTuple):
    """A value and where it came from: `default:3` (packaged), `my.yaml:12` or `override`."""

    value: Any
    origin: str


Layer = dict[Path, Setting]


class Loader(yaml.SafeLoader):
    """A YAML loader that reads all scalars but numbers, `true`, `false` and `null` as text."""


Loader.yaml_implicit_resolvers = {}
_SCALARS = (  # tag, pattern, first characters
    ("bool", "true|false", "tf"),
    ("null", "null|~|", "n~"),
    ("int", "[-+]?(0|[1-9][0-9]*)", "-+0123456789"),
    ("float", r"[-+]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?", "-+0123456789."),
)
for _tag, _pattern, _first in _SCALARS:
    _whole = re.compile(rf"(?:{_pattern})\Z")
    Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", _whole, [*_first, ""])


MAX_YAML = 1_000_000  # bytes of a file
MAX_ALIASES = 1_000
MAX_LEVELS = 50  # of lists and mappings
MAX_NODES = 100_000  # with each alias in full
_STARTS = (
    yaml.FlowSequenceStartToken,
    yaml.FlowMappingStartToken,
    yaml.BlockSequenceStartToken,
    yaml.BlockMappingStartToken,
)
_ENDS = (yaml.FlowSequenceEndToken, yaml.FlowMappingEndToken, yaml.BlockEndToken)


def tokens(text: str, loader: Any = Loader) -> Iterator[Any]:
    """Yield the tokens of a YAML text. Raises MarkedYAMLError at too many levels or aliases."""
    depth = 0
    aliases = 0
    for token in yaml.scan(text, Loader=loader):
        depth += isinstance(token, _STARTS) - isinstance(token, _ENDS)
        aliases += isinstance(token, yaml.AliasToken)
        problem = f"over {MAX_ALIASES:,} aliases" if aliases > MAX_ALIASES else ""
        if depth > MAX_LEVELS:
            problem = f"nesting of over {MAX_LEVELS} levels"
        if problem:
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=token.start_mark)
        yield token


def check_yaml(text: str) -> None:
    """Raise MarkedYAMLError if a YAML text is too large, as it is or with aliases expanded."""
    if len(text) > MAX_YAML:
        raise yaml.MarkedYAMLError(problem=f"over {MAX_YAML:,} bytes")
    if yaml.AliasToken not in set(map(type, tokens(text))):
        return
    sizes: dict[int, float] = {}

    def size(node: Any) -> float:
        if id(node) not in sizes:
            sizes[id(node)] = math.inf  # for aliases of the node inside it
            within = node.value if isinstance(node, yaml.CollectionNode) else []
            pairs = (each if isinstance(each, tuple) else (each,) for each in within)
            sizes[id(node)] = 1 + sum(size(each) for pair in pairs for each in pair)
        return sizes[id(node)]

    if size(yaml.compose(text, Loader)) > MAX_NODES:
        raise yaml.MarkedYAMLError(problem=f"its aliases stand for over {MAX_NODES:,} values")


def read_yaml(text: str, name: str, problems: list[str]) -> Layer:
    """Read YAML text as a layer. `name`: of its file, for origins. Adds to `problems`."""
    loader = Loader(text)
    layer: Layer = {}

    def collect(node: yaml.MappingNode, path: Path) -> None:
        first_seen: dict[str, str] = {}
        for key_node, value_node in node.value:
            key = str(key_node.value)
            place = f"{name}:{key_node.start_mark.line + 1}"
            if key in first_seen:
                problems.append(f"{place}: the key {key!r} stands twice (first {first_seen[key]})")
            first_seen[key] = place
            if isinstance(value_node, yaml.MappingNode) and value_node.value:
                collect(value_node, (*path, key))
            else:
                value = loader.construct_object(value_node, deep=True)
                layer[(*path, key)] = Setting(value, place)

    try:
        if name != "default":  # the packaged file, which each start reads
            check_yaml(text)
        root = loader.get_single_node()
        if isinstance(root, yaml.MappingNode):
            collect(root, ())
        elif root is not None:
            problems.append(f"{name}:1: expected sections, got a single value")
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        problems.append(f"{name}:{line}: not YAML: {error.problem}")
    except (yaml.YAMLError, RecursionError) as error:
        problems.append(f"{name}: not YAML: {str(error) or 'nested too deeply'}")
    return layer


def names_in(layer: Layer, section: str) -> set[str]:
    """Return the names of the entries in a section, such as the models under `llm`."""
    return {path[1] for path in layer if path[0] == section and len(path) > 1}


_STEP = re.compile(r"\[([^\]]+)\]|([^.\[\]]+)")
_LOOKS_LIKE_JSON = re.compile(r"\s*(?:['\"\[{]|[^:#\s]*\Z)")


def read_override(item: str) -> Layer:
    """Read an override such as `llm.default.model_name=qwen-plus`. Raises ConfigError."""
    name, equals, text = item.lstrip("-").partition("=")
    path = tuple(bracketed or plain for bracketed, plain in _STEP.findall(name))
    if not equals or not path:
        raise ConfigError([f"override {item!r}: expected name=value"])
    value: Any = text
    if _LOOKS_LIKE_JSON.match(text):
        try:
            value = yaml.load(text, Loader)  # a SafeLoader
        except yaml.YAMLError as error:
            raise ConfigError([f"override {item!r}: {error}"]) from error
    return {path: Setting(value, OVERRIDE)}


def merged(*layers: Layer) -> Layer:
    """Merge layers; later ones win, also where one has a value and the other a section.

    A layer that changes the backend of a model or store drops that entry's earlier settings.
    """
    whole: Layer = {}
    for layer in layers:
        for path, setting in layer.items():
            is_backend = len(path) == 3 and path[0] in BACKENDS and path[2] == "backend"
            if is_backend and path in whole and whole[path].value != setting.value:
                for old in [old for old in whole if old[:2] == path[:2]]:
                    del whole[old]
        for path in layer:
            overlapping = (old for old in whole if old[: len(path)] == path[: len(old)])
            for old in [old for old in overlapping if old != path]:
                del whole[old]
        whole |= layer
    return whole


def origin_suffix(layer: Layer, path: Path) -> str:
    """The origin of the value at `path`, as ` [my.yaml:12]`; "" if the layer has none."""
    return f" [{layer[path].origin}]" if path in layer else ""


def as_tree(layer: Layer) -> dict[str, Any]:
    """Return the values of a layer as nested dicts."""
    root: dict[str, Any] = {}
    for path, setting in layer.items():
        here = root
        for part in path[:-1]:
            here = here.setdefault(part, {})
        here[path[-1]] = setting.value
    return root
