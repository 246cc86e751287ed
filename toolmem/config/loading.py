"""Loads the configuration: default.yaml < files in order < overrides, then the environment for what nobody says."""

from __future__ import annotations

import copy
import functools
import logging
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import ValidationError

from toolmem.config import reme_compat
from toolmem.config.cross_checks import SOCKETS, dangling, unasked_models, unusable_backends
from toolmem.config.document import YamlFile, config_file, read_file
from toolmem.config.environment import (
    GUARD,
    NAMES_CODE,
    Surroundings,
    Tainted,
    WatchedVariables,
    capture_switch,
    fall_back,
    fill_in,
    guard_switched_off,
    read_dotenv,
    unknown_guard_switch,
)
from toolmem.config.hidden_values import without
from toolmem.config.layers import CLASS_DEFAULT, DEFAULT, OVERRIDE, Layer, Origins, at, merge, nested
from toolmem.config.memory_settings import GUARD_SOURCES, whole_guard
from toolmem.config.op_modules import KEY as OP_MODULES
from toolmem.config.op_modules import import_op_modules
from toolmem.config.overrides import Override, read_overrides
from toolmem.config.problems import added_to, check, explain, shown
from toolmem.config.settings import STORE_PARAMS, Settings, StoreParams, StoreSettings
from toolmem.errors import ConfigError

log = logging.getLogger("toolmem.config")

Key = tuple[str, ...]

_NAMED = frozenset(("flow", "op", *SOCKETS))  # sections of named entries
_SECTIONS = _NAMED | {
    *("http", "mcp", "cmd", "auth", "rules", "guidance", "guard", "session", "secrets", "budget", "prices"),
}
_PLACE = (("backend",), ("params", "path"), ("params", "hosts"), ("params", "index_prefix"))  # where a store is


@dataclass
class Loaded:
    """The configuration, the origin of each of its values, and what was said about it."""

    settings: Settings
    origins: Origins
    overrides: list[Override] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)  # not empty only where `read` left them to the caller
    warnings: list[str] = field(default_factory=list)
    found_stores: set[str] = field(default_factory=set)  # entries of vector_store whose place nobody named
    secrets: set[str] = field(default_factory=set, repr=False)  # values of secret variables that are referred to
    handed: Mapping[str, Collection[str]] = field(default_factory=dict)  # judges and writers handed over, by setting
    absent_ops: dict[str, str] = field(default_factory=dict)  # keys of op entries left out -> the op of another toolkit

    def place(self, path: Key) -> str:
        """The file and line of a value, "" where it is none of a user's file."""
        origin = self.origins.near(path)
        return origin if ":" in origin else ""


def load(
    files: Sequence[str | Path] = (),
    overrides: Sequence[str] = (),
    *,
    env: Mapping[str, str] | None = None,
    dotenv: str | Path | None = ".env",
    provided: Collection[str] = (),
    described: Mapping[str, Mapping[str, Any]] | None = None,
) -> Loaded:
    """Read and check the configuration.

    A user's section goes over the default one key by key: a flow of a new name is added, a flow of a known name keeps
    what the file does not say. Where a file chooses another backend for `llm.<name>`, `embedding_model.<name>` or
    `vector_store.<name>`, the default's model and params of that entry do not carry over.

    The modules of `op_modules` are imported: a configuration is as trusted as the code that it names.

    `env` is the environment (default: the real one), `dotenv` a file whose variables stand behind it: it lies in a
    folder that may be anybody's, so an address from it is used with a key from it alone, and it names no code, and no
    store whose rules are believed. `provided`: names of ops that there are, though another toolkit has one of the same
    name. `described`: by flow of the default configuration, what its operations say of it (`description`,
    `input_schema`).

    Raises ConfigError with all problems at once. Params of ops and flow expressions are checked by
    `toolmem.flow.configure`.
    """
    loaded = read(files, overrides, env=env, dotenv=dotenv, provided=provided, described=described)
    if loaded.problems:
        raise ConfigError(loaded.problems)
    for warning in loaded.warnings:
        log.warning(warning)
    return loaded


