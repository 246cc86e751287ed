"""Describe where a format keeps the parts of a call, and read events by that description.

A file is a sequence of units (`sources`): a line, an element of a list, a row. Inside a unit some
objects are parts: a call, its answer, a sentence of the user. A `Shape` says how to recognize a
part and where its fields are; a `Format` has a few shapes. `joining` makes calls of the events.

A path is `a/b/c`: keys, or numbers of elements; `*` is each element. It begins at the part, or
with `^` at the unit. `a|b` is b if a has no value or is "", as in a table's cell. But "" stays
if b has no value, or is the object around it, as in `result/text|result`.
`=text` is the text itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from msgspec import UNSET, Struct

from toolmem.errors import RequestError
from toolmem.formats.chat import tool_part
from toolmem.formats.sources import looks_like
from toolmem.formats.tool_names import ToolNames
from toolmem.text.display import plain

ANY = object()  # in `where`: there is a value, whichever
USUAL_ARGUMENTS = "input|arguments|args|tool_input|parameters|params|inputs"
MAPPED = "mapped"  # the name of a format that a user describes
MAX_SECONDS = 1e11  # since 1970: the year 5138; a larger number counts milliseconds or less
# What a program or a hook put before the user's text: `<hook_context>...</hook_context>`.
_ADDED_BEFORE = re.compile(r"\A(?:\s*<(\w[\w-]{0,60})\b[^<>]{0,500}>.*?</\1>)+\s*", re.DOTALL)
Where = Mapping[str, Any]  # path: the value, a tuple of values, ANY, or None for no value


class Event(Struct):
    """The fields of one part: with `name` it begins a call, with `output` it ends one."""

    id: str = ""
    name: Any = None
    title: str = ""  # of the tool, as the program shows it
    arguments: Any = None
    output: Any = None
    failed: bool | None = None
    time: datetime | None = None  # when the call began
    end: datetime | None = None
    time_cost: Any = None  # seconds; None: by time and end
    token_cost: Any = None
    request: str = ""  # of the user, before the calls that follow
    conversation: str = ""  # of this event and of those after it in the file
    problem: str = ""  # why the call or the answer in this part could not be read


class Shape(Struct, frozen=True):
    """How to recognize a kind of part, by `where`, and the path of each event field in it."""

    where: Where = {}
    id: str = ""
    name: str = ""
    namespace: str = ""  # of the name: as hooks see it, mcp__server__tool
    title: str = ""  # of the tool, as the program shows it
    arguments: str = ""
    output: str = ""
    error: str = ""  # true, a text, an error object; null, false, "": it worked; absent: unknown
    status: str = ""  # an exit code, or a word such as "failed" or "ok"; other words: unknown
    success: str = ""  # true or false, where neither error nor status says
    time: str = ""
    end: str = ""
    time_cost: str = ""  # seconds
    token_cost: str = ""
    request: str = ""  # of the user
    conversation: tuple[str, ...] = ()  # the values at these paths, joined by "/"


class Format(Struct, frozen=True):
    """The format of another program. A line or other unit that fits one of `marks` is in it."""

    name: str
    marks: tuple[Where, ...] = ()
    shapes: tuple[Shape, ...] = ()
    inside: tuple[str, ...] = ()  # keys whose values hold further parts
    prepare: Callable[[Any], Any] | None = None  # changes a unit before it is read
    history: str = ""  # the key of messages; a later unit may begin with all of an earlier one
    repeats_history: bool = False  # a later unit holds the calls of earlier ones again
    one_conversation: bool = False  # at a time in a file; it may be forked from others
    gives_arguments: bool = True  # of each call; False: a program may leave them out
    silent_success: bool = False  # an answer without an error worked
    trusts_success: bool = True  # False: "success" only says that the tool was run
    not_typed: tuple[str, ...] = ()  # how user texts begin that no person typed
    refused: tuple[str, ...] = ()  # how answers begin to calls that were not allowed to run
    noise: str = ""  # a pattern of text that the program adds to outputs; its groups are kept
    names: ToolNames | None = None  # of the program's tools, where it has hooks


def fits(where: Where, part: Any, unit: Any) -> bool:
    """Whether a part has the values of `where` at its paths. Paths with `^` begin at the unit."""
    for path, wanted in where.items():
        found = read_path(path, part, unit)
        values = found if type(found) is list and "*" in path else [found]
        if not any(_fits(each, wanted) for each in values):
            return False
    return True


def _fits(value: Any, wanted: Any) -> bool:
    is_missing = value is UNSET or value is None or value is False
    if wanted is None:
        return is_missing
    if wanted is ANY:
        return not is_missing
    if type(wanted) is tuple:
        return type(value) is str and value in wanted
    return type(value) is type(wanted) and value == wanted


def read_path(path: str, part: Any, unit: Any) -> Any:
    """Return the value at a path: None if it is null, UNSET if there is none."""
    found: Any = UNSET
    empty: tuple[str, ...] = ()  # the place of an empty text
    for begins, keys in _alternatives(path):
        if begins == "=":
            return keys[0]
        value = unit if begins == "^" else part
        for number, key in enumerate(keys):
            if key == "*":
                value = _values_at(keys[number + 1 :], value, unit)
                break
            value = _value_at(value, key)
        if value is not UNSET and value is not None and value != "":
            return "" if empty and empty[: len(keys) + 1] == (begins, *keys) else value
        if value == "":
            empty = (begins, *keys)
        if found is UNSET or value == "":
            found = value
    return found


def _value_at(value: Any, key: str) -> Any:
    if isinstance(value, dict):
        return value.get(key, UNSET)
    if isinstance(value, list) and key.isdecimal():
        return value[int(key)] if int(key) < len(value) else UNSET
    return UNSET


def _values_at(keys: tuple[str, ...], values: Any, unit: Any) -> Any:
    if not isinstance(values, list):
        return UNSET
    found = [read_path("/".join(keys), each, unit) if keys else each for each in values]
    flat = [one for each in found for one in (each if isinstance(each, list) else [each])]
    return [each for each in flat if each is not UNSET] or UNSET


@lru_cache(maxsize=1024)
def _alternatives(path: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The alternatives of a path: "=", "^" or "", and the keys of each."""
    if path.startswith("="):
        return (("=", (path[1:],)),)
    return tuple(
        (one[:1] if one.startswith("^") else "", tuple(one.removeprefix("^").split("/")))
        for one in path.split("|")
    )


