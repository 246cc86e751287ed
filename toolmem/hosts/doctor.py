"""Do the hooks of an agent work? Looked at from outside: its files, its recordings, the store, a trial of its line."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Literal

from toolmem.config.environment import guard_switched_off, unknown_guard_switch
from toolmem.errors import RequestError
from toolmem.hosts.gone_stores import gone, remedy_of, told_of
from toolmem.hosts.host import Host, RecordedCall
from toolmem.hosts.installed_lines import (
    InstalledLine,
    installed_lines,
    option_of,
    other_installs,
    places_beside,
    try_line,
    was_installed,
)
from toolmem.hosts.installing import passing_interpreter
from toolmem.hosts.receipts import Install, Receipts
from toolmem.hosts.settings_files import HookPlace, settings_value
from toolmem.hosts.state_trouble import state_trouble
from toolmem.hosts.status import active_rules
from toolmem.hosts.unseen_calls import unseen
from toolmem.readers.plain_text import counted
from toolmem.store.journal_changes import journal_here

_SESSIONS = 3  # whose recordings are compared
_NAMED = 5  # missing calls
_LARGEST = 200_000_000  # bytes of a recording


@dataclass(frozen=True, slots=True)
class HookFinding:
    """What was looked at and what was seen. `remedy`: what to do about it."""

    level: Literal["ok", "note", "wrong"]
    check: str
    seen: str
    remedy: str = ""


def examine(place: HookPlace) -> list[HookFinding]:
    """Every finding on an agent's hooks in this place."""
    install = _command_of_install(place)
    try:
        lines = installed_lines(place)
    except RequestError as error:
        return [HookFinding("wrong", "settings", str(error), "correct the file; the agent cannot read it either")]
    receipts = Receipts()
    if not lines and not _own_files_there(place):
        where = place.settings or "its files"
        beside = places_beside(place, receipts.installs(place.host.name))
        receipts.close()
        if not beside:
            return [HookFinding("wrong", "settings", f"{where}: no hook of toolmem stands there", install)]
        there = f"{beside[0].settings or 'other files'} ({option_of(beside[0])})"
        seen = f"{where}: no hook of toolmem stands there; those of {there} act here"
        return [HookFinding("note", "installs", seen), *examine(beside[0])]
    try:
        found = [
            *_settings(place, lines, receipts.installs(place.host.name), install),
            *_own_files(place, lines, receipts.installs(place.host.name), install),
            *(finding for line in lines for finding in _line(place, line, receipts, install)),
            *_environment(place),
            *_stores(place, lines),
            *_duplicates(place),
            *_recordings(place, lines, receipts),
            *(HookFinding("wrong", "store", told_of(each), remedy_of(each)) for each in gone()),
            *_journal(),
        ]
        if closed := state_trouble(receipts):
            found.append(HookFinding("wrong", "receipts", closed, f"chmod -R u+rwX {receipts.path.parent}"))
        elif receipts.trouble:
            seen = f"{receipts.path}: {receipts.trouble}"
            found.append(HookFinding("wrong", "receipts", seen, "move the file away; it is remade"))
    finally:
        receipts.close()
    return found


def _journal() -> Iterator[HookFinding]:
    journal = journal_here()
    if not journal.is_whole():
        seen = f"{journal.path}: an entry does not follow from the one before: another hand changed it"
        remedy = "compare `toolmem rules list --all` with what you said; move the file away, and it is begun anew"
        yield HookFinding("wrong", "journal", seen, remedy)


def _command_of_install(place: HookPlace) -> str:
    scope = " --user" if place.scope == "user" else f" --project {place.project}"
    return f"toolmem hook install {place.host.name}{scope}"


def _own_files_there(place: HookPlace) -> bool:
    return any(path.exists() for path in place.own_files(["toolmem-hook", place.host.name]))


# ---------------------------------------------------------------- what stands in the files


