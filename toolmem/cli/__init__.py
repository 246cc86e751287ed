"""The `toolmem` command: one module per group of commands.

Results go to stdout, progress and messages to stderr. Exit codes: 0 success; 1 partial, failed, or a named thing was
not found; 2 refused before any work; 3 budget reached; 130 interrupted.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import typer

from toolmem.cli import config, evaluate, flows, judge, ledger, mcp, rules, serve, store, testing
from toolmem.cli.arguments import arrange
from toolmem.errors import BudgetReached, Refused, ToolMemError

INTERRUPTED = "interrupted: what was acknowledged is stored"

app = typer.Typer(
    name="toolmem",
    help="Tool memory for LLM agents: what works, and what the user demands.",
    epilog=(
        "Examples:  toolmem evaluate  |  toolmem evaluate --input calls.jsonl.gz --out report  |  "
        "toolmem run retrieve_tool_memory --request request.json  |  toolmem config show"
    ),
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
evaluate.add_to(app)
flows.add_to(app)
rules.add_to(app)
judge.add_to(app)
ledger.add_to(app)
config.add_to(app)
store.add_to(app)
serve.add_to(app)
mcp.add_to(app)
testing.add_to(app)


@app.callback(invoke_without_command=True)
def _version(
    version: bool = typer.Option(False, "--version", help="Print the version and stop."),
) -> None:
    if version:
        from toolmem import __version__

        print(__version__)
        raise typer.Exit


def main(argv: Sequence[str] | None = None) -> None:
    """The entry point: arranges ReMe's way of writing overrides, and turns errors into exit codes."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if "" not in sys.path:
        sys.path.append("")  # `op_modules` may lie in the working directory; last, so that a file there hides no library
    try:
        app(arrange(arguments, _option_names()), standalone_mode=True)
    except Refused as error:
        _complain(error)
        sys.exit(2)
    except BudgetReached as error:
        _complain(error)
        sys.exit(3)
    except ToolMemError as error:
        _complain(error)
        sys.exit(1)
    except KeyboardInterrupt:
        print(INTERRUPTED, file=sys.stderr)
        sys.exit(130)
    except SystemExit as left:  # of an interrupt the parser makes an exit, and says nothing
        if left.code == 130 and _was_interrupted(left.__context__):
            print(INTERRUPTED, file=sys.stderr)
        raise
    except BrokenPipeError:  # the reader of our output has gone, e.g. `toolmem ... | head`
        sys.stderr.close()
        sys.exit(1)
    except Exception as error:
        if not _follows_an_interrupt(error):
            raise
        print(INTERRUPTED, file=sys.stderr)
        sys.exit(130)


def _was_interrupted(exit: BaseException | None) -> bool:
    """Whether the parser left because of an interrupt; a command that ends by one on purpose has said so itself."""
    return exit is not None and _follows_an_interrupt(exit.__cause__)


def _follows_an_interrupt(error: BaseException | None) -> bool:
    """Whether this error was raised while an interrupt was being handled: a library's way of being cut off."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__cause__ or error.__context__
    return False


def _option_names() -> list[str]:
    """Every option of every command, so that `--out=DIR` is never taken for an override."""
    group = typer.main.get_command(app)
    found: list[str] = []
    waiting = [group]
    while waiting:
        command = waiting.pop()
        found += [name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)]
        waiting += getattr(command, "commands", {}).values()
    return found


def _complain(error: ToolMemError) -> None:
    print(f"toolmem: {error}", file=sys.stderr)
