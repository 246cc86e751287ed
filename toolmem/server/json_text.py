"""JSON as the services read and write it: strict, of a bounded depth, never an exception that is not a ValueError."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any, TypeVar

MAX_DEPTH = 100  # arrays and objects inside each other
MAX_BRACKETS = 400_000  # arrays and objects of one text: each takes a hundred bytes of memory, however small it is
_READ_AT_ONCE = 100_000  # characters or bytes; more is read in a thread

_T = TypeVar("_T")


async def read_aside(text: str | bytes, read: Callable[[], _T]) -> _T:
    """What `read` answers, which reads this text: in a thread where it is long, so that others are answered."""
    return await asyncio.to_thread(read) if len(text) > _READ_AT_ONCE else read()


def read_json(text: str | bytes) -> Any:
    """Raises ValueError that says where the text stops being JSON (NaN and infinite numbers are none)."""
    if isinstance(text, bytes | bytearray):
        try:
            text = bytes(text).decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise ValueError(f"not UTF-8 at byte {error.start}") from None
    if len(text) > MAX_BRACKETS and text.count("[") + text.count("{") > MAX_BRACKETS:
        raise ValueError(f"over {MAX_BRACKETS:,} brackets; send it in parts")
    try:
        value = json.loads(text, parse_constant=_refuse_constant, parse_float=_finite)
    except json.JSONDecodeError as error:
        raise ValueError(f"{error.msg} at line {error.lineno}, column {error.colno}") from None
    except RecursionError:
        raise ValueError(f"nested more than {MAX_DEPTH} deep") from None
    except ValueError as error:
        # Python's own words on a number of thousands of digits speak of Python's settings.
        raise (ValueError("a number has too many digits") if "int_max_str_digits" in str(error) else error) from None
    _check_depth(value)
    return value


def write_json(value: Any) -> str:
    """ASCII escapes only where a lone surrogate came in: no UTF-8 can carry one."""
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        text = json.dumps(value)
    return text


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _finite(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise ValueError(f"the number {text[:20]} is too large")
    return number


def _check_depth(value: Any) -> None:
    """Level by level, so that no depth can exhaust the stack. Raises ValueError."""
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            child
            for each in level
            if isinstance(each, dict | list)
            for child in (each.values() if isinstance(each, dict) else each)
            if isinstance(child, dict | list)
        ]
        if not level:
            return
    raise ValueError(f"nested more than {MAX_DEPTH} deep")
