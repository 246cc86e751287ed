"""A condition in plain words, for who approves it: "a target that names sarah". Nothing reads these words back."""

from __future__ import annotations

import json

from toolmem.guard.call_conditions import Condition, of_alternatives
from toolmem.guard.condition_shapes import (
    CommandShape,
    Every,
    Joined,
    ListShape,
    NumberShape,
    Shape,
    TextShape,
    read_condition,
)

_LONGEST = 300  # characters of a condition that is shown as it is written
_NOUNS = {
    "targets": "a target",
    "values": "a value",
    "emails": "an e-mail address",
    "hosts": "a host",
    "paths": "a path",
    "programs": "the program",
    "statements": "a statement",
    "tables": "the table",
}
_BOUNDS = {"exclusiveMinimum": "over", "minimum": "of at least", "exclusiveMaximum": "under", "maximum": "of at most"}


def in_words(when: Condition | None) -> str:
    """What a call must hold for its rule to apply; a condition of another shape is shown as it is written."""
    if when is None:
        return "nothing is checked"
    if of_alternatives(when):
        from toolmem.guard.alternatives import read_alternatives
        from toolmem.guard.alternatives_in_words import alternatives_in_words

        return alternatives_in_words(read_alternatives(when))
    shape = read_condition(when)
    return shape_in_words(shape) if shape else f"the condition {json.dumps(when, ensure_ascii=False)[:_LONGEST]}"


def shape_in_words(shape: Shape) -> str:
    match shape:
        case Every():
            return "every call"
        case Joined(how, parts):
            return (" or " if how == "any" else " and ").join(map(shape_in_words, parts))
        case ListShape(name, text):
            return f"{_NOUNS[name]} {_text(text)}"
        case CommandShape():
            return _command(shape)
        case NumberShape(names, bounds):
            told = " and ".join(f"{words} {bounds[key]:,g}" for key, words in _BOUNDS.items() if key in bounds)
            return f"{' or '.join(f'`{name}`' for name in names)} {told}"


def _text(shape: TextShape) -> str:
    texts = " or ".join(f"`{each}`" for each in shape.texts)
    if shape.elsewhere:
        return f"other than at {texts}" if shape.kind == "at" else f"other than {texts}"
    match shape.kind:
        case "names":
            return f"that names {texts}"
        case "at":
            return f"at {texts}"
        case "below":
            return f"{texts} or below it"
        case "option":
            return f"`-{shape.texts[0]}`"
        case "force":
            return "force"
        case "pattern":
            return f"like {texts}"
        case _:
            return texts + (" or one that only the shell knows" if shape.unknown else "")


def _command(shape: CommandShape) -> str:
    if shape.programs == (">",):
        told = "a command that writes a file"
    else:
        told = f"a command `{' '.join('|'.join(names) for names in (shape.programs, shape.second) if names)}`"
    return told + "".join(f" with {_text(word)}" for word in shape.words)
