"""Pydantic's errors in the words of a configuration: the dotted name, what is wrong, what would be right."""

from __future__ import annotations

import json
import re
import types
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from toolmem.config.hidden_values import is_secret, masked_value
from toolmem.config.nearest_names import hint, nearest
from toolmem.errors import ConfigError


@contextmanager
def added_to(problems: list[str]) -> Iterator[None]:
    """Those of a ConfigError are added to the others, so that all of them are told at once."""
    try:
        yield
    except ConfigError as error:
        problems += error.problems


_CHOICE = re.compile(r"'([^']*)'")  # of pydantic's "'a', 'b' or 'c'"
_SHOWN = 60  # characters of a wrong value that an error repeats

Model = TypeVar("Model", bound=BaseModel)
Path = tuple[str, ...]
Placing = Callable[[Path], str]  # where a value came from; "" where that is plain

_EXPECTED = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "string_type": "text",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "a section (key: value)",
    "model_type": "a section (key: value)",
    "model_attributes_type": "a section (key: value)",
    "datetime_type": "a time",
    "datetime_parsing": "a time",
    "none_required": "null",
}
_BOUND = {
    "greater_than_equal": ("ge", "at least"),
    "greater_than": ("gt", "greater than"),
    "less_than_equal": ("le", "at most"),
    "less_than": ("lt", "less than"),
}


def shown(value: Any) -> str:
    """A value as an error prints it: text in quotes, the rest as JSON, secrets of addresses hidden, long ones cut."""
    value = masked_value(value)
    if isinstance(value, str):
        text = repr(value)
    else:
        try:
            text = json.dumps(value, ensure_ascii=False, default=str)
        except (TypeError, ValueError, RecursionError):
            text = f"<{type(value).__name__}>"
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def dotted(path: Sequence[str | int]) -> str:
    """`llm.default.params`; a part that holds a dot stands in brackets: `prices[qwen2.5-72b].input`."""
    out = ""
    for part in path:
        text = str(part)
        if isinstance(part, int) or "." in text or "[" in text or not text:
            out += f"[{text}]"
        else:
            out += f".{text}" if out else text
    return out


def explain(
    error: ValidationError,
    given: Any,
    model: type[BaseModel],
    *,
    prefix: Path = (),
    place: Placing | None = None,
    also_known: Collection[str] = (),
) -> list[str]:
    """One line for each problem, in the order in which the model declares its fields.

    `given` is what was validated; `prefix` the dotted name of the whole; `place` is printed in brackets behind the
    problem; `also_known`: further names that would have been right where these came from.
    """
    unions: dict[Path, list[ErrorDetails]] = {}
    for detail in error.errors(include_url=False):
        unions.setdefault(_path_of(detail, given), []).append(detail)
    return [
        f"{dotted((*prefix, *path))}: {_words(path, details, model, also_known)}{placed(place, (*prefix, *path))}"
        for path, details in unions.items()
    ]


def check(
    model: type[Model],
    given: Mapping[str, Any],
    *,
    prefix: Path = (),
    place: Placing | None = None,
    also_known: Collection[str] = (),
) -> tuple[Model | None, list[str]]:
    """The validated model, or None and every problem with it."""
    try:
        return model.model_validate(dict(given)), []
    except ValidationError as error:
        return None, explain(error, given, model, prefix=prefix, place=place, also_known=also_known)


def placed(place: Placing | None, path: Path) -> str:
    """What stands behind a problem with the value at this path: ` [my.yaml:12]`, or "" where that is plain."""
    where = place(path) if place is not None else ""
    return f" [{where}]" if where else ""


def _path_of(detail: ErrorDetails, given: Any) -> Path:
    """Pydantic's location without the labels that it adds for the members of a union."""
    path: list[str] = []
    here = given
    location = [part for part in detail["loc"] if part != "[key]"]
    for position, part in enumerate(location):
        last = position == len(location) - 1
        if isinstance(here, Mapping) and (part in here or (last and detail["type"] == "missing")):
            path.append(str(part))
            here = here.get(part)
        elif isinstance(here, Sequence) and not isinstance(here, str) and isinstance(part, int) and part < len(here):
            path.append(str(part))
            here = here[part]
        else:
            break
    return tuple(path)


def _words(path: Path, details: Sequence[ErrorDetails], model: type[BaseModel], also_known: Collection[str]) -> str:
    first = details[0]
    kind = first["type"]
    name = path[-1] if path else ""
    if kind == "extra_forbidden":
        return f"unknown ({hint(name, [*field_names(model, path[:-1]), *also_known])})"
    if kind == "missing":
        return "missing"
    wanted = list(dict.fromkeys(_expected(detail) for detail in details))
    if any(word == "" for word in wanted):
        return str(first.get("ctx", {}).get("error", first["msg"])).removeprefix("Value error, ")
    got = "" if is_secret(name) else f", got {shown(first['input'])}"
    near = _nearest_choice(first)
    unquoted = "text" in wanted and isinstance(first["input"], int | float | bool)
    return f"expected {' or '.join(wanted)}{got}{near}{' (quote it to make it text)' if unquoted else ''}"


def _nearest_choice(detail: ErrorDetails) -> str:
    """` (did you mean 'x'?)`, where one of the choices is near what was given; "" else, and of other errors."""
    value = detail["input"]
    if detail["type"] not in ("literal_error", "enum") or not isinstance(value, str):
        return ""
    meant = nearest(value[:_SHOWN], _CHOICE.findall(detail["ctx"]["expected"]))
    return f" (did you mean {meant!r}?)" if meant else ""


def _expected(detail: ErrorDetails) -> str:
    kind, context = detail["type"], detail.get("ctx", {})
    if kind in _EXPECTED:
        return _EXPECTED[kind]
    if kind in _BOUND:
        limit, word = _BOUND[kind]
        bound = context[limit]
        return f"{word} {bound:g}" if isinstance(bound, float) else f"{word} {bound}"
    if kind in ("literal_error", "enum"):
        return f"one of {context['expected']}"
    if kind == "string_pattern_mismatch":
        return f"text like {context['pattern']}"
    if kind in ("too_short", "string_too_short"):
        return f"at least {context['min_length']} of them" if kind == "too_short" else "text that is not empty"
    return ""


def field_names(model: type[BaseModel], path: Path) -> list[str]:
    """The keys that `model` knows at this place."""
    here: Any = model
    for part in path:
        inner = _inside(here, part)
        if inner is None:
            return []
        here = inner
    return sorted(here.model_fields) if isinstance(here, type) and issubclass(here, BaseModel) else []


def _inside(annotation: Any, part: str) -> Any:
    """The type of what stands under `part` in a value of this type; None where that is not known."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        field = annotation.model_fields.get(part)
        return _model_in(field.annotation) if field is not None else None
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (dict, Mapping) and len(arguments) == 2:
        return _model_in(arguments[1])
    if origin in (list, tuple) and arguments:
        return _model_in(arguments[0])
    return None


def _model_in(annotation: Any) -> Any:
    """Look through `Annotated` and `X | None`."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return _model_in(get_args(annotation)[0])
    if origin in (Union, types.UnionType):
        members = [_model_in(member) for member in get_args(annotation) if member is not type(None)]
        return members[0] if members else None
    return annotation
