"""Open the stores, judges, writers, models and embedders of a configuration at their first use."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import tzinfo
from importlib.util import find_spec
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, TypeVar

from toolmem.config.names import hint
from toolmem.config.sections import GuardSection, ModelSection, OpSection, Settings, StoreSection
from toolmem.errors import ConfigError, RequestError, StoreClosed
from toolmem.guard import Guard
from toolmem.guard.rule_copies import recognize
from toolmem.guard.self_protection import own_paths
from toolmem.guard.stores import UNTRUSTED, Stores, compare_with_copy
from toolmem.guidance.card import CardWriter
from toolmem.judge.check import RuleBasedJudge
from toolmem.llm.budget import Budget
from toolmem.llm.pool import ModelPool
from toolmem.models.protocols import ChatModel, Clock, Embedder, GuidanceWriter, Judge, Store
from toolmem.rules.store import ToolMemoryStore
from toolmem.store.sqlite import SqliteStore

if TYPE_CHECKING:
    from toolmem.guidance.wording import Language

NEEDS_HOSTS = "needed, a URL such as http://localhost:9200; or FLOW_ES_HOSTS in the environment"
Service = TypeVar("Service")
Section = TypeVar("Section")

# Instances that the caller made: by kind, then by the names that the configuration uses.
OwnServices = Mapping[str, Mapping[str, Any]]
_PROTOCOLS = {
    "stores": Store,
    "judges": Judge,
    "writers": GuidanceWriter,
    "llms": ChatModel,
    "embedders": Embedder,
}


def own_services(modules: Sequence[str], *handed_over: Mapping[str, Any] | None) -> OwnServices:
    """Collect the stores, judges and so on that the user made, by kind and name.

    `modules`: imported modules, which may have dicts `stores`, `judges` and so on. `handed_over`:
    such dicts, in the order of _PROTOCOLS. Raises ConfigError if an instance lacks a method.
    """
    found = {}
    problems = []
    for (kind, protocol), given in zip(_PROTOCOLS.items(), handed_over, strict=True):
        found[kind] = dict[str, Any]()
        for module in modules:
            own = getattr(sys.modules.get(module), kind, None)
            found[kind] |= own if isinstance(own, dict) else {}
        found[kind] |= given or {}
        for name, each in found[kind].items():
            needed = [member for member in vars(protocol) if not member.startswith("_")]
            if lacking := [member for member in needed if not hasattr(each, member)]:
                problems.append(f"{kind}.{name}: {type(each).__name__} lacks {', '.join(lacking)}")
    if problems:
        raise ConfigError(problems)
    return found


def _zone_of(name: str) -> tzinfo | None:
    """The time zone of this name; None for "": the machine's. Raises ConfigError."""
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name) if name else None
    except (KeyError, ValueError, OSError):
        problem = f"time_zone: {name!r} is no time zone; expected a name such as Europe/Berlin"
        raise ConfigError([problem]) from None


