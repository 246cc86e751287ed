"""What an ended session left to do: calls that no hook was told of are kept, then calls are judged and summarized.

    python -P -m toolmem.hosts.catching_up

Done apart from the agent, by one process at a time, over every session that has ended. Again, it changes nothing; one
that was killed is taken up by the next. The judge, the writer and the embedder are the offline ones, which cost
nothing, unless the installed line names a configuration (`--config`).
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolmem.hosts.receipts import Receipts, SessionNotes
from toolmem.hosts.unseen_calls import unseen
from toolmem.late import late_logger
from toolmem.late_dataclasses import dataclass, field

if TYPE_CHECKING:
    from toolmem.hosts.host import Host, RecordedCall

logger = late_logger("toolmem.hosts")

EVENT = "caught_up"  # of its receipts, beside those of an agent's events
_OLDEST = 7 * 86_400  # seconds since a session ended, after which what is missing stays so
_NEVER_ENDED = 86_400  # seconds after which a session whose end nobody told is taken for ended
_RETRY = 3_600
_MOST_SESSIONS = 200
_LARGEST = 500_000_000  # bytes of a recording
_OFFLINE = ("llm.default.backend=offline", "embedding_model.default.backend=multilingual")


@dataclass(slots=True)
class CaughtUp:
    """What was done."""

    sessions: int = 0
    missed: int = 0  # calls that were kept now
    judged: list[str] = field(default_factory=list)  # stores
    problems: list[str] = field(default_factory=list)


def left_over(receipts: Receipts) -> list[SessionNotes]:
    """Sessions that have ended and that nobody has caught up with."""
    return [each for each in receipts.sessions(most=_MOST_SESSIONS) if _is_due(receipts, each)]


def catch_up() -> CaughtUp | None:
    """Catch up with every session that is left over; None where another process does."""
    with _alone() as is_alone:
        if not is_alone:
            return None
        receipts, done, tried = Receipts(busy_timeout=5.0), CaughtUp(), set[tuple[str, str]]()
        try:
            while rows := [each for each in left_over(receipts) if (each.session, _key(each)) not in tried]:
                tried.update((each.session, _key(each)) for each in rows)
                _take_up(receipts, rows, done)
        finally:
            receipts.close()
    return done


def main() -> None:
    """Nobody waits for it, and nobody reads what it says: trouble goes into `hooks.log`."""
    from toolmem.hosts.hook_log import take_warnings, write_line

    take_warnings("catching-up")
    with suppress(OSError, AttributeError):
        os.nice(10)
    try:
        done = catch_up()
    except Exception as error:
        with suppress(OSError):
            write_line(f"catching-up {type(error).__name__}: {error}")
        sys.exit(1)
    for problem in done.problems if done else ():
        with suppress(OSError):
            write_line(f"catching-up {problem}")


# ---------------------------------------------------------------- which sessions


def _is_due(receipts: Receipts, notes: SessionNotes) -> bool:
    ended, now = _ended(notes), time.time()
    if ended is None or ended < now - _OLDEST or receipts.note_of(notes.session, EVENT, _key(notes)) is not None:
        return False
    tried = [each for each in receipts.of_session(notes.session) if (each.event, each.key) == (EVENT, _key(notes))]
    return not any(each.error and each.began > now - _RETRY for each in tried)


def _ended(notes: SessionNotes) -> float | None:
    if notes.ended is None and notes.began < time.time() - _NEVER_ENDED:
        return notes.began
    return notes.ended


def _key(notes: SessionNotes) -> str:
    """A session that goes on after its end ends anew."""
    return f"{_ended(notes):.6f}"


# ---------------------------------------------------------------- a session's calls


def _take_up(receipts: Receipts, rows: list[SessionNotes], done: CaughtUp) -> None:
    """Sessions by the store they belong to: it is judged once for all of them."""
    stores: dict[tuple[str, str], list[tuple[SessionNotes, int]]] = {}
    for notes in rows:
        receipts.begin(notes.host, notes.session, EVENT, _key(notes), within=0.0)
        try:
            store, config, missed = _missed(receipts, notes)
        except Exception as error:
            _failed(receipts, notes, error, done)
            continue
        done.missed += missed
        stores.setdefault((store, config), []).append((notes, missed))
    for (store, config), sessions in stores.items():
        try:
            _judge(store, config)
        except Exception as error:
            for notes, _ in sessions:
                _failed(receipts, notes, error, done)
            continue
        done.judged.append(store)
        for notes, missed in sessions:
            receipts.end(notes.session, EVENT, _key(notes), action=EVENT, note={"missed": missed})
            done.sessions += 1


def _failed(receipts: Receipts, notes: SessionNotes, error: Exception, done: CaughtUp) -> None:
    done.problems.append(f"session {notes.session}: {type(error).__name__}: {error}")
    receipts.end(notes.session, EVENT, _key(notes), error=type(error).__name__)


def _missed(receipts: Receipts, notes: SessionNotes) -> tuple[str, str, int]:
    """The store of a session, its configuration, and how many calls are kept now that no hook was told the end of."""
    from toolmem.engine import after
    from toolmem.hosts.event_stores import open_stores
    from toolmem.hosts.host import host_of
    from toolmem.hosts.note_command import is_note

    host = host_of(notes.host)
    folder = notes.project or notes.cwd
    command = _installed(receipts, notes)
    stores = open_stores(folder, command.get("--store", ""))
    try:
        if stores.main is None:
            raise OSError(stores.trouble or "no store can be opened")
        kept = 0
        for call in unseen(host, notes.session, _calls(host, notes, folder), receipts, ended=True):
            if call.denied or is_note(host, call.tool, call.arguments):
                continue
            decided = receipts.decided(notes.session, call.call_id)
            decision = str(decided["id"]) if isinstance(decided, Mapping) and decided.get("id") else None
            kept += after(stores.main, _record(host, notes, call), decision=decision).stored
        return str(stores.main.location), command.get("--config", ""), kept
    finally:
        stores.close()


def _calls(host: Host, notes: SessionNotes, folder: str) -> Iterator[RecordedCall]:
    paths = [Path(notes.transcript)] if notes.transcript else []
    told = host.transcripts(Path(folder), Path.home(), os.environ) if folder else ()
    paths += [path for session, path in told if session == notes.session]
    for path in dict.fromkeys(paths):
        with suppress(FileNotFoundError):
            if path.is_file() and path.stat().st_size <= _LARGEST:
                with path.open(encoding="utf-8", errors="replace") as lines:
                    yield from host.calls_of(lines)


def _record(host: Host, notes: SessionNotes, call: RecordedCall) -> dict[str, Any]:
    from toolmem.hosts.kept_records import kept_record

    told = (call.call_id, call.tool, call.arguments, call.output, call.failed, call.seconds)
    return {**kept_record(host.name, notes.session, *told, told_by="recording"), "create_time": call.at or None}


def _installed(receipts: Receipts, notes: SessionNotes) -> dict[str, str]:
    """The options of the line that was installed for the session's project, else for the user."""
    lines = {each.place: each.command for each in receipts.installs(notes.host)}
    places = [each for each in (notes.project, notes.cwd) if each]
    above = (str(folder) for place in places for folder in (Path(place), *Path(place).parents))
    command = next((lines[each] for each in (*above, "") if each in lines), ())
    return {name: value for name, value in pairwise(command) if name in ("--store", "--config")}


