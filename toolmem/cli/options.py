"""Options that commands share, and the memory that they open."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import wraps
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from toolmem.config.sections import OpSection
from toolmem.errors import RequestError
from toolmem.formats.files import MAX_LINE, read_json
from toolmem.guard.stores import OWN_STORE
from toolmem.guard.stores import store_path as project_store

if TYPE_CHECKING:
    from toolmem.memory.toolmem import ToolMem

Command = Callable[..., Any]
Decorator = Callable[[Command], Command]
_SETTING = re.compile(r"-*([a-z]\w*(\.[^=\s]*)?)?=")


def is_setting(item: str) -> bool:
    """Whether an argument is NAME=VALUE (also without the name), and not the name of a file."""
    return bool(_SETTING.match(item)) and not os.path.exists(item)


class Values(click.Argument):
    """An argument of several values, at most `most` (0: any number). NAME=VALUE: an override."""

    def __init__(self, *names: Any, most: int = 0, **given: Any) -> None:
        super().__init__(*names, nargs=-1, **given)
        self.most = most

    def process_value(self, context: click.Context, value: Any) -> Any:
        given = value if isinstance(value, (list, tuple)) else ()
        context.params["overrides"] = tuple(item for item in given if is_setting(item))
        others = tuple(item for item in given if not is_setting(item))
        if self.most and len(others) > self.most:
            raise click.UsageError(f"there is one argument too many: {others[self.most]}", context)
        values = super().process_value(context, others)
        return next(iter(values), None) if self.most == 1 else values


class _NoSettings(click.Argument):
    """Refuses what is left over after the arguments of a command that takes no overrides."""

    def get_usage_pieces(self, context: click.Context) -> list[str]:
        return []

    def process_value(self, context: click.Context, value: Any) -> Any:
        for item in value if isinstance(value, (list, tuple)) else ():
            refuse_setting(item, context.command_path)
            raise click.UsageError(f"there is one argument too many: {item}", context)
        return value


def refuse_setting(item: str, command: str) -> None:
    """Raises RequestError if an argument is NAME=VALUE."""
    if is_setting(item):
        name = item.lstrip("-").partition("=")[0] or item
        raise RequestError(f"{name}: {command} takes no settings; leave {item} out", "overrides")


def no_settings(command: Command) -> Command:
    """Decorator: the command refuses NAME=VALUE, with an error that says so."""
    return click.argument("extra", nargs=-1, cls=_NoSettings, expose_value=False)(command)


class InputFile(click.Path):
    """A file that is read; with `folders`, also a folder. `-` is standard input.

    `suffix`: the ending of the file that standard input is written to.
    """

    def __init__(self, *, folders: bool = False, suffix: str = "") -> None:
        super().__init__(exists=True, dir_okay=folders, path_type=Path)
        self._suffix = suffix

    def convert(
        self, value: Any, param: click.Parameter | None, context: click.Context | None
    ) -> Any:
        if value == "-" and context is not None:
            value = _standard_input(context, self._suffix)
        return super().convert(value, param, context)


def _standard_input(context: click.Context, suffix: str) -> str:
    """Write standard input to a file that lasts as long as the command. Returns its path.

    The same content gets the same path, by which an import recognizes calls without an id. Errors
    quote the name of the file.
    """
    if "stdin" in context.meta:
        raise click.UsageError("standard input (-) can be read only once", context)
    context.meta["stdin"] = True
    folder, digest = tempfile.mkdtemp(prefix="toolmem-"), sha256()
    name = f"standard input{suffix}"
    with open(os.path.join(folder, name), "wb") as file:
        while chunk := sys.stdin.buffer.read(1 << 20):
            digest.update(chunk)
            file.write(chunk)
    own = os.path.join(tempfile.gettempdir(), f"toolmem-{digest.hexdigest()[:16]}")
    with suppress(OSError):  # another command reads the same content
        os.rename(folder, own)
        folder = own
    context.call_on_close(lambda: shutil.rmtree(folder, ignore_errors=True))
    return os.path.join(folder, name)


as_json = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
overrides = click.argument("overrides", nargs=-1, metavar="[NAME=VALUE]...")
config = click.option(
    "--config", type=InputFile(suffix=".yaml"), help="Read settings from this YAML file."
)
STORE = "Use this store: a file, or the URL of Elasticsearch with an index prefix as its path."
_USUAL = "[default: that of the settings, else .toolmem/memory.db of this folder or project]"
store = click.option("--store", help=f"{STORE}  {_USUAL}")
read_workspace = click.option(
    "--workspace",
    help="Use this workspace.  [default: `default`, else the only one that holds something]",
)


def workspace(default: str = "default") -> Decorator:
    """Decorator: --workspace of a command that writes, with this default."""
    return click.option(
        "--workspace", default=default, show_default=True, help="Use this workspace of the store."
    )


def conversation(help: str) -> Decorator:
    """Decorator: --conversation, which the command gets as `conversation_id`."""
    return click.option("--conversation", "conversation_id", help=help)


def newest(things: str, default: int, most: int) -> Decorator:
    """Decorator: --limit, how many of the newest `things` are shown: from 1 to `most`."""
    return click.option(
        "--limit",
        default=default,
        show_default=True,
        type=click.IntRange(1, most),
        help=f"Show only this many of the newest {things}.",
    )


def write_options(command: Command) -> Command:
    """Decorator: --config, --store and --workspace of a command that writes into a workspace."""
    return config(store(workspace()(command)))


def memory_options(command: Command) -> Command:
    """Decorator: as `write_options`, with overrides."""
    return overrides(write_options(command))


def read_options(command: Command) -> Command:
    """Decorator: --config, --store and --workspace of a command that reads a workspace."""
    return config(store(read_workspace(command)))


def with_memory(*chosen: Decorator, exists: bool = True) -> Decorator:
    """Decorator: the command gets an open memory in place of the options that name it.

    `chosen`: the options and arguments to have; by default --config, --store, --workspace and
    NAME=VALUE. `exists`: the store must exist.
    """

    def decorate(command: Command) -> Command:
        @wraps(command)
        def run(**given: Any) -> None:
            names = ("overrides", "config", "store", "workspace")
            where = {name: given.pop(name) for name in names if name in given}
            with open_existing(**where) if exists else open_memory(**where) as memory:
                command(memory, **given)

        done: Command = run
        usual = (overrides, read_options) if exists else (memory_options,)
        for option in reversed(chosen or usual):
            done = option(done)
        return done

    return decorate


def split_config(given: Sequence[str], config: str | None) -> tuple[list[str], str | None]:
    """The overrides, and the configuration file: --config, else ReMe's `config=my.yaml`."""
    plain = [item.lstrip("-") for item in given]
    named = [item.removeprefix("config=") for item in plain if item.startswith("config=")]
    others = [item for item in plain if not item.startswith("config=")]
    return others, config or (named[-1] if named else None)