def _settings(
    place: HookPlace, lines: list[InstalledLine], known: list[Install], install: str
) -> Iterator[HookFinding]:
    path = place.settings
    if path is None or not path.exists():
        return
    value = settings_value(path.read_bytes(), path, comments=place.host.comments)
    here = [line for line in lines if line.path == path]
    written = [*(line.words for line in here), *(list(each.command) for each in known)]
    if any(place.host.add_hooks(place.host.remove_hooks(value), words) == value for words in written):
        yield HookFinding("ok", "settings", f"{path}: {here[0].shown}")
    else:
        seen = f"{path}: not every event has its hook, or they are not as this version writes them"
        yield HookFinding("wrong", "settings", seen, install)
    if value.get("disableAllHooks") is True:
        seen = f"{path}: disableAllHooks is true, so no hook runs"
        yield HookFinding("wrong", "settings", seen, "set it to false, or take it out")
    held = value.get("env")
    given = {name: str(each) for name, each in held.items()} if isinstance(held, dict) else {}
    if guard_switched_off(given):
        seen = f"{path}: env.TOOLMEM_GUARD switches the guard off"
        yield HookFinding("wrong", "guard", seen, "take it out of the file")
    elif told := unknown_guard_switch(given):
        yield HookFinding("note", "guard", f"{path}: {told}", "take it out of the file")


def _own_files(
    place: HookPlace, lines: list[InstalledLine], known: list[Install], install: str
) -> Iterator[HookFinding]:
    here = [list(each.command) for each in known if (each.scope, each.place) == (place.scope, place.where)]
    written = [*here[-1:], *(line.words for line in lines), ["toolmem-hook", place.host.name]][0]
    for path, text in place.own_files(written).items():
        if not path.exists():
            yield HookFinding("wrong", "files", f"{path} is not there", install)
        elif path.read_bytes() != text.encode():
            yield HookFinding(
                "wrong", "files", f"{path} is not as this version writes it", f"move it away, then {install}"
            )
        else:
            yield HookFinding("ok", "files", str(path))


def _environment(place: HookPlace) -> Iterator[HookFinding]:
    if guard_switched_off(place.environment):
        seen = f"TOOLMEM_GUARD={place.environment['TOOLMEM_GUARD']} is set here: an agent that is started from here is "
        yield HookFinding("wrong", "guard", f"{seen}not guarded", "unset TOOLMEM_GUARD")
    elif told := unknown_guard_switch(place.environment):
        yield HookFinding("note", "guard", told, "unset TOOLMEM_GUARD")


def _stores(place: HookPlace, lines: list[InstalledLine]) -> Iterator[HookFinding]:
    """The stores that an event in this folder would have to do with."""
    from toolmem.hosts.event_stores import open_stores

    stores = open_stores(str(place.project), next((named for line in lines if (named := line.option("--store"))), ""))
    try:
        if stores.trouble:
            yield HookFinding("wrong", "store", stores.trouble, "the message says what to do")
        if stores.untrusted:
            seen = f"{stores.untrusted} was made by somebody else: nothing of it is used"
            yield HookFinding(
                "wrong", "store", seen, f"look at it; if it is yours, `toolmem store trust {stores.untrusted}`"
            )
        for each in stores.all:
            yield HookFinding(
                "ok", "store", f"{each.location}: {counted(active_rules(Path(each.location)), 'active rule')}"
            )
    finally:
        stores.close()


def _duplicates(place: HookPlace) -> Iterator[HookFinding]:
    for path in other_installs(place):
        seen = f"{path} names toolmem too: of two hooks that are told of one event, one acts"
        yield HookFinding("note", "installs", seen, f"`toolmem hook uninstall {place.host.name}` takes one of them out")


# ---------------------------------------------------------------- what the line does


def _line(place: HookPlace, line: InstalledLine, receipts: Receipts, install: str) -> Iterator[HookFinding]:
    if not was_installed(place, line, receipts.installs(place.host.name)):
        seen = f"{line.path}: no install of yours wrote this line, so it was not tried: {line.shown}"
        yield HookFinding(
            "wrong", "line", seen, f"look at it before your agent runs it; {install} puts yours in its place"
        )
        return
    yield from _interpreter(line, install)
    yield from _trial(place, line, receipts, install)


