"""`toolmem forget`: list the imports of a store, or take one back."""

from __future__ import annotations

import sys

import click

from toolmem.cli import console, options
from toolmem.cli.console import confirm, print_error, print_json, print_table
from toolmem.memory.toolmem import ToolMem
from toolmem.research.import_runs import ImportRun, Traces, forget_import, imports
from toolmem.text.display import counted, plain, shown_name


@click.command()
@click.option("--import", "import_id", metavar="ID", help="Take back the import with this id.")
@console.yes
@options.with_memory()
@options.as_json
def forget(memory: ToolMem, import_id: str | None, yes: bool, as_json: bool) -> None:
    """List the imports of a store, or take one back.

    --import removes the calls that the import added, with their figures. Guidance that was made of
    them is written anew; if only a model can do that, a note that it is out of date replaces it.
    Rules and decisions stay. `toolmem import` can read the same files again. Exit code 1: removed
    texts are still in the file, which another process uses: run this again; 2: there is no such
    import, or nobody could be asked.

    \b
    Examples:
      toolmem forget
      toolmem forget --import 20261120-3fa2c1
    """
    if import_id is None:
        found = imports(memory)
        columns = ("import", "began", "calls", "tools", "formats", "sources")
        nothing = f"nothing was imported into workspace {memory.workspace_name!r}"
        if as_json:
            print_json(found)
        else:
            print_table(columns, list(map(_row, found.items())), nothing=nothing, numbers=False)
        return
    ids = Traces(memory, import_id).ids
    number = sum(map(len, ids.values()))
    confirm(f"Remove {counted(number, 'call')} of {counted(len(ids), 'tool')}?", yes)
    done = forget_import(memory, import_id)
    if as_json:
        print_json(done)
        return
    click.echo(f"{counted(done.calls, 'call')} {'was' if done.calls == 1 else 'were'} removed.")
    if done.gone:
        click.echo(f"Tools without another call are gone: {_names(done.gone)}")
    if done.out_of_date:
        click.echo(
            f"Guidance that is out of date, and says so: {_names(done.out_of_date)}\n"
            "To write it anew: toolmem run summary_tool_memory"
        )
    if done.left:
        print_error(f"texts stay in the free space of the file: {done.left}; run this again")
        sys.exit(1)


def _row(item: tuple[str, ImportRun]) -> list[str]:
    run = item[1]
    counts = [each.calls for each in run.tools.values() if each.calls]
    figures = [f"{run.began:%Y-%m-%d %H:%M}", f"{sum(counts):,}", f"{len(counts):,}"]
    return [item[0], *figures, ", ".join(run.formats), _names(run.sources)]


def _names(names: list[str]) -> str:
    return plain(", ".join(shown_name(name, 60) for name in names), 300)