def read(
    files: Sequence[str | Path],
    overrides: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    dotenv: str | Path | None = ".env",
    provided: Collection[str] = (),
    described: Mapping[str, Mapping[str, Any]] | None = None,
    imported: Callable[[ModuleType], None] | None = None,
) -> Loaded:
    """As `load`, but leaves wrong values and overrides out, and their problems to the caller, who may find more.

    `imported` is handed each module of `op_modules`.

    Raises ConfigError only where a file cannot be read at all: half of what the rest refers to may stand in it.
    """
    surroundings = Surroundings(
        dict(os.environ if env is None else env), read_dotenv(Path(dotenv)) if dotenv is not None else {}
    )
    given, problems = read_overrides(overrides)
    documents: list[YamlFile] = []
    unreadable: list[str] = []
    for file in files:
        with added_to(unreadable):
            path = config_file(file)
            if path is not None:
                documents.append(read_file(path))
    if unreadable:
        raise ConfigError([*problems, *unreadable])
    default = _default_tree(described or {})
    variables = WatchedVariables(surroundings.variables)
    tree, origins = _merged(documents, given, variables, default, problems)
    tainted = Tainted()
    if surroundings.marked is not None:
        tainted = Tainted(tree, _merged(documents, given, surroundings.marked, default, [])[0])
    loaded = Loaded(Settings(), origins, given, problems)
    _Checking(tree, loaded, surroundings, tainted).run(provided, imported)
    loaded.secrets = variables.secrets
    loaded.problems = [without(problem, loaded.secrets) for problem in loaded.problems]
    return loaded


# ---------------------------------------------------------------- layers


def _merged(
    documents: Sequence[YamlFile],
    given: Sequence[Override],
    env: Mapping[str, str],
    default: dict[str, Any],
    problems: list[str],
) -> tuple[dict[str, Any], Origins]:
    layers = [_file_layer(document, env, default, problems) for document in documents]
    layers += _override_layers(given, env, problems)
    return merge([_default_layer(copy.deepcopy(default), layers), *layers])


@functools.cache
def _default_document() -> YamlFile:
    return read_file(Path(__file__).with_name("default.yaml"), packaged=True)


