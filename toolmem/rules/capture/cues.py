"""The table of one language: the cues by which a sentence forbids or bounds something, as `tables.json` holds them.

A cue is a form by which a sentence forbids or bounds something. All of them stand in `en.yaml` and `zh.yaml`, each with
the sentences that it must and must not read; `docs/capture_tables.py` makes the tables of those files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from toolmem.late_dataclasses import dataclass

Kind = Literal["standing", "session"]
TABLES: dict[str, Any] = json.loads(Path(__file__).with_name("tables.json").read_text(encoding="utf-8"))


@dataclass(frozen=True, slots=True)
class CueReading:
    """An instruction inside a sentence, before tools are looked for."""

    kind: Kind
    start: int  # where its clause begins
    cue: int  # where the words that forbid or bound begin
    end: int  # where its reason or the next thought begins
    needs_tool: bool  # worth keeping only where a tool is named: its verb alone may mean anything
    by_itself: bool = False  # and the instruction itself must name it, not the sentence around
    by_subject: bool = False  # what stands before the cue must name it: "the browser must not ..."


def combined(found: Iterable[CueReading]) -> CueReading | None:
    """One reading of a whole sentence: what is for good wins, and its surest instruction decides."""
    readings = list(found)
    if not readings:
        return None
    chosen = [reading for reading in readings if reading.kind == "standing"] or readings
    surest = min(chosen, key=lambda reading: (reading.needs_tool, reading.cue))
    return CueReading(
        surest.kind,
        min(reading.start for reading in chosen),
        min(reading.cue for reading in chosen),
        max(reading.end for reading in chosen),
        surest.needs_tool,
        all(reading.by_itself for reading in chosen),
        all(reading.by_subject for reading in chosen),
    )


class Forms(dict[str, re.Pattern[str]]):
    """Patterns by name, each compiled when it is first asked for: most messages need few of them."""

    def __init__(self, patterns: Mapping[str, str]) -> None:
        super().__init__()
        self._patterns = patterns

    def __missing__(self, name: str) -> re.Pattern[str]:
        self[name] = compiled = re.compile(self._patterns[name])
        return compiled


@dataclass(frozen=True)
class Cue:
    """A form by which a sentence forbids or bounds something."""

    id: str
    written: str  # its group "verb", where it has one, is the verb of what is demanded
    strength: str  # what the cue itself says about how long
    place: str  # where in a sentence it is said to the agent
    needs: list[str]
    words: list[str]  # one of them stands in every match

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        return re.compile(self.written)


class Grammar:
    """The table of one language."""

    def __init__(self, table: Mapping[str, Any]) -> None:
        self.forms = Forms(table["forms"])
        self._decisions: Mapping[str, list[Any]] = table["decisions"]
        self.cues = tuple(Cue(**row) for row in table["cues"])
        self._by_word: dict[str, list[Cue]] = {}
        for cue in self.cues:
            for word in cue.words:
                self._by_word.setdefault(word, []).append(cue)

    def cues_in(self, text: str) -> list[Cue]:
        """The cues that a text holds the words of, each once: what remains to be tried."""
        return list({cue.id: cue for word, cues in self._by_word.items() if word in text for cue in cues}.values())

    def decide(self, name: str, parts: Mapping[str, str], strength: str = "") -> str | None:
        """What the first decision of a list says that fits the parts of a sentence."""
        for then, strengths, present, absent in self._decisions[name]:
            if strengths and strength not in strengths:
                continue
            if all(self._has(parts[part], forms) for part, forms in present) and not any(
                self._has(parts[part], forms) for part, forms in absent
            ):
                return str(then)
        return None

    def _has(self, text: str, forms: Iterable[str]) -> bool:
        return any(self.forms[form].search(text) for form in forms)
