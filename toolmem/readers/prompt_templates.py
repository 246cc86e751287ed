"""Prompt files: YAML texts with `{placeholders}`, in English and Chinese, tuned by users.

A template is written as for `str.format`: `{name}` is filled in, literal braces are doubled. A line whose
placeholders are all optional and all unknown is left out, so that a prompt never says `Seconds: None`.
Users' files go over ours, key by key. The version of a prompt is the first 12 hex digits of the SHA-256 of
the file that its text comes from; a variant in another language adds the language to what is hashed.
"""

from __future__ import annotations

import hashlib
import itertools
import logging
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from string import Formatter
from typing import Any

from toolmem.errors import ConfigError
from toolmem.models import Language
from toolmem.readers.json_values import without_surrogates

logger = logging.getLogger("toolmem.config")

LANGUAGES: tuple[Language, ...] = ("", "zh")
UNKNOWN = "unknown"  # what a placeholder without a value shows, where its line is not left out


@dataclass(frozen=True, slots=True)
class PromptKey:
    """One prompt: which placeholders it may use, must use, and which may be left out with their line."""

    name: str
    placeholders: frozenset[str]
    required: frozenset[str]
    optional: frozenset[str] = frozenset()


EVALUATE = PromptKey(
    "evaluate_tool_call_prompt",
    placeholders=frozenset(
        ("tool_name", "success_flag", "time_cost", "token_cost", "input_params", "output", "tool_schema", "context")
    ),
    required=frozenset(("output",)),
    optional=frozenset(("time_cost", "token_cost", "tool_schema", "context")),
)
REPAIR_EVALUATION = PromptKey(
    "repair_evaluation_prompt",
    placeholders=frozenset(("prompt", "reply", "problem")),
    required=frozenset(("prompt", "reply")),
)
SUMMARIZE = PromptKey(
    "summarize_tool_usage_prompt",
    # `statistics` is not in our prompt; early ReMe files have it
    placeholders=frozenset(("tool_name", "call_summaries", "statistics")),
    required=frozenset(("call_summaries",)),
    optional=frozenset(("statistics",)),
)
UPDATE = PromptKey(
    "update_tool_usage_prompt",
    placeholders=frozenset(("tool_name", "guidance", "call_summaries")),
    required=frozenset(("guidance", "call_summaries")),
)
PROMPT_KEYS: dict[str, PromptKey] = {key.name: key for key in (EVALUATE, REPAIR_EVALUATION, SUMMARIZE, UPDATE)}


_TAG = re.compile(r"(</?)([A-Za-z_][\w.:-]{0,60})((?:\s[^<>\0]{0,200})?>)")
_DIGITS = 3  # each costs a token, twice for each value


@cache
def tags_around_values(lines: tuple[tuple[str, ...], ...]) -> frozenset[str]:
    """Names of the tags of a template between whose opening and closing a placeholder stands."""
    text = "\n".join("\0".join(line[::2]) for line in lines)
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for tag in _TAG.finditer(text):
        if tag[1] == "<":
            first.setdefault(tag[2], tag.end())
        else:
            last[tag[2]] = tag.start()
    return frozenset(name for name in first.keys() & last.keys() if "\0" in text[first[name] : last[name]])


class Tags:
    """The tags of one prompt: `<output>` of the template is `<output482>` in it, wherever it stands.

    The first digits are those of the template, so that prompts go on to begin alike and a prefix cache serves them.
    Where a value holds a tag with them, others are drawn from a hash of the values, more and more of them: the same
    prompt is the same text.
    """

    def __init__(self, names: frozenset[str], values: Iterable[str]) -> None:
        self._names = names
        self._digits = _drawn(names, "\0".join(values).casefold()) if names else ""

    def numbered(self, literal: str) -> str:
        """Literal text of the template with its tags as the prompt has them."""
        return _TAG.sub(self._with_digits, literal)

    def _with_digits(self, tag: re.Match[str]) -> str:
        return f"{tag[1]}{tag[2]}{self._digits}{tag[3]}" if tag[2] in self._names else tag[0]


