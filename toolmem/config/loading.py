"""Loads the configuration: default.yaml < files in order < overrides, then the environment for what nobody says."""

from __future__ import annotations

import copy
import functools
import logging
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import ValidationError

from toolmem.config import elsewhere
from toolmem.config.document import Document, read_file
from toolmem.config.environment import (
    NAMES_CODE,
    Asked,
    Surroundings,
    Tainted,
    capture_switch,
    fall_back,
    fill_in,
    read_dotenv,
)
from toolmem.config.extras import absent_backends
from toolmem.config.layers import CLASS_DEFAULT, DEFAULT, OVERRIDE, Layer, Origins, merge, nested
from toolmem.config.names import hint
from toolmem.config.naming import config_file
from toolmem.config.op_modules import KEY as OP_MODULES
from toolmem.config.op_modules import import_op_modules
from toolmem.config.overrides import Override, read_overrides
from toolmem.config.problems import explain, shown, unasked_models
from toolmem.config.secrets import without
from toolmem.config.settings import STORE_PARAMS, Settings, StoreSettings
from toolmem.config.sockets import own_params
from toolmem.errors import ConfigError

log = logging.getLogger("toolmem.config")

Key = tuple[str, ...]

_NAMED = frozenset(("flow", "op", "llm", "embedding_model", "vector_store"))  # sections of named entries
_SECTIONS = _NAMED | {"http", "mcp", "cmd", "auth", "rules", "session", "secrets", "budget", "prices"}
_BACKENDS = ("llm", "embedding_model", "vector_store")  # sections whose params belong to a backend
_PLACE = (("backend",), ("params", "path"), ("params", "hosts"), ("params", "index_prefix"))  # where a store is
_MOST_ROUNDS = 20  # of validating what is left after wrong values were taken out


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
    documents: list[Document] = []
    unreadable: list[str] = []
    for file in files:
        try:
            path = config_file(file)
            if path is not None:
                documents.append(read_file(path))
        except ConfigError as error:
            unreadable += error.problems
    if unreadable:
        raise ConfigError([*problems, *unreadable])
    default = _default_tree(described or {})
    variables = Asked(surroundings.variables)
    tree, origins = _merged(documents, given, variables, default, problems)
    tainted = Tainted()
    if surroundings.marked is not None:
        tainted = Tainted(tree, _merged(documents, given, surroundings.marked, default, [])[0])
    loaded = _Checking(tree, origins, given, surroundings, tainted, provided).loaded(imported)
    loaded.secrets = variables.secrets
    loaded.problems = [without(problem, loaded.secrets) for problem in (*problems, *loaded.problems)]
    return loaded


# ---------------------------------------------------------------- layers


def _merged(
    documents: Sequence[Document],
    given: Sequence[Override],
    env: Mapping[str, str],
    default: dict[str, Any],
    problems: list[str],
) -> tuple[dict[str, Any], Origins]:
    layers = [_file_layer(document, env, default, problems) for document in documents]
    layers += _override_layers(given, env, problems)
    return merge([_default_layer(copy.deepcopy(default), layers), *layers])


@functools.cache
def _default_document() -> Document:
    return read_file(Path(__file__).with_name("default.yaml"), packaged=True)


