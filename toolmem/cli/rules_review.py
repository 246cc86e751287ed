"""`toolmem rules review`: what waits for a person or holds no longer, what it would have stopped, and the decision."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from toolmem.cli.console import AsJson, Config, Overrides, asked, counted, print_json, say, tell
from toolmem.cli.rules_commands import (
    Ids,
    Workspace,
    exit_where_missing,
    exit_where_proposed,
    known_rules,
    split,
    tried,
    with_id,
    with_rules,
)
from toolmem.errors import LiftProposed, RequestError

if TYPE_CHECKING:
    from toolmem.light_models import RuleStatus
    from toolmem.models import ToolMemoryRule
    from toolmem.operations.rule_replays import ReplayedCall, ReplayedRule
    from toolmem.rules.rule_store import RuleStore

_INPUT = 100  # characters of a call's input
_VERBS = {"deny": "denied", "ask": "asked about"}


def review(
    overrides: Overrides = None, workspace: Workspace = "default", config: Config = None, as_json: AsJson = False
) -> None:
    """Show rules that wait for you, were withdrawn, superseded or have expired, and what each would have stopped.

    A rule is held against the newest 5,000 logged calls that ran. Then `toolmem rules approve ID`, `reject ID`,
    `restore ID`, or `add TOOL RULE --id ID` to change one.

    toolmem rules review
    """
    from toolmem.operations.rule_replays import replay_rules

    found = asked(replay_rules, {"workspace_id": workspace}, config, overrides, reads=True)
    if as_json:
        print_json([each.model_dump(mode="json") for each in found])
        return
    for each in found:
        tell(_in_words(each) + "\n")
    if not found:
        say(f"workspace {workspace!r} has no rule that waits, was withdrawn, superseded or has expired")


def approve(ids: Ids, workspace: Workspace = "default", config: Config = None) -> None:
    """Let rules hold that were proposed, or that were rejected, and show what they would have stopped.

    Exit code 1 where one is not found.

    toolmem rules approve 4e2cc2ca
    """
    _decide(ids, workspace, config, "active", "approved")


def reject(ids: Ids, workspace: Workspace = "default", config: Config = None) -> None:
    """Let rules hold no longer; they are kept, and no agent brings them back. Exit code 1 where one is not found.

    toolmem rules reject 4e2cc2ca
    """
    _decide(ids, workspace, config, "withdrawn", "rejected")


def restore(ids: Ids, workspace: Workspace = "default", config: Config = None) -> None:
    """Let rules hold again that were withdrawn or superseded. Exit code 1 where one is not found.

    toolmem rules restore 4e2cc2ca
    """
    _decide(ids, workspace, config, "active", "restored")


def _decide(ids: list[str], workspace: str, config: Config, status: RuleStatus, told: str) -> None:
    from toolmem.cli.terminal import as_its_user

    words, overrides = split(ids)
    rules, _ = with_rules(lambda store: known_rules(store, []), workspace, config, overrides)
    found = [with_id(rules, word) for word in words]  # all of them, before anything is changed
    meant = [rule for rule in found if rule is not None]
    _require_restorable(meant, told)
    if status == "active" and meant:
        from toolmem.operations.rule_replays import replay_rules

        given = {"ids": [rule.id for rule in meant], "workspace_id": workspace}
        for each in asked(replay_rules, given, config, overrides):
            say(_in_words(each))

    proposed: list[LiftProposed] = []

    async def work(store: RuleStore) -> list[ToolMemoryRule | None]:
        changes = [(rule, rule.model_copy(update={"status": status})) for rule in meant]
        own = await as_its_user(store, changes)
        return [await tried(own.set_status(rule.id, status, rule.tool_name), proposed) for rule in meant]

    for rule in with_rules(work, workspace, config, overrides):
        if rule is not None:
            say(f"{told} {rule.id} of {rule.tool_name}: {rule.rule}")
            _tell_expired(rule, status)
    exit_where_proposed(proposed)
    exit_where_missing(words, found, workspace)


def _require_restorable(rules: list[ToolMemoryRule], told: str) -> None:
    waiting = next((rule for rule in rules if told == "restored" and rule.status == "proposed"), None)
    if waiting is not None:
        raise RequestError(f"id: {waiting.id} was never decided on; `toolmem rules approve` lets it hold", field="id")


def _tell_expired(rule: ToolMemoryRule, status: RuleStatus) -> None:
    if status == "active" and rule.expires_at is not None:
        say(f"it expires at {rule.expires_at.isoformat(timespec='seconds')}; `rules add --id` gives a later time")


# ---------------------------------------------------------------- showing


def _in_words(replayed: ReplayedRule) -> str:
    from toolmem.readers.plain_text import plain
    from toolmem.rules.section import tool_to_type

    rule = replayed.rule
    said = f", said {rule.said.time:%Y-%m-%d %H:%M} UTC" if rule.said is not None and rule.said.time else ""
    status = rule.status if rule.status != "active" or rule.expires_at is None else "active, expires"
    lines = [
        f"{rule.id[:8]}  {plain(tool_to_type(rule.tool_name), 200)}  [{rule.priority}] {status}, by {rule.by}{said}",
        f"  {plain(rule.rule, 2000)}",
    ]
    if rule.said is not None and rule.said.sentence and rule.said.sentence != rule.rule:
        lines.append(f"  from the sentence: {plain(rule.said.sentence, 2000)}")
    if rule.superseded_by:
        lines.append(f"  superseded by {rule.superseded_by[:8]}")
    condition = f": {plain(replayed.condition, 500)}" if replayed.condition else ""
    lines.append(f"  {'checked' if rule.checked else 'only reminds'}{condition}")
    return "\n".join([*lines, *(_stopped(replayed) if rule.checked else [])])


def _stopped(replayed: ReplayedRule) -> list[str]:
    verb = _VERBS[replayed.rule.effect]
    total = f"of {counted(replayed.calls, 'logged call')} it would have {verb} {replayed.stopped:,}"
    worked = f", {replayed.worked:,} of which worked" if replayed.stopped else ""
    more = replayed.stopped - len(replayed.examples)
    told = [f"  {total}{worked}", *map(_call, replayed.examples)]
    return [*told, f"    and {counted(more, 'older call')}"] if more else told


def _call(call: ReplayedCall) -> str:
    from toolmem.readers.plain_text import name_shown, plain

    ended = {True: "failed", False: "worked", None: "ended unknown"}[call.failed]
    given = call.input if isinstance(call.input, str) else json.dumps(call.input, ensure_ascii=False)
    return f"    {call.create_time:%Y-%m-%d %H:%M}  {name_shown(call.tool_name)} {plain(given, _INPUT)}: {ended}"
