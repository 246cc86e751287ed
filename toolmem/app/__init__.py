"""`ToolMem` and `AsyncToolMem`, the memory as a Python object; `ToolMemApp` below them runs a configuration's flows."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar

import toolmem.ops  # registers the ops
from toolmem.app.own_backends import handed
from toolmem.app.portal import Beside, Portal
from toolmem.app.services import AppServices
from toolmem.config.nearest_names import nearest
from toolmem.errors import ConfigError, NotProvided, RequestError
from toolmem.flow.configure import Configured, configure
from toolmem.flow.op import Node, Op
from toolmem.flow.report import Event
from toolmem.flow.runner import FlowRun, SystemClock, run_node
from toolmem.models import FlowResponse
from toolmem.operations.methods import AsyncRules, Methods, Rules
from toolmem.operations.operation import AsyncCaller, Operation, SyncCaller
from toolmem.operations.table import described_flows
from toolmem.protocols import LLM, Clock, Embedder, GuidanceWriter, Judge, MemoryStore

if TYPE_CHECKING:
    from toolmem.config import Settings
    from toolmem.flow.report import RunReport
    from toolmem.models import ToolSchema
    from toolmem.rules.rule_store import RuleStore
    from toolmem.rules.section import PinnedRules

__all__ = ["AsyncToolMem", "FlowRun", "ToolMem", "ToolMemApp"]

P = ParamSpec("P")
T = TypeVar("T")
assert toolmem.ops


class ToolMemApp:
    """Flows as the configuration describes them, over the store, models and embedder that it names.

        async with ToolMemApp("my.yaml", overrides=["llm.default.model_name=qwen-plus"]) as app:
            response = await app.run_flow("retrieve_tool_memory", workspace_id="team", tool_names="search")

    In a script, `with ToolMemApp() as app: app.run(...)` does the same; `app.run` works inside a running event loop
    as well (notebooks), on a loop of its own. Use one of the two ways on one app.

    `stores`, `judges`, `writers`, `embedders`, `llms`: instances by the names that the configuration uses ("default"
    where none is named), in place of the configured ones. Stores are opened by the first flow and closed with the app;
    they may be asked from more than one event loop. Nothing is opened before the first flow runs.

    Raises ConfigError with all problems of the configuration at once.
    """

    def __init__(
        self,
        config: str | Path | Sequence[str | Path] | None = None,
        overrides: Sequence[str] = (),
        *,
        clock: Clock | None = None,
        stores: Mapping[str, MemoryStore] | None = None,
        judges: Mapping[str, Judge] | None = None,
        writers: Mapping[str, GuidanceWriter] | None = None,
        embedders: Mapping[str, Embedder] | None = None,
        llms: Mapping[str, LLM] | None = None,
    ) -> None:
        files = [] if config is None else [config] if isinstance(config, str | Path) else list(config)
        given = handed(stores=stores, judges=judges, writers=writers, embedders=embedders, llms=llms)
        self.configured: Configured = configure(files, overrides, described=described_flows(), handed=given.names())
        given.check_names(self.configured.settings)
        self.clock: Clock = clock or SystemClock()
        self.services = AppServices(self.configured, self.clock, given)
        self.listeners: list[Callable[[Event], None]] = []
        self.last_report: RunReport | None = None
        self._portal: Portal | None = None
        self._beside: Beside | None = None
        self._making = threading.Lock()

    @property
    def settings(self) -> Settings:
        return self.configured.settings

    @property
    def flows(self) -> Mapping[str, Node]:
        return self.configured.flows

    def op_of(self, flow: str, op_class: type[Op]) -> Op:
        """The op of this class in a flow of the configuration, with its effective params."""
        for op in self._flow(flow).ops():
            if isinstance(op, op_class):
                return op
        raise RequestError(f"flow {flow!r} has no {op_class.__name__}", field="flow")

    @property
    def keep_calls(self) -> int:
        """Calls kept per tool, as the flow `add_tool_call_result` is configured."""
        keep: int = self.op_of(
            "add_tool_call_result", toolmem.ops.ParseToolCallResultOp
        ).params.max_history_tool_call_cnt
        return keep

    async def rule_store(self, workspace_id: str = "default") -> RuleStore:
        """The rules of a workspace, in the default store, with the configured caps."""
        from toolmem.operations.tool_rules import rule_store

        return await rule_store(self.services, workspace_id)

    def rules_now(
        self, rules: RuleStore, tools: Sequence[str | ToolSchema] = (), *, timeout: float = 5.0
    ) -> PinnedRules:
        """What `rules` would pin at this moment, from synchronous code on a running loop. Raises StoreError."""
        from toolmem.rules.prefetch import prefetch_tool_memory_rules, prefetch_tool_memory_rules_blocking

        own = rules.quiet()
        if self.services.usable_from_any_loop():
            return prefetch_tool_memory_rules_blocking(own, tools, timeout=timeout).pinned

        async def fetched(store: MemoryStore) -> PinnedRules:
            return (await prefetch_tool_memory_rules(own.over(store), tools, timeout=timeout)).pinned

        return self.beside.call(fetched)

    # -- running

    async def run_flow(self, flow: str, /, **request: Any) -> FlowResponse:
        """Run a flow of the configuration. Raises Refused (bad request, unknown flow) before anything is done."""
        return (await self.run_detailed(flow, **request)).response

    async def run_detailed(self, flow: str | Node, /, **request: Any) -> FlowRun:
        """As `run_flow`, with what the ops left and the run's report. Takes a flow composed in Python as well."""
        if isinstance(flow, str):
            return await self.run_bound(self._flow(flow), flow, request)
        return await self.run_bound(self.configured.bind(flow), "", request)

    async def execute(self, node: Node, request: Mapping[str, Any]) -> FlowResponse:
        """Run a flow that was composed in Python; `node.run(app, ...)` ends here."""
        return (await self.run_detailed(node, **request)).response

    async def run_bound(self, node: Node, name: str, request: Mapping[str, Any]) -> FlowRun:
        """As `run_detailed`, of what `configured.bind` made: for those who run it again and again."""
        self._check_models(node)
        with self.services.one_budget():
            run = await run_node(
                node,
                name=name,
                request=request,
                services=self.services,
                input_schema=self.settings.flow[name].input_schema if name else None,
                listeners=self.listeners,
                meter=self.services,
            )
        run.response.metadata["usage"] = run.report.usage.model_dump(mode="json", exclude_none=True)
        self.last_report = run.report
        return run

    def check_prompts(self) -> None:
        """Raises ConfigError with every prompt file of the configuration that its op could not use."""
        from toolmem.readers.prompt_templates import read_prompt_file

        problems: list[str] = []
        paths = {op.key: op.settings.prompt_path for node in self.flows.values() for op in node.ops()}
        for key, path in paths.items():
            try:
                if path:
                    read_prompt_file(Path(path).expanduser())
            except ConfigError as error:
                problems += [f"op.{key}.prompt_path: {problem}" for problem in error.problems]
        if problems:
            raise ConfigError(problems)

    def check_models(self, *flows: str) -> None:
        """Raises ConfigError where a model of these flows could not be asked (no key, ...)."""
        for name in flows:
            self._check_models(self._flow(name))

    def _check_models(self, node: Node) -> None:
        for op in node.ops():
            if op.asks_model:
                self.services.check_model(op)

    def _flow(self, name: str) -> Node:
        if name in self.flows:
            return self.flows[name]
        if name in self.configured.left_out:
            raise NotProvided(self.configured.left_out[name])
        hint = nearest(name, self.flows)
        meant = f"; did you mean {hint!r}?" if hint else f"; there are {', '.join(sorted(self.flows))}"
        raise RequestError(f"no flow is called {name!r}{meant}", field="flow")

    # -- synchronous callers

    def run(self, flow: str | Node, /, **request: Any) -> FlowResponse:
        """Run a flow from synchronous code; also works where an event loop is running already."""
        return self.call(self.run_detailed(flow, **request)).response

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine of this app from synchronous code."""
        return self.portal.call(work)

    @property
    def portal(self) -> Portal:
        """Where synchronous callers' work runs."""
        with self._making:
            if self._portal is None:
                self._portal = Portal()
            return self._portal

    @property
    def beside(self) -> Beside:
        """The default store for synchronous code in a thread whose own loop cannot go on meanwhile."""
        with self._making:
            if self._beside is None:
                self._beside = Beside(self.services.store_beside)
            return self._beside

    # -- life

    async def close(self) -> None:
        beside, self._beside = self._beside, None
        if beside is not None:
            await asyncio.to_thread(beside.close)
        await self.services.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.call(self.close())
        assert self._portal is not None
        self._portal.stop()
        self._portal = None


