"""All commands as one application."""

from __future__ import annotations

import typer

from toolmem.cli import config, evaluate, flows, judge, ledger, mcp, rules, serve, store, testing, tools

app = typer.Typer(
    name="toolmem",
    help="Tool memory for LLM agents: what works, and what the user demands.",
    epilog=(
        "Examples:  toolmem evaluate  |  toolmem evaluate --input calls.jsonl.gz --out report  |  "
        "toolmem run retrieve_tool_memory --request request.json  |  toolmem config show"
    ),
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
evaluate.add_to(app)
flows.add_to(app)
tools.add_to(app)
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
    debug: bool = typer.Option(False, "--debug", help="Show where an op raised an error of its own. Anywhere."),
) -> None:
    if version:
        from toolmem import __version__

        print(__version__)
        raise typer.Exit


def option_names() -> list[str]:
    """Every option of every command, so that `--out=DIR` is never taken for an override."""
    group = typer.main.get_command(app)
    found: list[str] = []
    waiting = [group]
    while waiting:
        command = waiting.pop()
        found += [name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)]
        waiting += getattr(command, "commands", {}).values()
    return found
