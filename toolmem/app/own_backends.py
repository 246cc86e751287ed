"""Stores, judges, writers, embedders and chat models that are not built in: handed over as instances, or registered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from toolmem.config.nearest_names import hint
from toolmem.config.settings import Settings
from toolmem.config.sockets import BY_OP_SETTING, CHAT_MODELS, EMBEDDERS, STORES, Socket
from toolmem.errors import ConfigError
from toolmem.protocols import LLM, Embedder, GuidanceWriter, Judge, MemoryStore

_METHODS = {  # what an instance must have, so that a wrong one is told before anything is done
    "stores": ("open", "close", "append_calls", "memories", "put_guidance", "search"),
    "judges": ("identity", "paid", "judge"),
    "writers": ("author", "prompt_version", "write", "edit"),
    "embedders": ("identity", "embed"),
    "llms": ("backend", "model", "complete"),
}


@dataclass(frozen=True)
class Handed:
    """Instances by the names that the configuration uses."""

    stores: Mapping[str, MemoryStore] = field(default_factory=dict)
    judges: Mapping[str, Judge] = field(default_factory=dict)
    writers: Mapping[str, GuidanceWriter] = field(default_factory=dict)
    embedders: Mapping[str, Embedder] = field(default_factory=dict)
    llms: Mapping[str, LLM] = field(default_factory=dict)

    def names(self) -> dict[str, frozenset[str]]:
        """Of what an op names by a setting."""
        return {"judge": frozenset(self.judges), "writer": frozenset(self.writers)}

    def check_names(self, settings: Settings) -> None:
        """Raises ConfigError where the configuration has no place for what is handed over."""
        sections = {"stores": "vector_store", "embedders": "embedding_model", "llms": "llm"}
        problems = []
        for kind, section in sections.items():
            there = getattr(settings, section)
            problems += [
                f"{kind}[{name!r}]: no {section} is called {name!r} ({hint(name, there)})"
                for name in getattr(self, kind)
                if name not in there
            ]
        if problems:
            raise ConfigError(problems)


def handed(**given: Mapping[str, Any] | None) -> Handed:
    """Raises ConfigError where something else than an instance of the kind is handed over."""
    problems = [
        problem
        for kind, instances in given.items()
        for name, one in (instances or {}).items()
        if (problem := _problem(kind, one, f"{kind}[{name!r}]"))
    ]
    if problems:
        raise ConfigError(problems)
    return Handed(**{kind: dict(instances or {}) for kind, instances in given.items()})


def _problem(kind: str, one: Any, where: str) -> str:
    if isinstance(one, type):
        return f"{where}: {one.__name__} is a class; hand over an instance, as in {one.__name__}(...)"
    missing = [name for name in _METHODS[kind] if not hasattr(type(one), name) and not hasattr(one, name)]
    return f"{where}: {type(one).__name__} has no {', '.join(missing)}; see toolmem.protocols" if missing else ""


def is_own(socket: Socket, backend: str) -> bool:
    """Is this backend none of the built-in ones?"""
    return backend not in socket.builtin


def own_store(name: str, section: Any, **given: Any) -> MemoryStore:
    """The store of a backend of one's own, not opened."""
    return cast(MemoryStore, _made(STORES, section.backend, f"vector_store.{name}", {**section.params.own, **given}))


def own_embedder(name: str, section: Any) -> Embedder:
    """The embedder of a backend of one's own."""
    return cast(Embedder, _made(EMBEDDERS, section.backend, f"embedding_model.{name}", _of_model(section)))


def own_llm(name: str, section: Any) -> LLM:
    """The chat model of a backend of one's own."""
    return cast(LLM, _made(CHAT_MODELS, section.backend, f"llm.{name}", _of_model(section)))


def own_for_op(setting: str, name: str) -> Any:
    """The judge or writer that an op names."""
    return _made(BY_OP_SETTING[setting], name, setting, {})


def _of_model(section: Any) -> dict[str, Any]:
    named = {"model_name": section.model_name} if section.model_name else {}
    return {**section.params.own, **named}


def _made(socket: Socket, name: str, where: str, keywords: Mapping[str, Any]) -> Any:
    factory = socket.find(name)
    if factory is None:
        raise ConfigError(f"{where}: {socket.unknown(name)}")
    try:
        return factory(**keywords)
    except ConfigError:
        raise
    except Exception as error:
        raise ConfigError(
            f"{where}: the {socket.kind} {name!r} cannot be made: {type(error).__name__}: {error}"
        ) from error
