"""`toolmem rules capture`: the capture hook over recorded turns or conversations."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolmem.cli.console import AsJson, Config, Overrides, counted, in_app, print_json, print_table, say
from toolmem.cli.rules_listed import priority_style
from toolmem.errors import ConfigError, RequestError

if TYPE_CHECKING:
    from toolmem.app import ToolMemApp
    from toolmem.rules.capture.hook import Extracted, ToolMemoryCaptureHook
    from toolmem.rules.rule_store import RuleStore
    from toolmem.rules.turns import Turn


def capture(
    overrides: Overrides = None,
    turns: Annotated[
        Path | None,
        typer.Option("--turns", help="JSON Lines: user_message, tool_calls, optionally tools (names or schemas)."),
    ] = None,
    conversations: Annotated[
        Path | None, typer.Option("--conversations", help="OpenAI conversations, one per line: objects with messages.")
    ] = None,
    apply: Annotated[bool, typer.Option("--apply", help="Keep the rules; without it nothing is written.")] = False,
    workspace: Annotated[str, typer.Option("--workspace", help="Whose rules; used with --apply.")] = "default",
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Show which rules each recorded turn would give or take back; do so with --apply.

    With --json one line per turn, counted from 0. Exit code 1 where a line could not be read; the others count.

    toolmem rules capture --turns turns.jsonl --json
    """
    if (turns is None) == (conversations is None):
        raise RequestError("give either --turns FILE or --conversations FILE", field="turns")
    source = _turns(turns) if turns is not None else _conversation_turns(conversations or Path())
    results = in_app(lambda app: _run(app, source, apply, workspace), config, overrides)
    if not any("error" not in result for result in results):
        first = f" ({results[0]['error']})" if results else ""
        raise RequestError(f"{turns or conversations}: holds not one turn{first}", field="turns")
    if as_json:
        for result in results:
            print_json(result, indent=None)
    else:
        _print(results, apply)
    bad = [result["error"] for result in results if "error" in result]
    for error in bad:
        say(f"toolmem: {error}")
    if bad:
        raise typer.Exit(1)


# ---------------------------------------------------------------- reading

Read = tuple[dict[str, Any], "Turn | None", str]  # (what stands beside the result, the turn or None, what is wrong)


def _turns(path: Path) -> Iterator[Read]:
    from toolmem.formats.lines import read_lines
    from toolmem.rules.turns import read_turn

    for entry in read_lines(path):
        if entry.problem:
            yield {}, None, f"{entry.place}: {entry.problem}"
            continue
        try:
            yield {}, read_turn(entry.value), ""
        except RequestError as error:
            yield {}, None, f"{entry.place}: {error}"


def _conversation_turns(path: Path) -> Iterator[Read]:
    from toolmem.formats.lines import read_lines
    from toolmem.formats.openai_chat import is_conversation
    from toolmem.rules.turns import read_tools, turns_of_messages

    number = -1
    for entry in read_lines(path):
        values = entry.value if isinstance(entry.value, list) and not is_conversation(entry.value) else [entry.value]
        for value in values:
            number += 1
            beside = {"conversation": number}
            if entry.problem or not is_conversation(value):
                problem = entry.problem or "not a conversation: expected an object with a list 'messages'"
                yield beside, None, f"{entry.place}: {problem}"
                continue
            body = value if isinstance(value, dict) else {"messages": value}
            try:
                tools = read_tools(body.get("tools") or body.get("functions"))
            except RequestError as error:
                yield beside, None, f"{entry.place}: {error}"
                continue
            for turn in turns_of_messages(body["messages"], tools, str(body.get("id") or "")):
                yield beside, turn, ""


# ---------------------------------------------------------------- running


async def _run(app: ToolMemApp, read: Iterable[Read], apply: bool, workspace: str) -> list[dict[str, Any]]:
    from toolmem.flow.checks import check_workspace
    from toolmem.ops.turn_outcomes import with_outcomes
    from toolmem.rules.capture.hook import ToolMemoryCaptureHook, extract

    settings = app.settings.rules
    check_workspace(workspace)
    if apply and not settings.capture:
        raise ConfigError("rules.capture: capture is switched off, nothing can be applied")
    turns_of: Counter[str] = Counter()  # by session
    results = []
    async with _rules(app, workspace, apply) as rules:
        hook = ToolMemoryCaptureHook(rules, nouns=settings.nouns, enabled=True)
        for number, (beside, turn, problem) in enumerate(list(read)):
            if turn is None:
                empty: dict[str, Any] = {"rules": [], "session": [], "too_long": 0}
                results.append({"turn": number, **empty, **beside, "error": problem})
                continue
            turns_of[turn.session_id] += 1
            in_session = turns_of[turn.session_id] if turn.session_id else None
            turn = with_outcomes(replace(turn, number=in_session))
            found = extract(turn, workspace=workspace, nouns=settings.nouns)
            result = {"turn": number, **_in_json(found), **beside, **({"error": found.unread} if found.unread else {})}
            await _take(hook, turn, result, applied=apply)
            results.append(result)
    return results


