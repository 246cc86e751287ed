"""`toolmem rules`: show, change and capture what the user demands."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import click
import msgspec

from toolmem.cli import console, options
from toolmem.cli.console import confirm, print_error, print_json, print_table, user_actor
from toolmem.errors import RequestError
from toolmem.files import replace_file
from toolmem.flow.runner import with_new_names
from toolmem.formats.chat import is_conversation, read_chat, text_of, typed_text
from toolmem.formats.files import read_json, read_lines
from toolmem.memory.toolmem import ToolMem
from toolmem.models.calls import with_all_fields
from toolmem.models.rules import Effect, Priority, ToolMemoryRule
from toolmem.operations.rules import RuleOverview, State, schemas_of
from toolmem.rules import team_file
from toolmem.rules.capture import ToolMemoryCaptureHook, describe_effect
from toolmem.rules.changes import rule_digest
from toolmem.rules.identity import find_rule, folded_name
from toolmem.rules.reader import too_long
from toolmem.rules.replies import without_ways_out
from toolmem.rules.review import Review
from toolmem.rules.turn import Captured, Turn, read_turn
from toolmem.text.display import counted, plain, visible

_ID = "RULE_ID is an id that `toolmem rules list` or `review` prints, or its beginning."
_WAITS = "Exit code 1: a hook guards the store, so this waits until you approve it at a terminal."


@click.group()
def rules() -> None:
    """Show and change the rules: what the user demands of agents."""


@rules.command("list")
@click.argument("tool", cls=options.Values, most=1, metavar="[TOOL] [NAME=VALUE]...")
@click.option(
    "--state",
    type=click.Choice(get_args(State)),
    default="holds",
    show_default=True,
    help="List rules that hold, rules that wait for your approval, or rules that have ended.",
)
@click.option("--effect", type=click.Choice(get_args(Effect)), help="List rules with this effect.")
@click.option("--text", help="Show only rules with this text in their sentence or tool.")
@options.conversation("Show also the rules that hold only in this conversation.")
@click.option("--session", hidden=True, help="Do the same as --conversation.")
@options.with_memory(options.read_options)
@options.as_json
def list_rules(
    memory: ToolMem, tool: str | None, session: str | None, as_json: bool, **chosen: Any
) -> None:
    """List the rules of one TOOL or of all.

    It shows how often each rule stopped a call, or asked the user about one, and when it last did.

    \b
    Examples:
      toolmem rules list
      toolmem rules list send_email --json
      toolmem rules list --state ended --text bob
    """
    session = chosen.pop("conversation_id") or session
    found = [
        each
        for each in memory.tool_rules(**chosen)
        if each.rule.session in ("", session)
        and (tool is None or folded_name(each.rule.tool_name) == folded_name(tool))
    ]
    if as_json:
        names = ("state", "stopped", "last_stopped")
        records = [{**with_all_fields(e.rule), **{n: getattr(e, n) for n in names}} for e in found]
        print_json(records)
        return
    columns = ("id", "tool", "priority", "effect", "said by", "stopped or asked", "last", "rule")
    print_table(columns, list(map(_rule_row, found)), nothing="no rule fits", numbers=False)


@rules.command("show", epilog=_ID)
@click.argument("rule_id")
@options.with_memory()
@options.as_json
def show_rule(memory: ToolMem, rule_id: str, as_json: bool) -> None:
    """Show a rule with its conditions and its history.

    \b
    Example:
      toolmem rules show 1f0c9a
    """
    rule = find_rule(memory.rules.every_rule(), rule_id)
    if as_json:
        print_json(rule)
        return
    for name, value in msgspec.to_builtins(rule).items():
        if name in ("changes", "request"):
            continue
        for each in value if isinstance(value, list) else [value]:
            if each not in (None, ""):
                text = each if isinstance(each, str) else json.dumps(each, ensure_ascii=False)
                click.echo(f"{name:<11} {visible(text, 2_000)}")
    for change in rule.changes:
        click.echo(f"{'changes':<11} {visible(console.change_in_words(change), 2_000)}")
    if rule.request is not None:
        click.echo("request     waits for you: toolmem rules review")


@rules.command("add", epilog=_WAITS)
@click.argument("tool")
@click.argument("text")
@click.option(
    "--priority",
    type=click.Choice(get_args(Priority)),
    default="critical",
    show_default=True,
    help="Set how important the rule is. The system prompt has the critical and the high rules.",
)
@click.option(
    "--effect",
    type=click.Choice(get_args(Effect)),
    help="Stop calls (deny), ask the user about them (ask), or only remind the agent (remind). "
    "deny and ask need --when. Without --effect, --when and --unless, TEXT decides.",
)
@click.option("--when", help="Match calls by this JSON list: see `when` in `toolmem note --help`.")
@click.option("--unless", help="Exempt calls by this JSON list, which is written like --when.")
@options.with_memory(exists=False)
def add_rule(
    memory: ToolMem, tool: str, text: str, when: str | None, unless: str | None, **more: Any
) -> None:
    """Add a rule on TOOL. TEXT is its sentence.

    TOOL is the name of a tool, or a class of tools: @shell, @read, @write, @delete, @fetch, @web,
    @mail or @chat. It prints the rule's id, and on stderr what the rule does.

    \b
    Examples:
      toolmem rules add send_email "Never email Bob"
      toolmem rules add @shell "Never push to main" --effect deny \\
          --when '[{"command": "^git push", "word": "(.*:)?main"}]'
    """
    more |= {"when": _alternatives("--when", when), "unless": _alternatives("--unless", unless)}
    made = memory.acting_as(user_actor()).tool_rule_put(tool, text, source="user_explicit", **more)
    click.echo(made.id)
    if made.status == "request" or (made.request and made.request.time >= made.updated_at):
        _print_done("added", made, is_done=False)
    click.echo(plain(describe_effect([made]) or "a reminder: no call is checked", 600), err=True)


@rules.command("delete", epilog=f"{_ID} {_WAITS}")
@click.argument("rule_id")
@options.with_memory()
def delete_rule(memory: ToolMem, rule_id: str) -> None:
    """Delete a rule and its text. `toolmem rules withdraw` keeps the text."""
    rule = find_rule(memory.rules.every_rule(), rule_id)
    after = memory.rules.delete(rule, user_actor())
    _print_done("deleted", rule, is_done=after.status == "deleted")


@rules.command("prompt")
@click.argument("tools", cls=options.Values, metavar="[TOOLS | NAME=VALUE]...")
@options.with_memory(options.read_options)
def show_prompt(memory: ToolMem, tools: tuple[str, ...]) -> None:
    """Print the rules of TOOLS, or of all, as in a system prompt."""
    for line in memory.tool_rules_for_prompt(list(tools) or None).rendered.splitlines():
        click.echo(plain(line, 3_000))


@rules.command("review")
@options.with_memory()
@options.as_json
def review(memory: ToolMem, as_json: bool) -> None:
    """List the requests that wait for you: new rules and changes."""
    found = memory.rules.requests()
    if as_json:
        print_json(found)
        return
    for rule in found:
        console.print_request(rule)
    if not found:
        click.echo("nothing waits for you", err=True)


@rules.command("approve", epilog=f"{_ID} {_WAITS}")
@click.argument("rule_id")
@console.yes
@options.with_memory()
def approve(memory: ToolMem, rule_id: str, yes: bool) -> None:
    """Carry out a request: keep, change or delete the rule.

    At a terminal of yours, it is shown, and you are asked first. Elsewhere you are not asked.
    """
    rule = find_rule(memory.rules.requests(), rule_id)
    if user_actor().evidence:
        console.print_request(rule)
        confirm("Do this?", yes)
    after = _decide(memory, rule, "approve")
    _print_done("done", rule, is_done=after.request is None and after.status != "request")


@rules.command("reject", epilog=_ID)
@click.argument("rule_id")
@options.with_memory()
def reject(memory: ToolMem, rule_id: str) -> None:
    """Refuse a request. A new rule is dropped; a rule that was to change stays as it is."""
    rule = find_rule(memory.rules.requests(), rule_id)
    _decide(memory, rule, "reject")
    _print_done("rejected", rule)


@rules.command("withdraw", epilog=f"{_ID} {_WAITS}")
@click.argument("rule_id")
@options.with_memory()
def withdraw(memory: ToolMem, rule_id: str) -> None:
    """End a rule, and keep its text. `toolmem rules restore` undoes it."""
    after = _decide(memory, find_rule(memory.rules.every_rule(), rule_id), "withdraw")
    _print_done("withdrawn", after, is_done=not after.holds_at(memory.services.clock.now()))


@rules.command("restore", epilog=_ID)
@click.argument("rule_id")
@options.with_memory()
def restore(memory: ToolMem, rule_id: str) -> None:
    """Let a rule hold again that was withdrawn or has ended.

    It gets its former end back. If that has passed, it has no end; a rule of one conversation ends
    in 7 days.

    \b
    Example:
      toolmem rules restore 1f0c9a
    """
    after = _decide(memory, find_rule(memory.rules.every_rule(), rule_id), "restore")
    until = "" if after.expires_at is None else f" ({memory.rules.until(after.expires_at)})"
    _print_done(f"holds again{until}", after)


@rules.command("try")
@click.argument("rule", cls=options.Values, required=True, metavar="(ID | TOOL SENTENCE)")
@click.option("--call", help="Try this call: arguments as JSON, a command line, or - for stdin.")
@click.option(
    "--recorded",
    type=click.IntRange(1, 10_000),
    help="Try the newest calls of its tools, this many.  [default: 2000, or none with --call]",
)
@options.with_memory(options.read_options)
@options.as_json
def try_rule(
    memory: ToolMem, rule: tuple[str, ...], call: str | None, recorded: int | None, as_json: bool
) -> None:
    """Count the calls that a rule would stop. Nothing is changed.

    It also says how many of these calls had worked. ID is that of a rule; if a request waits to
    change it, the changed rule is tried. TOOL and SENTENCE are read as `rules add` reads them.

    \b
    Examples:
      toolmem rules try 1f0c9a
      toolmem rules try @shell "Never push to main" --call "git push origin main"
      toolmem rules try send_email "Never email Bob" --recorded 500
    """
    if len(rule) > 2:
        raise click.UsageError("give the id of a rule, or a tool and a sentence in quotes")
    given: dict[str, Any] = {"tool_name": rule[0], "rule": rule[-1]}
    if len(rule) == 1:
        given = {"id": find_rule(memory.rules.every_rule(), rule[0]).id}
    value = None if call is None else options.read_arguments(call, "--call")
    trial = memory.tool_rule_try(**given, call=value, recorded=recorded)
    if as_json:
        print_json(trial)
        return
    click.echo(plain(describe_effect([trial.rule]) or "a reminder: no call is checked", 600))
    if trial.match:
        click.echo(f"does it mean the call: {trial.match}")
    if call is None or recorded is not None:
        stopped = "asked about" if trial.rule.effect == "ask" else "stopped"
        done = f"{len(trial.stopped):,} {stopped}, {trial.worked:,} of these had worked"
        click.echo(f"recorded calls: {trial.calls:,} tried, {done}")
    if trial.is_partial:
        click.echo("each call was tried alone, without the calls before it")


def _decide(memory: ToolMem, rule: ToolMemoryRule, review: Review) -> ToolMemoryRule:
    """Carry out what the user decided on a rule. Returns the rule after it."""
    return memory.acting_as(user_actor()).tool_rule_review(rule.id, review, seen=rule_digest(rule))


def _print_done(done: str, rule: ToolMemoryRule, *, is_done: bool = True) -> None:
    if not is_done:
        approve = f"toolmem rules approve {rule.id[:8]}"
        print_error(f"the store is guarded, so this waits; approve it in a terminal: {approve}")
        sys.exit(1)
    click.echo(f"{done}: {plain(rule.rule, 300)}")


@rules.command("export")
@click.argument("file", type=click.Path(path_type=Path))
@options.with_memory()
def export_rules(memory: ToolMem, file: Path) -> None:
    """Write the rules that stop calls, or ask about them, into FILE.

    FILE is a team's file of rules in YAML, or - for standard output. What it has besides stays.

    \b
    Example:
      toolmem rules export toolmem.rules.yaml
    """
    data = team_file.read_bytes(file) if file.exists() else b""
    entries, comments = team_file.read_team_file(data, file.name)
    entries += [team_file.entry_of(r) for r in memory.rules.all_rules().rules if r.is_checked]
    data = team_file.write_team_file(entries, comments).encode()
    entries, _ = team_file.read_team_file(data, file.name)  # raises if it cannot be imported
    if str(file) == "-":
        click.echo(data, nl=False)
        return
    try:
        replace_file(file.resolve(), data)
    except OSError as error:
        raise RequestError(f"{file}: {error.strerror}", "file") from error
    click.echo(f"{plain(str(file))} holds {counted(len(entries), 'rule')}")


@rules.command("import")
@click.argument("file", type=options.InputFile())
@click.option(
    "--yes",
    is_flag=True,
    help="Do it without asking. Outside a terminal, what loosens a rule becomes a request.",
)
@options.with_memory(exists=False)
def import_rules(memory: ToolMem, file: Path, yes: bool) -> None:
    """Show how the rules in FILE differ, ask you, and take them over.

    FILE is a team's file of rules, or - for standard input. Rules of an earlier import that it no
    longer has are printed as `missing`, and stay. Exit code 1: nobody agreed, or changes wait for
    `toolmem rules approve`. `toolmem import` reads calls, `toolmem store import` dumps.

    \b
    Example:
      toolmem rules import toolmem.rules.yaml
    """
    user = user_actor()
    entries, _ = team_file.read_team_file(team_file.read_bytes(file), file.name)
    differences = team_file.compare(entries, memory.rules)
    click.echo("\n".join(map(str, differences)))
    changes = [each for each in differences if each.kind in team_file.CHANGES]
    if changes and not yes and not (user.evidence and click.confirm("Change this?")):
        print_error("nothing is changed: run this in a terminal of yours, or with --yes")
        sys.exit(1)
    done = [each.apply(memory.rules, user if user.evidence else None) for each in changes]
    waiting = sum(rule.request is not None for rule in done)
    changed = counted(len(done) - waiting, "rule")
    click.echo(f"{changed} changed; waiting for `rules approve`: {waiting:,}")
    sys.exit(1 if waiting else 0)


@rules.command("capture")
@click.option("--turns", type=options.InputFile(), help="Read this file: a turn on each line.")
@click.option("--conversations", type=options.InputFile(), help="Read this file: a chat a line.")
@click.option("--apply", "applies", is_flag=True, help="Keep the rules that are found.")
@options.memory_options
@options.as_json
def capture(
    turns: Path | None, conversations: Path | None, applies: bool, as_json: bool, **where: Any
) -> None:
    """Show which rules a user's messages would make. --apply keeps them.

    A turn is {"user_message": ..., "tool_calls": [{"name": ...}], "tools": [...]}. A chat is
    {"messages": [...]} in the form of OpenAI. Give one of --turns and --conversations.

    \b
    Examples:
      toolmem rules capture --turns turns.jsonl
      toolmem rules capture --conversations chats.jsonl --apply --store memory.db
    """
    if (turns is None) == (conversations is None):
        raise click.UsageError("give one of --turns and --conversations")
    records = list(_turns(turns) if turns else _turns_of_chats(conversations or Path()))
    with options.open_memory(**(where if applies else {**where, "store": ":memory:"})) as memory:
        hook = ToolMemoryCaptureHook(memory.rules, enabled=True)
        for number, record in enumerate(records):
            turn = read_turn({**with_new_names(record), "tools": []})
            turn.tools = schemas_of(record.get("tools"))
            if as_json and not applies:  # the output has what holds for a session, too
                turn.conversation_id = turn.conversation_id or f"turn {number}"
            _print_captured(number, turn, hook.after_turn(turn), as_json, applies)


def _print_captured(number: int, turn: Turn, done: Captured, as_json: bool, applies: bool) -> None:
    if not as_json:
        for line in done.told:
            if not applies:
                line = without_ways_out(re.sub("^Kept", "Would keep", line))
            click.echo(f"{number}: {plain(line, 600)}")
        return
    names = ("tool_name", "rule", "priority", "source", "tags")
    row = {
        "turn": number,
        "rules": [{n: getattr(r, n) for n in names} for r in done.kept if not r.session],
        "session": [{n: getattr(r, n) for n in names[:2]} for r in done.kept if r.session],
        "too_long": too_long(turn.user_message),
    }
    click.echo(json.dumps(row, ensure_ascii=False))


def _turns(path: Path) -> Iterator[dict[str, Any]]:
    for line in read_lines(path):
        if line.error or not isinstance(line.value, dict):
            raise RequestError(f"{path}, line {line.number}: {line.error or 'no JSON object'}")
        yield line.value


def _turns_of_chats(path: Path) -> Iterator[dict[str, Any]]:
    for line in read_lines(path):
        if not is_conversation(line.value):
            raise RequestError(f"{path}, line {line.number}: expected an object with `messages`")
        body = line.value if isinstance(line.value, dict) else {"messages": line.value}
        chat = read_chat(body["messages"])
        tools = body.get("tools") or list(dict.fromkeys(call.name for call in chat.calls))
        for message in body["messages"]:
            if isinstance(message, dict) and message.get("role") == "user":
                text = text_of(message.get("content"))
                calls = [{"name": call.name} for call in chat.calls if call.context == text]
                typed = typed_text(message.get("content"))
                yield {"user_message": typed, "tool_calls": calls, "tools": tools}


def _alternatives(option: str, given: str | None) -> list[dict[str, Any]] | None:
    value = None if given is None else read_json(given, option)
    return value if value is None or isinstance(value, list) else [value]


def _rule_row(found: RuleOverview) -> tuple[Any, ...]:
    rule = found.rule
    about = (rule.id[:8], rule.tool_name, rule.priority, rule.effect, rule.said.by)
    return *about, found.stopped, found.last_stopped, rule.rule
