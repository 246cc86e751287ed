"""`toolmem import`: learn from recordings that are there already."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import Any

import click

from toolmem.cli import console, options
from toolmem.cli.console import print_error, print_unread, progress_bar
from toolmem.cli.transcripts import Chosen, agree, choose, require_own_store, without_hook
from toolmem.config.sections import WORKSPACE
from toolmem.errors import RequestError
from toolmem.formats.recording import NAMES
from toolmem.formats.shapes import MAP_FIELDS, mapped
from toolmem.guard.stores import OWN_STORE, store_path
from toolmem.guidance.shown import require_trusted
from toolmem.memory.toolmem import ToolMem
from toolmem.research.importing import Imported, import_recordings
from toolmem.text.display import counted, plain, shown_name

sources = click.option(
    "--input",
    "sources",
    multiple=True,
    type=options.InputFile(folders=True),
    help="Read this recording, or those in a folder, in a format that `toolmem import` reads; may "
    "be given several times. Without it, the packaged sample is read.",
)
mapping = click.option(
    "--map",
    "mapping",
    callback=lambda context, option, given: read_mapping(given),
    metavar="FIELD=PATH,...",
    help="Say where the fields stand in an unknown format. A path is a/b/0; a|b is the first that "
    f"is there. Fields: {', '.join(MAP_FIELDS)}.",
)
form = click.option(
    "--format",
    type=click.Choice(NAMES),
    help="Read the recording in this format. Without it, the format is recognized.",
)


def read_mapping(text: str | None) -> dict[str, str] | None:
    """Raises UsageError."""
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
    "--from-agents", is_flag=True, help="Read the sessions of coding agents in this project."
)
@click.option(
    "--project",
    metavar="FOLDER",
    help="Read the sessions of this other project into its own store. It needs --from-agents.",
)
@console.yes
@click.option("--again", is_flag=True, help="Read files again that have not changed since.")
@click.option(
    "--into-shared",
    is_flag=True,
    help="Import into a store that is not this project's alone: whoever uses it sees what is "
    "learnt.",
)
@form
@mapping
@options.config
@options.store
@options.workspace()
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
    """Judge and keep the calls of recordings, and show what they teach.

    PATHS are files, folders, or - for standard input: transcripts of Claude Code, Codex, Gemini CLI
    and OpenCode, traces of OpenTelemetry, OpenInference, Langfuse and LangSmith, logs of
    inspect_ai, messages of OpenAI, Anthropic and LangChain, CSV and Parquet. Secrets are masked.
    Calls that were imported before are left as they are. Of agents' sessions only those of this
    project are read; you are asked before a folder outside of the current one is read.

    Exit code 1: a record or a file could not be read, or there was no call; 2: nothing was read, as
    nobody agreed or all is of other projects; 130: interrupted.

    To read a dump of a workspace: toolmem store import; a team's file of rules: toolmem rules
    import. To take an import back: toolmem forget.

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
        where["store"] = store_path(chosen.project)  # that of the hooks
    with options.open_memory(**where) as memory:
        location = memory.services.store().location
        require_own_store(location, chosen, into_shared)
        agree(chosen, location, yes)
        found = import_chosen(memory, chosen, again=again, format=format, mapping=mapping)
    print_first_page(found, location, chosen, where["workspace"])
    has_calls = found.read or found.unchanged
    is_whole = not (found.bad_count or found.unreadable or found.stopped)
    sys.exit(0 if has_calls and is_whole else 1)


def import_chosen(memory: ToolMem, chosen: Chosen, **options: Any) -> Imported:
    """Import with a progress bar. An interrupt keeps what is there, and says so.

    Raises RequestError where nobody would be told what is learnt.
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


def print_first_page(
    found: Imported, location: str, chosen: Chosen, workspace: str = WORKSPACE
) -> None:
    """What an import found, what to do next, and what could not be read."""
    for line in first_page(found):
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
    print_problems(found)


def first_page(found: Imported) -> list[str]:
    """What an import found, in plain words."""
    sources = ", ".join(f"{count:,} from {name}" for name, count in found.formats.most_common())
    were = "was" if found.duplicates == 1 else "were"
    known = f"; {found.duplicates:,} {were} there already" if found.duplicates else ""
    new = f"{counted(found.calls, 'new call')}{f' ({sources})' if sources else ''}{known}."
    if found.later_repairs is None:
        return [new]
    conversations, told = len(found.conversations), found.later_repairs.sentence(found.calls)
    where = f"in {counted(conversations, 'conversation')}"
    lines = [
        *([told, ""] if found.later_repairs.named is not None else []),
        new,
        f"{counted(len(found.tools), 'tool')}, "
        f"{where if conversations else 'no conversation is named'}: "
        f"{counted(found.failures, 'call')} failed ({found.failures / found.calls:.1%}).",
    ]
    for name in found.worst(5):
        tool = found.tools[name]
        why = ", ".join(f"{kind} {count:,}" for kind, count in tool.classes.most_common(3))
        part = f"{tool.failures:,} of {tool.calls:,} ({tool.failures / tool.calls:.0%})"
        lines.append(f"  {shown_name(name, 60)}: {part}: {why}")
    if found.failures:
        lines += _repeats(found)
    lines += [told] if found.later_repairs.named is None else []
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


def print_problems(found: Imported) -> None:
    print_unread(found.bad, found.notes, found.bad_count)
    if found.stopped:
        print_error(f"stopped: {found.stopped}")
    if not (found.read or found.notes):
        print_error("no call was found")
