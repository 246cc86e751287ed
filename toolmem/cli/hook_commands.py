"""`toolmem hook`: install, uninstall, doctor and status of the hooks in the agents that people run."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from toolmem.cli.console import AsJson, counted, print_json, print_table, say, tell
from toolmem.hosts.host import HOSTS

if TYPE_CHECKING:
    from toolmem.hosts.settings_files import HookPlace, PlannedFile
    from toolmem.rules.evidence import UserEvidence

Agent = Annotated[str, typer.Argument(metavar="AGENT", help=f"One of {', '.join(HOSTS)}.", show_default=False)]
Project = Annotated[
    Path | None, typer.Option("--project", help="The folder that the agent is started in. Default: this one.")
]
User = Annotated[bool, typer.Option("--user", help="For all that you do with the agent, in your home folder.")]
_ADDED_AT = {"session_start": "session's start", "subagent_start": "subagent's start", "prompt": "message"}
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would change.")]


def install(
    agent: Agent,
    project: Project = None,
    user: User = False,
    store: Annotated[
        Path | None, typer.Option("--store", help="The store. Default: .toolmem/memory.db of the project, or yours.")
    ] = None,
    on_error: Annotated[
        str, typer.Option("--on-error", help="Where toolmem itself fails: open lets the call run, closed stops it.")
    ] = "open",
    config: Annotated[
        Path | None,
        typer.Option("--config", help="Judge and summarize by this configuration when a session has ended."),
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """Put toolmem's hooks into an agent's settings: show the difference, then write it.

    Everything else in the file stays byte for byte. Again, it changes nothing; after an upgrade, it renews the line.
    Without --config nothing is ever sent to a model that costs.

    toolmem hook install claude-code

    toolmem hook install codex --user --dry-run

    toolmem hook install gemini --project ~/shop --store ~/shop.db --on-error closed
    """
    from toolmem.errors import RequestError, ToolMemError
    from toolmem.hosts.installing import hook_command, hook_place, passing_interpreter, require_config, store_of
    from toolmem.hosts.settings_files import plan_install, write_all

    if on_error not in ("open", "closed"):
        raise RequestError(f"--on-error: expected open or closed, got {on_error!r}", field="on_error")
    place = hook_place(agent, project, user, os.environ)
    require_config(config)
    command = hook_command(agent, store=store, on_error=on_error, config=config)
    planned = plan_install(place, command)
    _show(planned)
    if why := passing_interpreter(command[0]):
        say(f"warning: the hooks start {command[0]}, and {why}: without it the agent runs unguarded")
    if dry_run:
        return
    if any(each.changes and each.before is not None for each in planned):
        _refuse_agents(place, store)
    _make_store(store_of(place, store), is_named=store is not None)
    trouble = _noted(place, command, planned)
    try:
        write_all(place.host, planned, installs=True)
    except ToolMemError:
        _forget(place)
        raise
    changed = [each for each in planned if each.changes]
    said = f"installed for {place.host.title}" if changed else f"{place.host.title} has these hooks already"
    tell(f"{said}; the store is {store_of(place, store)}")
    if trouble:
        say(f"warning: the install could not be noted ({trouble}): the guard does not protect these files by it")
    if place.host.after_install:
        tell(f"\nYou still have to: {place.host.after_install}")
    tell(f"\nTry them: {_command_line('doctor', place)}")


def uninstall(agent: Agent, project: Project = None, user: User = False, dry_run: DryRun = False) -> None:
    """Take toolmem's hooks out of an agent's settings again; the store stays.

    A file that nobody changed since is what it was before, to the byte. In a terminal you are asked where rules bind by
    them, and then they hold no agent any more; a script takes them out, and the rules hold again with the next install.
    What an agent starts is refused (exit code 1).

    toolmem hook uninstall claude-code
    """
    from toolmem.hosts.installing import hook_place
    from toolmem.hosts.receipts import Receipts
    from toolmem.hosts.settings_files import plan_uninstall, write_all

    place = hook_place(agent, project, user, os.environ)
    receipts = Receipts()
    try:
        known = [each for each in receipts.installs(agent) if (each.scope, each.place) == (place.scope, place.where)]
        planned, kept = plan_uninstall(place, known[-1].command if known else ["toolmem-hook", agent])
        _show(planned)
        if not dry_run:
            evidence = _evidence(place) if any(each.changes for each in planned) else None
            write_all(place.host, planned, installs=False)
            receipts.install_removed(agent, place.scope, place.where)
            _end_holding(evidence)
    finally:
        receipts.close()
    for path in kept:
        say(f"{path} was changed since it was installed, and stays: look at it, and remove it yourself")
    if not any(each.changes for each in planned):
        say(f"no hook of toolmem stands in the settings of {place.host.title} here")
        _name_others(place)
    elif not dry_run:
        tell(f"uninstalled from {place.host.title}; what was learnt stays in the store")
        _name_others(place)
    if kept:
        raise typer.Exit(1)


def doctor(agent: Agent, project: Project = None, user: User = False, as_json: AsJson = False) -> None:
    """See whether an agent's hooks work: exit code 1 where something is wrong, each finding with what to do.

    Reads the installed line from the agent's own file, hands it a made-up event as the agent would, and compares the
    calls in the agent's recordings with the receipts that the hooks left.

    toolmem hook doctor claude-code
    """
    from toolmem.hosts.doctor import examine
    from toolmem.hosts.installing import hook_place

    found = examine(hook_place(agent, project, user, os.environ))
    if as_json:
        print_json([asdict(each) for each in found])
    for each in found if not as_json else ():
        tell(f"{each.level:<6} {each.check}: {each.seen}")
        if each.remedy:
            tell(f"       → {each.remedy}")
    if any(each.level == "wrong" for each in found):
        raise typer.Exit(1)


def status(
    agent: Agent,
    project: Project = None,
    user: User = False,
    line: Annotated[
        bool, typer.Option("--line", help="One line, for an agent's status line, whose JSON is read from stdin.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show where hooks are installed, which rules bind, what was advised and stopped, and what that cost the model.

    toolmem hook status claude-code

    echo '{"session_id": "..."}' | toolmem hook status claude-code --line
    """
    from toolmem.hosts.installing import hook_place, known_host
    from toolmem.hosts.status import figures, line_of, read_status_input

    known_host(agent)
    if line:
        tell(line_of(read_status_input(sys.stdin), agent, os.environ))
        return
    told = figures(hook_place(agent, project, user, os.environ))
    if as_json:
        print_json(told)
        return
    rows = [(each["scope"], each["place"] or "~", each["at"], each["state"]) for each in told["installs"]]
    print_table("Installs", ("scope", "place", "since", "state"), rows)
    tell(f"rules: {told['rules']:,} active in {', '.join(told['stores']) or 'no store'}")
    for each in [*told["gone"], *filter(None, [told["trouble"]])]:
        say(each)
    tell(
        f"calls seen: {told['calls']:,}; stopped {told['stopped']:,}, asked about {told['asked']:,}, "
        f"advised {told['advised']:,}"
    )
    tell(f"added to the model's context: {_cost(told['context'])}")