def _default_tree(described: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    tree = copy.deepcopy(_default_document().tree)
    for name, flow in tree["flow"].items():
        flow.update(copy.deepcopy(dict(described.get(name, {}))))
    return tree


def _default_layer(tree: dict[str, Any], above: Sequence[Layer]) -> Layer:
    for section in _BACKENDS:
        for name, entry in tree[section].items():
            chosen = entry["backend"]
            for layer in above:
                chosen = _at(layer.tree, (section, name, "backend"), chosen)
            if chosen != entry["backend"]:
                entry.pop("params", None)
                entry.pop("model_name", None)
    return Layer(DEFAULT, tree, functools.partial(_same, DEFAULT))


def _file_layer(document: Document, env: Mapping[str, str], default: Mapping[str, Any], problems: list[str]) -> Layer:
    tree = _filled(document.tree, (), env, document.place, problems)
    _open_empty_sections(tree)
    elsewhere.widen_types(tree, default)
    return Layer(document.name, tree, document.place)


def _override_layers(overrides: Sequence[Override], env: Mapping[str, str], problems: list[str]) -> list[Layer]:
    layers: list[Layer] = []
    for override in overrides:
        name = f"override {override.name}"
        value = _filled(override.value, (), env, functools.partial(_same, name), problems)
        if value is _UNFILLED:
            continue
        if _is_section(override.path) and not isinstance(value, dict):
            problems.append(f"{name}: expected a section (name=value below it), got {shown(value)}")
        else:
            layers.append(Layer(name, nested(override.path, value), functools.partial(_same, OVERRIDE)))
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


def _open_empty_sections(tree: dict[str, Any]) -> None:
    """`llm:` with nothing below it is a section without entries, not a null."""
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


def _at(tree: Mapping[str, Any], path: Key, default: Any = None) -> Any:
    here: Any = tree
    for part in path:
        if not isinstance(here, Mapping) or part not in here:
            return default
        here = here[part]
    return here


# ---------------------------------------------------------------- checks of the merged tree


class _Checking:
    def __init__(
        self,
        tree: dict[str, Any],
        origins: Origins,
        overrides: list[Override],
        surroundings: Surroundings,
        tainted: Tainted,
        provided: Collection[str],
    ) -> None:
        self._tree = tree
        self._surroundings = surroundings
        self._tainted = tainted
        self._env = surroundings.variables
        self._provided = provided
        self._loaded = Loaded(Settings(), origins, overrides)

    def loaded(self, imported: Callable[[ModuleType], None] | None) -> Loaded:
        loaded = self._loaded
        loaded.warnings += elsewhere.drop_ignored(self._tree)
        if self._tainted.holds((OP_MODULES,)):
            loaded.problems.append(f"{OP_MODULES}: {NAMES_CODE}")
        else:
            loaded.problems += import_op_modules(self._tree, loaded.place, imported)  # first: it says what there is
        loaded.absent_ops = elsewhere.drop_absent_ops(self._tree, self._provided)
        loaded.problems += elsewhere.map_stores(self._tree, loaded.origins)
        self._keep_local()
        loaded.problems += self._foreign_params()
        added, problems = fall_back(self._tree, self._surroundings, self._tainted)
        loaded.problems += problems
        for each in added:
            self._put(each.path, each.value, f"environment {each.variable}")
            if each.from_dotenv:
                self._tainted.add(each.path)
        self._switch_capture()
        loaded.settings = self._validated()
        loaded.found_stores = {name for name, store in loaded.settings.vector_store.items() if self._found(name, store)}
        loaded.warnings += unasked_models(loaded.settings, loaded.origins)
        loaded.problems += _dangling(loaded.settings)
        loaded.problems += own_params(loaded.settings, loaded.place)
        loaded.problems += absent_backends(loaded.settings, loaded.place)
        return loaded

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

    def _keep_local(self) -> None:
        """A file made for another toolkit says 0.0.0.0 without a thought; without a token nobody else may come in."""
        auth = self._tree.get("auth", {})
        variable = _at(self._tree, ("auth", "token_env"), "TOOLMEM_TOKEN")
        if self._env.get(str(variable)) or (isinstance(auth, Mapping) and auth.get("token_file")):
            return
        open_to_all = []
        for section in ("http", "mcp"):
            path = (section, "host")
            origin = self._loaded.origins.of(path)
            if _at(self._tree, path) in ("0.0.0.0", "::") and origin != OVERRIDE:
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

    def _foreign_params(self) -> list[str]:
        """Params of a store that its backend does not have."""
        problems = []
        stores = self._tree.get("vector_store")
        for name, entry in stores.items() if isinstance(stores, Mapping) else ():
            ours = STORE_PARAMS.get(str(_at(entry, ("backend",), "sqlite"))) if isinstance(entry, Mapping) else None
            params = _at(entry, ("params",), {}) if isinstance(entry, Mapping) else {}
            if ours is None or not isinstance(params, dict):
                continue
            others = {param for known in STORE_PARAMS.values() for param in known} - set(ours)
            for param in [param for param in params if param in others]:
                del params[param]
                problems.append(
                    f"vector_store.{name}.params.{param}: the backend {entry.get('backend', 'sqlite')!r} does not have "
                    f"it; it has {', '.join(ours)}"
                )
        return problems

    def _validated(self) -> Settings:
        """Wrong values are reported and taken out, so that what stands on the rest can be checked as well."""
        for _ in range(_MOST_ROUNDS):
            try:
                return Settings.model_validate(self._tree)
            except ValidationError as error:
                self._loaded.problems += explain(error, self._tree, Settings, place=self._loaded.place)
                for detail in error.errors(include_url=False, include_context=False):
                    _take_out(self._tree, detail["loc"])
        return Settings()


def _take_out(tree: dict[str, Any], location: Sequence[int | str]) -> None:
    """Take out the value that an error is about; what misses a key is taken out whole."""
    here: Any = tree
    above: Any = None
    key: Any = None
    for part in location:
        if isinstance(here, dict) and part in here:
            above, key, here = here, part, here[part]
        elif isinstance(here, dict) and part == location[-1]:
            break  # a missing key
        else:
            break
    if isinstance(above, dict):
        above.pop(key, None)


def _dangling(settings: Settings) -> list[str]:
    """Names that point to nothing."""
    problems = [
        f"vector_store.{name}.embedding_model: no embedding_model is called {store.embedding_model!r} "
        f"({hint(store.embedding_model, settings.embedding_model)})"
        for name, store in settings.vector_store.items()
        if store.embedding_model not in settings.embedding_model
    ]
    for key, entry in settings.op.items():
        for kind in _BACKENDS:
            there, chosen = getattr(settings, kind), getattr(entry, kind)
            if chosen and chosen not in there:
                problems.append(f"op.{key}.{kind}: no {kind} is called {chosen!r} ({hint(chosen, there)})")
    return problems
