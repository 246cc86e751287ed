"""Prompt templates, named as in ReMe. Those in a user's file replace the packaged ones.

`{name}` is a placeholder; doubled braces are braces. A line is left out if it has placeholders and
no value is known for any of them. The Chinese template of a key is `<key>_zh`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

import yaml
from msgspec import Struct

from toolmem.config.layers import check_yaml
from toolmem.config.names import hint
from toolmem.errors import ConfigError

MAX_FILE = 200_000  # bytes
UNKNOWN = "unknown"  # in place of a missing value, in a line with known values
_PLACEHOLDER = re.compile(r"\{\{|\}\}|\{([a-z_]+)\}")


class Template(Struct, frozen=True):
    """The template of a prompt. `version`: the first 12 characters of its hash."""

    text: str

    @property
    def version(self) -> str:
        return blake2b(self.text.encode(), digest_size=16).hexdigest()[:12]

    def render(self, values: Mapping[str, str | None]) -> str:
        """Fill in the placeholders; None: unknown. Braces in values are kept as they are."""
        known = {name: value for name, value in values.items() if value is not None}

        def replaced(found: re.Match[str]) -> str:
            return known.get(found[1], UNKNOWN) if found[1] else found[0][0]

        return "\n".join(
            _PLACEHOLDER.sub(replaced, line)
            for line in self.text.splitlines()
            if not _placeholders(line) or _placeholders(line) & known.keys()
        )

    def ending_in(self, form: str, *markers: str) -> Template:
        """Append `form` to the template, unless the template has all `markers` already."""
        if all(marker in self.text for marker in markers):
            return self
        return Template(self.text.rstrip() + "\n\n" + form)


def _placeholders(text: str) -> set[str]:
    return {found for found in _PLACEHOLDER.findall(text) if found}


@cache
def load_template(packaged: str, key: str, language: str, user_file: str = "") -> Template:
    """Load a template from `user_file` or, if that lacks it, from toolmem's file `packaged`.

    `language`: "" or "zh". Raises ConfigError if `user_file` cannot be used.
    """
    own = _read(Path(packaged))
    texts = own | _read(Path(user_file)) if user_file else own
    key = f"{key}_{language}" if language else key
    template = Template(texts[key])
    known = _placeholders(own[key])
    for name in sorted(_placeholders(template.text) - known - {"statistics"}):
        raise ConfigError([f"{user_file}: {key}: unknown {{{name}}} ({hint(name, known)})"])
    return template


def _read(path: Path) -> dict[str, str]:
    try:
        if path.stat().st_size > MAX_FILE:
            raise ConfigError([f"prompt_path: {path} has over {MAX_FILE} bytes"])
        text = path.read_text(encoding="utf-8-sig")
        check_yaml(text)
        found = yaml.safe_load(text)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError([f"prompt_path: {path}: {error}"]) from None
    if not isinstance(found, dict) or not all(isinstance(text, str) for text in found.values()):
        raise ConfigError([f"prompt_path: {path}: expected names with texts"])
    return found


def as_json(value: Any) -> str:
    """A value as JSON on one line; a text stays as it is."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def cut_longest(texts: Mapping[str, str], limit: int) -> dict[str, str]:
    """Cut the longest texts, so that all together have about `limit` characters."""
    left = share = limit
    lengths = sorted(map(len, texts.values()))
    for position, length in enumerate(lengths):
        share = left // (len(lengths) - position)
        if length > share:
            break
        left -= length
    return {name: cut_middle(text, share) for name, text in texts.items()}


def cut_middle(text: str, limit: int) -> str:
    """Shorten a text to about `limit` characters by cutting its middle: the ends tell most."""
    if len(text) <= limit:
        return text
    head = limit - limit // 2
    cut = len(text) - limit
    return f"{text[:head]}[... {cut} characters cut ...]{text[len(text) - limit // 2 :]}"


# The opening or the closing tag of a thought may be missing.
_THOUGHT = re.compile(
    r"\A\s*<think(?:ing)?>(?:.*?</think(?:ing)?>|.*)|\A(?:(?!```).)*?</think(?:ing)?>",
    re.IGNORECASE | re.DOTALL,
)


def without_thought(reply: str) -> str:
    """Remove a model's reasoning, `<think>...</think>`, from the beginning of its reply."""
    return _THOUGHT.sub("", reply)
