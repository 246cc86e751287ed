"""Secrets in calls and texts, masked: `[masked:xxxxxx]`, the same mark for the same secret of one store.

The six characters are of a keyed hash (HMAC-SHA-256), so that a mark says nothing without the store's key, and equal
secrets stay equal: identical calls, repeats and repairs are recognized as before.
"""

from __future__ import annotations

import hmac
import json
import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from toolmem.late import late_pattern
from toolmem.readers.secret_names import LONGEST_NAME, is_secret_value, looks_chosen, secret_kind
from toolmem.readers.secret_spans import MASK, harmless_texts, scheme_of, secret_spans
from toolmem.readers.token_shapes import Span

if TYPE_CHECKING:
    from toolmem.models import ToolCallResult

_PLAIN = frozenset((int, float, bool, type(None)))  # most values: nothing hides in them
_SHORTEST = 8  # characters of a text in which something may hide that has no name
_LONG_KEY = 16  # characters of a key that may itself be a secret
_ROUNDS = 4
_REPEATED = 32  # secrets of a call that are looked for in its other texts
_LEAST_REPEATED = 6  # characters of such a secret
_NAMES = ("name", "key", "header", "field", "label", "selector", "element")  # in {"name": "API_KEY", "value": "..."}
_GIVEN = ("value", "text")  # under which stands what such a name is given
_FIELD = late_pattern(r"[\W_]*(?:field|input|box|textbox)?\W*$", re.IGNORECASE)  # "Password field", `input[name=token]`

Mark = Callable[[str], str]


def marked_by(key: bytes) -> Mark:
    """What stands in a secret's place."""
    return lambda secret: f"[masked:{hmac.digest(key, secret.encode('utf-8', 'surrogatepass'), 'sha256').hex()[:6]}]"


def has_mask(text: str) -> bool:
    """Whether a secret of the text was masked."""
    return "[masked:" in text and MASK.search(text) is not None


def masks_in(call: ToolCallResult) -> int:
    """How many values of a call's input, output and context are masked."""
    shown = call.input if isinstance(call.input, str) else json.dumps(call.input, default=str)
    return sum(len(MASK.findall(text)) for text in (shown, call.output, call.context) if "[masked:" in text)


class SecretMask:
    """Replaces secrets in what one call brings with it, and remembers which they were."""

    __slots__ = ("mark", "masked", "secrets")

    def __init__(self, mark: Mark) -> None:
        self.mark = mark
        self.secrets: dict[str, None] = {}  # in the order found
        self.masked = 0  # values

    def text(self, text: str) -> str:
        """The text with its secrets masked; masking the answer again changes nothing."""
        if len(text) < _SHORTEST:
            return text
        for _ in range(_ROUNDS):  # where a mask stands now, what is beside it may give itself away
            spans = secret_spans(text)
            if not spans:
                break
            text = self._without(text, spans)
        return text

    def _without(self, text: str, spans: Iterable[Span]) -> str:
        parts: list[str] = []
        read_to = 0
        for start, end in spans:
            parts += (text[read_to:start], self._masked(text[start:end]))
            read_to = end
        return "".join((*parts, text[read_to:]))

    def value(self, value: Any) -> Any:
        """As `text`, for a value of JSON; keys tell which values are secrets. What holds none is returned itself."""
        if not _may_hide((value,)):
            return value
        before = self.masked
        root = [value]
        waiting: list[tuple[Any, Any, str]] = [(root, 0, "")]
        while waiting:  # no recursion: how deep a value is nested is not ours to say
            holder, place, name = waiting.pop()
            inner = holder[place]
            if isinstance(inner, dict):
                holder[place] = copy = {self._key(key): each for key, each in inner.items()}
                waiting += [(copy, key, _name_of(copy, key, name)) for key in copy]
            elif isinstance(inner, list | tuple):
                holder[place] = copy_of_list = list(inner)
                waiting += [(copy_of_list, at, name) for at in range(len(copy_of_list))]
                self._options(copy_of_list)
            else:
                holder[place] = self._leaf(name, inner)
        return root[0] if self.masked > before else value

    def again(self, text: str) -> str:
        """The text with the secrets masked that were found so far, wherever they stand in it."""
        for secret in list(self.secrets)[:_REPEATED]:
            if secret in text and len(secret) >= _LEAST_REPEATED and looks_chosen(secret):
                expression = re.compile(rf"(?<![A-Za-z0-9]){re.escape(secret)}(?![A-Za-z0-9])")
                text = expression.sub(lambda found: self._masked(found[0]), text)
        return text

    def _masked(self, secret: str) -> str:
        self.masked += 1
        self.secrets[secret] = None
        return self.mark(secret)

    def _key(self, key: Any) -> Any:
        return self.text(key) if isinstance(key, str) and len(key) >= _LONG_KEY else key

    def _leaf(self, name: str, value: Any) -> Any:
        kind = secret_kind(name) if name else ""
        if isinstance(value, str):
            if not kind:
                return self.text(value)
            scheme = scheme_of(value)
            if scheme:
                return value[:scheme] + self._masked(value[scheme:])
            return self._masked(value) if is_secret_value(name, value, kind) else self.text(value)
        number = isinstance(value, int) and not isinstance(value, bool)
        return self._masked(str(value)) if kind == "sure" and number else value

    def _options(self, items: list[Any]) -> None:
        """`["--password", "x"]`, and a pair as lists of headers have them: `["X-Api-Key", "x"]`"""
        if len(items) == 2 and all(isinstance(each, str) for each in items) and secret_kind(items[0]):
            items[1] = self._leaf(items[0], items[1]) if looks_chosen(items[1][scheme_of(items[1]) :]) else items[1]
        for at in range(1, len(items)):
            option, value = items[at - 1], items[at]
            if isinstance(option, str) and option.startswith("--") and isinstance(value, str):
                kind = secret_kind(option)
                if kind and not value.startswith("-") and is_secret_value(option, value, kind):
                    items[at] = self._masked(value)


