"""Pictures and other files in base64 are named by their kind and size: nobody reads them."""

from __future__ import annotations

import re
from typing import Any

from msgspec.structs import replace

from toolmem.models.calls import ToolCallResult

MIN_PICTURE = 1_000  # characters of base64; shorter ones stay
_BASE64 = re.compile(
    r"(?:data:([\w.+-]+/[\w.+-]+);base64,|(?<![A-Za-z0-9+/=]))"
    rf"([A-Za-z0-9+/]{{{MIN_PICTURE},}}={{0,2}})"
)
_BEGINNINGS = {
    "iVBORw0KGgo": "image/png",
    "/9j/": "image/jpeg",
    "R0lGOD": "image/gif",
    "UklGR": "image/webp",
    "JVBERi0": "application/pdf",
}


def without_pictures(call: ToolCallResult) -> ToolCallResult:
    """The call with `[image/png, 225 kB]` in place of base64, in its input and its output."""
    return replace(call, input=_without(call.input), output=_without(call.output))


def _without(value: Any) -> Any:
    if isinstance(value, str):
        return _BASE64.sub(_named, value) if len(value) >= MIN_PICTURE else value
    if isinstance(value, dict):
        return {key: _without(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_without(each) for each in value]
    return value


def _named(found: re.Match[str]) -> str:
    kind = found[1] or next(
        (kind for start, kind in _BEGINNINGS.items() if found[2].startswith(start)), ""
    )
    if not kind and not re.search(r"[a-z]", found[2]):
        return found[0]  # one letter repeated, or hexadecimal digits
    return f"[{kind or 'base64'}, {len(found[2]) * 3 // 4 // 1000 or 1} kB]"