# ---------------------------------------------------------------- ToolMem


_CONFIGURATIONS = (".yaml", ".yml")


class _Opened(Methods):
    """`workspace` is the one that is meant where a call names none."""

    _closed = False

    def __init__(
        self,
        path_or_config: str | Path | None = None,
        *,
        workspace: str = "default",
        overrides: Sequence[str] = (),
        stores: Mapping[str, MemoryStore] | None = None,
        judges: Mapping[str, Judge] | None = None,
        writers: Mapping[str, GuidanceWriter] | None = None,
        embedders: Mapping[str, Embedder] | None = None,
        llms: Mapping[str, LLM] | None = None,
    ) -> None:
        config, more = _read(path_or_config)
        self.app = ToolMemApp(
            config,
            [*more, *overrides],
            stores=stores,
            judges=judges,
            writers=writers,
            embedders=embedders,
            llms=llms,
        )
        self.workspace_id = workspace

    @classmethod
    def from_config(cls, config: str | Path, overrides: Sequence[str] = (), **options: Any) -> Self:
        """As a configuration file says, whatever it is called."""
        memory = cls.__new__(cls)
        memory.workspace_id = options.pop("workspace", "default")
        memory.app = ToolMemApp(config, overrides, **options)
        return memory

    def __repr__(self) -> str:
        return f"{type(self).__name__}(workspace={self.workspace_id!r})"

    async def _perform(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        if self._closed:  # a store in memory would be another, empty one
            raise RequestError(f"this {type(self).__name__} is closed: make another, or work inside its `with`")
        request = operation.request(self.workspace_id, *args, **kwargs)
        if operation.flow and not operation.method:
            return operation.read(await self.app.run_flow(operation.flow, **request), *args, **kwargs)
        return await operation.run(self.app.services, operation.checked(request))


class ToolMem(_Opened, SyncCaller):
    """A memory of tools: what works with each of them, and what the user demands.

        with ToolMem("memory.db") as mem:
            mem.add([ToolCall("search", {"q": "rain"}, output="[]")])
            mem.summarize("search")
            print(mem.guidance("search").text)
            mem.rules.put("send_email", "never email Sarah", priority="critical")
            print(mem.prompt(tools=["search", "send_email"]))

    `path_or_config`: a store's file, or a configuration (`.yaml`, `.yml`); none: the default store of the working
    directory. `overrides`: as on the command line, e.g. `llm.default.backend=dry_run`. Works in scripts, in notebooks
    and inside a running event loop. The methods are those of `Client`, which asks a `toolmem serve` instead. Nothing is
    opened before the first call.

    `stores`, `judges`, `writers`, `embedders`, `llms`: instances of your own by the names that the configuration uses
    ("default" where none is named): `judges={"default": mine}`.

    Raises ConfigError with all problems of the configuration at once.
    """

    @property
    def rules(self) -> Rules:
        return Rules(self)

    def perform(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The operation's result. Raises ToolMemError."""
        return self.app.call(self._perform(operation, *args, **kwargs))

    def close(self) -> None:
        """Write what waits to be written, and close the store."""
        self._closed = True
        self.app.__exit__()

    def __enter__(self) -> Self:
        self._closed = False
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncToolMem(_Opened, AsyncCaller):
    """As `ToolMem`, for async code.

    async with AsyncToolMem("memory.db") as mem:
        await mem.summarize("search")
    """

    @property
    def rules(self) -> AsyncRules:
        return AsyncRules(self)

    async def perform(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The operation's result. Raises ToolMemError."""
        return await self._perform(operation, *args, **kwargs)

    async def close(self) -> None:
        """Write what waits to be written, and close the store."""
        self._closed = True
        await self.app.close()

    async def __aenter__(self) -> Self:
        self._closed = False
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def _read(given: str | Path | None) -> tuple[str | Path | None, list[str]]:
    """(configuration file, overrides) for what a caller named."""
    if given is None or str(given).lower().endswith(_CONFIGURATIONS):
        return given, []
    path = str(given).replace("'", "''")  # quoted, so that it is text whatever it looks like
    return None, [f"vector_store.default.params.path='{path}'"]