class NoMask(SecretMask):
    """A mask that masks nothing."""

    def __init__(self) -> None:
        super().__init__(lambda secret: secret)

    def text(self, text: str) -> str:
        return text


def _may_hide(values: Iterable[Any]) -> bool:
    """Whether values must be gone through place by place. Of most it is soon told that they hold no secret."""
    waiting = [values]
    while waiting:  # asked of every value of every call, more than once
        for inner in waiting.pop():
            kind = type(inner)
            if kind in _PLAIN:
                continue
            if kind is str or isinstance(inner, str):
                if len(inner) >= _SHORTEST and inner not in harmless_texts and secret_spans(inner):
                    return True
            elif kind is dict or isinstance(inner, dict):
                if not _harmless.issuperset(inner) and any(map(_tells, inner)):
                    return True
                waiting.append(inner.values())
            elif isinstance(inner, (list, tuple)):
                if _tells_options(inner):
                    return True
                waiting.append(inner)
    return False


def _tells_options(items: Sequence[Any]) -> bool:
    """Whether a list may hold options and their values, or be a name and its value."""
    for each in items:
        if isinstance(each, str) and each.startswith("--"):
            return True
    return len(items) == 2 and isinstance(items[1], str) and _tells(items[0])


_harmless: set[str] = set()  # keys that tell of no secret, as far as they were met
_MOST_KEYS = 4096


def _tells(key: Any) -> bool:
    """Whether this key may say that the value under it is a secret, or hold one itself."""
    if not isinstance(key, str) or key in _harmless:
        return False
    if len(key) > LONGEST_NAME or key in _GIVEN or secret_kind(key) or (len(key) >= _LONG_KEY and secret_spans(key)):
        return True
    if len(_harmless) < _MOST_KEYS:
        _harmless.add(key)
    return False


def _name_of(holder: dict[Any, Any], key: Any, outer: str) -> str:
    """What tells whether the value under this key is a secret: the key, or the name that stands beside it or around."""
    if key not in _GIVEN:
        return str(key)
    told = next((holder[name] for name in _NAMES if isinstance(holder.get(name), str)), "")
    told = _FIELD.sub("", told[-LONGEST_NAME:]) if told else outer if len(holder) == 1 else ""
    chosen = key == "value" or (isinstance(holder[key], str) and looks_chosen(holder[key]))
    return told if told and chosen else str(key)


def mask_call(call: ToolCallResult, mark: Mark) -> tuple[ToolCallResult, SecretMask]:
    """The call without its secrets, and the mask that knows them. A call without any is returned itself."""
    mask = SecretMask(mark)
    if not _may_hide((call.input, call.output, call.context, call.summary, call.evaluation, call.metadata)):
        return call, mask
    update: dict[str, Any] = {"input": mask.text(call.input) if isinstance(call.input, str) else mask.value(call.input)}
    texts = ("output", "context", "summary", "evaluation")
    update.update({name: mask.text(getattr(call, name)) for name in texts})
    if call.metadata:
        update["metadata"] = mask.value(call.metadata)
    if not mask.masked:
        return call, mask
    update.update({name: mask.again(update[name]) for name in texts})
    update["input"] = every_text(update["input"], mask.again)
    return call.model_copy(update=update), mask


def every_text(value: Any, change: Callable[[str], str]) -> Any:
    """A JSON value with each of its texts changed; keys stay."""
    root = [value]
    waiting: list[tuple[Any, Any]] = [(root, 0)]
    while waiting:
        holder, place = waiting.pop()
        inner = holder[place]
        if isinstance(inner, str):
            holder[place] = change(inner)
        elif isinstance(inner, dict | list):
            holder[place] = copy = inner.copy()
            waiting += [(copy, each) for each in (copy if isinstance(copy, dict) else range(len(copy)))]
    return root[0]


def count_secrets(calls: Iterable[ToolCallResult]) -> tuple[int, int]:
    """(secrets that would be masked, each once per call; calls that hold any)."""
    counts = [mask_call(call, lambda _: "[masked:000000]")[1].secrets for call in calls]
    return sum(map(len, counts)), sum(map(bool, counts))
