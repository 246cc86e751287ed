"""The `toolmem` command and its exit codes."""

from __future__ import annotations

import sys

import click

from toolmem import __version__
from toolmem.cli.console import print_error
from toolmem.cli.evaluate import evaluate
from toolmem.cli.tools import tools
from toolmem.errors import ToolMemError


@click.group()
@click.version_option(__version__, package_name="toolmem")
def commands() -> None:
    """Tool memory for LLM agents."""


commands.add_command(evaluate)
commands.add_command(tools)


def main() -> None:
    """Run a command. Exit code 2: refused or failed with an error; 130: interrupted."""
    try:
        code = commands(standalone_mode=False)
    except click.ClickException as error:
        error.show()
        code = 2
    except ToolMemError as error:
        print_error(str(error))
        code = 2
    except (KeyboardInterrupt, click.Abort):
        click.echo("interrupted", err=True)
        code = 130
    sys.exit(code)
