"""ToolMem: the memory as an object of this process; AsyncToolMem: the same for async code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ParamSpec, Self, TypeVar

from toolmem.app import ToolMemApp
from toolmem.operations.methods import AsyncRules, Methods, Rules
from toolmem.operations.operation import AsyncCaller, Operation, SyncCaller
from toolmem.operations.requests import checked
from toolmem.protocols import LLM, Embedder, GuidanceWriter, Judge, MemoryStore

P = ParamSpec("P")
T = TypeVar("T")

_CONFIGURATIONS = (".yaml", ".yml")


class _Opened(Methods):
    """`workspace` is the one that is meant where a call names none."""

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
        request = operation.request(self.workspace_id, *args, **kwargs)
        if operation.flow:
            return operation.read(await self.app.run_flow(operation.flow, **request), *args, **kwargs)
        return await operation.run(self.app.services, checked(operation, request))


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
        self.app.__exit__()

    def __enter__(self) -> Self:
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
        await self.app.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def _read(given: str | Path | None) -> tuple[str | Path | None, list[str]]:
    """(configuration file, overrides) for what a caller named."""
    if given is None or str(given).lower().endswith(_CONFIGURATIONS):
        return given, []
    path = str(given).replace("'", "''")  # quoted, so that it is text whatever it looks like
    return None, [f"vector_store.default.params.path='{path}'"]
