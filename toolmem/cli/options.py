"""Options of every command: overrides, --config, --store, --workspace; open their memory."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import click

from toolmem.config.load import DEFAULT, load
from toolmem.config.sections import OpSection
from toolmem.errors import RequestError
from toolmem.guard.stores import OWN_STORE
from toolmem.guard.stores import store_path as project_store
from toolmem.memory.services import store_path
from toolmem.memory.toolmem import ToolMem

Command = Callable[..., Any]
Decorator = Callable[[Command], Command]
as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
overrides = click.argument("overrides", nargs=-1, metavar="[NAME=VALUE]...")
config = click.option(
    "--config", type=click.Path(exists=True, dir_okay=False), help="A YAML file of settings."
)
store = click.option(
    "--store", help="A store file, or the URL of Elasticsearch with an index prefix as its path."
)


def workspace(default: str | None = "default") -> Decorator:
    return click.option("--workspace", default=default, show_default=default is not None)


def memory_options(command: Command) -> Command:
    return overrides(config(store(workspace()(command))))


def with_memory(*chosen: Decorator, exists: bool = True) -> Decorator:
    """Decorator: all four options, or those chosen; the command gets the open memory instead.

    `exists`: the store must exist, as commands that only read make none.
    """

    def decorate(command: Command) -> Command:
        @wraps(command)
        def run(**given: Any) -> None:
            names = ("overrides", "config", "store", "workspace")
            where = {name: given.pop(name) for name in names if name in given}
            with open_existing(**where) if exists else open_memory(**where) as memory:
                command(memory, **given)

        done: Command = run
        for option in reversed(chosen or (memory_options,)):
            done = option(done)
        return done

    return decorate


def split_config(given: Sequence[str], config: str | None) -> tuple[list[str], str | None]:
    """Overrides, and the configuration file: --config, else ReMe's `config=my.yaml` among them."""
    plain = [item.lstrip("-") for item in given]
    named = [item.removeprefix("config=") for item in plain if item.startswith("config=")]
    others = [item for item in plain if not item.startswith("config=")]
    return others, config or (named[-1] if named else None)


def open_memory(
    overrides: Sequence[str] = (),
    config: str | None = None,
    store: str | None = None,
    workspace: str = "default",
) -> ToolMem:
    """Open a memory: what is named, else the store of this folder, else that of its project.

    Raises ConfigError with every problem of the settings.
    """
    settings, config = split_config(overrides, config)
    if store is None and not (os.path.exists(OWN_STORE) or names_store(settings, config)):
        project = project_store(os.getcwd())
        store = project if os.path.exists(project) else None
    if store is not None:
        settings += _store_settings(store)
    return ToolMem(config, workspace=workspace, overrides=settings)


def open_existing(**where: Any) -> ToolMem:
    """`open_memory` of a store that exists. Raises UsageError."""
    memory = open_memory(**where)
    section = memory.engine.configuration.settings.vector_store[OpSection().vector_store]
    if section.backend != "elasticsearch":
        path = store_path(section, "default")
        if not os.path.exists(path):
            raise RequestError(f"there is no file {path} yet; name a store by --store", "store")
    if "workspace" in where:  # else the command is about the whole store
        require_workspace(memory, memory.workspace_name)
    return memory


def require_workspace(memory: ToolMem, workspace: str, by: str = "--workspace") -> None:
    """Raises RequestError where a store that has workspaces lacks this one. `by`: what named it."""
    store = memory.services.store()
    known = store.workspaces()
    if known and workspace not in known:
        names = ", ".join(known[:10])
        raise RequestError(
            f"workspace: {store.location} has no {workspace!r}; it has {names}: name one by {by}",
            "workspace",
        )


def _store_settings(store: str) -> list[str]:
    """Overrides for a file, or for http://user:password@host:9200/prefix."""
    if not store.startswith(("http://", "https://")):
        return [f"vector_store.default.params.path={json.dumps(store)}"]
    scheme, _, address = store.partition("://")
    host, _, prefix = address.partition("/")
    settings = ["vector_store.default.backend=elasticsearch"]
    settings.append(f"vector_store.default.params.hosts={json.dumps(f'{scheme}://{host}')}")
    if name := prefix.strip("/"):
        settings.append(f"vector_store.default.params.index_prefix={json.dumps(name)}")
    return settings


def names_store(given: Sequence[str], config: str | None) -> bool:
    """Whether overrides or the file set where the store is."""
    settings, config = split_config(given, config)
    layer = load([config] if config else [], settings).layer
    origins = [setting.origin for path, setting in layer.items() if path[0] == "vector_store"]
    return not all(origin.startswith(f"{DEFAULT}:") for origin in origins)
