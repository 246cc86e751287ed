"""What is never shown: the values of secret keys, and what an address holds beside scheme, host, port and path."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from toolmem.late import late_pattern

HIDDEN = "***"

_SECRET = ("key", "token", "password", "secret", "auth")
_SECRET_VARIABLE = ("pass", "passwd", "pwd", "passphrase", "credential", "credentials", "apikey", "pat", "dsn")
_LEAST = 4  # characters of a secret that is looked for inside a text
_WORD = late_pattern(r"\S+")
_QUERY = late_pattern(r"\?[^&;=?]+=|\?\?=")  # each question mark is looked at once
_FIELD = late_pattern(r"[&;]")


def is_secret(name: str) -> bool:
    """Does a key of this name hold something that is never shown?"""
    words = name.lower().split("_")
    return any(word in _SECRET for word in words) and not name.lower().endswith(("_env", "_file", "tokens"))


def is_secret_variable(name: str) -> bool:
    """As `is_secret`, of the name of an environment variable."""
    return is_secret(name) or any(word in _SECRET_VARIABLE for word in name.lower().split("_"))


def without(text: str, secrets: Collection[str]) -> str:
    """The text with `***` in place of each of these values; a short one is hidden where it is the whole text."""
    if text.strip("'\"") in secrets:
        return HIDDEN
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= _LEAST:
            text = text.replace(secret, HIDDEN)
    return text


def masked(text: str) -> str:
    """The text with `***` for the user, the values of a query and the fragment of each address in it.

    `https://me:pw@host/v1?api_key=k` becomes `https://***@host/v1?api_key=***`. An address without a scheme is known
    by `user:password@` or by `?name=`. Where it is not plain what is secret, more is hidden than need be.
    """
    return _WORD.sub(lambda found: _masked_word(found[0]), text)


def masked_value(value: Any) -> Any:
    """As `masked`, for every text in a value of lists and mappings."""
    if isinstance(value, str):
        return masked(value)
    if isinstance(value, list | tuple):
        return [masked_value(item) for item in value]
    if isinstance(value, dict):
        return {key: masked_value(item) for key, item in value.items()}
    return value


def _masked_word(word: str) -> str:
    start, scheme, address = word.partition("://")
    if not scheme:
        start, address = "", word
        if not (":" in address.rpartition("@")[0] or _QUERY.search(address)):
            return word
    user, at, place = address.rpartition("@")
    if at and re.search(r"[?#]", user):
        return f"{start}{scheme}{HIDDEN}"  # a password with such a sign, or a query with an @: which, nobody can tell
    head, sign, tail = _parted(place)
    return f"{start}{scheme}{HIDDEN + at if at else ''}{head}{sign}{_masked_tail(tail, sign)}"


def _parted(place: str) -> tuple[str, str, str]:
    """(host, port and path; `?` or `#`; what follows it)."""
    found = re.search(r"[?#]", place)
    return (place, "", "") if found is None else (place[: found.start()], found[0], place[found.end() :])


def _masked_tail(tail: str, sign: str) -> str:
    if not tail or sign == "#":
        return HIDDEN if tail else ""
    fields = (field.partition("=") for field in _FIELD.split(tail.partition("#")[0]))
    return "&".join(f"{name}={HIDDEN}" if equals else HIDDEN for name, equals, _ in fields)