def recognize(unit: Any, formats: tuple[Format, ...]) -> Format | None:
    """Return the first format of which a mark fits `unit`, a part of a file (an element, a row)."""
    for each in formats:
        if any(fits(mark, unit, unit) for mark in each.marks):
            return each
    return None


def events_of(form: Format, unit: Any) -> Iterator[Event]:
    """Yield the events in a unit of a file, such as a line, in their order."""
    unit = form.prepare(unit) if form.prepare else unit
    yield from _events_in(form, unit, unit)


def _events_in(form: Format, value: Any, unit: Any) -> Iterator[Event]:
    """Yield the events of a part, then of parts inside it, unless it is a call or an answer."""
    if isinstance(value, list):
        for each in value:
            yield from _events_in(form, each, unit)
    elif isinstance(value, dict):
        is_call = False
        for shape in form.shapes:
            if fits(shape.where, value, unit):
                event = _event(form, shape, value, unit)
                has_call = event.name is not None or event.output is not None
                is_call = is_call or has_call or bool(event.problem)
                yield event
        if not is_call and tool_part(value):
            yield Event(problem=f"not as {form.name} writes it: {looks_like(value)}")
        if not is_call:
            for key in form.inside:
                if key in value:
                    yield from _events_in(form, value[key], unit)


def _event(form: Format, shape: Shape, part: Any, unit: Any) -> Event:
    def at(path: str) -> Any:
        found = read_path(path, part, unit) if path else None
        return None if found is UNSET else found

    error = read_path(shape.error, part, unit) if shape.error else UNSET
    status = at(shape.status)
    output = at(shape.output)
    failed = failure_of(error, status, at(shape.success))
    if failed is False and not form.trusts_success:
        failed = None
    if output is None and failed and shape.output:
        output = _message(error) or _message(status)
    if failed is None and shape.output and form.silent_success and output is not None:
        failed = False
    if output is None and failed is False and not form.marks:  # a row is a whole call
        output = ""
    request = _typed_text(at(shape.request))
    if form.not_typed:
        request = _ADDED_BEFORE.sub("", request)
    conversation = [str(value) for value in map(at, shape.conversation) if value]
    name = at(shape.name)
    namespace = at(shape.namespace)
    arguments = read_path(shape.arguments, part, unit) if shape.arguments else UNSET
    if name and form.marks and (arguments is UNSET or arguments is None or arguments == ""):
        arguments = read_path(f"{shape.arguments}|{USUAL_ARGUMENTS}", part, unit)
    has_object = any(isinstance(value, dict) and value for value in part.values())
    if arguments is UNSET and name and tool_part(part) and has_object:
        return Event(problem=f"no arguments of {_label(name)[:60]!r} in {looks_like(part)}")
    return Event(
        id=_label(at(shape.id)),
        name=f"{str(namespace).removesuffix('__')}__{name}" if namespace and name else name,
        title=_label(at(shape.title)),
        arguments=None if arguments is UNSET else arguments,
        output=output,
        failed=failed,
        time=moment(at(shape.time)),
        end=moment(at(shape.end)),
        time_cost=at(shape.time_cost),
        token_cost=at(shape.token_cost),
        request="" if request.lstrip().startswith(form.not_typed) else request,
        conversation="/".join(conversation),
    )