def _drawn(names: frozenset[str], values: str) -> str:
    digest = hashlib.sha256("\0".join(sorted(names)).encode())
    for length in itertools.count(_DIGITS):
        digits = str(int(digest.hexdigest(), 16))[-length:]
        digest.update(b"\0" + values.encode("utf-8", "surrogatepass"))
        if not any(f"{name}{digits}".casefold() in values for name in names):
            return digits
    raise AssertionError("a text holds finitely many numbers")


@dataclass(frozen=True, slots=True)
class PromptTemplate:
    """A checked template. `lines` hold literal text and placeholder names in turn, starting with a literal."""

    key: PromptKey
    lines: tuple[tuple[str, ...], ...]
    language: Language  # of the text, which may be English where another language was asked for
    version: str  # 12 hex digits
    origin: str  # the file

    @property
    def literal(self) -> str:
        """The template's own words, without what is filled in."""
        return "\n".join("".join(line[::2]) for line in self.lines)

    @property
    def size(self) -> int:
        """Characters of the prompt beside what is filled in."""
        return len(Tags(tags_around_values(self.lines), ()).numbered(self.literal))

    def shows(self, *markers: str) -> bool:
        """Do the template's own words hold all of these, whatever is filled in?"""
        literal = self.literal
        return all(marker in literal for marker in markers)

    def followed_by(self, text: str) -> PromptTemplate:
        """The same template with literal text behind it, on lines of its own."""
        return replace(self, lines=(*self.lines, *((line,) for line in text.split("\n"))))

    def render(self, values: Mapping[str, str | None]) -> str:
        """The prompt. A value of None (or a missing one) is unknown. Values are never expanded again.

        Tags around values get digits that no value holds (`<output482>`): no value can end its own tag. The same
        values have the same digits, so that the same prompt is sent. Lone surrogates become U+FFFD: nothing that is
        sent could carry them.
        """
        tags = Tags(tags_around_values(self.lines), [value for value in values.values() if value is not None])
        lines = [self._render_line(line, values, tags) for line in self.lines if not self._left_out(line, values)]
        return without_surrogates("\n".join(lines))

    def _left_out(self, line: tuple[str, ...], values: Mapping[str, str | None]) -> bool:
        names = line[1::2]
        return bool(names) and all(name in self.key.optional and values.get(name) is None for name in names)

    @staticmethod
    def _render_line(line: tuple[str, ...], values: Mapping[str, str | None], tags: Tags) -> str:
        parts = [tags.numbered(part) for part in line]
        for position in range(1, len(parts), 2):
            value = values.get(line[position])
            parts[position] = UNKNOWN if value is None else value
        return "".join(parts)


class Prompts:
    """The prompts of one op: a user's file over ours."""

    def __init__(self, templates: Mapping[str, PromptTemplate], theirs: Mapping[str, PromptTemplate]) -> None:
        self._ours = templates
        self._theirs = theirs
        self._warned: set[tuple[str, Language]] = set()

    def template(self, key: PromptKey, language: Language = "") -> PromptTemplate:
        """The text for `key`. A file that lacks the language serves its English text, with one warning.

        A user's English text goes before our text in the language asked for: it is what the user wrote.
        """
        for templates in (self._theirs, self._ours):
            wanted = templates.get(f"{key.name}_{language}" if language else key.name)
            if wanted is not None:
                return wanted
            english = templates.get(key.name)
            if english is not None:
                self._warn_once(key, language, english.origin)
                return english
        raise ConfigError(f"no prompt file holds '{key.name}'")

    def _warn_once(self, key: PromptKey, language: Language, origin: str) -> None:
        if (key.name, language) not in self._warned:
            self._warned.add((key.name, language))
            logger.warning("%s: no '%s_%s'; its English text is used", origin, key.name, language)


def load_prompts(ours: Path, theirs: str | Path | None = None) -> Prompts:
    """Read our prompt file and a user's own over it. Raises ConfigError with every problem of the user's file."""
    return Prompts(read_prompt_file(ours), {} if theirs is None else read_prompt_file(Path(theirs).expanduser()))


