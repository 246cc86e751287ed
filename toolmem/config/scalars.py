"""The scalar rules of configuration: one reading of plain text, in YAML files, dotted overrides and the environment.

    true, false            booleans; `yes`, `no`, `on`, `True` are text
    null                   nothing
    12, -3                 whole numbers; a leading zero makes it text (007)
    1.5, .5, 1e-3          numbers; an infinite number is refused (1e999, .inf, NaN)
    {"a": 1}, [1, "b"]     JSON
    '4', "4"               text, whatever is between the quotes
    anything else          text: 12:30, 2025-01-01, 1_000, 0x1f

YAML 1.1 (and so OmegaConf) reads 12:30 as 750 and `no` as false; here they stay what they look like.
"""

from __future__ import annotations

import json
import math
from typing import Any

from toolmem.late import late_pattern

_INTEGER = late_pattern(r"[-+]?(0|[1-9][0-9]*)")
_NUMBER = late_pattern(r"[-+]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?")
_NOT_FINITE = late_pattern(r"[-+]?(\.inf|\.Inf|\.INF|\.nan|\.NaN|\.NAN|Infinity|NaN)")
_WORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None}
_MOST_DIGITS = 400  # of a whole number; Python refuses to read more than 4300


def read_scalar(text: str) -> Any:
    """The value of a plain text. Raises ValueError for an infinite number and for broken quotes or JSON keys."""
    bare = text.strip()
    if bare in _WORDS:
        return _WORDS[bare]
    if _INTEGER.fullmatch(bare):
        if len(bare) > _MOST_DIGITS:
            raise ValueError(f"a whole number of {len(bare)} digits is too long; quote it to make it text")
        return int(bare)
    if _NOT_FINITE.fullmatch(bare):
        raise ValueError(f"{bare} is not a finite number; quote it to make it text")
    if _NUMBER.fullmatch(bare):
        return _finite(bare)
    if len(bare) >= 2 and bare[0] == bare[-1] == "'":
        return bare[1:-1].replace("''", "'")
    if len(bare) >= 2 and (bare[0], bare[-1]) in (('"', '"'), ("{", "}"), ("[", "]")):
        return _read_json(bare, text)
    return text


def _finite(bare: str) -> float:
    number = float(bare)
    if not math.isfinite(number):
        raise ValueError(f"{bare} is not a finite number; quote it to make it text")
    return number


def _read_json(bare: str, text: str) -> Any:
    try:
        return json.loads(
            bare, object_pairs_hook=_distinct, parse_constant=_refuse_constant, parse_float=_finite, parse_int=_whole
        )
    except json.JSONDecodeError:
        return text
    except RecursionError:
        raise ValueError("JSON nested too deeply") from None


def _whole(digits: str) -> int:
    if len(digits) > _MOST_DIGITS:
        raise ValueError(f"a whole number of {len(digits)} digits is too long; quote it to make it text")
    return int(digits)


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a finite number; quote it to make it text")


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        twice = next(key for key, _ in pairs if sum(key == other for other, _ in pairs) > 1)
        raise ValueError(f"the key {twice!r} stands twice in one JSON object")
    return mapping


def write_scalar(value: Any) -> str:
    """Text that `read_scalar` reads as this value (a JSON value): quoted only where it must be."""
    if not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    try:
        if read_scalar(value) == value:
            return value
    except ValueError:
        pass
    return "'" + value.replace("'", "''") + "'"