def read_object(file: BinaryIO, name: str, hint: str = "") -> dict[str, Any]:
    """Read the JSON object in a file. The text of a RequestError: `name`, problem, `hint`."""
    value = read_json(file.read(MAX_LINE + 1), name)
    if not isinstance(value, dict):
        problem = f"expected a JSON object, got {type(value).__name__}{hint}"
        raise RequestError(f"{name}: {problem}")
    return value


def read_arguments(given: str, name: str) -> Any:
    """Read a call's arguments: a JSON object or a command line. "-" reads standard input.

    Raises RequestError, which begins with `name`.
    """
    text = sys.stdin.read().removesuffix("\n") if given == "-" else given
    return read_json(text, name) if text.lstrip().startswith("{") else text


def open_memory(
    overrides: Sequence[str] = (),
    config: str | None = None,
    store: str | None = None,
    workspace: str = "default",
) -> ToolMem:
    """Open the store that `store` or the settings name, else .toolmem/memory.db of this folder.

    If that does not exist, but one of the project does, the project's is opened. Raises
    ConfigError with every problem of the settings.
    """
    settings, config = split_config(overrides, config)
    if store is None and not (os.path.exists(OWN_STORE) or names_store(settings, config)):
        project = project_store(os.getcwd())
        store = project if os.path.exists(project) else None
    if store is not None:
        settings += _store_settings(store)
    from toolmem.memory.toolmem import ToolMem  # the MCP proxy does without it

    return ToolMem(config, workspace=workspace, overrides=settings)


