"""What a run tells those who watch it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

log = logging.getLogger("toolmem.flow")

EventKind = Literal["flow_started", "op_started", "progress", "notice", "request", "op_finished", "flow_finished"]


@dataclass(frozen=True, slots=True)
class Event:
    """One moment of a run. Carries no payload of the request."""

    kind: EventKind
    flow: str
    op: str = ""  # the op's key; "" for the flow itself
    done: int = 0  # progress: of `total`; request: how many the op has made
    total: int = 0
    message: str = ""  # op_finished and flow_finished: the outcome; request: the tool; notice: what to tell the user
    seconds: float = 0.0  # since the op (or the flow) started


Listener = Callable[[Event], None]


class Announcer:
    """Hands events to listeners. A listener that raises is told about once, then left out: it never breaks a run."""

    def __init__(self, listeners: Iterable[Listener] = ()) -> None:
        self._listeners = list(listeners)

    def __call__(self, event: Event) -> None:
        for listener in tuple(self._listeners):
            try:
                listener(event)
            except Exception:
                self._listeners.remove(listener)
                log.warning("a listener failed at %r and gets no further events", event.kind, exc_info=True)
