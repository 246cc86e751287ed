"""Prompt files: YAML texts with `{placeholders}`, in English and Chinese, tuned by users.

A template is written as for `str.format`: `{name}` is filled in, literal braces are doubled. A line whose
placeholders are all optional and all unknown is left out, so that a prompt never says `Seconds: None`.
Users' files go over ours, key by key. The version of a prompt is the first 12 hex digits of the SHA-256 of
the file that its text comes from; a variant in another language adds the language to what is hashed.
"""

from __future__ import annotations

import hashlib
import itertools
import json
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
        found = _known_key(name, path, problems)
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


def _known_key(name: Any, path: Path, problems: list[str]) -> tuple[PromptKey, Language] | None:
    """A name that nearly fits is a slip and a problem; other names belong to other tools and are passed over."""
    for language in LANGUAGES:
        suffix = f"_{language}" if language else ""
        stem = str(name).removesuffix(suffix)
        if stem in PROMPT_KEYS and str(name) == stem + suffix:
            return PROMPT_KEYS[stem], language
    known = [key + (f"_{language}" if language else "") for key in PROMPT_KEYS for language in LANGUAGES]
    near = get_close_matches(str(name), known, n=1, cutoff=0.8)
    if near:
        problems.append(f"prompt file {path}: '{name}' is unknown (did you mean '{near[0]}'?)")
    else:
        logger.warning("prompt file %s: '%s' is not a prompt of toolmem and is not used", path, name)
    return None


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


# ---------------------------------------------------------------- text that goes into a prompt

_SURROGATES = re.compile("[\ud800-\udfff]")


def as_json(value: Any) -> str:
    """A value on one line, as short as JSON allows; a text stays as it is."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def seconds_text(seconds: float | None) -> str | None:
    """Three digits behind the point, or three significant ones below a second; None stays unknown."""
    if seconds is None:
        return None
    return f"{seconds:.3g}" if seconds < 1 else f"{seconds:.3f}".rstrip("0").rstrip(".")


def without_surrogates(text: str) -> str:
    """Lone surrogates as U+FFFD; they have no UTF-8 form."""
    return text if text.isascii() else _SURROGATES.sub("\ufffd", text)


def cut_middle(text: str, limit: int) -> str:
    """At most `limit` characters; what is cut is cut in the middle and counted where it was.

    Tools say what they do at the start of an output and what went wrong at its end, so both are kept. Where
    `limit` has no room for the note, the note alone is left.
    """
    if len(text) <= limit:
        return text
    room = max(limit - len(_cut_note(len(text))), 0)
    head, tail = room - room // 2, room // 2
    return text[:head] + _cut_note(len(text) - room) + text[len(text) - tail :]


def _cut_note(characters: int) -> str:
    return f"[... {characters:,} characters cut ...]"


def fit(texts: Mapping[str, str], limit: int) -> dict[str, str]:
    """Cut the longest texts so that all together have at most `limit` characters; short ones stay whole."""
    share = _share(sorted(map(len, texts.values())), limit)
    return {name: cut_middle(text, share) for name, text in texts.items()}


def _share(lengths: list[int], limit: int) -> int:
    """The length to which long texts are cut: what short ones do not need is shared among the long ones."""
    left = limit
    for position, length in enumerate(lengths):
        share = left // (len(lengths) - position)
        if length > share:
            return share
        left -= length
    return max(lengths, default=0)
