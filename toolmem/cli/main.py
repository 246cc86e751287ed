"""The `toolmem` command and its exit codes."""

from __future__ import annotations

import logging
import sys

import click

from toolmem import __version__
from toolmem.cli.console import LazyGroup, print_error
from toolmem.errors import ConfigError, ToolMemError
from toolmem.hooks.__main__ import main as answer_event
from toolmem.hooks.agents import AGENTS

_MODULES = (
    "calls compare config costs evaluate forget guard hook import_ ledger mcp note rules run serve "
    "store testing tools"
)
_COMMANDS = {name.rstrip("_"): f"toolmem.cli.{name}:{name}" for name in _MODULES.split()}


@click.group(cls=LazyGroup, lazy=_COMMANDS)
@click.version_option(__version__, package_name="toolmem")
def commands() -> None:
    """Tool memory for LLM agents.

    A store, which is a file or indices of Elasticsearch, keeps calls, guidance and rules; a
    workspace is a part of it. NAME=VALUE changes a setting for one command, and wins over --config;
    `toolmem config show` lists the settings. Exit code 0: done; 2: refused, or failed with an
    error; 130: interrupted, or you did not agree. The help of a command names its other codes.
    """


def _arguments(given: list[str]) -> list[str]:
    """Read ReMe's `backend=http http.port=8002 config=my.yaml` as `serve ...`."""
    plain = [item.lstrip("-") for item in given]
    if not plain or "backend=cmd" in plain or not all("=" in item for item in plain):
        return given
    command = "mcp" if "backend=mcp" in plain else "serve"
    return [command, *(item for item in plain if not item.startswith("backend="))]


def main() -> None:
    """Run a command. Exit code 2: refused or failed with an error; 130: interrupted."""
    logging.basicConfig(format="%(levelname)s: %(message)s")
    logging.addLevelName(logging.WARNING, "warning")
    logging.getLogger("elastic_transport").setLevel(logging.ERROR)  # toolmem reports it itself
    if sys.argv[1:2] == ["hook"] and sys.argv[2:] and sys.argv[2] in AGENTS:
        del sys.argv[1]
        answer_event()  # as `toolmem-hook AGENT` does; ends the process
    try:
        code = commands(_arguments(sys.argv[1:]), standalone_mode=False)
    except click.ClickException as error:
        error.show()
        code = 2
    except ToolMemError as error:
        for problem in error.problems if isinstance(error, ConfigError) else [str(error)]:
            print_error(problem)
        code = 2
    except (KeyboardInterrupt, click.Abort):
        click.echo("interrupted", err=True)
        code = 130
    sys.exit(code)