def _typed_text(content: Any) -> str:
    """A text, or the texts of a list of parts; "" of anything else."""
    if isinstance(content, list):
        texts = (each.get("text") if isinstance(each, dict) else each for each in content)
        return "\n".join(text for text in texts if isinstance(text, str))
    return content if isinstance(content, str) else ""


def _label(value: Any) -> str:
    return "" if value is None or isinstance(value, dict | list) else str(value).strip()


def _message(error: Any) -> Any:
    if isinstance(error, dict):
        return error.get("message", error)
    return error if isinstance(error, str) else ""


_NO = ("0", "false", "no", "none", "null", "n", "f")
_YES = ("1", "true", "yes", "y", "t")
_GOOD = ("ok", "success", "succeeded", "successful", "passed")
_BAD = ("error", "failed", "failure", "fail")
_ENDED = ("nan", "completed", "complete", "done", "finished")  # these leave it open
# Whether a call failed, by the word in `error` or `status`. Any other error is a failure.
_ERRORS = {**dict.fromkeys(("", *_NO, *_GOOD), False), **dict.fromkeys(_ENDED)}
_STATUSES = {**dict.fromkeys(("0", *_GOOD), False), **dict.fromkeys(("1", *_BAD), True)}
_FLAGS = {
    **dict.fromkeys((*_YES, *_GOOD), True),
    **dict.fromkeys(("0", "false", "no", "n", "f", *_BAD), False),
}


def flag_of(value: Any) -> bool | None:
    """Read a flag of success, such as `true`, "yes" or 1.0; None if it is no known flag."""
    return _FLAGS.get(str(value).strip().lower().removesuffix(".0"))


def failure_of(error: Any = UNSET, status: Any = None, success: Any = None) -> bool | None:
    """Whether a call failed, by its error, status or flag; None if these do not say."""
    by_error = None if error is UNSET else _ERRORS.get(_word(error), True)
    signs = (by_error, _STATUSES.get(_word(status)))
    worked = flag_of(success)
    if True in signs or worked is False:
        return True
    return False if False in signs or worked else None


def _word(value: Any) -> str:
    """Return a word in lower case; for a number, also as text, "nan", "0", or else "1"."""
    if isinstance(value, int | float | str) and not isinstance(value, bool):
        try:
            number = float(value)
        except (ValueError, OverflowError):
            pass
        else:
            return "nan" if number != number else str(int(number != 0))
    if isinstance(value, bool | str):
        return str(value).strip().lower()
    return "object" if value else ""


def moment(value: Any) -> datetime | None:
    """Read a time in ISO 8601, or s, ms, us or ns since 1970; None: it is no such time."""
    if isinstance(value, datetime):
        return value if value.tzinfo else value.replace(tzinfo=UTC)
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        if isinstance(value, str) and not value.strip().replace(".", "", 1).isdecimal():
            read = datetime.fromisoformat(value.strip())
            return (read if read.tzinfo else read.replace(tzinfo=UTC)).astimezone(UTC)
        number = float(value)
        for _ in range(3):
            number = number / 1000 if number > MAX_SECONDS else number
        return datetime.fromtimestamp(number, UTC)
    except (ValueError, OverflowError, OSError):
        return None


# The fields of a shape that a user can map, and what they are called in a record.
MAP_FIELDS = tuple(each for each in Shape.__struct_fields__ if each not in ("where", "title"))
_OTHER_NAMES = {
    "tool_name": "name",
    "input": "arguments",
    "context": "request",
    "conversation_id": "conversation",
}


def mapped(mapping: Mapping[str, str]) -> Format:
    """Make a format from a user's paths, as {"name": "tool", "time": "at"}. Raises RequestError."""
    if not isinstance(mapping, Mapping):
        got = type(mapping).__name__
        raise RequestError(f"mapping: expected a dict of fields and paths, got {got}")
    fields: dict[str, Any] = {_OTHER_NAMES.get(key, key): path for key, path in mapping.items()}
    for field, path in fields.items():
        if field not in MAP_FIELDS:
            expected = f"expected {', '.join(MAP_FIELDS)}"
            raise RequestError(f"no field is called {plain(str(field), 60)!r}; {expected}")
        if not (path and isinstance(path, str)):
            raise RequestError(f"{field}: expected a path, as in {field}=a/b")
    if "name" not in fields:
        raise RequestError("name: missing; expected the path of the tool's name")
    conversation = fields.pop("conversation", "")
    return Format(
        MAPPED, gives_arguments=False, shapes=(Shape(**fields, conversation=(conversation,)),)
    )
