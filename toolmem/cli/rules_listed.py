"""How rules are shown to a person: in groups by what they do and where, what is new first; and one rule in words."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from toolmem.cli.console import print_table, tell
from toolmem.cli.last_look import last_look, note_look

if TYPE_CHECKING:
    from toolmem.app import ToolMemApp
    from toolmem.light_models import Said
    from toolmem.models import ToolMemoryRule

_GROUPS = {
    "deny": "Checked {where}: calls against these are stopped",
    "ask": "Asked {where}: you are asked before such calls",
    "remind": "Reminders {where}: no call is held against these",
}
_STYLES = {"critical": "bold red", "high": "yellow", "normal": "default"}
_EFFECTS = {"deny": "stops", "ask": "asks before", "remind": "reminds"}
_EXAMPLE = 500  # characters of an example call
_TOLD = {"rule", "said", "when", "effect"}  # what is shown in words
_ONLY_WHERE_SET = {"unchecked", "expires_at", "superseded_by"}


class RulesAt(NamedTuple):
    """The rules of one store."""

    where: str  # here, everywhere
    path: str  # of the file; "" of another store
    rules: Sequence[ToolMemoryRule]

    def active(self) -> RulesAt:
        return self._replace(rules=[rule for rule in self.rules if rule.status == "active"])


# ---------------------------------------------------------------- the user's own store


def where_of(app: ToolMemApp) -> str:
    """Where the rules of the configured store bind: `everywhere` of the user's own, else `here`."""
    users = _users_path()
    path = app.services.places.file_of()
    return "everywhere" if users and path and os.path.realpath(os.path.expanduser(path)) == users else "here"


def rules_everywhere(app: ToolMemApp, workspace: str) -> RulesAt | None:
    """Those of the user's own store, which bind beside the configured one; None where that is the one, somebody named
    it, or there is no other. Makes nothing. Raises StoreError.
    """
    users = _users_path()
    if not users or where_of(app) == "everywhere" or app.services.places.is_named():
        return None
    from toolmem.hosts.event_stores import is_known, open_stores
    from toolmem.readers.weight import at_once
    from toolmem.rules.rule_store import RuleStore

    if not is_known(users):
        return None
    stores = open_stores("")
    try:
        if stores.main is None:
            return None
        rules = RuleStore(stores.main.protocol, workspace, clock=stores.main.clock)
        return RulesAt("everywhere", users, at_once(rules.all_rules(inactive=True))[0])
    finally:
        stores.close()


def _users_path() -> str:
    from toolmem.hosts.event_stores import users_store

    users = users_store()
    return os.path.realpath(users) if users is not None else ""


# ---------------------------------------------------------------- a list


def print_listed(places: Sequence[RulesAt], workspace: str, *, status: bool, looked: datetime | None) -> None:
    """Tables by what becomes of calls and where. `looked`: the time of this look where it counts as one."""
    for place in places:
        since = last_look(place.path, workspace) if place.path else datetime.max.replace(tzinfo=UTC)
        news = {rule.id: _news(rule, since) for rule in place.rules}
        notes = _how_to_change(place) if len(places) > 1 else ()
        for effect, title in _GROUPS.items():
            group = [rule for rule in place.rules if (rule.effect if rule.checked else "remind") == effect]
            group.sort(key=lambda rule: not news[rule.id])  # what is new first, else as they came
            if group:
                heading = f"{title.format(where=place.where)} ({len(group)})"
                print_rules(group, status=status, title=heading, news=news, notes=notes)
        if looked is not None and place.path and place.rules and not _agent_looks():
            note_look(place.path, workspace, looked)


def _agent_looks() -> bool:
    """What an agent looked at is still new to its user."""
    from toolmem.cli.terminal import is_below_an_agent

    return is_below_an_agent()


def _how_to_change(place: RulesAt) -> Sequence[str]:
    return (f"change one with vector_store.default.params.path={place.path}",) if place.where == "everywhere" else ()


def _news(rule: ToolMemoryRule, since: datetime | None) -> str:
    if since is None or rule.created_at > since:
        return "new"
    return "changed" if rule.updated_at > since else ""


