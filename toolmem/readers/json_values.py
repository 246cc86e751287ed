"""What JSON can carry: values checked, copied and cleaned before anything else sees them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from toolmem.late import late_pattern
from toolmem.late_dataclasses import dataclass

MAX_DEPTH = 100  # levels of objects and lists; serializers give up at about 250
MAX_INTEGER_BITS = 4096  # Python and most readers refuse to print integers of some thousand digits

_MOST_ALIKE = 100  # keys that are the same text once their surrogates are replaced
_SURROGATE = late_pattern("[\ud800-\udfff]")
_PAIR = late_pattern("[\ud800-\udbff][\udc00-\udfff]")


class NotJsonError(ValueError):
    """A value that JSON cannot carry. `path` leads to it from the value that was handed over."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.path: list[str] = []

    def at(self, step: str) -> NotJsonError:
        self.path.insert(0, step)
        return self

    def place(self, field: str) -> str:
        return field + "".join(self.path)


@dataclass(slots=True, kw_only=True)
class Repairs:
    """Counts the lone surrogates that were replaced."""

    repaired_surrogates: int = 0


def clean_text(text: str, repairs: Repairs) -> str:
    """`text` without lone surrogates: each becomes U+FFFD and is counted; a pair becomes its character."""
    if text.isascii() or not _SURROGATE.search(text):
        return text
    joined = _PAIR.sub(lambda pair: pair[0].encode("utf-16", "surrogatepass").decode("utf-16"), text)
    cleaned, count = _SURROGATE.subn("\ufffd", joined)
    repairs.repaired_surrogates += count
    return cleaned


def without_surrogates(text: str) -> str:
    """As `clean_text`, for texts that are sent: lone surrogates have no UTF-8 form."""
    return clean_text(text, Repairs())


def clean_value(value: Any, repairs: Repairs, depth: int = 0) -> Any:
    """A copy of a JSON value with clean texts.

    Raises NotJsonError for what JSON cannot carry (NaN, infinity, other types, keys that are not strings) and for what
    no reader downstream could take (nesting over MAX_DEPTH, integers over MAX_INTEGER_BITS).
    """
    if isinstance(value, str):
        return clean_text(str(value), repairs)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        if value.bit_length() > MAX_INTEGER_BITS:
            raise NotJsonError("an integer of more than 1,200 digits; send it as a string")
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise NotJsonError(f"{value} is not a JSON number; use null or a string")
        return value
    if isinstance(value, (Mapping, list, tuple)):
        if depth >= MAX_DEPTH:
            raise NotJsonError(f"nested deeper than {MAX_DEPTH} levels; send the inner part as JSON text")
        if isinstance(value, Mapping):
            return _clean_object(value, repairs, depth + 1)
        return _clean_list(value, repairs, depth + 1)
    raise NotJsonError(
        f"a {type(value).__name__} is not a JSON value; use text, numbers, true, false, null, lists, objects"
    )


def _clean_object(value: Mapping[Any, Any], repairs: Repairs, depth: int) -> dict[str, Any]:
    cleaned: dict[str, Any] = {}
    for key, item in value.items():
        if type(key) is str and type(item) is str and key.isascii() and item.isascii():  # almost all there is
            cleaned[key] = item
            continue
        if not isinstance(key, str):
            raise NotJsonError(f"the key {str(key)[:40]!r} is not a string")
        name = _free_key(clean_text(key, repairs), key, cleaned)
        try:
            cleaned[name] = clean_value(item, repairs, depth)
        except NotJsonError as error:
            raise error.at(f".{name[:40]}") from None
    return cleaned


def _free_key(cleaned: str, key: str, taken: Mapping[str, Any]) -> str:
    """Two keys that differ only in their surrogates must not overwrite each other."""
    if cleaned is key or cleaned not in taken:
        return cleaned
    for more in range(1, _MOST_ALIKE):
        if (name := cleaned + "\ufffd" * more) not in taken:
            return name
    raise NotJsonError(f"over {_MOST_ALIKE} keys that differ in lone surrogates only; send other names")


def _clean_list(value: list[Any] | tuple[Any, ...], repairs: Repairs, depth: int) -> list[Any]:
    cleaned = []
    for position, item in enumerate(value):
        try:
            cleaned.append(clean_value(item, repairs, depth))
        except NotJsonError as error:
            raise error.at(f"[{position}]") from None
    return cleaned


# ---------------------------------------------------------------- types

_TYPES: tuple[tuple[type, str], ...] = (
    (type(None), "null"),
    (bool, "boolean"),
    (int, "integer"),
    (float, "number"),
    (str, "string"),
    (Mapping, "object"),
)
_NAMES = frozenset(name for _, name in _TYPES)


def json_type(value: Any) -> str:
    """The JSON type of a value; Python's name of the type where JSON has none."""
    for kind, name in _TYPES:
        if isinstance(value, kind):
            return name
    listed = isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray))
    return "array" if listed else type(value).__name__


def is_json_type(value: Any, name: str) -> bool:
    """As JSON Schema has it: 5.0 is an integer, and an integer a number. A type that it does not have says nothing."""
    found = json_type(value)
    if name != "array" and name not in _NAMES:
        return True
    if name == "integer" and found == "number":
        return bool(value.is_integer())
    return found == name or (name == "number" and found == "integer")