def open_existing(**where: Any) -> ToolMem:
    """As `open_memory`, but raises RequestError if the store or workspace does not exist.

    `workspace` None: `default`, or the only workspace that holds something.
    """
    named = where.pop("workspace", "")
    memory = open_memory(**where)
    section = memory.engine.configuration.settings.vector_store[OpSection().vector_store]
    if section.backend != "elasticsearch":
        from toolmem.memory.services import store_path

        path = store_path(section, "default")
        if not os.path.exists(path):
            raise RequestError(f"there is no file {path} yet; name a store by --store", "store")
    if named:
        require_workspace(memory, named)
    if named != "":  # the command has the option --workspace
        memory.workspace_name = named or _usual_workspace(memory)
    return memory


def _usual_workspace(memory: ToolMem) -> str:
    """`default` if it holds something, else the only one that does. Raises RequestError.

    If others hold something too, they are named, so that nothing seems to be lost.
    """
    known = memory.services.store().workspaces()
    if "default" in known or not known:
        if others := [name for name in known if name != "default"]:
            note = f"this is workspace default; {_named(others)} can be read by --workspace"
            click.echo(f"note: {note}", err=True)
        return "default"
    if len(known) > 1:
        raise _no_workspace(memory, "default", known, "--workspace")
    return known[0]


def require_workspace(memory: ToolMem, workspace: str, by: str = "--workspace") -> None:
    """Raises RequestError if a store has workspaces, but not this. `by`: the option to name one."""
    known = memory.services.store().workspaces()
    if known and workspace not in known:
        raise _no_workspace(memory, workspace, known, by)


def _named(workspaces: Sequence[str]) -> str:
    return ", ".join(workspaces[:10]) + (", ..." if len(workspaces) > 10 else "")


def _no_workspace(memory: ToolMem, name: str, known: Sequence[str], by: str) -> RequestError:
    example = f" {known[0]}" if by.startswith("-") else ""
    location = memory.services.store().location
    return RequestError(
        f"workspace: {location} has no {name!r}; it has {_named(known)}: name one by {by}{example}",
        "workspace",
    )


def _store_settings(store: str) -> list[str]:
    """The overrides for a file, or for http://user:password@host:9200/prefix."""
    if not store.startswith(("http://", "https://")):
        return [f"vector_store.default.params.path={json.dumps(store)}"]
    scheme, _, address = store.partition("://")
    host, _, prefix = address.partition("/")
    settings = ["vector_store.default.backend=elasticsearch"]
    settings.append(f"vector_store.default.params.hosts={json.dumps(f'{scheme}://{host}')}")
    if prefix := prefix.strip("/"):
        settings.append(f"vector_store.default.params.index_prefix={json.dumps(prefix)}")
    return settings


def names_store(given: Sequence[str], config: str | None) -> bool:
    """Whether the overrides or the configuration file name a store."""
    settings, config = split_config(given, config)
    from toolmem.config.load import DEFAULT, load

    layer = load([config] if config else [], settings).layer
    origins = [setting.origin for path, setting in layer.items() if path[0] == "vector_store"]
    return not all(origin.startswith(f"{DEFAULT}:") for origin in origins)
