"""What a sentence was read as, before tools are looked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["standing", "session"]


@dataclass(frozen=True, slots=True)
class Reading:
    """A demand on the agent inside a sentence."""

    kind: Kind
    start: int  # where its clause begins
    cue: int  # where the words that forbid or bound begin
    end: int  # where its reason or the next thought begins
    needs_tool: bool  # worth keeping only where a tool is named: its verb alone may mean anything
    by_itself: bool = False  # and the demand itself must name it, not the sentence around
    by_subject: bool = False  # what stands before the cue must name it: "the browser must not ..."


def combined(readings: list[Reading]) -> Reading | None:
    """One reading of a whole sentence: what is for good wins, and its surest demand decides."""
    if not readings:
        return None
    chosen = [reading for reading in readings if reading.kind == "standing"] or readings
    surest = min(chosen, key=lambda reading: (reading.needs_tool, reading.cue))
    return Reading(
        surest.kind,
        min(reading.start for reading in chosen),
        min(reading.cue for reading in chosen),
        max(reading.end for reading in chosen),
        surest.needs_tool,
        all(reading.by_itself for reading in chosen),
        all(reading.by_subject for reading in chosen),
    )
