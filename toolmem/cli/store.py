"""`toolmem store`: what a store holds, a copy into another one, another embedder, ReMe's dumps."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast
from urllib.parse import parse_qsl, urlsplit, urlunsplit

import typer

from toolmem.cli.console import (
    AsJson,
    Config,
    Overrides,
    ProgressLine,
    counted,
    in_app,
    print_json,
    print_table,
    require_file,
    require_store,
    say,
)
from toolmem.errors import RequestError

if TYPE_CHECKING:
    from toolmem.app import ToolMemApp
    from toolmem.protocols import Embedder, MemoryStore
    from toolmem.store.copying import Copied
    from toolmem.store.sqlite import SqliteStore

_ADDRESS = "config:NAME (of vector_store), sqlite:PATH, or elasticsearch:URL[?index_prefix=...]"
StoreOption = Annotated[str, typer.Option("--store", help=f"{_ADDRESS}.")]
_ELASTICSEARCH_QUERY = ("index_prefix", "vector_index", "number_of_shards", "number_of_replicas", "ca_certs", "timeout")
_NUMBERS = {"number_of_shards": int, "number_of_replicas": int, "timeout": float}


def info(
    overrides: Overrides = None, store: StoreOption = "config:default", config: Config = None, as_json: AsJson = False
) -> None:
    """What a store holds: schema, embedder, and counts per workspace.

    `secrets`: values in kept calls and guidance that would be masked if they were stored today.

    toolmem store info

    toolmem store info --store elasticsearch:http://localhost:9200
    """

    async def work(app: ToolMemApp) -> dict[str, Any]:
        from toolmem.store.masked import unmasked_secrets

        async with opened(store, app, create=False, read_only=True) as found:
            held = await found.info()
            for workspace, counts in held["workspaces"].items():
                counts["secrets"] = await unmasked_secrets(found, workspace)
            return held

    held = in_app(work, config, overrides)
    if as_json:
        print_json(held)
        return
    embedder = held["embedder"]
    named = "none yet" if embedder is None else f"{embedder['name']}/{embedder['model']} ({embedder['dimension']})"
    counts = ("tools", "calls", "logged_calls", "records", "verdicts", "decisions", "secrets")
    # a store of one's own may count fewer things
    rows = [(name, *(f"{each.get(count, 0):,}" for count in counts)) for name, each in held["workspaces"].items()]
    print_table(
        f"{held['backend']} {held['location']}",
        ("workspace", *(count.replace("_", " ") for count in counts)),
        rows,
        numeric=frozenset(count.replace("_", " ") for count in counts),
        notes=[f"schema version {held['schema_version']}, embedder: {named}"],
    )


def copy(
    overrides: Overrides = None,
    source: Annotated[str, typer.Option("--from", help=f"{_ADDRESS}.")] = "config:default",
    target: Annotated[
        str, typer.Option("--to", help="The same forms. It may hold something; nothing is replaced.")
    ] = "",
    workspace: Annotated[
        list[str] | None, typer.Option("--workspace", help="Only this one; may be given several times.")
    ] = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Copy a store into another one, then compare both. Interrupted, it goes on where it stopped when run again.

    toolmem store copy --from sqlite:.toolmem/memory.db --to elasticsearch:http://localhost:9200
    """
    if not target:
        raise RequestError(f"--to: expected {_ADDRESS}", field="to")
    if source == target:
        raise RequestError("--to: is the store itself; name another one", field="to")

    async def work(app: ToolMemApp) -> Copied:
        from toolmem.store.copying import Copy
        from toolmem.store.masked import unmasked

        with ProgressLine() as line:
            async with (
                opened(source, app, create=False, read_only=True, option="--from") as given,
                opened(target, app, option="--to") as taking,
            ):
                _require_trusted(source, app)
                shown = ""

                def progress(what: str, done: int, total: int) -> None:
                    nonlocal shown
                    if what != shown:
                        line.phase(what)
                        shown = what
                    line(_event(what, done, total))

                embedder = await _embedder(app, target, taking)
                return await Copy(unmasked(given), unmasked(taking), embedder=embedder, progress=progress).run(
                    workspace
                )

    _report(in_app(work, config, overrides), as_json, "copied")