def _cost(context: Mapping[str, Mapping[str, int]]) -> str:
    """Tokens of all that hooks put before the model, by the events at which they did."""
    found = [(words, context[event]) for event, words in _ADDED_AT.items() if event in context]
    parts = ", ".join(f"{told['tokens']:,} at {told['times']:,} × {words}" for words, told in found)
    total = sum(told["tokens"] for _, told in found)
    return f"about {total:,} tokens ({parts})" if found else "nothing"


def of_agent(agent: str) -> Callable[[typer.Context], None]:
    """The command that an agent starts for each event, where `toolmem-hook` is not at hand."""

    def run(context: typer.Context) -> None:
        from toolmem.hosts.hook_process import main

        main([agent, *context.args])

    run.__doc__ = f"Run the hook of {agent} on one event from stdin."
    return run


def _name_others(place: HookPlace) -> None:
    """Hooks that act in the same folder from elsewhere."""
    from toolmem.hosts.installed_lines import option_of, places_beside
    from toolmem.hosts.receipts import Receipts

    receipts = Receipts()
    beside = places_beside(place, receipts.installs(place.host.name))
    receipts.close()
    for each in beside:
        say(f"hooks that act here stand in {each.settings or 'other files'} still: {option_of(each)} takes them out")


def _refuse_agents(place: HookPlace, store: Path | None) -> None:
    """An agent does not put hooks that stand on another store: its rules would be others. Exits with code 1."""
    from toolmem.cli.terminal import refuse_agents
    from toolmem.hosts.installed_lines import installed_lines
    from toolmem.hosts.installing import store_of

    named = [path for line in installed_lines(place) if (path := line.option("--store"))]
    stands = store_of(place, Path(named[0]) if named else None)
    if installed_lines(place) and stands != store_of(place, store):
        refuse_agents(f"and its hooks stand on {stands}")


