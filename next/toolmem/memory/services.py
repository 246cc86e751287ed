"""Stores, judges, writers and model pools of a configuration, opened when first asked for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TypeVar

from msgspec import Struct

from toolmem.config.names import hint
from toolmem.config.sections import ModelSection, OpSection, Settings
from toolmem.errors import ConfigError, StoreClosed
from toolmem.guidance.card import CardWriter
from toolmem.judge.check import RuleBasedJudge
from toolmem.llm.pool import ModelPool
from toolmem.models.protocols import Clock, GuidanceWriter, Judge, Store
from toolmem.store.sqlite import SqliteStore

Opened = TypeVar("Opened")


class SystemClock:
    """The machine's time."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        import asyncio

        await asyncio.sleep(seconds)


class OwnServices(Struct):
    """Instances that a caller hands over, by the names that the configuration uses."""

    stores: Mapping[str, Store] = {}
    judges: Mapping[str, Judge] = {}
    writers: Mapping[str, GuidanceWriter] = {}


class MemoryServices:
    """Implements `toolmem.flow.services.Services`."""

    def __init__(self, settings: Settings, own: OwnServices, clock: Clock) -> None:
        self.settings = settings
        self.clock = clock
        self._stores: dict[str, Store] = dict(own.stores)
        self._judges: dict[str, Judge] = dict(own.judges)
        self._writers: dict[str, GuidanceWriter] = dict(own.writers)
        self._pools: dict[str, ModelPool] = {}
        self._opening = threading.Lock()
        self._is_closed = False

    def store(self, op: OpSection) -> Store:
        return self._opened(self._stores, op.vector_store, self._open_store)

    def judge(self, op: OpSection) -> Judge:
        return self._opened(self._judges, op.llm, self._make_judge)

    def writer(self, op: OpSection) -> GuidanceWriter:
        return self._opened(self._writers, op.llm, self._make_writer)

    def pool(self, op: OpSection) -> ModelPool:
        return self._opened(self._pools, op.llm, self._make_pool)

    def close(self) -> None:
        """Close every store, those that were handed over too."""
        with self._opening:
            self._is_closed = True
            for store in self._stores.values():
                store.close()

    def _opened(
        self, known: dict[str, Opened], name: str, open_it: Callable[[str], Opened]
    ) -> Opened:
        found = known.get(name)
        if found is None:
            with self._opening:
                found = known.get(name)
                if self._is_closed:
                    raise StoreClosed("this memory was closed; make another ToolMem")
                if found is None:
                    found = known[name] = open_it(name)
        return found

    def _open_store(self, name: str) -> Store:
        section = self.settings.vector_store.get(name)
        if section is None:
            problem = f"vector_store.{name}: not configured"
            raise ConfigError([f"{problem} ({hint(name, self.settings.vector_store)})"])
        path = ":memory:" if section.backend == "memory" else section.params.path
        store = SqliteStore(path, mask=self.settings.secrets.mask)
        if reason := store.untrusted:
            import logging

            logging.getLogger("toolmem").warning(
                "%s: whoever made it wrote the guidance in it. To trust it: "
                "toolmem.store.sqlite.SqliteStore(path).trust()",
                reason,
            )
        return store

    def _model(self, name: str) -> ModelSection:
        section = self.settings.llm.get(name)
        if section is None:
            problem = f"llm.{name}: not configured"
            raise ConfigError([f"{problem} ({hint(name, self.settings.llm)})"])
        return section

    def _make_judge(self, name: str) -> Judge:
        self._require_offline(name)
        return RuleBasedJudge()

    def _make_writer(self, name: str) -> GuidanceWriter:
        self._require_offline(name)
        settings = self.settings
        return CardWriter(settings.language, max_tokens=settings.guidance.max_tokens)

    def _require_offline(self, name: str) -> None:
        backend = self._model(name).backend
        if backend != "offline":
            raise ConfigError([f"llm.{name}.backend: {backend!r} is not available yet"])

    def _make_pool(self, name: str) -> ModelPool:
        return ModelPool(self._model(name).max_concurrency, self.clock)
