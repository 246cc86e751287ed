"""Replace secrets with marks: `[masked:xxxxxx]`, the same mark for the same secret of one store.

The six characters come from a keyed hash (HMAC-SHA-256). Without the store's key a mark reveals
nothing. Equal secrets have equal marks, so that identical calls and repairs are still recognized.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from msgspec.structs import replace

from toolmem.models.calls import ToolCallResult
from toolmem.text.patterns import late_pattern
from toolmem.text.secret_names import (
    LONGEST_NAME,
    is_secret_value,
    looks_like_password,
    secret_kind,
)
from toolmem.text.secret_spans import is_option_value, scheme_length, secret_spans

MASK = late_pattern(r"\[masked:[0-9a-f]{6}\]")
_MIN_TEXT = 8  # characters of a text that can hold a secret without a name
_MIN_KEY = 16  # characters of a key that may itself be a secret
_ROUNDS = 4  # once a secret is masked, the text beside it may be recognized as another
_MAX_REPEATED = 32  # secrets of a call that are searched in its other texts
_MIN_REPEATED = 6  # characters of such a secret
_NAMES = ("name", "key", "header", "field", "label", "selector", "element")
_VALUES = ("value", "text")  # {"name": "API_KEY", "value": "..."}
_FIELD = late_pattern(r"[\W_]*(?:field|input|box|textbox)?\W*$", re.IGNORECASE)  # "Password field"
_TEXTS = ("output", "context", "summary", "evaluation")


def has_mask(text: str) -> bool:
    """Whether the text holds the mark of a secret."""
    return "[masked:" in text and MASK.search(text) is not None


def mask_call(call: ToolCallResult, key: bytes) -> ToolCallResult:
    """Copy the call with its secrets masked; without secrets, return the call itself."""
    masker = Masker(key)
    changed: dict[str, Any] = {name: masker.text(getattr(call, name)) for name in _TEXTS}
    changed |= {"input": masker.value(call.input), "metadata": masker.value(call.metadata)}
    if not masker.secrets:
        return call
    return replace(call, **masker.mask_repeated(changed))


class Masker:
    """Masks the secrets of one call, and remembers them in `secrets`."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self.secrets: dict[str, None] = {}  # in the order found

    def text(self, text: str) -> str:
        """Mask the secrets in a text. Masking the result again changes nothing."""
        for _ in range(_ROUNDS if len(text) >= _MIN_TEXT else 0):
            plain = MASK.sub(lambda mask: "x" * len(mask[0]), text) if "[masked:" in text else text
            spans = secret_spans(plain)
            if not spans:
                break
            for start, end in reversed(spans):
                text = f"{text[:start]}{self._mark(text[start:end])}{text[end:]}"
        return text

    def value(self, value: Any, name: str = "") -> Any:
        """Mask secrets in a JSON value. Its `name` and the keys in it tell what is a secret."""
        if isinstance(value, str):
            return self._named_text(name, value)
        if isinstance(value, Mapping):
            masked = {}
            for key, each in value.items():
                is_long = isinstance(key, str) and len(key) >= _MIN_KEY
                own_key = self.text(key) if is_long else key
                masked[own_key] = self.value(each, _name_of(value, key, name))
            return masked
        if isinstance(value, list | tuple):
            return [self.value(each, name) for each in self._with_options(value)]
        is_number = isinstance(value, int) and not isinstance(value, bool)
        return self._mark(str(value)) if is_number and secret_kind(name) == "sure" else value

    def mask_repeated(self, value: Any) -> Any:
        """Mask the secrets found so far wherever they occur in `value`."""
        if isinstance(value, Mapping):
            return {key: self.mask_repeated(each) for key, each in value.items()}
        if isinstance(value, list | tuple):
            return [self.mask_repeated(each) for each in value]
        if not isinstance(value, str):
            return value
        for secret in list(self.secrets)[:_MAX_REPEATED]:
            is_long = len(secret) >= _MIN_REPEATED
            if is_long and secret in value and looks_like_password(secret):
                alone = rf"(?<![A-Za-z0-9]){re.escape(secret)}(?![A-Za-z0-9])"
                value = re.sub(alone, self._mark(secret), value)
        return value

    def _mark(self, secret: str) -> str:
        self.secrets[secret] = None
        digest = hmac.digest(self._key, secret.encode("utf-8", "surrogatepass"), "sha256")
        return f"[masked:{digest.hex()[:6]}]"

    def _named_text(self, name: str, value: str) -> str:
        kind = secret_kind(name) if name else ""
        if not kind:
            return self.text(value)
        if scheme := scheme_length(value):
            return value[:scheme] + self._mark(value[scheme:])
        return self._mark(value) if is_secret_value(name, value, kind) else self.text(value)

    def _with_options(self, items: list[Any] | tuple[Any, ...]) -> list[Any]:
        """Mask the secrets of options and pairs in a list: `["--password", "x"]`, a header."""
        found = list(items)
        if len(found) == 2 and all(isinstance(each, str) for each in found):
            name, value = found
            if secret_kind(name) and looks_like_password(value[scheme_length(value) :]):
                found[1] = self._named_text(name, value)
        for at, (option, value) in enumerate(pairwise(found), 1):
            if not isinstance(option, str) or not isinstance(value, str):
                continue
            if option.startswith("--") and secret_kind(option) and is_option_value(option, value):
                found[at] = self._mark(value)
        return found


def _name_of(holder: Mapping[Any, Any], key: Any, outer: str) -> str:
    """Return the name of the value under `key`: the key, or a name beside it or around it."""
    if key not in _VALUES:
        return str(key)
    name = next((holder[each] for each in _NAMES if isinstance(holder.get(each), str)), "")
    if name:
        name = _FIELD.sub("", name[-LONGEST_NAME:])
    elif len(holder) == 1:
        name = outer
    is_value = key == "value" or (isinstance(holder[key], str) and looks_like_password(holder[key]))
    return name if name and is_value else str(key)
