"""The texts inside chat messages: content in its several shapes, and the arguments of a call."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from toolmem.importers.json_values import NotJsonError, Repairs, clean_value


def text_of(content: Any) -> str:
    """The text of a message's `content`: a string, a list of parts, or null; anything else as JSON text."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list) and all(isinstance(part, (str, Mapping)) for part in content):
        return "\n".join(_part_text(part) for part in content)
    return _json_text(content)


def _part_text(part: str | Mapping[str, Any]) -> str:
    if isinstance(part, str):
        return part
    for key in ("text", "refusal", "content"):
        if isinstance(part.get(key), str):
            return str(part[key])
    kind = part.get("type")
    return f"[{kind}]" if isinstance(kind, str) else _json_text(part)  # an image or a sound: said, not carried


def _json_text(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except RecursionError:
        return "[nested too deeply to be shown]"


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
