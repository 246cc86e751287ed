"""`toolmem guard check` and `log`: what the guard says to a call now, and what it said to earlier ones."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolmem.cli.console import (
    AsJson,
    Config,
    Overrides,
    asked,
    in_app,
    print_json,
    print_table,
    require_store,
    say,
    tell,
)
from toolmem.errors import RequestError
from toolmem.guard.decision import STOPPED

if TYPE_CHECKING:
    from toolmem.app import ToolMemApp
    from toolmem.operations.guard_checks import CallDecision
    from toolmem.stored import LoggedDecision

STOPS = 5  # exit code
Workspace = Annotated[str, typer.Option("--workspace", help="Whose rules and calls.")]
_COLUMNS = ("time (UTC)", "tool", "decision", "by", "conversation", "outcome", "why", "id")
_OUTCOMES = {"": "not told yet", "not_run": "not run"}


def check(
    tool: Annotated[str, typer.Option("--tool", help="The tool that is to be called.")],
    overrides: Overrides = None,
    given: Annotated[str, typer.Option("--input", help="Its arguments as JSON, or - for stdin.")] = "{}",
    conversation: Annotated[
        str | None, typer.Option("--conversation", help="The conversation's id; without it no repeat is known.")
    ] = None,
    context: Annotated[
        str | None, typer.Option("--context", help="What the call runs against, as guidance.context_key reads it.")
    ] = None,
    tools: Annotated[
        Path | None, typer.Option("--tools", help="A JSON list of the tools' schemas, in OpenAI or MCP form.")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Let the unchanged repeat of a failed call run; no rule is forced.")
    ] = False,
    workspace: Workspace = "default",
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Ask what is to become of a call before it runs. Nothing is run.

    Exit code 0: it may run (allow, advise); 5: it is not to run (deny), or the user is to be asked first (ask). Any
    other code says nothing about the call: 2, the question is wrong; 1, the store cannot answer.

    toolmem guard check --tool send_email --input '{"to": "sarah@example.com"}'

    toolmem guard check --tool shell --input '{"command": "git push"}' --conversation c1 --json
    """
    from toolmem.operations.guard_checks import check_tool_call

    request = {"tool_name": tool, "input": _arguments(given), "conversation_id": conversation, "context": context}
    request |= {"tools": _schemas(tools), "force": force, "workspace_id": workspace}

    async def work(app: ToolMemApp) -> tuple[CallDecision, dict[str, str]]:
        checked = check_tool_call.checked(request)
        require_store(app, "default")
        return await check_tool_call.run(app.services, checked), app.settings.guard.modes

    decision, modes = in_app(work, config, overrides)
    if as_json:
        print_json({**decision.model_dump(mode="json"), "modes": modes})
        if decision.action == "ask":
            say(f"toolmem: {decision.reason}")
    else:
        _tell(decision, modes)
    raise typer.Exit(STOPS if decision.stops else 0)


def _arguments(given: str) -> Any:
    text = sys.stdin.read() if given == "-" else given
    try:
        value = json.loads(text)
    except RecursionError:
        raise RequestError("--input: nested too deeply", field="input") from None
    except ValueError as error:
        raise RequestError(f"--input: not JSON ({error})", field="input") from None
    if value is None:
        raise RequestError('--input: expected the arguments, e.g. {"to": "sarah@example.com"}', field="input")
    return value


def _schemas(path: Path | None) -> Any:
    if path is None:
        return None
    try:
        declared = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise RequestError(f"--tools: {path} cannot be read: {error}", field="tools") from None
    if not isinstance(declared, list):
        raise RequestError(f"--tools: {path}: expected a list of schemas", field="tools")
    return declared


def _tell(decision: CallDecision, modes: dict[str, str]) -> None:
    shadow = ", but nothing is done about what was found (shadow)" if decision.mode == "shadow" else ""
    tell(f"{decision.action}{shadow}")
    for text in (decision.reason, decision.advice):
        if text:
            tell(text)
    told = ", ".join(f"{source} {mode}" for source, mode in modes.items())
    by = f" by {_by(decision.model_dump()['sources'])}" if decision.sources else ""
    tell(f"\nDecision {decision.id}{by}. Modes: {told}.")


def log(
    overrides: Overrides = None,
    conversation: Annotated[str | None, typer.Option("--conversation", help="Those of one conversation.")] = None,
    tool: Annotated[str | None, typer.Option("--tool", help="Those about one tool.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="At most so many, the newest.")] = 20,
    workspace: Workspace = "default",
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """List what the guard decided, the newest first: all but plain allows, and what became of each call.

    toolmem guard log

    toolmem guard log --conversation c1 --tool send_email --limit 5 --json
    """
    from toolmem.operations.guard_checks import decisions

    request = {"conversation_id": conversation, "tool_name": tool, "limit": limit, "workspace_id": workspace}
    found = asked(decisions, request, config, overrides, reads=True)
    if as_json:
        print_json(decisions.to_json(found))
    elif found:
        print_table("Decisions", _COLUMNS, [_row(each) for each in found])
    else:
        say(f"no decision is logged in workspace {workspace!r} that fits; plain allows are not logged")


def _row(each: LoggedDecision) -> tuple[str, ...]:
    from toolmem.readers.plain_text import plain

    decided = each.action if each.mode != "shadow" else "shadow"
    return (
        *(f"{each.time:%Y-%m-%d %H:%M:%S}", each.tool_name, decided + (", forced" if each.forced else "")),
        *(_by(each.sources), each.conversation_id, _OUTCOMES.get(each.outcome, each.outcome)),
        *(plain(_why(each), 200), each.id),
    )


def _why(each: LoggedDecision) -> str:
    """What the agent was told, without the words that say that the call was stopped."""
    said = each.reason.removeprefix(STOPPED)
    return said.partition(". ")[2] if said != each.reason else each.reason or each.advice


def _by(sources: list[dict[str, Any]]) -> str:
    """The sources in words: `rule 1f3a9c2e, repeat`."""
    kinds = (f"{each['kind']} {(each.get('rule_id') or '')[:8]}".strip() for each in sources)
    return ", ".join(dict.fromkeys(kinds))
