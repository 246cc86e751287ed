"""Which adapters an op gets: the configuration's names turned into stores, judges, writers and embedders.

Each is made when an op first asks for it, and shared by those who name the same.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, cast

from toolmem.app.counted_writer import CountedWriter
from toolmem.app.own_backends import Handed, is_own, own_for_op, own_llm, own_store
from toolmem.app.store_embedders import StoreEmbedders
from toolmem.app.store_places import StorePlaces
from toolmem.config.sockets import CHAT_MODELS, LOCAL_EMBEDDERS, STORES
from toolmem.errors import StoreUntrusted
from toolmem.protocols import (
    LLM,
    Clock,
    ConfiguredOp,
    Embedder,
    GuidanceWriter,
    Judge,
    LedgerEntry,
    MemoryStore,
)
from toolmem.providers.budget import Budget
from toolmem.providers.pacing import shared_gate
from toolmem.providers.prices import PriceTable
from toolmem.providers.request_queue import one_run
from toolmem.providers.usage_log import Ledger
from toolmem.store.masked import masking
from toolmem.stored import LogLimits

if TYPE_CHECKING:
    from toolmem.config.settings import EmbeddingSettings, LLMSettings
    from toolmem.engine.ended_calls import TaughtCalls
    from toolmem.engine.guarding import CallGuard
    from toolmem.flow.configure import Configured
    from toolmem.guidance.llm_writer import LLMWriter
    from toolmem.providers.dashscope import DashScopeEmbedder, DashScopeLLM
    from toolmem.providers.openai_compatible import OpenAICompatibleEmbedder, OpenAICompatibleLLM
    from toolmem.providers.remote_llm import RemoteLLM

logger = logging.getLogger("toolmem.app")
_told: set[str] = set()  # warnings of untrusted stores: each once in a process
OFFLINE = "offline"
DRY_RUN = "dry_run"


class AppServices:
    """Implements `ports.Services`."""

    def __init__(self, configured: Configured, clock: Clock, given: Handed) -> None:
        self.configured = configured
        self.settings = settings = configured.settings
        found_stores = configured.loaded.found_stores
        self.clock = clock
        self._given = given
        self.count_prompts = False  # where no model is asked, count what one would have been sent for each summary
        self._found_stores = frozenset(found_stores)
        self._stores_of_dotenv = {n for n in found_stores if settings.vector_store[n].backend != "sqlite"}
        self.places = StorePlaces(configured, given.stores)
        self._stores: dict[str, MemoryStore] = {}
        self.embedders = StoreEmbedders(settings, given.embedders, self._remote_embedder)
        self._llms: dict[str, RemoteLLM] = {}
        self._own_llms: dict[str, LLM] = {}
        self._own: dict[tuple[str, str], Any] = {}  # judges and writers, by setting and name
        self.price = PriceTable(settings.prices)
        self.budget = Budget(settings.budget.max_tokens, settings.budget.max_cost, price=self.price)
        backends = {each.backend for each in settings.llm.values()}
        backends |= {each.backend for each in settings.embedding_model.values()}
        self._remote = not backends <= {OFFLINE, *LOCAL_EMBEDDERS}
        self._runs = 0  # under way, within one budget
        self.ledger: Ledger | None = None  # from when the default store is open
        self._judges: dict[tuple[Any, ...], Judge] = {}
        self._writers: dict[tuple[Any, ...], GuidanceWriter] = {}
        self._guards: dict[tuple[str, str, bool], CallGuard] = {}  # by workspace, that of its rules, strict
        self._guards_beside: dict[tuple[str, str, bool], CallGuard] = {}  # of another thread
        self._taught: TaughtCalls | None = None  # by any of them
        self._opening = asyncio.Lock()

    # -- store and embedder

    async def store(self, op: ConfiguredOp) -> MemoryStore:
        return await self.store_named(op.settings.vector_store)

    async def store_named(self, name: str = "default") -> MemoryStore:
        """The store of that name, opened."""
        if name not in self._stores:
            async with self._opening:
                if name not in self._stores:
                    store = await self._opened(name)
                    self._stores[name] = store
                    self._warn_of_untrusted(name)
                    if name == "default":
                        self.ledger = Ledger(store)
        return self._stores[name]

    def untrusted(self, store: str = "default") -> str:
        """Implements `ports.Services`: of a store that is open."""
        if store in self._stores_of_dotenv:
            return (
                f"vector_store.{store}: .env says where this store is, and a file that lies in a folder is no reason "
                "to trust what is there: nothing of it is put before a model. If it is yours, say so in the "
                "environment, in a configuration that you name, or by an override"
            )
        return str(getattr(self._stores.get(store), "untrusted", ""))

    def require_trusted(self, store: str = "default") -> None:
        """Raises StoreUntrusted. For those who put what the store holds before a model."""
        if reason := self.untrusted(store):
            raise StoreUntrusted(reason)

    def _warn_of_untrusted(self, name: str) -> None:
        reason = self.untrusted(name)
        if reason and reason not in _told:
            _told.add(reason)
            logger.warning(reason)

    async def store_beside(self, name: str = "default") -> tuple[MemoryStore, bool]:
        """The store for another event loop than this one's, and whether it is a handle of its own, to be closed."""
        if self.usable_from_any_loop(name):
            return await self.store_named(name), False
        return await self._opened(name), True

    def usable_from_any_loop(self, name: str = "default") -> bool:
        """Whether any event loop may use the store; a store that is not built in promises it."""
        return name in self._given.stores or self.settings.vector_store[name].backend != "elasticsearch"

    async def _opened(self, name: str) -> MemoryStore:
        store = self._make_store(name)
        await store.open()
        await self.embedders.settle(store, name)
        return masking(store) if self.settings.secrets.mask else store

    def _make_store(self, name: str) -> MemoryStore:
        if name in self._given.stores:
            return self._given.stores[name]
        section = self.settings.vector_store[name]
        identity = self.embedders.of_store(name).identity
        if is_own(STORES, section.backend):
            return own_store(name, section, clock=self.clock, embedder=identity)
        log = LogLimits(**self.settings.log.model_dump())
        told: dict[str, Any] = {"clock": self.clock, "embedder": identity, "log": log}
        if section.backend == "elasticsearch":
            from toolmem.store.elasticsearch import ElasticsearchStore

            return ElasticsearchStore(**section.keywords(), **told, section=f"vector_store.{name}")
        from toolmem.store.sqlite import SqliteStore

        kept = section.keywords() | {"path": self.places.file_of(name)}
        return SqliteStore(**told, **kept, found=name in self._found_stores)

    async def embedder(self, op: ConfiguredOp) -> Embedder:
        """The embedder of the op's store: vectors of two embedders are never mixed."""
        name = op.settings.vector_store
        return await self.embedders.current(await self.store_named(name), name)

    def embedder_of_store(self, name: str = "default") -> Embedder:
        """The same, of a store that is open."""
        return self.embedders.of_store(name)

    def _remote_embedder(self, name: str, section: EmbeddingSettings) -> Embedder:
        from toolmem.providers.tokenizer import QwenTokenizer

        remote: type[DashScopeEmbedder | OpenAICompatibleEmbedder]
        if section.backend == "dashscope":
            from toolmem.providers.dashscope import DashScopeEmbedder

            remote = DashScopeEmbedder
        else:
            from toolmem.providers.openai_compatible import OpenAICompatibleEmbedder

            remote = OpenAICompatibleEmbedder
        return remote(
            section,
            tokenizer=QwenTokenizer(),
            clock=self.clock,
            setting=f"embedding_model.{name}",
            meter=self,
            price=self.price,
            budget=self.budget,
        )

    # -- the guard

    async def call_guard(
        self,
        workspace_id: str,
        rules_workspace_id: str = "",
        *,
        beside: MemoryStore | None = None,
        strict: bool = False,
    ) -> CallGuard:
        """Implements `ports.Services`. `beside`: the handle of another thread; `strict`: unset, repeats enforce."""
        place = (workspace_id, rules_workspace_id or workspace_id, strict)
        guards = self._guards if beside is None else self._guards_beside
        if place not in guards:
            from toolmem.app.call_guards import configured_guard
            from toolmem.engine.ended_calls import TaughtCalls

            store = beside if beside is not None else await self.store_named()
            self.require_trusted()
            self._taught = self._taught or TaughtCalls()
            guards[place] = configured_guard(self.configured, self.clock, store, *place, taught=self._taught)
        return guards[place]

    # -- judge and writer

    def fan_out(self, op: ConfiguredOp) -> int:
        return self._section(op).params.max_concurrency

    async def judge(self, op: ConfiguredOp) -> Judge:
        if (own := self._own_of("judge", op)) is not None:
            return cast(Judge, own)
        key = self._variant(op)
        if key not in self._judges:
            self._judges[key] = self._make_judge(op)
        return self._judges[key]

    def _make_judge(self, op: ConfiguredOp) -> Judge:
        from toolmem.judge.rule_based import RuleBasedCheck

        check = RuleBasedCheck()
        if self._is_offline(op):
            return check
        from toolmem.judge.llm_judge import LLMJudge, judge_prompts
        from toolmem.providers.tokenizer import QwenTokenizer

        return LLMJudge(
            self._llm(op),
            judge_prompts(op.settings.prompt_path),
            QwenTokenizer(),
            language=self._language(op),
            fallback=check if self._section(op).backend == DRY_RUN else None,
            execution_check=check,
        )

    def chat_model(self, op: ConfiguredOp) -> LLM | None:
        """The op's model; None where none is configured. Raises ConfigError where it cannot be asked (no key, ...)."""
        return None if self._is_offline(op) else self._llm(op)

    async def writer(self, op: ConfiguredOp) -> GuidanceWriter:
        if (own := self._own_of("writer", op)) is not None:
            return cast(GuidanceWriter, own)
        key = self._variant(op)
        if key not in self._writers:
            self._writers[key] = self._make_writer(op)
        return self._writers[key]

    def _make_writer(self, op: ConfiguredOp) -> GuidanceWriter:
        from toolmem.guidance.counted.data_driven import DataDrivenWriter

        counted = DataDrivenWriter(self._language(op), max_tokens=self.settings.guidance.max_tokens)
        if not self._is_offline(op):
            return self._llm_writer(op, self._llm(op), counted)
        dry = self.count_prompts and self._llm_writer(op, self._dry_run(self._section(op)), counted)
        return CountedWriter(counted, dry) if dry else counted

    def _llm_writer(self, op: ConfiguredOp, llm: LLM, evidence: GuidanceWriter) -> LLMWriter:
        from toolmem.guidance.llm_writer import LLMWriter, writer_prompts
        from toolmem.providers.tokenizer import QwenTokenizer

        return LLMWriter(
            llm,
            writer_prompts(op.settings.prompt_path),
            QwenTokenizer(),
            language=self._language(op),
            evidence=evidence,
            max_tokens=self.settings.guidance.max_tokens,
        )

    def _own_of(self, setting: str, op: ConfiguredOp) -> Any:
        """The judge or writer that the op names, or that was handed over as the default; None: as `llm` says."""
        name = getattr(op.settings, setting) or "default"
        there = self._given.judges if setting == "judge" else self._given.writers
        if name in there or name == "default":
            return there.get(name)
        if (setting, name) not in self._own:
            self._own[setting, name] = own_for_op(setting, name)
        return self._own[setting, name]

    # -- models

    def _section(self, op: ConfiguredOp) -> LLMSettings:
        return self.settings.llm[op.settings.llm]

    def _is_offline(self, op: ConfiguredOp) -> bool:
        return op.settings.llm not in self._given.llms and self._section(op).backend == OFFLINE

    def _language(self, op: ConfiguredOp) -> Any:
        return self.settings.language if op.settings.language is None else op.settings.language

    def _variant(self, op: ConfiguredOp) -> tuple[Any, ...]:
        """What two ops must have in common to share a judge or a writer."""
        return (op.key, op.settings.llm, self._language(op), op.settings.prompt_path, op.settings.max_retries)

    def _llm(self, op: ConfiguredOp) -> LLM:
        """The op's model, paced as the op says. Raises ConfigError where it cannot be asked (no key, ...)."""
        name = op.settings.llm
        if name in self._given.llms:
            return self._given.llms[name]
        section = self._section(op)
        if is_own(CHAT_MODELS, section.backend):
            if name not in self._own_llms:
                self._own_llms[name] = own_llm(name, section)
            return self._own_llms[name]
        if section.backend == DRY_RUN:
            return self._dry_run(section)
        if name not in self._llms:
            self._llms[name] = self._remote_llm(name, section)
        gate = shared_gate(op.key, self.interval(op), self.clock)
        return self._llms[name].for_op(gate, max_retries=op.settings.max_retries)

    def _remote_llm(self, name: str, section: LLMSettings) -> RemoteLLM:
        from toolmem.providers.tokenizer import QwenTokenizer

        remote: type[DashScopeLLM | OpenAICompatibleLLM]
        if section.backend == "dashscope":
            from toolmem.providers.dashscope import DashScopeLLM

            remote = DashScopeLLM
        else:
            from toolmem.providers.openai_compatible import OpenAICompatibleLLM

            remote = OpenAICompatibleLLM
        return remote(
            section,
            tokenizer=QwenTokenizer(),
            clock=self.clock,
            setting=f"llm.{name}",
            price=self.price,
            budget=self.budget if self.budget.limited else None,
        )

    def _dry_run(self, section: LLMSettings) -> LLM:
        from toolmem.providers.dry_run import DryRunLLM
        from toolmem.providers.tokenizer import QwenTokenizer

        return DryRunLLM(section.model_name or "qwen-plus", QwenTokenizer(), clock=self.clock, price=self.price)

    def interval(self, op: ConfiguredOp) -> float:
        """Seconds between two requests of this op to a model: its param that ends in `_sleep_interval`."""
        intervals = [v for name, v in op.params.model_dump().items() if name.endswith("_sleep_interval")]
        return float(intervals[0]) if intervals else 0.0

    def check_model(self, op: ConfiguredOp) -> None:
        """Raises ConfigError where the op's model could not be asked: before anything is read, judged or paid."""
        if self._own_of(getattr(op, "asks", "judge"), op) is None and not self._is_offline(op):
            self._llm(op)

    # -- what is spent

    def book(self, entry: LedgerEntry) -> None:
        """Implements `ports.Meter`: into the ledger of the default store."""
        if self.ledger is not None:
            self.ledger.book(entry)

    @contextmanager
    def one_budget(self) -> Iterator[None]:
        """Share one budget between the runs inside; it begins anew where none is under way.

        A service that denies one of their requests is asked no more.
        """
        if self._runs == 0:
            self.budget.tokens, self.budget.cost = 0, 0.0
        self._runs += 1
        try:
            with one_run(self.clock) if self._remote else nullcontext():
                yield
        finally:
            self._runs -= 1

    async def close(self) -> None:
        """Write the ledger, close connections, then the stores."""
        try:
            if self.ledger is not None:
                await self.ledger.close()
        finally:
            self.ledger = None
            made = (*self._llms.values(), *self._own_llms.values(), *self.embedders.all(), *self._own.values())
            for adapter in made:
                if hasattr(adapter, "close"):
                    await adapter.close()
            self._guards.clear()
            self._guards_beside.clear()
            stores, self._stores = self._stores, {}
            for store in stores.values():
                await store.close()