class MemoryServices:
    """Opens what ops use, such as stores. Implements `toolmem.flow.services.Services`."""

    def __init__(self, settings: Settings, own: OwnServices, clock: Clock) -> None:
        self.settings = settings
        self.clock = clock
        self._zone = _zone_of(settings.time_zone)
        self._own = own
        self._cache: dict[tuple[str, ...], Any] = {}
        self._budget = Budget(settings.budget, settings.prices)
        self._opening = threading.RLock()
        self._is_closed = False

    def store(self, op: OpSection | None = None) -> Store:
        name = (op or OpSection()).vector_store
        return self._cached("stores", name, lambda: self._open_store(name))

    def judge(self, op: OpSection) -> Judge:
        return self._cached("judges", op.llm, lambda: self._make_judge(op), *self._wording(op))

    def writer(self, op: OpSection) -> GuidanceWriter:
        return self._cached("writers", op.llm, lambda: self._make_writer(op), *self._wording(op))

    def model(self, name: str) -> ChatModel:
        """Return the model of this name. Raises ConfigError with every problem of its section."""
        return self._cached("llms", name, lambda: self._open_model(name))

    def pool(self, op: OpSection) -> ModelPool:
        def make() -> ModelPool:
            return ModelPool(self._model_section(op.llm).params.max_concurrency, self.clock)

        return self._cached("pools", op.llm, make)

    def embedder(self, op: OpSection) -> Embedder:
        """The embedder of the op's store, because all vectors of a store must be comparable."""
        store = self.settings.vector_store.get(op.vector_store, StoreSection())
        name = store.embedding_model if op.embedding_model == "default" else op.embedding_model
        return self._cached("embedders", name, lambda: self._open_embedder(name))

    def rules(self, workspace: str) -> ToolMemoryStore:
        """The rules of a workspace, in the default store. Copies of lost rules are changed, too."""
        store = self.store()
        copies = self._with_copies(store, workspace).copies.values()
        rules = ToolMemoryStore(store, workspace, self.clock, self._zone)
        rules.copied = [ToolMemoryStore(c, workspace, self.clock, self._zone) for c in copies]
        return rules

    def guard(self, workspace: str, modes: GuardSection | None = None) -> Guard:
        """The guard of a workspace; it protects the store's own files and the state folder.

        `modes`: None takes those configured. If a store file lost rules, their copy binds.
        """
        store = self.store()
        modes = modes or self.settings.guard
        found = self._with_copies(store, workspace)

        def make() -> Guard:
            return Guard(
                store,
                workspace,
                self.clock,
                modes,
                protected=own_paths(store),
                zone=self._zone,
                serves_guests=self.settings.session.speaker == "guest",
                only_asks=UNTRUSTED if found.untrusted else "",
                copies=[*found.copies.values(), *found.replaced],
                lost="; ".join(found.lost),
            )

        return self._cached("guards", workspace, make, str(modes))

    def _with_copies(self, store: Store, workspace: str) -> Stores:
        """The store and, if its file lost rules, their copies, until it has the rules again."""

        def make() -> Stores:
            if isinstance(store, SqliteStore):
                return compare_with_copy(store, workspace)
            return Stores(store)

        found = self._cached("copies", workspace, make)
        if found.lost and found.is_whole_again():
            with self._opening:
                for kind, name, *variant in list(self._cache):
                    if kind in ("copies", "guards") and name == workspace:
                        del self._cache[(kind, name, *variant)]
            found = self._cached("copies", workspace, make)
        return found

    def close(self) -> None:
        """Close every store, also those of the caller."""
        with self._opening:
            self._is_closed = True
            stores = [each for key, each in self._cache.items() if key[0] == "stores"]
            for store in (*self._own["stores"].values(), *stores):
                store.close()

    def problems(self) -> list[str]:
        """List what is wrong with models, embedders, stores and prompts. Sends no request."""
        found: dict[str, None] = {}

        def check(open_service: Callable[[Any], object], section: Any) -> None:
            try:
                open_service(section)
            except ConfigError as error:
                found.update(dict.fromkeys(error.problems))

        for name in self.settings.llm:
            if not self._is_offline(name):
                check(self.model, name)
        for name in self.settings.embedding_model:
            check(self._open_embedder, name)
        for name, section in self.settings.vector_store.items():
            if section.backend == "elasticsearch" and not section.params.hosts:
                found[f"vector_store.{name}.params.hosts: {NEEDS_HOSTS}"] = None
        for op in self.settings.op.values() if not found else ():
            check(self.judge, op)
            check(self.writer, op)
        return list(found)

    # ------------------------------------------------------------ opening

    def _cached(self, kind: str, name: str, make: Callable[[], Service], *variant: str) -> Service:
        """The caller's instance of this name, else the one that `make` makes at the first use."""
        own: Mapping[str, Service] = self._own.get(kind, {})
        if name in own:
            return own[name]
        key = (kind, name, *variant)
        if key not in self._cache:
            with self._opening:
                if self._is_closed:
                    raise StoreClosed("this memory was closed; make another ToolMem")
                if key not in self._cache:
                    self._cache[key] = make()
        found: Service = self._cache[key]
        return found

    def _wording(self, op: OpSection) -> tuple[Language, str]:
        language = self.settings.language if op.language is None else op.language
        return language, op.prompt_path

    def _model_section(self, name: str) -> ModelSection:
        return _section_of("llm", name, self.settings.llm)

    def _open_store(self, name: str) -> Store:
        section = _section_of("vector_store", name, self.settings.vector_store)
        mask = self.settings.secrets.mask
        if section.backend == "elasticsearch":
            return _open_elasticsearch(section, name, mask)
        store = SqliteStore(store_path(section, name), mask=mask)
        if moved := store.untrusted and recognize(store):
            logging.getLogger("toolmem").warning("%s", moved)
        elif reason := store.untrusted:
            command = f"toolmem store trust --store {quote(store.location)}"
            advice = f"its guidance is not handed out. To trust it: {command}"
            logging.getLogger("toolmem").warning("%s: %s", reason, advice)
        return store

    def _open_model(self, name: str) -> ChatModel:
        from toolmem.llm.models import open_model

        return open_model(self._model_section(name), f"llm.{name}", self._budget, self.clock)

    def _open_embedder(self, name: str) -> Embedder:
        from toolmem.llm.embedders import open_embedder

        section = _section_of("embedding_model", name, self.settings.embedding_model)
        return open_embedder(section, f"embedding_model.{name}", self._budget, self.clock)

    def _make_judge(self, op: OpSection) -> Judge:
        if self._is_offline(op.llm):
            return RuleBasedJudge()
        from toolmem.judge.model_judge import DryRunJudge, ModelJudge
        from toolmem.llm.models import DryRunModel

        model = self.model(op.llm)
        judge = ModelJudge(model, *self._wording(op))
        return DryRunJudge(judge, model) if isinstance(model, DryRunModel) else judge

    def _make_writer(self, op: OpSection) -> GuidanceWriter:
        language, prompt_path = self._wording(op)
        limit = self.settings.guidance.max_tokens
        card = CardWriter(language, max_tokens=limit)
        if self._is_offline(op.llm):
            return card
        from toolmem.guidance.model_writer import DryRunWriter, ModelWriter
        from toolmem.llm.models import DryRunModel

        model = self.model(op.llm)
        writer = ModelWriter(model, card, language, prompt_path, max_tokens=limit)
        return DryRunWriter(writer, card, model) if isinstance(model, DryRunModel) else writer

    def _is_offline(self, name: str) -> bool:
        return name not in self._own["llms"] and self._model_section(name).backend == "offline"


