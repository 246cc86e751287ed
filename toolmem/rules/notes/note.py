"""Read a note: a demand as a model writes it down."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_type_hints

import msgspec
from msgspec import Meta, Struct

from toolmem.config.check import explain
from toolmem.errors import RequestError
from toolmem.models.rules import Effect

Line = Annotated[str, Meta(min_length=1, max_length=500)]
Alternatives = list[dict[str, Any]]
MAX_EXAMPLE = 4_000  # characters of the arguments of an example, as JSON
_FIELD = re.compile(r"field `([^`]*)`")


class ExampleCall(Struct, frozen=True, forbid_unknown_fields=True):
    """An example in a note: a call that its condition must stop, or must let pass."""

    tool: Line
    arguments: Annotated[dict[str, Any], Meta(min_length=1)]


Examples = Annotated[list[ExampleCall], Meta(max_length=3)]


class DemandNote(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A demand as a model noted it. `toolmem.view.conditions` describes `when` and `unless`."""

    quote: Line  # the user's words
    effect: Effect
    lasting: Literal["always", "session"] = "always"
    until: str = ""  # a date (its end counts), a time, or `today`
    tools: Annotated[list[Line], Meta(max_length=20)] = []  # names or classes
    replaces: Annotated[str, Meta(max_length=500)] = ""  # an earlier demand: its id, or its words
    rule: Annotated[str, Meta(max_length=500)] = ""  # in the model's words, shown only to people
    when: Alternatives | dict[str, Any] = []
    unless: Alternatives | dict[str, Any] = []
    stops: Examples = []
    passes: Examples = []


class NoteProblem(Struct, frozen=True):
    """A field of a note that has to be changed, and why."""

    field: str
    problem: str


class NoteRefused(RequestError):
    """Raised for a note that the model has to write again."""

    def __init__(self, *problems: tuple[str, str]) -> None:
        super().__init__("; ".join(": ".join(each) for each in problems), problems[0][0])
        self.problems = [NoteProblem(*each) for each in problems]


def read_note(given: Any) -> DemandNote:
    """Read a note from a mapping. Raises NoteRefused, which names the wrong field."""
    if not isinstance(given, Mapping):
        fields = ", ".join(DemandNote.__struct_fields__)
        raise NoteRefused(("note", f"expected a JSON object with {fields}"))
    present = {name: value for name, value in given.items() if value is not None}
    try:
        note = msgspec.convert(present, DemandNote)
    except msgspec.ValidationError as error:
        what, _, place = str(error).partition(" - at `$")
        named = _FIELD.search(what)
        field = place.strip(".`") or (named[1] if named else "note")
        raise NoteRefused((field, explain(what, get_type_hints(DemandNote).get(field)))) from None
    if not note.quote.strip():
        raise NoteRefused(("quote", "expected the user's words"))
    if note.effect != "remind":
        _require_conditions(note)
    return note


def _require_conditions(note: DemandNote) -> None:
    if not note.when:
        why = "remind is for what no argument of a call tells"
        raise NoteRefused(("when", f"needed where the effect is {note.effect}; {why}"))
    for name, examples in (("stops", note.stops), ("passes", note.passes)):
        if not examples:
            raise NoteRefused((name, 'expected 1 to 3 calls {"tool": ..., "arguments": {...}}'))
        for number, each in enumerate(examples):
            if len(json.dumps(each.arguments)) > MAX_EXAMPLE:
                problem = f"over {MAX_EXAMPLE:,} characters: a short call shows as much"
                raise NoteRefused((f"{name}[{number}]", problem))
