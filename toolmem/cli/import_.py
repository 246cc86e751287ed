"""`toolmem import`: learn from calls that other programs recorded."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import Any

import click

from toolmem.cli import console, options
from toolmem.cli.console import print_error, print_unread, progress_bar
from toolmem.cli.transcripts import Chosen, choose, confirm_chosen, require_own_store, without_hook
from toolmem.config.sections import WORKSPACE
from toolmem.errors import RequestError
from toolmem.formats.recording import NAMES
from toolmem.formats.shapes import MAP_FIELDS, mapped
from toolmem.guard.stores import OWN_STORE, store_path
from toolmem.guidance.shown import require_trusted
from toolmem.memory.toolmem import ToolMem
from toolmem.research.importing import Imported, import_recordings
from toolmem.text.display import counted, plain, shown_name

input_option = click.option(
    "--input",
    "sources",
    multiple=True,
    type=options.InputFile(folders=True),
    help="Read this file, or the files in this folder, in a format that `toolmem import` reads; "
    "may be given several times. Without this option, the packaged sample is read.",
)


def format_options(command: options.Command) -> options.Command:
    """Decorator: --format, and --map, whose value the command gets as a dict."""
    form = click.option(
        "--format",
        type=click.Choice(NAMES),
        help="Read this format. Without this option, the format is recognized.",
    )
    mapping = click.option(
        "--map",
        "mapping",
        callback=_read_mapping,
        metavar="FIELD=PATH,...",
        help="Say where an unknown format has each FIELD. A PATH is a/b/0: the first item of b in "
        f"a. Of a|b, the first that exists is read. Fields: {', '.join(MAP_FIELDS)}.",
    )
    return form(mapping(command))


def _read_mapping(
    context: click.Context, option: click.Parameter, text: str | None
) -> dict[str, str] | None:
    if text is None:
        return None
    pairs = [each.partition("=") for each in text.split(",")]
    given = {field.strip(): path.strip() for field, _, path in pairs}
    try:
        mapped(given)
    except RequestError as error:
        raise click.UsageError(f"--map: {error}") from error
    return given


@click.command("import")
@click.argument(
    "paths",
    cls=options.Values,
    type=options.InputFile(folders=True),
    metavar="[PATHS | NAME=VALUE]...",
)
@click.option(
    "--from-agents", is_flag=True, help="Find and read coding agents' sessions of this project."
)
@click.option(
    "--project",
    metavar="FOLDER",
    help="Read the sessions of another project into its own store. This needs --from-agents.",
)
@console.yes
@click.option(
    "--again", is_flag=True, help="Read again even files that have not changed since their import."
)
@click.option(
    "--into-shared",
    is_flag=True,
    help="Import into a store that others may use: they will see what is learnt. Sessions in PATHS "
    "are then read whatever project they belong to.",
)
@format_options
@options.write_options
def import_(
    paths: tuple[Path, ...],
    from_agents: bool,
    project: str | None,
    yes: bool,
    again: bool,
    into_shared: bool,
    format: str | None,
    mapping: dict[str, str] | None,
    **where: Any,
) -> None:
    """Judge and keep recorded calls, and show what they teach.

    PATHS are files, folders, or - for standard input: transcripts of Claude Code, Codex, Gemini CLI
    and OpenCode, traces of OpenTelemetry, OpenInference, Langfuse and LangSmith, logs of
    inspect_ai, messages of OpenAI, Anthropic and LangChain, CSV and Parquet. Secrets are masked.
    Calls that were imported before stay as they are. Of the sessions of coding agents, only those
    of this project are read. With --from-agents, and for a folder outside the current one, you are
    asked first. Exit code 1: a record or a file could not be read, or there was no call; 2: nothing
    was read, because nobody could be asked or all belongs to other projects.

    `toolmem store import` reads dumps of a workspace, `toolmem rules import` a team's file of
    rules. `toolmem forget` takes an import back.

    \b
    Examples:
      toolmem import --from-agents
      toolmem import --from-agents --project ../other
      toolmem import traces/ calls.json
      toolmem import mine.jsonl --map name=fn,arguments=args,output=result
    """
    if not (paths or from_agents):
        raise click.UsageError("name files or folders, or use --from-agents")
    chosen = choose(paths, from_agents=from_agents, project=project or "", into_shared=into_shared)
    names_store = where["store"] or options.names_store(where["overrides"], where["config"])
    if not names_store and (chosen.searched or not os.path.exists(OWN_STORE)):
        where["store"] = store_path(chosen.project)  # the store of the hooks
    with options.open_memory(**where) as memory:
        location = memory.services.store().location
        require_own_store(location, chosen, into_shared)
        confirm_chosen(chosen, location, yes)
        found = import_chosen(memory, chosen, again=again, format=format, mapping=mapping)
    print_imported(found, location, chosen, where["workspace"])
    has_calls = found.read or found.unchanged
    is_whole = not (found.bad_count or found.unreadable or found.stopped)
    sys.exit(0 if has_calls and is_whole else 1)


def import_chosen(memory: ToolMem, chosen: Chosen, **options: Any) -> Imported:
    """Import with a progress bar. After an interrupt, the calls read so far are kept.

    Raises RequestError if the store is not trusted.
    """
    require_trusted(memory.services.store())
    found = Imported()

    def show(imported: Imported) -> None:
        nonlocal found
        found = imported
        progress(found.read, found.read)

    with progress_bar("importing calls") as progress:
        try:
            return import_recordings(
                memory,
                chosen.paths,
                searched=chosen.searched,
                folders=chosen.folders,
                sources=chosen.sources,
                progress=show,
                **options,
            )
        except KeyboardInterrupt:
            are = "is" if found.calls == 1 else "are"
            kept = f"{counted(found.calls, 'new call')} {are} kept"
            click.echo(f"{kept}; the same command goes on from there", err=True)
            raise


def print_imported(
    found: Imported, location: str, chosen: Chosen, workspace: str = WORKSPACE
) -> None:
    """Print what an import found, what to do next, and what could not be read."""
    for line in imported_in_words(found):
        click.echo(line)
    is_here = os.path.abspath(location) == os.path.abspath(OWN_STORE)
    where = "" if is_here else f" --store {shlex.quote(plain(location, 1_000))}"
    where += "" if workspace == WORKSPACE else f" --workspace {shlex.quote(workspace)}"
    if found.id:
        click.echo()
        for agent in dict.fromkeys(each.agent for each in chosen.own):
            if name := without_hook(agent, chosen.project):
                click.echo(f"To put this before {agent}: toolmem hook install {name}")
        click.echo(f"To take this import back: toolmem forget --import {found.id}{where}")
    elif found.read or found.unchanged:
        click.echo(f"What is known of each tool: toolmem tools list{where}")
    print_unread(found.bad, found.notes, found.bad_count)
    if found.stopped:
        print_error(f"stopped: {found.stopped}")
    if not (found.read or found.notes):
        print_error("no call was found")


def imported_in_words(found: Imported) -> list[str]:
    """Return the lines that say what an import found: its calls, failures and guidance."""
    sources = ", ".join(f"{count:,} from {name}" for name, count in found.formats.most_common())
    were = "was" if found.duplicates == 1 else "were"
    known = f"; {found.duplicates:,} {were} there already" if found.duplicates else ""
    new = f"{counted(found.calls, 'new call')}{f' ({sources})' if sources else ''}{known}."
    if found.later_repairs is None:
        return [new]
    repairs = found.later_repairs.sentence(found.calls)
    number = len(found.conversations)
    where = f"in {counted(number, 'conversation')}" if number else "no conversation is named"
    lines = [
        new,
        f"{counted(len(found.tools), 'tool')}, {where}: "
        f"{counted(found.failures, 'call')} failed ({found.failures / found.calls:.1%}).",
    ]
    if found.later_repairs.named is not None:
        lines = [repairs, "", *lines]
    for name in found.worst(5):
        tool = found.tools[name]
        why = ", ".join(f"{kind} {count:,}" for kind, count in tool.classes.most_common(3))
        part = f"{tool.failures:,} of {tool.calls:,} ({tool.failures / tool.calls:.0%})"
        lines.append(f"  {shown_name(name, 60)}: {part}: {why}")
    if found.failures:
        lines += _repeats(found)
    if found.later_repairs.named is None:
        lines.append(repairs)
    for name, card in found.cards.items():
        if card:
            lines += ["", f"{shown_name(name, 60)}, what an agent is told from now on:"]
            lines += [f"  - {plain(line, 600)}" for line in card]
    return lines


def _repeats(found: Imported) -> list[str]:
    lines = []
    if found.conversations:
        lines.append(
            f"{found.repeats:,} of {counted(found.failures, 'failed call')} "
            f"({found.repeats / found.failures:.0%}) repeated, word for word, a call that had "
            "failed in the same conversation."
        )
    flags = [flag for flag in found.replay.flags if flag.source == "repeat"]
    outcomes = list({flag.index: flag.failed for flag in flags}.values())
    ends = f": {outcomes.count(True):,} failed again, {outcomes.count(False):,} worked"
    unknown = f", of {count:,} it is not known" if (count := outcomes.count(None)) else ""
    return [
        *lines,
        f"On the newest {counted(found.replay.calls, 'call')} the guard would have stepped in "
        f"before {counted(len(outcomes), 'repeat')}{ends + unknown if outcomes else ''}.",
    ]