def print_rules(
    rules: Sequence[ToolMemoryRule],
    *,
    status: bool = False,
    title: str = "Rules",
    news: Mapping[str, str] | None = None,
    notes: Sequence[str] = (),
) -> None:
    """One table. `status`: with a column of it; `news`: what is new of rules, by their ids."""
    from toolmem.rules.section import tool_to_type

    told = [news[rule.id] for rule in rules] if news else []
    rows = [
        (
            *([told[at]] if any(told) else []),
            *(tool_to_type(rule.tool_name), rule.priority, rule.effect),
            *([rule.status] if status else []),
            *(rule.rule, rule.by, rule.source, ", ".join(rule.tags), rule.id[:8]),
            rule.updated_at.strftime("%Y-%m-%d %H:%M"),
        )
        for at, rule in enumerate(rules)
    ]
    columns = [*(["new"] if any(told) else []), "tool", "priority", "effect", *(["status"] if status else [])]
    columns += ["rule", "by", "source", "tags", "id", "updated (UTC)"]
    print_table(title, columns, rows, notes=notes, style=priority_style)


def priority_style(column: str, cell: str) -> str:
    """How a terminal shows a cell."""
    return _STYLES.get(cell, "") if column == "priority" else ""


# ---------------------------------------------------------------- one rule


def print_rule(rule: ToolMemoryRule) -> None:
    """What it stops and lets through in words, who said and who noted it, then its other fields."""
    told = [("rule", rule.rule), *_checks(rule), *_origin(rule.said)]
    told += [
        (name, _field(value))
        for name, value in rule.model_dump().items()
        if name not in _TOLD and (name not in _ONLY_WHERE_SET or value)
    ]
    told += [("condition", json.dumps(rule.when, ensure_ascii=False))] if rule.checked else []
    width = max(len(name) for name, _ in told) + 2
    tell("\n".join(f"{name:<{width}}{value}" for name, value in told) + "\n")


def _checks(rule: ToolMemoryRule) -> list[tuple[str, str]]:
    from toolmem.guard.call_conditions import of_alternatives
    from toolmem.guard.condition_words import in_words

    verb = _EFFECTS[rule.effect]
    if not rule.checked or rule.when is None:
        return [("effect", "it only reminds: no call is held against it")]
    if not of_alternatives(rule.when):
        through = "" if rule.when is True else "every other call"
        return [(verb, in_words(rule.when)), *([("lets through", through)] if through else [])]
    told = [*_alternatives(rule.when, verb), *_examples(rule.when, "stops", f"{verb}, e.g.")]
    return [*told, *_examples(rule.when, "passes", "passes, e.g.")]


def _alternatives(when: Any, verb: str) -> list[tuple[str, str]]:
    from toolmem.errors import RequestError
    from toolmem.guard.alternatives import read_alternatives
    from toolmem.guard.alternatives_in_words import let_through_in_words, stopped_in_words

    try:
        conditions = read_alternatives(when)
    except RequestError as error:  # of a later version, or torn
        return [(verb, f"calls that cannot be told here: {error}")]
    through = let_through_in_words(conditions)
    others = f"{through}; and every other call" if through else "every other call"
    return [(verb, stopped_in_words(conditions)), ("lets through", others)]


def _examples(when: Any, name: str, label: str) -> list[tuple[str, str]]:
    calls = when.get(name, ()) if isinstance(when, Mapping) else ()
    return [(label, _call(each)) for each in calls if isinstance(each, Mapping)]


def _call(example: Mapping[str, Any]) -> str:
    given = example.get("arguments")
    command = given.get("command") if isinstance(given, Mapping) else None
    text = command if isinstance(command, str) else json.dumps(given, ensure_ascii=False, default=str)
    return f"{example.get('tool', '')}: {text}"[:_EXAMPLE]


def _origin(said: Said | None) -> list[tuple[str, str]]:
    """Who said it, where and when, and who wrote it down."""
    if said is None:
        return []
    at = f", {said.time:%Y-%m-%d %H:%M} UTC" if said.time else ""
    where = f", in session {said.session}" if said.session else ""
    turn = f", message {said.turn}" if said.turn is not None else ""
    told = [("said by", f"{said.by}{at}{where}{turn}")]
    told += [("in the words", said.sentence)] if said.sentence else []
    told += [("noted by", said.noted_by)] if said.noted_by else []
    return told + ([("understood", f"as the agent understood it: {said.understood}")] if said.understood else [])


def _field(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(value)
    return value.isoformat(timespec="seconds") if isinstance(value, datetime) else str(value)
