"""What is never shown of a configuration: keys, and what addresses hold beside their place."""

from __future__ import annotations

import re
from typing import Any

HIDDEN = "***"
_SECRET = re.compile(r"(?:^|_)(?:key|token|password|secret|auth)$", re.IGNORECASE)
_USER = re.compile(r"(?<=://)[^/@\s]+(?=@)")
_QUERY = re.compile(r"([?&][^=&\s]+=)[^&\s#]+")


def is_secret(name: str) -> bool:
    """Whether a setting of this name is never shown."""
    return bool(_SECRET.search(name))


def masked(value: Any) -> Any:
    """`https://me:pw@host?key=k` becomes `https://***@host?key=***`, wherever it stands."""
    if isinstance(value, str):
        return _QUERY.sub(rf"\1{HIDDEN}", _USER.sub(HIDDEN, value)) if "://" in value else value
    if isinstance(value, list):
        return [masked(each) for each in value]
    if isinstance(value, dict):
        return {
            key: HIDDEN if is_secret(str(key)) and each else masked(each)
            for key, each in value.items()
        }
    return value


def shown(path: tuple[str, ...], value: Any) -> Any:
    """The value of a setting as it may be printed."""
    return HIDDEN if value and is_secret(path[-1]) else masked(value)
