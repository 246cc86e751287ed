"""How far an evaluation is: its flows' events, with one running total of judged calls."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from toolmem.flow.events import Event, Listener


class Progress:
    """Hands the events on to `listener`; while calls are judged, `done` and `total` are those of the whole evaluation.

    A flow counts what is new to it, and what it judges again; the steps after judging count tools. Of these figures
    only one is told, and it never goes backwards: how many of the recording's calls have been through the judge.
    """

    def __init__(self, listener: Listener, total: int) -> None:
        self._listener = listener
        self._total = total
        self._told = 0
        self._end = 0  # what will have been judged when the current phase is over
        self._judging = False

    @contextmanager
    def judging(self, calls: int) -> Iterator[None]:
        """So many more calls are judged meanwhile."""
        self._told, self._end, self._judging = self._end, self._end + calls, True
        yield
        self._judging = False

    def __call__(self, event: Event) -> None:
        if event.kind != "progress" or not self._judging:
            self._listener(event)
        elif event.message == "judged":
            self._told = max(self._told, self._end - (event.total - event.done))
            self._listener(replace(event, done=self._told, total=self._total))
