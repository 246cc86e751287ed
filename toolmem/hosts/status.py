"""What hooks did so far, as a table's figures and as one line for an agent's status line."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, TextIO

from toolmem.errors import ToolMemError
from toolmem.hosts.event_stores import project_store, users_store
from toolmem.hosts.receipts import Install, Receipts
from toolmem.hosts.rule_snapshots import gone, remedy_of, told_of
from toolmem.hosts.settings_files import HookPlace

_LONGEST = 1_000_000  # characters of what an agent tells its status line
_VERBS = {"advise": "advised", "ask": "asked", "deny": "stopped"}


def figures(place: HookPlace) -> dict[str, Any]:
    """Installs, stores, active rules, and how calls were answered."""
    receipts = Receipts()
    try:
        known = receipts.installs(place.host.name)
        counts = receipts.counts(host=place.host.name)
    finally:
        receipts.close()
    stores = _stores(place.project, place.home, known)
    return {
        "agent": place.host.name,
        "installs": [_install(each) for each in known],
        "stores": [str(each) for each in stores],
        "rules": sum(map(active_rules, stores)),
        "gone": [f"{told_of(each)}; {remedy_of(each)}" for each in gone()],
        "calls": sum(count for (event, _), count in counts.items() if event == "before_call"),
        **_answered(counts),
    }


def line_of(told: Mapping[str, Any], agent: str, environment: Mapping[str, str]) -> str:
    """Such as "12 rules · 3 advised · 1 stopped", of the session that is told, or of all."""
    receipts = Receipts(busy_timeout=0.05)
    try:
        counts = receipts.counts(session=_text(told, "session_id"), host=agent)
        known = receipts.installs(agent)
    finally:
        receipts.close()
    workspace = told.get("workspace")
    project = _text(workspace, "project_dir") if isinstance(workspace, Mapping) else ""
    folder = Path(project or _text(told, "cwd") or os.getcwd())
    rules = sum(map(active_rules, _stores(folder, Path.home(), known)))
    answered = _answered(counts)
    parts = [f"{rules:,} rule{'' if rules == 1 else 's'}"]
    parts += [f"{count:,} {verb}" for verb, count in answered.items() if count or verb != "asked"]
    off = environment.get("TOOLMEM_GUARD", "").strip().lower() == "off"
    return " · ".join([*parts, *(["guard off"] if off else [])])


def read_status_input(stream: TextIO) -> Mapping[str, Any]:
    """What an agent hands to its status line; nothing where nobody does, or it cannot be read."""
    with suppress(ValueError, OSError, RecursionError):
        told = json.loads(stream.read(_LONGEST)) if not stream.isatty() else {}
        return told if isinstance(told, Mapping) else {}
    return {}


def active_rules(path: Path) -> int:
    """How many rules of a store bind now; 0 where it cannot be read."""
    from toolmem.engine.store_file import StoreFile
    from toolmem.readers.weight import at_once
    from toolmem.rules.rule_store import RuleStore

    with suppress(ToolMemError, OSError), StoreFile(path) as store:
        return len(at_once(RuleStore(store.protocol, "default", clock=store.clock).all_rules())[0])
    return 0


def _answered(counts: Mapping[tuple[str, str], int]) -> dict[str, int]:
    return {verb: counts.get(("before_call", action), 0) for action, verb in _VERBS.items()}


def _stores(project: Path, home: Path, known: Iterable[Install]) -> list[Path]:
    """Those that bind here: what installs for this folder name, else the project's where it is trusted, and the user's.

    As hooks find them, without opening one that is not there.
    """
    lines = {each.place: each.command for each in known}
    named = _option(lines.get(str(project), lines.get("", ())), "--store")
    found, users = project_store(str(project), str(home)), users_store(str(home))
    first = Path(named) if named else found if found is not None and _is_trusted(found) else None
    return [each for each in dict.fromkeys((first, users)) if each is not None and each.is_file()]


def _is_trusted(path: Path) -> bool:
    from toolmem.engine.store_file import StoreFile

    with suppress(ToolMemError, OSError), StoreFile(path) as store:
        return store.is_known()
    return False


def _install(install: Install) -> dict[str, Any]:
    named = all(map(_names_toolmem, install.files))
    return {
        "scope": install.scope,
        "place": install.place,
        "at": datetime.fromtimestamp(install.at, UTC).isoformat(timespec="seconds"),
        "command": list(install.command),
        "files": list(install.files),
        "store": _option(install.command, "--store"),
        "state": "in place" if named else "taken out by hand",
    }


def _names_toolmem(path: str) -> bool:
    try:
        return b"toolmem" in Path(path).read_bytes()
    except OSError:
        return False


def _option(command: Iterable[str], name: str) -> str:
    return next((value for key, value in pairwise(command) if key == name), "")


def _text(value: Mapping[str, Any], name: str) -> str:
    found = value.get(name)
    return found if isinstance(found, str) else ""