# ---------------------------------------------------------------- judging


def _judge(store: str, config: str) -> None:
    """Every call of the store that waits for it, then the guidance of tools with new calls, and its vectors."""
    import asyncio

    asyncio.run(_judged(store, config))


async def _judged(store: str, config: str) -> None:
    from toolmem.app import ToolMemApp

    path = store.replace("'", "''")
    given = ["vector_store.default.backend=sqlite", f"vector_store.default.params.path='{path}'"]
    async with ToolMemApp(config or None, [*given, *(() if config else _OFFLINE)]) as app:
        await app.run_flow("retry_evaluations", workspace_id="default")
        names = [each.tool_name for each in await (await app.services.store_named("default")).records("default", None)]
        if names:
            await app.run_flow("summary_tool_memory", workspace_id="default", tool_names=names)


# ---------------------------------------------------------------- one process at a time


@contextmanager
def _alone() -> Iterator[bool]:
    """Whether no other process catches up; the lock goes with the process."""
    from toolmem.config.own_folder import make_folder, state_folder

    folder = state_folder()
    make_folder(folder)
    file = os.open(folder / "catch-up.lock", os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
    try:
        yield _locked(file)
    finally:
        os.close(file)


def _locked(file: int) -> bool:
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


if __name__ == "__main__":
    main()
