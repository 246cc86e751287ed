"""`toolmem import`: learn from recordings that are there already."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from toolmem.cli import options
from toolmem.cli.console import print_error, print_unread, progress_bar
from toolmem.cli.transcripts import transcripts
from toolmem.errors import RequestError
from toolmem.formats.recording import NAMES
from toolmem.memory.toolmem import ToolMem
from toolmem.research.importing import Imported, import_recordings
from toolmem.text.display import plain, shown_name

sources = click.option(
    "--input",
    "sources",
    multiple=True,
    type=click.Path(exists=True, path_type=Path),
    help="A recording in a format that `toolmem import` reads, or a folder; may be given several "
    "times. Left out: the packaged sample.",
)
mapping = click.option(
    "--map",
    "mapping",
    callback=lambda context, option, given: read_mapping(given),
    metavar="FIELD=PATH,...",
    help="Where the fields stand in an unknown format: name, arguments, output, and error, status, "
    "success, time, end, id, conversation. A path is a/b/0; a|b is the first that is there.",
)
form = click.option("--format", type=click.Choice(NAMES), help="Left out: it is recognized.")


def read_mapping(text: str | None) -> dict[str, str] | None:
    """Raises UsageError."""
    if text is None:
        return None
    pairs = [each.partition("=") for each in text.split(",")]
    if not all(field and path for field, _, path in pairs):
        raise click.UsageError("--map: expected field=path, with commas between")
    return {field.strip(): path.strip() for field, _, path in pairs}


@click.command("import")
@click.argument("paths", nargs=-1, type=click.Path(exists=True, path_type=Path))
@click.option("--from-agents", is_flag=True, help="The transcripts of coding agents in your home.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--again", is_flag=True, help="Read files that have not changed since, too.")
@form
@mapping
@options.with_memory(options.config, options.store, options.workspace(), exists=False)
def import_(
    memory: ToolMem,
    paths: tuple[Path, ...],
    from_agents: bool,
    yes: bool,
    again: bool,
    **form: Any,
) -> None:
    """Judge and keep the calls of recordings, and show what they teach.

    PATHS are files and folders: transcripts of Claude Code, Codex, Gemini CLI and OpenCode, traces
    of OpenTelemetry, OpenInference, Langfuse and LangSmith, logs of inspect_ai, messages of
    OpenAI, Anthropic and LangChain, CSV and Parquet. Secrets are masked. What was imported before
    is left as it is. Exit code 1: a record could not be read, or there was no call.

    \b
    Examples:
      toolmem import --from-agents
      toolmem import ~/.claude/projects traces.json
      toolmem import mine.jsonl --map name=fn,arguments=args,output=result
    """
    if not (paths or from_agents):
        raise click.UsageError("name files or folders, or use --from-agents")
    searched = _transcripts(yes) if from_agents else []
    with progress_bar("importing calls") as progress:
        found = import_recordings(
            memory,
            paths,
            searched=searched,
            again=again,
            progress=lambda done: progress(done, done),
            **form,
        )
    for line in first_page(found):
        click.echo(line)
    _print_problems(found)
    has_calls = found.read or found.unchanged
    is_whole = not (found.bad_count or found.stopped)
    sys.exit(0 if has_calls and is_whole else 1)


def _transcripts(yes: bool) -> list[Path]:
    """The transcripts of coding agents in the home, if the user agrees to read them."""
    found = transcripts(Path.home())
    if not found:
        raise RequestError("no transcripts of coding agents lie in this home", "from_agents")
    for each in found:
        size = each.size / 1_000_000
        click.echo(f"{each.agent}: {len(each.paths):,} files, {size:,.1f} MB", err=True)
    if not yes:
        click.confirm("Learn from them? Calls and results are kept here", abort=True, err=True)
    return [path for each in found for path in each.paths]


def first_page(found: Imported) -> list[str]:
    """What an import found, in plain words."""
    sources = ", ".join(f"{count:,} from {name}" for name, count in found.formats.most_common())
    were = "was" if found.duplicates == 1 else "were"
    known = f"; {found.duplicates:,} {were} there already" if found.duplicates else ""
    new = f"{_number(found.calls, 'new call')}{f' ({sources})' if sources else ''}{known}."
    if found.later_repairs is None:
        return [new]
    conversations = len(found.conversations)
    where = f"in {_number(conversations, 'conversation')}"
    lines = [
        found.later_repairs.sentence(found.calls),
        "",
        new,
        f"{_number(len(found.tools), 'tool')}, "
        f"{where if conversations else 'no conversation is named'}: "
        f"{_number(found.failures, 'call')} failed ({found.failures / found.calls:.1%}).",
    ]
    for name in found.worst(5):
        tool = found.tools[name]
        why = ", ".join(f"{kind} {count:,}" for kind, count in tool.classes.most_common(3))
        part = f"{tool.failures:,} of {tool.calls:,} ({tool.failures / tool.calls:.0%})"
        lines.append(f"  {shown_name(name, 60)}: {part}: {why}")
    if found.failures:
        lines += _repeats(found)
    for name, card in found.cards.items():
        if card:
            lines += ["", f"{shown_name(name, 60)}, what an agent is told from now on:"]
            lines += [f"  - {plain(line, 300)}" for line in card]
    return lines


def _number(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _repeats(found: Imported) -> list[str]:
    lines = []
    if found.conversations:
        lines.append(
            f"{found.repeats:,} of {_number(found.failures, 'failed call')} "
            f"({found.repeats / found.failures:.0%}) repeated, word for word, a call that had "
            "failed in the same conversation."
        )
    flags = [flag for flag in found.replay.flags if flag.source == "repeat"]
    outcomes = list({flag.index: flag.failed for flag in flags}.values())
    ends = f": {outcomes.count(True):,} failed again, {outcomes.count(False):,} worked"
    unknown = f", of {count:,} it is not known" if (count := outcomes.count(None)) else ""
    return [
        *lines,
        f"On the newest {_number(found.replay.calls, 'call')} the guard would have stepped in "
        f"before {_number(len(outcomes), 'repeat')}{ends + unknown if outcomes else ''}.",
    ]


def _print_problems(found: Imported) -> None:
    print_unread(found.bad, found.notes, found.bad_count)
    if found.stopped:
        print_error(f"stopped: {found.stopped}")
    if not (found.read or found.notes):
        print_error("no call was found")