def _interpreter(line: InstalledLine, install: str) -> Iterator[HookFinding]:
    from toolmem import __version__

    words = line.words
    program = words[0] if words else ""
    if "-m" not in words or not os.path.isabs(program):
        return
    if not os.access(program, os.X_OK):
        yield HookFinding("wrong", "interpreter", f"{program} is not there, or cannot be run", install)
        return
    if why := passing_interpreter(program):
        yield HookFinding(
            "note", "interpreter", f"{program}: {why}", "install toolmem where it stays, then install again"
        )
    flags = words[1 : words.index("-m")]
    asked = [program, *flags, "-c", "import sys, toolmem; print(sys.version.split()[0], toolmem.__version__)"]
    try:
        ran = subprocess.run(asked, capture_output=True, text=True, cwd=os.path.sep, timeout=30, check=False)
        told = ran.stdout.split() if ran.returncode == 0 else []
    except (OSError, subprocess.TimeoutExpired):
        told = []
    if len(told) != 2:
        yield HookFinding("wrong", "interpreter", f"{program} cannot import toolmem", install)
    elif told[1] != __version__:
        seen = f"{program} runs toolmem {told[1]}, this is {__version__}"
        yield HookFinding("note", "interpreter", seen, install)
    else:
        yield HookFinding("ok", "interpreter", f"{program}: Python {told[0]}, toolmem {told[1]}")


def _trial(place: HookPlace, line: InstalledLine, receipts: Receipts, install: str) -> Iterator[HookFinding]:
    """An event that was made up, through the very line that the agent starts."""
    session = f"toolmem-doctor-{os.urandom(6).hex()}"
    folder = place.project
    try:
        payload = place.host.synthetic(session, str(folder))
    except NotImplementedError:
        yield HookFinding("note", "trial", f"{place.host.title} has no event that could be tried")
        return
    tried = try_line(line, payload, folder)
    if tried.problem:
        yield HookFinding("wrong", "trial", f"{line.shown}: {tried.problem}", install)
        return
    kept = receipts.of_session(session)
    receipts.forget(session)
    if not kept:
        remedy = f"look into hooks.log beside {receipts.path}"
        yield HookFinding("wrong", "trial", "the line answered, and left no receipt", remedy)
    elif kept[0].error or kept[0].ended is None:
        why = kept[0].error or "it did not come to its end"
        yield HookFinding("wrong", "trial", f"the line answered with a failure: {why}", f"look beside {receipts.path}")
    else:
        yield HookFinding("ok", "trial", f"an event was answered in {tried.seconds:.2f} s and has its receipt")


# ---------------------------------------------------------------- what the agent recorded


def _recordings(place: HookPlace, lines: list[InstalledLine], receipts: Receipts) -> Iterator[HookFinding]:
    since = max(
        (each.at for each in receipts.installs(place.host.name) if each.place in ("", place.where)), default=0.0
    )
    since = since or max((os.path.getmtime(line.path) for line in lines), default=0.0)
    told = place.host.transcripts(place.project, place.home, place.environment)
    compared = 0
    for session, path in islice(told, _SESSIONS):
        calls = [call for call in _calls(place.host, path) if _seconds(call.at) >= since]
        if not calls:
            continue
        compared += 1
        yield _compared(place.host, session, calls, receipts)
    if not compared:
        yield HookFinding("note", "recordings", f"{place.host.title} has recorded no call here since the install")


def _compared(host: Host, session: str, calls: list[RecordedCall], receipts: Receipts) -> HookFinding:
    without = list(unseen(host, session, calls, receipts))
    missing = [call for call in without if not call.denied]
    calls = [call for call in calls if not call.denied or call not in without]
    seen = f"session {session}: {len(calls):,} calls, {len(calls) - len(missing):,} receipts"
    if not missing:
        return HookFinding("ok", "recordings", seen)
    named = ", ".join(f"{call.tool} {call.call_id}" for call in missing[:_NAMED])
    more = f", and {len(missing) - _NAMED:,} more" if len(missing) > _NAMED else ""
    remedy = "the guard saw none of them: start the agent anew, and see whether it lists the hooks (and trusts them)"
    return HookFinding("wrong", "recordings", f"{seen}, {len(missing):,} missing: {named}{more}", remedy)


def _calls(host: Host, path: Path) -> list[RecordedCall]:
    try:
        if path.stat().st_size > _LARGEST:
            return []
        with path.open(encoding="utf-8", errors="replace") as lines:
            return list(host.calls_of(lines))
    except OSError:
        return []


def _seconds(at: str) -> float:
    """Of an ISO time; now, where there is none."""
    try:
        return datetime.fromisoformat(at).timestamp()
    except ValueError:
        return time.time()