def _default_tree(described: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    tree = copy.deepcopy(_default_document().tree)
    for name, flow in tree["flow"].items():
        flow.update(copy.deepcopy(dict(described.get(name, {}))))
    return tree


def _default_layer(tree: dict[str, Any], above: Sequence[Layer]) -> Layer:
    for section in SOCKETS:
        for name, entry in tree[section].items():
            chosen = entry["backend"]
            for layer in above:
                chosen = at(layer.tree, (section, name, "backend"), chosen)
            if chosen != entry["backend"]:
                entry.pop("params", None)
                entry.pop("model_name", None)
    return Layer(tree, functools.partial(_same, DEFAULT))


def _file_layer(file: YamlFile, env: Mapping[str, str], default: Mapping[str, Any], problems: list[str]) -> Layer:
    tree = _filled(file.tree, (), env, file.place, problems)
    _open_sections(tree)
    reme_compat.widen_types(tree, default)
    return Layer(tree, file.place)


def _override_layers(overrides: Sequence[Override], env: Mapping[str, str], problems: list[str]) -> list[Layer]:
    layers: list[Layer] = []
    for override in overrides:
        name = f"override {override.name}"
        value = _filled(override.value, (), env, functools.partial(_same, name), problems)
        if value is _UNFILLED:
            continue
        value = whole_guard(value) if override.path == ("guard",) else value
        if _is_section(override.path) and not isinstance(value, dict):
            problems.append(f"{name}: expected a section (name=value below it), got {shown(value)}")
        else:
            layers.append(Layer(nested(override.path, value), functools.partial(_same, OVERRIDE)))
    return layers


def _same(text: str, path: Key) -> str:
    return text


def _is_section(path: Key) -> bool:
    """Does this name stand for a section, which a single value cannot replace?"""
    if path[0] not in _SECTIONS:
        return False
    return len(path) == 1 or (path[0] in _NAMED and (len(path) == 2 or path[2:] in (("params",), ("input_schema",))))


def _filled(value: Any, path: Key, env: Mapping[str, str], place: Callable[[Key], str], problems: list[str]) -> Any:
    """A tree with its `${oc.env:...}` replaced; what cannot be is reported and left out."""
    if isinstance(value, dict):
        filled = {key: _filled(item, (*path, key), env, place, problems) for key, item in value.items()}
        return {key: item for key, item in filled.items() if item is not _UNFILLED}
    if isinstance(value, list):
        items = [_filled(item, (*path, str(i)), env, place, problems) for i, item in enumerate(value)]
        return [item for item in items if item is not _UNFILLED]
    try:
        return fill_in(value, env)
    except ValueError as error:
        problems.append(f"{place(path)}: {error}")
        return _UNFILLED


_UNFILLED = object()


def _open_sections(tree: dict[str, Any]) -> None:
    """`llm:` with nothing below it is a section without entries, not a null; `guard: off` is one as well."""
    if "guard" in tree:
        tree["guard"] = whole_guard(tree["guard"])
    for name in _SECTIONS & tree.keys():
        if tree[name] is None:
            tree[name] = {}
        entries = tree[name]
        for key, entry in entries.items() if isinstance(entries, dict) and name in _NAMED else ():
            if entry is None:
                entries[key] = {}
            for part in ("params", "input_schema"):
                if isinstance(entry, dict) and part in entry and entry[part] is None:
                    entry[part] = {}


# ---------------------------------------------------------------- checks of the merged tree


class _Checking:
    """Completes a merged tree from the environment, and makes the settings of it."""

    def __init__(self, tree: dict[str, Any], loaded: Loaded, surroundings: Surroundings, tainted: Tainted) -> None:
        self._tree = tree
        self._loaded = loaded
        self._surroundings = surroundings
        self._tainted = tainted

    def run(self, provided: Collection[str], imported: Callable[[ModuleType], None] | None) -> None:
        tree, loaded = self._tree, self._loaded
        loaded.warnings += reme_compat.drop_ignored(tree)
        if self._tainted.holds((OP_MODULES,)):
            loaded.problems.append(f"{OP_MODULES}: {NAMES_CODE}")
        else:
            loaded.problems += import_op_modules(tree, loaded.place, imported)  # first: it says what there is
        loaded.absent_ops = reme_compat.drop_absent_ops(tree, provided)
        loaded.problems += reme_compat.map_stores(tree, loaded.origins)
        self._keep_local()
        loaded.problems += _foreign_params(tree)
        self._fall_back()
        self._switch_capture()
        self._switch_guard()
        loaded.settings = settings = self._validated()
        loaded.found_stores = {name for name, store in settings.vector_store.items() if self._found(name, store)}
        loaded.warnings += unasked_models(settings, loaded.origins)
        loaded.problems += [*dangling(settings), *unusable_backends(settings, loaded.place)]

    def _found(self, name: str, store: StoreSettings) -> bool:
        """Does no option, environment or configuration that the user named say where this store is?"""
        path = ("vector_store", name, "params", "path")
        own = tuple(("params", param) for param in store.params.own or ())
        if any(self._tainted.holds(("vector_store", name, *each)) for each in (*_PLACE, *own)):
            return True
        return store.backend == "sqlite" and self._loaded.origins.of(path) in (DEFAULT, CLASS_DEFAULT)

    def _put(self, path: Key, value: Any, origin: str) -> None:
        here = self._tree
        for part in path[:-1]:
            here = here.setdefault(part, {})
        here[path[-1]] = value
        self._loaded.origins.put(path, origin)

    def _fall_back(self) -> None:
        found, problems = fall_back(self._tree, self._surroundings, self._tainted)
        self._loaded.problems += problems
        for each in found:
            self._put(each.path, each.value, f"environment {each.variable}")
            if each.from_dotenv:
                self._tainted.add(each.path)

    def _keep_local(self) -> None:
        """A file made for another toolkit says 0.0.0.0 without a thought; without a token nobody else may come in."""
        variable = str(at(self._tree, ("auth", "token_env"), "TOOLMEM_TOKEN"))
        if self._surroundings.variables.get(variable) or at(self._tree, ("auth", "token_file")):
            return
        open_to_all = []
        for section in ("http", "mcp"):
            path = (section, "host")
            origin = self._loaded.origins.of(path)
            if at(self._tree, path) in ("0.0.0.0", "::") and origin != OVERRIDE:
                self._put(path, "127.0.0.1", f"{origin} (no token: kept local)")
                open_to_all.append(f"{section}.host ({origin})")
        if open_to_all:
            self._loaded.warnings.append(
                f"{', '.join(open_to_all)}: no token is configured, so services bind 127.0.0.1; "
                f"set {variable} or auth.token_file to open them"
            )

    def _switch_capture(self) -> None:
        try:
            switch = capture_switch(self._surroundings.real)
        except ValueError as error:
            self._loaded.problems.append(str(error))
            return
        rules = self._tree.setdefault("rules", {})
        if switch is None or not isinstance(rules, dict) or (switch[0] and rules.get("capture") == "model"):
            return  # "model" is switched on as well
        if self._loaded.origins.of(("rules", "capture")) != OVERRIDE:
            self._put(("rules", "capture"), switch[0], f"environment {switch[1]}")

    def _switch_guard(self) -> None:
        if told := unknown_guard_switch(self._surroundings.real):
            self._loaded.warnings.append(told)
        guard = self._tree.setdefault("guard", {})
        if guard_switched_off(self._surroundings.real) and isinstance(guard, dict):
            for source in GUARD_SOURCES:
                self._put(("guard", source), "off", f"environment {GUARD}")

    def _validated(self) -> Settings:
        """Wrong values are reported and taken out, so that what stands on the rest can be checked as well."""
        try:
            return Settings.model_validate(self._tree)
        except ValidationError as error:
            self._loaded.problems += explain(error, self._tree, Settings, place=self._loaded.place)
            for detail in error.errors(include_url=False, include_context=False):
                _take_out(self._tree, detail["loc"])
        return check(Settings, self._tree)[0] or Settings()


_NEEDED = {("flow", "flow_content"), ("prices", "input")}  # without it an entry of the section is none


def _take_out(tree: dict[str, Any], location: Sequence[int | str]) -> None:
    """Take out the value that an error is about; what misses a key is taken out whole."""
    if len(location) > 2 and (location[0], location[2]) in _NEEDED:
        location = location[:2]
    here: Any = tree
    above, key = tree, ""
    for part in location:
        if not isinstance(here, dict) or part not in here:
            break
        above, key, here = here, str(part), here[part]
    above.pop(key, None)


def _foreign_params(tree: Mapping[str, Any]) -> Iterator[str]:
    """Take out the params of a store that its backend does not have; a line for each."""
    stores = tree.get("vector_store")
    for name, entry in stores.items() if isinstance(stores, Mapping) else ():
        backend = at(entry, ("backend",), "sqlite")
        ours = STORE_PARAMS.get(str(backend))
        params = at(entry, ("params",))
        if ours is None or not isinstance(params, dict):
            continue
        for param in [param for param in params if param in StoreParams.model_fields and param not in ours]:
            del params[param]
            has = ", ".join(ours)
            yield f"vector_store.{name}.params.{param}: the backend {backend!r} does not have it; it has {has}"