def read_prompt_file(path: Path) -> dict[str, PromptTemplate]:
    """Templates by their key in the file (`evaluate_tool_call_prompt_zh`, ...). Raises ConfigError."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"prompt file {path}: cannot be read ({error.strerror or error})") from None
    digest = hashlib.sha256(content)
    problems: list[str] = []
    templates: dict[str, PromptTemplate] = {}
    for name, text in _mapping(content, path).items():
        found = _known_key(str(name), path, problems)
        if found is None:
            continue
        key, language = found
        if not isinstance(text, str) or not text.strip():
            problems.append(f"prompt file {path}: '{name}' is not a text")
            continue
        lines = _parse(text.rstrip("\n"), key, f"prompt file {path}: '{name}'", problems)
        version = _version(digest, language)
        templates[str(name)] = PromptTemplate(key, lines, language, version, str(path))
    if problems:
        raise ConfigError(problems)
    return templates


def _version(digest: hashlib._Hash, language: Language) -> str:
    if not language:
        return digest.hexdigest()[:12]
    variant = digest.copy()
    variant.update(f"\0{language}".encode())
    return variant.hexdigest()[:12]


def _mapping(content: bytes, path: Path) -> dict[Any, Any]:
    import yaml

    try:
        loaded = yaml.safe_load(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ConfigError(f"prompt file {path}: is not UTF-8 (byte {error.start})") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f" (line {mark.line + 1}, column {mark.column + 1})" if mark is not None else ""
        raise ConfigError(
            f"prompt file {path}: is not YAML{place}: {getattr(error, 'problem', None) or error}"
        ) from None
    if not isinstance(loaded, dict):
        raise ConfigError(f"prompt file {path}: expected keys such as '{EVALUATE.name}', each with a text")
    return loaded


def _known_key(name: str, path: Path, problems: list[str]) -> tuple[PromptKey, Language] | None:
    """A name that nearly fits is a slip and a problem; other names belong to other tools and are passed over."""
    known = {key + (f"_{lang}" if lang else ""): (PROMPT_KEYS[key], lang) for key in PROMPT_KEYS for lang in LANGUAGES}
    near = get_close_matches(name, known, n=1, cutoff=0.8)
    if near and name not in known:
        problems.append(f"prompt file {path}: '{name}' is unknown (did you mean '{near[0]}'?)")
    elif not near:
        logger.warning("prompt file %s: '%s' is not a prompt of toolmem and is not used", path, name)
    return known.get(name)


def _parse(text: str, key: PromptKey, where: str, problems: list[str]) -> tuple[tuple[str, ...], ...]:
    lines: list[tuple[str, ...]] = []
    used: set[str] = set()
    for number, line in enumerate(text.split("\n"), start=1):
        parts = _parse_line(line, key, f"{where}, line {number}", problems)
        used.update(parts[1::2])
        lines.append(parts)
    problems.extend(f"{where}: the placeholder {{{name}}} is missing" for name in sorted(key.required - used))
    return tuple(lines)


def _parse_line(line: str, key: PromptKey, where: str, problems: list[str]) -> tuple[str, ...]:
    """Literal, name, literal, name, ..., literal."""
    parts: list[str] = [""]
    try:
        pieces = list(Formatter().parse(line))
    except ValueError as error:
        problems.append(f"{where}: {error}; literal braces are written doubled, {{{{ and }}}}")
        return ("",)
    for literal, name, form, conversion in pieces:
        parts[-1] += literal
        if name is None:
            continue
        problem = _placeholder_problem(name, form, conversion, key.placeholders)
        if problem:
            problems.append(f"{where}: {problem}")
        parts += [name, ""]
    return tuple(parts)


def _placeholder_problem(name: str, form: str | None, conversion: str | None, known: Iterable[str]) -> str:
    names = sorted(known)
    if name in names:
        return f"{{{name}}} takes no format; write it plainly" if form or conversion else ""
    if not name.isidentifier():
        return f"{{{name}}} is no placeholder; literal braces are written doubled, {{{{ and }}}}"
    near = get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f"did you mean {{{near[0]}}}?" if near else f"there are {', '.join(names)}"
    return f"unknown placeholder {{{name}}} ({hint})"