@asynccontextmanager
async def _rules(app: ToolMemApp, workspace: str, apply: bool) -> AsyncIterator[RuleStore]:
    """The stored rules; or those of the file alone, in memory: of them a later sentence may take one back."""
    if apply:
        yield await app.rule_store(workspace)
        return
    from toolmem.rules.rule_store import RuleStore
    from toolmem.store.sqlite import SqliteStore

    async with SqliteStore(":memory:", clock=app.clock, embedder=None) as store:
        yield RuleStore(store, workspace, clock=app.clock)


async def _take(hook: ToolMemoryCaptureHook, turn: Turn, result: dict[str, Any], *, applied: bool) -> None:
    """What becomes of a turn, in the store or among the turns of the file."""
    captured = await hook.after_turn(turn)
    stored = {(rule.tool_name.lower(), rule.rule): rule.model_dump(mode="json") for rule in captured.rules}
    kept = [each for each in result["rules"] if (each["tool_name"].lower(), each["rule"]) in stored]
    for name, taken in (("withdrawn", captured.withdrawn), ("superseded", captured.superseded)):
        if taken:
            result[name] = [each.model_dump(mode="json", include=_TAKEN) for each in taken]
    if captured.told:
        result["notes"] = captured.told
    if not applied:
        result["rules"] = kept if captured.withdrawn else result["rules"]
        return
    result["rules"] = [{name: stored[each["tool_name"].lower(), each["rule"]][name] for name in each} for each in kept]
    if captured.deleted:
        result["deleted"] = [{"tool_name": draft.tool_name, "rule": draft.rule} for draft in captured.deleted]
    if captured.failures:
        result["error"] = f"turn {result['turn']}: {'; '.join(captured.failures)}"


_TAKEN = ("id", "tool_name", "rule", "status", "superseded_by")


def _in_json(found: Extracted) -> dict[str, Any]:
    return {
        "rules": [
            {
                "tool_name": draft.tool_name,
                "rule": draft.rule,
                "priority": draft.priority,
                "source": draft.source,
                "tags": list(draft.tags or ()),
                "status": draft.status or "active",
                "effect": draft.effect or "remind",
                "when": draft.when,
                "unchecked": draft.unchecked,
                "said": draft.said.model_dump(mode="json"),
            }
            for draft in found.drafts
        ],
        "session": [{"tool_name": each.tool_name, "rule": each.rule} for each in found.session],
        "too_long": found.too_long,
    }


# ---------------------------------------------------------------- showing


def _checked(rule: Mapping[str, Any]) -> str:
    if rule["effect"] == "remind":
        return f"only reminded: {rule['unchecked']}" if rule["unchecked"] else "only reminded"
    return f"checked: {rule['effect']}" + (" at every call" if rule["when"] is True else "")


def _print(results: list[dict[str, Any]], applied: bool) -> None:
    from toolmem.rules.capture.hook import session_notes

    kept = [
        (
            str(result["turn"]),
            rule["tool_name"],
            rule["priority"],
            rule["rule"],
            _checked(rule),
            ", ".join(rule["tags"]),
        )
        for result in results
        for rule in result["rules"]
    ]
    session = [
        (str(result["turn"]), rule["tool_name"], rule["rule"]) for result in results for rule in result["session"]
    ]
    if kept:
        columns = ("turn", "tool", "priority", "rule", "checked", "tags")
        print_table("Kept" if applied else "Would be kept", columns, kept, style=priority_style)
    if session:
        print_table("Not stored", ("turn", "tool", "demand"), session)
        for note in session_notes(demand for _, _, demand in session):
            say(note)
    taken = [
        (str(result["turn"]), rule["tool_name"], rule["rule"], rule["status"])
        for result in results
        for rule in (*result.get("withdrawn", ()), *result.get("superseded", ()))
    ]
    if taken:
        print_table("Taken back" if applied else "Would be taken back", ("turn", "tool", "rule", "becomes"), taken)
    for told in dict.fromkeys(told for result in results for told in result.get("notes", ())):
        say(told)
    too_long = sum(result["too_long"] for result in results)
    deleted = sum(len(result.get("deleted", ())) for result in results)
    say(
        f"{counted(len(results), 'turn')}: {counted(len(kept), 'rule')}"
        + ("" if applied else " would be kept (--apply keeps them)")
        + f", {counted(len(session), 'demand')} for the session"
        + (f", {counted(len(taken), 'rule')} taken back" if taken else "")
        + (f", {counted(too_long, 'sentence')} too long for a rule" if too_long else "")
        + (f", {deleted} not kept because the user had deleted them" if deleted else "")
    )
