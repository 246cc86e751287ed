"""Finds and reads a YAML file: scalars by the rules of `scalars`, and the line of each value remembered."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from toolmem.config.scalars import read_scalar
from toolmem.errors import ConfigError

Key = tuple[str, ...]

_MOST_NODES = 100_000  # an alias that repeats itself grows without end
_MOST_DEEP = 50  # mappings and lists inside each other
_PLAIN = "!plain"

PACKAGED = "default"  # as ReMe's `config=default`: the configuration of the package
_ENDINGS = (".yaml", ".yml")


@dataclass(frozen=True)
class YamlFile:
    """One file: its tree of mappings, lists and scalars, and where each value stands."""

    name: str
    tree: dict[str, Any]
    lines: dict[Key, int] = field(default_factory=dict)  # from 1; of a mapping: where its key stands

    def place(self, path: Key) -> str:
        """`my.yaml:12`."""
        while path and path not in self.lines:
            path = path[:-1]
        return f"{self.name}:{self.lines[path]}" if path else self.name


class _Loader(yaml.SafeLoader):
    """Composes nodes without YAML 1.1's own reading of plain scalars."""


class _QuickLoader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """The same by libyaml, in a tenth of the time. Its complaints say less: for files that nobody edits."""


for _each in (_Loader, _QuickLoader):
    _each.yaml_implicit_resolvers = {}
    _each.add_implicit_resolver(_PLAIN, re.compile(r".*", re.DOTALL), None)


def config_file(given: str | Path) -> Path | None:
    """The file; None where the packaged configuration is meant, over which every file goes anyhow.

    Raises ConfigError that names what was looked for.
    """
    path = Path(given)
    if str(given) == PACKAGED:  # whatever lies in the working directory under this name
        return None
    if path.exists():
        return path
    tried = [] if path.suffix in _ENDINGS else [path.with_name(path.name + ending) for ending in _ENDINGS]
    for each in tried:
        if each.is_file():
            return each
    also = f", nor {' or '.join(str(each) for each in tried)}; config={PACKAGED} is toolmem's own" if tried else ""
    raise ConfigError(f"{path}: no such file{also}")


def read_file(path: str | Path, *, packaged: bool = False) -> YamlFile:
    """Raises ConfigError where the file cannot be read or is no YAML mapping: every problem with its line.

    `packaged`: it is a file of this package, of which every start waits, and in which nobody looks for mistakes.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read ({error})") from error
    return read_text(text, str(path), packaged=packaged)


def read_text(text: str, name: str, *, packaged: bool = False) -> YamlFile:
    """As `read_file`, of a text; `name` stands in errors and origins."""
    reading = _Reading(name)
    try:
        node = yaml.compose(text, Loader=_QuickLoader if packaged else _Loader)
        tree = None if node is None else reading.value(node, (), ())
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise ConfigError(f"{name}{where}: not YAML: {error.problem or error.context}") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{name}: not YAML: {error}") from error
    except RecursionError:
        raise ConfigError(f"{name}: nested too deeply") from None
    if reading.problems:
        raise ConfigError(reading.problems)
    if tree is None:
        tree = {}
    if not isinstance(tree, dict):
        raise ConfigError(f"{name}: expected sections (key: value), got {type(tree).__name__}")
    return YamlFile(name, tree, reading.lines)


class _Reading:
    def __init__(self, name: str) -> None:
        self.problems: list[str] = []
        self.lines: dict[Key, int] = {}
        self._name = name
        self._nodes = 0

    def value(self, node: yaml.Node, path: Key, above: tuple[int, ...]) -> Any:
        self._nodes += 1
        if self._nodes > _MOST_NODES or id(node) in above:
            raise ConfigError(f"{self._name}: an alias repeats itself, or the file holds over {_MOST_NODES} values")
        if len(above) > _MOST_DEEP:
            raise ConfigError(f"{self._name}, line {node.start_mark.line + 1}: nested more than {_MOST_DEEP} deep")
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path, (*above, id(node)))
        if isinstance(node, yaml.SequenceNode):
            if node.tag != "tag:yaml.org,2002:seq":
                self._refuse_tag(node)
            return [self.value(item, (*path, str(i)), (*above, id(node))) for i, item in enumerate(node.value)]
        return self._scalar(node)

    def _mapping(self, node: yaml.MappingNode, path: Key, above: tuple[int, ...]) -> dict[str, Any]:
        if node.tag != "tag:yaml.org,2002:map":
            self._refuse_tag(node)
        mapping: dict[str, Any] = {}
        first_lines: dict[str, int] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                self.problems.append(f"{self._name}, line {line}: a key must be a plain word")
                continue
            key = key_node.value
            if key in mapping:
                self.problems.append(
                    f"{self._name}, line {line}: the key {key!r} stands twice (first in line {first_lines[key]})"
                )
                continue
            first_lines[key] = line
            self.lines[(*path, key)] = line
            mapping[key] = self.value(value_node, (*path, key), above)
        return mapping

    def _scalar(self, node: yaml.Node) -> Any:
        text: str = node.value
        if node.tag == _PLAIN and not getattr(node, "style", None):
            if text in ("", "~"):
                return None
            try:
                # A plain YAML scalar never starts with a quote or a bracket, so only words and numbers are left.
                return read_scalar(text)
            except ValueError as error:
                self.problems.append(f"{self._name}, line {node.start_mark.line + 1}: {error}")
                return None
        if node.tag not in (_PLAIN, "!", "tag:yaml.org,2002:str"):
            self._refuse_tag(node)
        return text

    def _refuse_tag(self, node: yaml.Node) -> None:
        self.problems.append(f"{self._name}, line {node.start_mark.line + 1}: the tag {node.tag!r} is not accepted")