def _evidence(place: HookPlace) -> UserEvidence | None:
    """What who is at the terminal answered; None of a script. Exits with code 1 for an agent, and for a no."""
    from toolmem.cli.terminal import evidence_at_terminal, refuse_agents
    from toolmem.hosts.status import figures

    refuse_agents("and its hooks are its user's")
    told = figures(place)
    if not told["rules"]:
        return None
    held = f"{counted(told['rules'], 'rule')} ({', '.join(told['stores'])})"
    return evidence_at_terminal(f"{place.host.title} is held to {held}, and then by these hooks no longer. Go on?")


def _end_holding(evidence: UserEvidence | None) -> None:
    """Where the user took the last hooks out that held agents to a store, nothing is kept of its rules; else it is."""
    from toolmem.store.holding import is_held
    from toolmem.store.journal_changes import Changes, dump, journal_here, store_key

    free = [each for each in journal_here().stores("default") if not is_held(each.path)]
    for kept in free:
        if evidence is not None:
            key, why = store_key(kept.path), dump(evidence._asdict())
            journal_here().changing(partial(Changes.end, store=key, workspace="default", evidence=why), None)
            tell(f"no agent is held to the rules of {kept.path} any more")
        elif kept.rules:
            say(f"the {counted(kept.rules, 'rule')} of {kept.path} hold again with the next install")


# ---------------------------------------------------------------- what install does


def _show(planned: Sequence[PlannedFile]) -> None:
    for each in planned:
        if each.changes:
            if each.path.is_symlink() or each.path.parent.is_symlink():
                say(f"{each.path} leads to {os.path.realpath(each.path)}, which is what changes")
            tell(each.difference())
    if not any(each.changes for each in planned):
        say("nothing would change")


def _make_store(path: Path, *, is_named: bool) -> None:
    """Made where it is not there, and then this user's own; one that somebody else made is not believed for that."""
    from toolmem.engine.store_file import StoreFile

    with StoreFile(path) as store:
        store.make()
        if is_named or store.is_known():
            return
    say(
        f"warning: {path} was made by somebody else: its rules do not bind you. Look at it with `toolmem rules "
        f"list`; if it is yours, `toolmem store trust {path}`"
    )


def _noted(place: HookPlace, command: Sequence[str], planned: Sequence[PlannedFile]) -> str:
    """Noted before it is written, so that the guard knows the files from the first moment; what was wrong with it."""
    from toolmem.hosts.receipts import Receipts

    receipts = Receipts(busy_timeout=5.0)
    files = [str(each.path) for each in planned]
    with suppress(OSError):
        files += [real for each in files if (real := os.path.realpath(each)) not in files]
    receipts.install_added(place.host.name, place.scope, place.where, command=command, files=files)
    receipts.close()
    return receipts.trouble


def _forget(place: HookPlace) -> None:
    """An install that could not be written: as `doctor` sees it, what stands in the files counts."""
    from toolmem.hosts.receipts import Receipts

    receipts = Receipts()
    receipts.install_removed(place.host.name, place.scope, place.where)
    receipts.close()


def _command_line(what: Literal["doctor", "uninstall"], place: HookPlace) -> str:
    where = " --user" if place.scope == "user" else ""
    if place.scope == "project" and place.project != Path.cwd():
        where = f" --project {place.project}"
    return f"toolmem hook {what} {place.host.name}{where}"
