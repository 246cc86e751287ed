"""Which files of toolmem one call goes through: what somebody reads who follows it.

    python benchmarks/files_entered.py [--json FILE]

Each is done once before, so that what is only read at a start is not counted. In the order in which they are entered,
by the thread that the flow runs in and by the store's own. A session judges later, which is not counted.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import Any

from tables import Figure, TextTable, arguments, show

ROOT = f"{Path(__file__).resolve().parents[1] / 'toolmem'}/"
Entered = dict[str, bool]  # in order: is the file entered before the store's threads take over?


class Watch:
    """Notes the files of toolmem that are entered, in every thread that starts after it was made."""

    def __init__(self) -> None:
        self._entered: Entered | None = None
        threading.setprofile(self._see)

    def _see(self, frame: FrameType, event: str, _: Any) -> None:
        file = frame.f_code.co_filename
        if self._entered is None or event != "call" or not file.startswith(ROOT):
            return
        of_the_store = threading.current_thread().name.startswith(("toolmem writer", "toolmem reader"))
        name = file.removeprefix(ROOT)
        self._entered[name] = self._entered.get(name, False) or not of_the_store

    @contextmanager
    def watching(self) -> Iterator[Entered]:
        self._entered = entered = Entered()
        sys.setprofile(self._see)
        try:
            yield entered
        finally:
            sys.setprofile(None)
            self._entered = None


def measured() -> dict[str, Entered]:
    """By what is done: the files that it enters."""
    watch = Watch()
    import toolmem
    from toolmem import ToolCall, ToolMem

    def calls(number: int) -> list[ToolCall]:
        return [
            ToolCall("search", {"q": f"rain {number}"}, output="[]"),
            ToolCall("send_email", {"to": f"{number}@example.org"}, output="sent"),
        ]

    found: dict[str, Entered] = {}
    with tempfile.TemporaryDirectory() as folder, ToolMem(Path(folder) / "memory.db") as memory:
        done: dict[str, Callable[[int], object]] = {
            "add of two calls": lambda number: memory.add(calls(number)),
            "summarize": lambda _: memory.summarize("search"),
            "guidance": lambda _: memory.guidance("search"),
        }
        for number in range(3):
            for work in done.values():
                work(number)
        memory.add(calls(3))
        for number, (name, work) in enumerate(done.items(), start=4):
            with watch.watching() as found[name]:
                work(number)
        found["after_turn"] = asyncio.run(_turn(watch, Path(folder) / "session.db"))
    if not all(found.values()):  # none is no figure that meets a goal
        sys.exit(f"no file of {ROOT} was entered: toolmem is imported from {toolmem.__file__}; install this checkout")
    return found


async def _turn(watch: Watch, path: Path) -> Entered:
    from toolmem import AgentSession, AsyncToolMem

    async with AsyncToolMem(path, overrides=["session.judging=deferred"]) as memory:
        session = await AgentSession.start(memory, tools=["search"])
        for number in range(3):
            asked = {"name": "search", "arguments": json.dumps({"q": f"rain {number}"})}
            turn = [
                {"role": "assistant", "tool_calls": [{"id": f"c{number}", "type": "function", "function": asked}]},
                {"role": "tool", "tool_call_id": f"c{number}", "content": "[]"},
            ]
            session.messages(f"Will it rain on day {number}?")
            with watch.watching() as entered:
                await session.after_turn(turn)
        await session.close()
    return entered


GOALS = {"add of two calls": 20, "summarize": 25, "guidance": 12, "after_turn": 18}


def main() -> None:
    options = arguments(__doc__)
    found = measured()
    figures, lists = [], []
    for name, entered in found.items():
        before = sum(entered.values())
        figures.append(Figure(f"{name}: up to the store", before, "files", GOALS[name]))
        figures.append(Figure(f"{name}: with the store's threads", len(entered), "files"))
        rows = [(file, "" if flow else "store's thread") for file, flow in entered.items()]
        lists.append(TextTable(f"Files that {name} enters", ("file", "entered alone by"), rows))
    for table in lists:
        table.show()
    show(figures, None)
    if options.json is not None:
        body = {"files": dict(lists[0].rows), "figures": [{**asdict(each), "met": each.met} for each in figures]}
        options.json.write_text(json.dumps(body, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
