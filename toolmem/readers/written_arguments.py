"""The arguments of a call where they are handed over as text, as models and some clients write them."""

from __future__ import annotations

import json
from typing import Any

from toolmem.readers.json_values import NotJsonError, Repairs, clean_value

_MOST_WRITTEN = 3  # times that a text of arguments stands inside of a text


def read_arguments(arguments: Any) -> Any:
    """The input of a call from its `arguments`, which should be the text of a JSON object.

    Text that is not JSON (a Python literal, a cut-off object), or holds what JSON cannot carry (NaN), stays text; so
    does a JSON number or boolean, because an input is an object, a list or a string. Empty or null: no arguments, `{}`.
    """
    if arguments is None:
        return {}
    if not isinstance(arguments, str):
        return arguments
    if not arguments.strip():
        return {}
    try:
        value = json.loads(arguments)
        clean_value(value, Repairs())
    except (ValueError, RecursionError, NotJsonError):
        return arguments
    if value is None:
        return {}
    return value if isinstance(value, (dict, list, str)) else arguments


def opened_arguments(given: Any) -> Any:
    """The object or list that a text of arguments holds; all else as it was given.

    Servers and tools exist that read such a text, so that what it holds is what the call would do.
    """
    value = given
    for _ in range(_MOST_WRITTEN):
        if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "[", '"'):
            break
        value = read_arguments(value)
    return value if isinstance(value, dict | list) else given