def _section_of(kind: str, name: str, sections: Mapping[str, Section]) -> Section:
    if name not in sections:
        raise ConfigError([f"{kind}.{name}: not configured ({hint(name, sections)})"])
    return sections[name]


def store_path(section: StoreSection, name: str) -> str:
    """The path of an SQLite store, or ":memory:". Raises ConfigError for a folder of ReMe."""
    if section.backend == "memory":
        return ":memory:"
    if section.backend == "sqlite":
        return section.params.path
    folder = Path(section.params.store_dir)
    path = folder / "memory.db"
    if not path.exists() and any(folder.glob("*.jsonl")):
        problem = f"vector_store.{name}.params.store_dir: {folder} holds a local store of ReMe"
        raise ConfigError([f"{problem}; read it by `toolmem store import {folder}`"])
    return str(path)


def _open_elasticsearch(section: StoreSection, name: str, mask: bool) -> Store:
    """Raises ConfigError, which names the parameter."""
    params = section.params
    where = f"vector_store.{name}.params"
    if find_spec("elasticsearch") is None:
        problem = "elasticsearch is not installed: pip install 'toolmem[elasticsearch]'"
        raise ConfigError([f"vector_store.{name}.backend: {problem}"])
    from toolmem.store.elasticsearch import ElasticsearchStore

    if not params.hosts:
        raise ConfigError([f"{where}.hosts: {NEEDS_HOSTS}"])
    try:
        return ElasticsearchStore(
            params.hosts,
            basic_auth=params.basic_auth or "",
            index_prefix=params.index_prefix,
            mask=mask,
        )
    except RequestError as error:
        raise ConfigError([f"{where}.{error}"]) from error