def reembed(overrides: Overrides = None, store: StoreOption = "config:default", config: Config = None) -> None:
    """Embed every searchable text again, with the embedder that is configured now. Searches use the old one meanwhile.

    toolmem store reembed embedding_model.default.backend=dashscope
    """

    async def work(app: ToolMemApp) -> int:
        with ProgressLine() as line:
            line.phase("embedding")
            async with opened(store, app, create=False) as found:
                return await app.services.embedders.renew(
                    found,
                    _configured_name(store) or "default",
                    lambda done, total: line(_event("embedding", done, total)),
                    is_this=bool(_configured_name(store)),
                )

    print(f"{counted(in_app(work, config, overrides), 'text')} embedded")


def import_(
    path: Annotated[Path, typer.Argument(help="A dump (JSON Lines), or a folder of them, one per workspace.")],
    overrides: Overrides = None,
    store: StoreOption = "config:default",
    workspace: Annotated[
        str | None, typer.Option("--workspace", help="Where to; default: the name of each file.")
    ] = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Bring over what ReMe dumped or keeps in a folder. A file with a bad line is refused whole; twice adds nothing.

    toolmem store import ./reme_vector_store --workspace team
    """
    files = sorted(path.glob("*.jsonl")) if path.is_dir() else [path]
    if not files:
        raise RequestError(f"{path}: the folder holds no *.jsonl file", field="path")

    async def work(app: ToolMemApp) -> Copied:
        from toolmem.formats.memory_dump import read_dump
        from toolmem.store.copying import Copied, take_over
        from toolmem.store.masked import masking

        time_zone = app.settings.time_zone
        dumps = [
            (name, read_dump(file, workspace=name, clock=app.clock, time_zone=time_zone))
            for file in files
            for name in [workspace or file.stem]
        ]
        whole = Copied()
        async with opened(store, app) as given:
            found = masking(given) if app.settings.secrets.mask else given
            for name, read in dumps:
                if read.passed_over:
                    kinds = sorted({each["memory_type"] for each in read.passed_over})
                    passed = counted(len(read.passed_over), "line")
                    say(f"{name}: {passed} of other memory types passed over ({', '.join(kinds)})")
                embedder = await _embedder(app, store, found)
                done = await take_over(found, name, read.memories, embedder=embedder)
                whole.tools += done.tools
                whole.calls += done.calls
                whole.duplicates += done.duplicates
                whole.failures += done.failures
        return whole

    _report(in_app(work, config, overrides), as_json, "imported")


def trust(
    path: Annotated[Path, typer.Argument(help="The store's file, e.g. .toolmem/memory.db.")],
    overrides: Overrides = None,
    config: Config = None,
) -> None:
    """Note a store that was found in a folder as yours: from now on its rules and guidance are put before models.

    Look at it first: `toolmem rules list` and `toolmem store info` show what it holds.

    toolmem store trust .toolmem/memory.db
    """

    async def work(app: ToolMemApp) -> dict[str, Any]:
        async with opened(f"sqlite:{path}", app, create=False) as found:
            await cast("SqliteStore", found).trust()
            return await found.info()

    held = in_app(work, config, overrides)
    counts = held["workspaces"].values()
    tools, records = (sum(each[count] for each in counts) for count in ("tools", "records"))
    print(f"trusted: {held['location']} ({counted(tools, 'tool')}, {counted(records, 'record')} of rules and notes)")


def _require_trusted(source: str, app: ToolMemApp) -> None:
    """A copy would be a store that this user made: what nobody vouches for is not brought over unnamed."""
    kind, _, name = source.partition(":")
    if kind == "config":
        app.services.require_trusted(name)


# -- addresses


def _configured_name(address: str) -> str:
    """The name of `vector_store` in "config:NAME", "" of another address."""
    kind, _, name = address.partition(":")
    return name if kind == "config" else ""


async def _embedder(app: ToolMemApp, address: str, store: MemoryStore) -> Embedder:
    """The one whose vectors the open store at this address takes."""
    if name := _configured_name(address):
        return app.services.embedder_of_store(name)
    return await app.services.embedders.settle(store, is_this=False)


@asynccontextmanager
async def opened(
    address: str,
    app: ToolMemApp,
    *,
    create: bool = True,
    read_only: bool = False,
    option: str = "--store",
) -> AsyncIterator[MemoryStore]:
    """The store at an address. One that the configuration names stays open until the app closes.

    `create` False: a SQLite file that is not there is refused instead of made. `read_only`: nothing will be written, so
    that one on a read-only medium will do. `option`: what gave the address, for messages.
    """
    kind, _, rest = address.partition(":")
    if kind == "config" and rest:
        if rest not in app.settings.vector_store:
            known = ", ".join(app.settings.vector_store)
            raise RequestError(f"{address}: no vector_store is called {rest!r}; there are {known}", field="store")
        if not create:
            require_store(app, rest)
        yield await app.services.store_named(rest)
        return
    if kind == "sqlite" and rest:
        if not create:
            require_file(rest)
        store: Any = _sqlite(rest, app, read_only)
    elif kind == "elasticsearch" and rest:
        store = _elasticsearch(rest, app, option)
    else:
        raise RequestError(f"{address!r}: expected {_ADDRESS}", field="store")
    await store.open()
    try:
        await app.services.embedders.settle(store, is_this=False)
        yield store
    finally:
        await store.close()


def _sqlite(path: str, app: ToolMemApp, read_only: bool) -> Any:
    from toolmem.store.sqlite import SqliteStore
    from toolmem.stored import LogLimits

    identity, log = app.services.embedder_of_store().identity, LogLimits(**app.settings.log.model_dump())
    return SqliteStore(path, clock=app.clock, embedder=identity, accept_read_only=read_only, log=log)


def _elasticsearch(url: str, app: ToolMemApp, option: str) -> Any:
    from toolmem.store.elasticsearch import ElasticsearchStore
    from toolmem.stored import LogLimits

    parts = urlsplit(url if "://" in url else f"http://{url}")
    given: dict[str, Any] = {}
    for name, value in parse_qsl(parts.query):
        if name not in _ELASTICSEARCH_QUERY:
            raise RequestError(
                f"{name!r} is no part of an address; there are {', '.join(_ELASTICSEARCH_QUERY)}", field="store"
            )
        try:
            given[name] = _NUMBERS.get(name, str)(value)
        except ValueError:
            raise RequestError(f"{name}: expected a number, got {value!r}", field="store") from None
    secrets = _configured_secrets(app)
    hosts = urlunsplit((parts.scheme, parts.netloc, parts.path, "", ""))
    identity = app.services.embedder_of_store().identity
    return ElasticsearchStore(
        hosts,
        clock=app.clock,
        embedder=identity,
        given_by=option,
        log=LogLimits(**app.settings.log.model_dump()),
        **{**secrets, **given},
    )


def _configured_secrets(app: ToolMemApp) -> dict[str, Any]:
    """Credentials and certificate of the first Elasticsearch store that is configured: no matter for a command line."""
    for section in app.settings.vector_store.values():
        if section.backend == "elasticsearch":
            params = section.params
            return {
                "basic_auth": params.basic_auth and params.basic_auth.get_secret_value(),
                "api_key": params.api_key and params.api_key.get_secret_value(),
                "ca_certs": params.ca_certs,
                "verify_certs": params.verify_certs,
            }
    return {}


# -- running and reporting


def _event(what: str, done: int, total: int) -> Any:
    from toolmem.flow.report import Event

    return Event(kind="progress", flow="store", done=done, total=total, message=what)


def _report(done: Copied, as_json: bool, verb: str) -> None:
    """Exit code 1 where a call failed or something differs."""
    if as_json:
        print_json(asdict(done))
    else:
        print(
            f"{verb} {counted(done.tools, 'tool')}: {counted(done.calls, 'call')} added, "
            f"{done.duplicates:,} there already; {counted(done.records, 'record')} added, {done.kept:,} there already; "
            f"{counted(done.verdicts, 'cached verdict')} and {counted(done.decisions, 'decision')} added"
        )
        for failure in done.failures[:20]:
            say(f"failed: {failure.tool_name}, call {failure.index}: {failure.error}")
        for difference in done.differences:
            say(f"differs: {difference}")
        if verb == "copied" and not done.different:
            print("verified: both stores hold the same")
    if done.failures or done.different:
        raise typer.Exit(1)
