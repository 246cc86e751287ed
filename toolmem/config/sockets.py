"""Stores, judges, guidance writers, embedders and chat models of one's own: the names by which a configuration asks.

A name is known when it is registered, or when an installed package has an entry point of that name; an entry point is
loaded by whoever asks for its name, and by nobody else.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from toolmem.config.nearest_names import hint
from toolmem.errors import ConfigError

log = logging.getLogger("toolmem.config")

Made = TypeVar("Made", bound=Callable[..., Any])


class Socket:
    """The backends of one kind: those built in, those registered, those of installed packages."""

    def __init__(self, kind: str, group: str, builtin: Iterable[str] = (), reserved: Iterable[str] = ()) -> None:
        self.kind = kind  # in the words of an error: "llm backend"
        self.group = group  # of entry points
        self.builtin = tuple(builtin)
        self._reserved = {*self.builtin, *reserved}
        self._made: dict[str, Callable[..., Any]] = {}
        self._broken: dict[str, str] = {}
        self._lock = threading.RLock()

    def register(self, name: str, factory: Made) -> Made:
        """Raises ConfigError where the name is taken; the same class defined again (a notebook) replaces."""
        if not isinstance(name, str) or not name.isidentifier():
            raise ConfigError(f"{self.kind} {name!r}: expected letters, digits and _ (a letter first)")
        if not callable(factory):
            raise ConfigError(f"{self.kind} {name!r}: expected a class, or a function that makes one, got {factory!r}")
        if name in self._reserved:
            raise ConfigError(f"{self.kind} {name!r}: the name is one of toolmem's own; choose another")
        with self._lock:
            known = self._made.get(name)
            if known is not None and origin(known) != origin(factory):
                raise ConfigError(f"{self.kind} {name!r}: {origin(known)} has the name already; choose another")
            self._made[name] = factory
        return factory

    def find(self, name: str) -> Callable[..., Any] | None:
        """The class of that name; None where there is none, or where its entry point cannot be loaded."""
        if name not in self._made and name not in self._reserved:
            self._load(name)
        return self._made.get(name)

    def names(self) -> tuple[str, ...]:
        """Built in first; nothing is loaded for this."""
        own = {*self._made, *(entry.name for entry in self._entries())} - {*self.builtin, *self._broken}
        return (*self.builtin, *sorted(own))

    def why_broken(self, name: str) -> str:
        """Why the entry point of that name cannot be used; "" where there is none, or nothing is wrong with it."""
        return self._broken.get(name, "")

    def unknown(self, name: str, others: Iterable[str] = ()) -> str:
        """What to say of a name that is not known. `others`: names that would have been right here beside ours."""
        if reason := self.why_broken(name):
            return f"the entry point {name!r} of {self.group!r} cannot be loaded: {reason}"
        there = (*self.names(), *others)
        listed = f"there are {', '.join(there)}" if there else f"there is none: register one, or see {self.group!r}"
        return f"no {self.kind} is called {name!r} ({hint(name, there)}); {listed}"

    def _entries(self) -> Iterable[Any]:
        from importlib.metadata import entry_points

        return entry_points(group=self.group)

    def _load(self, name: str) -> None:
        with self._lock:
            for entry in self._entries():
                if entry.name != name or name in self._made:
                    continue
                try:
                    self.register(name, entry.load())
                    self._broken.pop(name, None)
                except Exception as error:  # whatever a module of somebody else's raises
                    self._broken[name] = f"{type(error).__name__}: {error}"
                    log.warning("the entry point %s = %s brings no %s: %s", name, entry.value, self.kind, error)


def origin(factory: Callable[..., Any]) -> str:
    """Where a class or function was defined, as one dotted name."""
    return f"{factory.__module__}.{getattr(factory, '__qualname__', type(factory).__qualname__)}"


STORES = Socket(
    "vector_store backend", "toolmem.stores", ("sqlite", "elasticsearch"), reserved=("memory", "local")
)  # the reserved two are what ReMe's files call the embedded store
LOCAL_EMBEDDERS = ("multilingual", "hashing", "fastembed")  # they ask nobody
EMBEDDERS = Socket("embedding backend", "toolmem.embedders", (*LOCAL_EMBEDDERS, "dashscope", "openai_compatible"))
CHAT_MODELS = Socket("llm backend", "toolmem.chat_models", ("offline", "dry_run", "dashscope", "openai_compatible"))
JUDGES = Socket("judge", "toolmem.judges", reserved=("default",))
WRITERS = Socket("writer", "toolmem.writers", reserved=("default",))
BY_OP_SETTING = {"judge": JUDGES, "writer": WRITERS}  # what an op names by a setting, without a section


def register_store(name: str, factory: Made) -> Made:
    """Make a store usable as `vector_store.<name>.backend`.

    Its class is called with `clock`, `embedder` (an EmbedderIdentity) and the section's `params` as keywords.
    """
    return STORES.register(name, factory)


def register_embedder(name: str, factory: Made) -> Made:
    """Make an embedder usable as `embedding_model.<name>.backend`.

    Its class gets the section's `params` as keywords, and `model_name` where the section names one.
    """
    return EMBEDDERS.register(name, factory)


def register_chat_model(name: str, factory: Made) -> Made:
    """Make a chat model usable as `llm.<name>.backend`.

    Its class gets the section's `params` as keywords, and `model_name` where the section names one.
    """
    return CHAT_MODELS.register(name, factory)


def register_judge(name: str, factory: Made) -> Made:
    """Make a judge usable as `op.<key>.judge`; its class is called without arguments."""
    return JUDGES.register(name, factory)


def register_writer(name: str, factory: Made) -> Made:
    """Make a guidance writer usable as `op.<key>.writer`; its class is called without arguments."""
    return WRITERS.register(name, factory)
