"""`toolmem hook`: install, check and uninstall the hooks of coding agents."""

from __future__ import annotations

import os
import shlex
import sys
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import Any

import click

from toolmem.cli import console, options
from toolmem.cli.import_ import import_chosen, print_imported
from toolmem.cli.transcripts import find_sessions, in_words, of_project
from toolmem.errors import RequestError, StoreError
from toolmem.guard.stores import project_root, store_path
from toolmem.hooks import installs
from toolmem.hooks.agents import AGENTS, Agent
from toolmem.hooks.doctor import examine
from toolmem.hooks.install_notes import installed
from toolmem.rules.store import GUARDED
from toolmem.store.sqlite import SqliteStore


def of_agent(command: options.Command) -> options.Command:
    """Decorator: the command gets an `Agent` and the folder of the project, "" with --user."""

    @click.argument("agent", type=click.Choice(list(AGENTS)))
    @click.option(
        "--project",
        type=click.Path(exists=True, file_okay=False),
        help="Use the project in this folder. Without it, the current folder is used.",
    )
    @click.option(
        "--user",
        is_flag=True,
        help="Use the agent's settings of your user account, which hold in all projects.",
    )
    @wraps(command)
    def run(agent: str, project: str | None, user: bool, **others: Any) -> None:
        if user and project:
            raise RequestError("--project and --user exclude each other: give one", "project")
        folder = os.path.realpath(project or os.getcwd())
        if not user and folder == os.path.realpath(Path.home()):
            raise RequestError("this is your home folder: give --user, or --project DIR", "project")
        command(AGENTS[agent], "" if user else folder, **others)

    return run


@click.group()
def hook() -> None:
    """Install or remove a coding agent's hook. It checks and records calls, and keeps rules."""


@hook.command()
@of_agent
@console.dry_run
@console.store_file
@console.on_error
@options.no_settings
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False),
    help="Use the settings in this YAML file to judge the calls of a session after its end.",
)
@click.option(
    "--force",
    is_flag=True,
    help="Install the hook for this project although your account has it, or the reverse.",
)
@click.option(
    "--learn/--no-learn",
    default=None,
    help="Learn, or do not, from the agent's earlier sessions in this project. If neither is "
    "given, the command asks at a terminal, and elsewhere does not learn.",
)
def install(
    agent: Agent,
    project: str,
    dry_run: bool,
    store: str | None,
    on_error: str,
    config: str | None,
    force: bool,
    learn: bool | None,
) -> None:
    """Install the hook of a coding agent. The agent's other settings stay as they are.

    If the agent has earlier sessions in this project, the command offers to learn from them. The
    next session begins with what they teach.

    \b
    Examples:
      toolmem hook install claude-code
      toolmem hook install codex --user --dry-run
    """
    own = [each for each in installed() if each.agent == agent.name]
    here = next((each for each in own if each.project == project), None)
    if learn and here and project and not dry_run:
        _offer_sessions(agent, project, here.option("--store") or store_path(project), learn)
        return
    if any(bool(each.project) != bool(project) for each in own) and not force:
        problem = "the hook is installed in the other place too: --force installs it twice"
        raise RequestError(problem)
    if config:
        options.open_memory(config=config, store=":memory:").close()  # raises if it is wrong
    store, config = (os.path.abspath(each) if each else "" for each in (store, config))
    command = installs.hook_command(agent, project, store, on_error, config)
    changes = installs.plan_install(agent, project, command, os.environ)
    if not dry_run:
        installs.apply_install(agent, project, command, changes)
    _show(changes, agent, "would install" if dry_run else "installed", project)
    if agent.after_install and not dry_run:
        click.echo(agent.after_install)
    if not project and learn:
        click.echo("sessions are learnt project by project: toolmem import --from-agents in each")
    elif project and not dry_run and learn is not False:
        _offer_sessions(agent, project, store or store_path(project), learn)


@hook.command()
@of_agent
@console.dry_run
def uninstall(agent: Agent, project: str, dry_run: bool) -> None:
    """Remove the hook. The store stays, and so do your own changes in the agent's settings.

    \b
    Example:
      toolmem hook uninstall claude-code
    """
    changes, kept = installs.plan_uninstall(agent, project, os.environ)
    stores = {(each.agent, each.project): each.option("--store") for each in installed()}
    store = stores.get((agent.name, project)) or store_path(project or str(Path.home()))
    if not dry_run:
        installs.apply_uninstall(agent, project, changes)
    for path in kept:
        click.echo(f"{path} was changed since it was installed, and stays", err=True)
    if not changes:
        click.echo("nothing is installed here")
        return
    _show(changes, agent, "would uninstall" if dry_run else "uninstalled", project)
    with suppress(StoreError), SqliteStore(store) as opened:
        if opened.get(*GUARDED):
            how = "only you loosen your rules in it, by `toolmem rules` at a terminal"
            click.echo(f"{store} stays guarded: {how}")


@hook.command()
@of_agent
def doctor(agent: Agent, project: str) -> None:
    """Check whether the installed hook works.

    The hook is started as the agent would start it. Exit code 1: there is a problem.
    """
    found = examine(agent, project)
    for each in found:
        click.echo(f"{each.level:<8} {each.text}")
    if any(each.level == "problem" for each in found):
        sys.exit(1)


@hook.command()
@click.argument("agent", type=click.Choice(list(AGENTS)), required=False)
@options.as_json
def status(agent: str | None, as_json: bool) -> None:
    """List the hooks of all agents or of one. Each line: agent, project or `user`, files."""
    found = [each for each in installed() if agent in (None, each.agent)]
    if as_json:
        console.print_json(found)
        return
    for each in found:
        click.echo(f"{each.agent}  {each.project or 'user'}  {', '.join(each.files)}")
    if not found:
        click.echo("no hook is installed")


def _offer_sessions(agent: Agent, project: str, store: str, learn: bool | None) -> None:
    """Print how many earlier sessions there are, and learn from them if the user agrees."""
    root = project_root(project)
    sessions = find_sessions(Path.home(), [project])
    own = [each for each in sessions if (each.project, each.agent) == (root, agent.title)]
    if not own:
        if learn:
            click.echo(f"no earlier session of {agent.title} in this project was found")
        return
    click.echo(f"earlier sessions of this project: {in_words(own)}")
    if os.path.realpath(store) != os.path.realpath(store_path(project)):
        import_ = f"toolmem import --from-agents --store {shlex.quote(store)} --into-shared"
        click.echo(f"this is not the project's own store; to learn from them there: {import_}")
        return
    if learn is None and sys.stdin.isatty():
        learn = click.confirm(f"Learn from them? Calls are kept in {store}")
    if not learn:
        where = "" if project == os.getcwd() else f" --project {shlex.quote(project)}"
        click.echo(f"to learn from them: toolmem import --from-agents{where}")
        return
    chosen = of_project(root, own)
    with options.open_memory(store=store) as memory:
        print_imported(import_chosen(memory, chosen), store, chosen)


def _show(changes: list[installs.FileChange], agent: Agent, done: str, project: str) -> None:
    for change in changes:
        if text := change.difference():
            click.echo(text)
    click.echo(f"{done}: {agent.title}, {project or 'for the user'}")
