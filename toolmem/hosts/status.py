"""What hooks did so far, as a table's figures and as one line for an agent's status line."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from toolmem.config.environment import guard_switched_off, unknown_guard_switch
from toolmem.errors import ToolMemError
from toolmem.hosts.event_stores import nobody_can_say, project_store, users_store
from toolmem.hosts.gone_stores import gone, remedy_of, told_of
from toolmem.hosts.receipts import Install, Receipts
from toolmem.hosts.settings_files import HookPlace
from toolmem.hosts.state_trouble import state_trouble
from toolmem.hosts.stores_here import option, stands, stores_here
from toolmem.light_models import ToolMemoryRule

_LONGEST = 1_000_000  # characters of what an agent tells its status line
_VERBS = {"advise": "advised", "ask": "asked", "deny": "stopped"}


def figures(place: HookPlace) -> dict[str, Any]:
    """Installs, stores, active rules, and how calls were answered."""
    receipts = Receipts()
    try:
        known = receipts.installs(place.host.name)
        counts = receipts.counts(host=place.host.name)
        tokens = receipts.tokens(host=place.host.name)
    finally:
        receipts.close()
    stores = _stores(place.project, place.home, known)
    return {
        "agent": place.host.name,
        "installs": [_install(each) for each in known],
        "stores": [str(each) for each in stores],
        "rules": sum(map(active_rules, stores)),
        "gone": [f"{told_of(each)}; {remedy_of(each)}" for each in gone()],
        "trouble": state_trouble(receipts),
        "calls": sum(count for (event, _), count in counts.items() if event == "before_call"),
        **_answered(counts),
        "context": {event: {"times": times, "tokens": count} for event, (times, count) in tokens.items()},
    }


def line_of(told: Mapping[str, Any], agent: str, environment: Mapping[str, str]) -> str:
    """Such as "12 rules · 3 advised · 1 stopped", of the session that is told, or of all."""
    session = _text(told, "session_id")
    receipts = Receipts(busy_timeout=0.05)
    try:
        counts = receipts.counts(session=session, host=agent)
        known = receipts.installs(agent)
        _, heard = receipts.last_prompt(session)
        here = {each.rule for each in receipts.demands(session) if not each.effect}
    finally:
        receipts.close()
    workspace = told.get("workspace")
    project = _text(workspace, "project_dir") if isinstance(workspace, Mapping) else ""
    folder = Path(project or _text(told, "cwd") or os.getcwd())
    bind = [rule for path in _stores(folder, Path.home(), known) for rule in _rules_of(path)]
    rules = len(bind)
    answered = _answered(counts)
    parts = [f"{rules:,} rule{'' if rules == 1 else 's'}"]
    parts += [f"{count:,} {verb}" for verb, count in answered.items() if count or verb != "asked"]
    if session:
        parts += _heard([rule for rule in bind if _is_of(rule, session)], here, heard)
    if guard_switched_off(environment):
        parts.append("guard off")
    elif unknown_guard_switch(environment):
        parts.append("guard on (TOOLMEM_GUARD is no switch)")
    return " · ".join(parts)


def read_status_input(stream: TextIO) -> Mapping[str, Any]:
    """What an agent hands to its status line; nothing where nobody does, or it cannot be read."""
    with suppress(ValueError, OSError, RecursionError):
        told = json.loads(stream.read(_LONGEST)) if not stream.isatty() else {}
        return told if isinstance(told, Mapping) else {}
    return {}


def _heard(rules: Collection[ToolMemoryRule], here: Collection[str], newest: Any) -> list[str]:
    """What the user demanded. `here`: for the session alone; `newest`: what was noted of their last message."""
    kept = {*here, *(rule.rule for rule in rules)}
    told = newest if isinstance(newest, Mapping) else {}
    is_lost = told.get("lost") is True and told.get("turn") not in {rule.said.turn for rule in rules if rule.said}
    return [*([f"kept {len(kept):,}"] if kept else []), *(["heard, not kept"] if is_lost else [])]


def _is_of(rule: ToolMemoryRule, session: str) -> bool:
    return rule.is_users and rule.said is not None and rule.said.session == session


def active_rules(path: Path) -> int:
    """How many rules of a store bind now; 0 where it cannot be read."""
    return len(_rules_of(path))


def _rules_of(path: Path) -> list[ToolMemoryRule]:
    from toolmem.engine.store_file import StoreFile
    from toolmem.readers.weight import at_once
    from toolmem.rules.rule_store import RuleStore

    with suppress(ToolMemError, OSError), StoreFile(path) as store:
        return at_once(RuleStore(store.protocol, "default", clock=store.clock).all_rules())[0]
    return []


def _answered(counts: Mapping[tuple[str, str], int]) -> dict[str, int]:
    return {verb: counts.get(("before_call", action), 0) for action, verb in _VERBS.items()}


def _stores(project: Path, home: Path, known: Sequence[Install]) -> list[Path]:
    """Those that bind here and are there, as hooks find them."""
    users = users_store(str(home))
    bind = stores_here(project, home, known) or [
        *([found] if (found := project_store(str(project), str(home))) is not None else []),
        *([users] if users is not None else []),
    ]
    named = {os.path.realpath(path) for each in known if (path := option(each.command, "--store"))}
    return [each for each in bind if each.is_file() and (str(each) in named or _is_trusted(each))]


def _is_trusted(path: Path) -> bool:
    from toolmem.engine.store_file import StoreFile

    with suppress(ToolMemError, OSError), StoreFile(path) as store:
        return store.is_known() or nobody_can_say(path)
    return False


def _install(install: Install) -> dict[str, Any]:
    named = stands(install)
    return {
        "scope": install.scope,
        "place": install.place,
        "at": datetime.fromtimestamp(install.at, UTC).isoformat(timespec="seconds"),
        "command": list(install.command),
        "files": list(install.files),
        "store": option(install.command, "--store"),
        "state": "in place" if named else "taken out by hand",
    }


def _text(value: Mapping[str, Any], name: str) -> str:
    found = value.get(name)
    return found if isinstance(found, str) else ""
