"""Where secrets stand in a text: named ones, tokens, passwords of addresses, headers, options of commands.

Text is read as it stands, never parsed: JSON, JSON inside JSON, Python's `repr`, YAML, shell, XML and a line that was
cut in the middle are read alike. Every look around a finding is bounded, so the time grows with the text.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Sequence

from toolmem.late import late_pattern
from toolmem.late_dataclasses import dataclass
from toolmem.readers import words
from toolmem.readers.secret_names import (
    LONGEST_NAME,
    Kind,
    is_placeholder,
    is_plain_word,
    is_secret_value,
    looks_chosen,
    looks_random,
    secret_kind,
)
from toolmem.readers.token_shapes import Span, token_spans

_REMEMBERED = 4000  # characters of a text that is remembered to hold no secret
_MOST_REMEMBERED = 64_000  # such texts
_MOST_CHARACTERS = 4_000_000  # of all of them
_LONGEST_VALUE = 4000  # characters of a value in quotes
_WORDS = (
    *("passw", "passphrase", "passcode", "_pass", "pwd", "secret", "token", "key", "auth", "cookie", "credential"),
    *("jwt", "cvv", "cvc", "otp", "密码", "口令", "密钥", "令牌"),
)
_ESCAPED = late_pattern(r"\\u([0-9a-fA-F]{4})")  # as JSON writes what is not ASCII
_TOLD_BY = words(r"key token auth pass secret cookie pwd credential jwt cvv cvc otp \u")
_WORDS_ESCAPED = tuple(json.dumps(word)[1:-1] for word in _WORDS if not word.isascii())
# The end of a name, and a sign that its value follows. Of a text in lower case.
_NAMED = late_pattern(
    rf"((?:{'|'.join(map(re.escape, (*_WORDS, *_WORDS_ESCAPED)))})[a-z0-9_-]{{0,40}}+)(\\{{0,8}}+[\"'`]?\]?)"
    r"([ \t]{0,8}+(?:=>|:=|==?|[:：＝])[ \t]{0,8}+|>| is |[ \t]?是[ \t]?|[ \t]{1,3}+(?=[\"']))"
)
_NAME_MARKS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"
_QUOTED = late_pattern(r"\\{0,8}+[\"'`]")
_BARE = late_pattern(r"[^\s\"'`<>(){}\[\],;|&\\]{1,400}+")
_BARE_COOKIE = late_pattern(r"[^\r\n\"'`\\<>]{1,1000}+")
_BLANK = late_pattern(r"\s")
_SCHEME = late_pattern(r"(?:bearer|basic|token|apikey|bot|digest)[ \t]{1,4}+", re.IGNORECASE)
_ATTRIBUTES = late_pattern(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
_USERINFO = late_pattern(r"://[^\s/?#@:\"'<>\\]{0,200}+:([^\s/?#\"'<>\\]{1,400}+)")
_USER_TOKEN = late_pattern(r"://([A-Za-z0-9_-]{20,250}+)@")
_QUERY = late_pattern(r"[?&]([A-Za-z-]{0,24}[Ss]ignature|sig|key)=([A-Za-z0-9%+/=_-]{16,1000}+)")
_HEADER = late_pattern(r"(bearer|basic)(?:[ \t]|%20|\+){1,4}+([a-z0-9._~+/=-]{8,8000}+)")
_OPTION = late_pattern(r"(?<![\w-])--([A-Za-z][\w-]{0,40}+)(?:=|[ \t]{1,4}+)")
_PAIR = late_pattern(
    r"\"(?:name|key|header)\"[ ]?:[ ]?\"([\w. -]{1,64}+)\",\s{0,40}+\"value\"[ ]?:[ ]?\"([^\"\\]{1,4000}+)\"",
    re.IGNORECASE,
)
_PASSWORD = r"[\"']?([^\s\"'`\\|;&]{1,200}+)"
_COMMANDS = (
    ("mysql", late_pattern(rf"\bmysql\w{{0,10}}+[^\n|;&]{{0,200}}?\s-p{_PASSWORD}")),
    ("sshpass", late_pattern(rf"\bsshpass\s{{1,4}}+-p\s{{0,4}}+{_PASSWORD}")),
    ("redis-cli", late_pattern(rf"\bredis-cli\b[^\n|;&]{{0,200}}?\s-a\s{{1,4}}+{_PASSWORD}")),
    ("docker", late_pattern(rf"\bdocker login\b[^\n|;&]{{0,200}}?\s-p\s{{1,4}}+{_PASSWORD}")),
    (
        "curl",
        late_pattern(rf"\bcurl\b[^\n|;]{{0,400}}?\s(?:-u|--user)[ =]{{0,4}}+[\"']?[^\s:\"'`\\]{{0,100}}+:{_PASSWORD}"),
    ),
    ("identified by", late_pattern(r"\bidentified by [\"']([^\"'\n]{1,200}+)")),
)
MASK = late_pattern(r"\[masked:[0-9a-f]{6}\]")
_ASCII_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}


def secret_spans(text: str) -> Sequence[Span]:
    """Where secrets stand, in order; none overlaps another. A mask is read as a word that hides nothing."""
    if text in harmless_texts:
        return ()
    if "[masked:" in text:
        text = MASK.sub(lambda mask: "x" * len(mask[0]), text)
    spans = _read(text)
    if not spans and len(text) <= _REMEMBERED:
        _remember(text)
    return spans


# Texts come back: the same names of models and tasks, and a call once when it is judged and once when stored.
harmless_texts: set[str] = set()
_remembered = 0  # characters


def _remember(text: str) -> None:
    global _remembered
    if len(harmless_texts) >= _MOST_REMEMBERED or _remembered > _MOST_CHARACTERS:
        harmless_texts.clear()
        _remembered = 0
    harmless_texts.add(text)
    _remembered += len(text)


def _read(text: str) -> list[Span]:
    found = token_spans(text) if len(text) >= 16 else []
    if "=" in text or ":" in text or " " in text or ">" in text or not text.isascii():
        low = text.lower()
        if len(low) != len(text):  # İ
            low = text.translate(_ASCII_LOWER)
        found += _of_sentences(text, low)
    return _apart(text, found) if found else []


def _of_sentences(text: str, low: str) -> list[Span]:
    """Secrets that what stands before them gives away."""
    found: list[Span] = []
    if "://" in low:
        found += _of_addresses(text)
    if _may_name(low):
        found += _named(text, low)
        found += _of_options(text) if "--" in low else ()
        found += _of_pairs(text) if '"value"' in low else ()
    if "bearer" in low or "basic" in low:
        found += _of_headers(text, low)
    if " -" in low or "identified" in low:
        for command, expression in _COMMANDS:
            if command in low:
                found += (each.span(1) for each in expression.finditer(low))
    return found


def _may_name(low: str) -> bool:
    """Has the text one of `_WORDS` at all? Asked of every text, so in the fastest way there is."""
    return not low.isascii() or any(map(low.__contains__, _TOLD_BY))


def _apart(text: str, found: list[Span]) -> list[Span]:
    """Without what stands in another one, and without placeholders."""
    kept: list[Span] = []
    for start, end in sorted(found, key=lambda span: (span[0], -span[1])):
        if (not kept or start >= kept[-1][1]) and not is_placeholder(text[start : min(end, start + 200)]):
            kept.append((start, end))
    return kept


# ---------------------------------------------------------------- name and value


@dataclass(slots=True)
class _Given:
    """A name in a text, and the sign that its value follows."""

    text: str
    start: int  # of the name
    at: int  # where the value begins
    name: str
    kind: Kind
    sign: str  # "=", ":", "is", ">", ...; "" where a quote follows the name
    spaced: bool  # blanks around the sign
    in_quotes: bool  # the name ends with a quote


def _named(text: str, low: str) -> Iterator[Span]:
    read_to = 0
    for found in _NAMED.finditer(low):
        if found.start() < read_to:
            continue
        start, name, kind = _name_at(text, found.start(), found.end(1))
        if not kind:
            continue
        sign = found[3].strip()
        given = _Given(text, start, found.end(), name, kind, sign, sign != found[3], found[2][:1] not in ("", "]"))
        span = _value(given)
        if span is not None:
            read_to = span[1]
            yield span


def _name_at(text: str, begin: int, end: int) -> tuple[int, str, Kind]:
    """Where a name begins, the name, its kind. `api key` is one where `key` alone is none."""
    before = text[max(0, begin - LONGEST_NAME) : begin]
    rest = before.rstrip(_NAME_MARKS)
    head = before[len(rest) :]
    if rest.endswith("\\") and head[:1] in ("n", "r", "t"):  # \n as JSON text writes it
        head = head[1:]
    name = _ESCAPED.sub(lambda mark: chr(int(mark[1], 16)), head + text[begin:end])
    kind = secret_kind(name)
    if not kind and rest[-1:] == " ":
        word = rest[len(rest[:-1].rstrip(_NAME_MARKS)) : -1]
        kind = secret_kind(f"{word} {name}") if word else ""
    return begin - len(head), name, kind


def _value(given: _Given) -> Span | None:
    quoted = _QUOTED.match(given.text, given.at)
    if given.sign == ">":
        return _element(given)
    if quoted is not None:
        return _quoted(
            given.text, quoted, given.name, given.kind, chosen=given.sign not in ("=", ":", "：", "=>", ":=")
        )
    return _bare(given)


def _element(given: _Given) -> Span | None:
    """`<password>x</password>`"""
    text, at = given.text, given.at
    end = text.find("<", at, at + _LONGEST_VALUE)
    opened = text[max(0, given.start - 1) : given.start] == "<"
    return (at, end) if opened and end > at and is_secret_value(given.name, text[at:end], given.kind) else None


def _quoted(text: str, quoted: re.Match[str], name: str, kind: Kind, *, chosen: bool = False) -> Span | None:
    at = quoted.end()
    end = _end_of_quoted(text, at, quoted[0])
    if end is None:  # cut off: as far as it goes without a blank
        bare = _BARE.match(text, at)
        end = at if bare is None else bare.end()
    value = text[at:end]
    if "\n" in value or value.startswith((")", ",", ";")):  # the quote ended something: println("Password: ");
        return None
    scheme = scheme_of(value)
    if scheme:
        return at + scheme, end
    return (at, end) if is_secret_value(name, value, kind) and (not chosen or looks_chosen(value)) else None


def scheme_of(value: str) -> int:
    """Length of `Bearer ` and the like before credentials; 0 where it is none."""
    scheme = _SCHEME.match(value)
    rest = value[scheme.end() :] if scheme else ""
    if scheme is None or len(rest) < 6 or _BLANK.search(rest) or is_placeholder(rest):
        return 0
    return scheme.end()


def _end_of_quoted(text: str, at: int, mark: str) -> int | None:
    """Where the same mark stands again, with as many backslashes as the first one has."""
    limit, position = at + _LONGEST_VALUE, at
    for _ in range(20):  # escaped quotes inside
        end = text.find(mark[-1], position, limit)
        if end < 0:
            return None
        part = text[max(at, end - 20) : end]
        slashes = len(part) - len(part.rstrip("\\"))
        if len(mark) == 1 and slashes % 2 == 0:
            return end
        if len(mark) > 1 and slashes == len(mark) - 1:
            return end - slashes
        position = end + 1
    return None


def _bare(given: _Given) -> Span | None:
    """A value without quotes may be code, a type or a word of a sentence: more is asked of it."""
    text, at, kind = given.text, given.at, given.kind
    if "cookie" in given.name.lower():
        line = _BARE_COOKIE.match(text, at) if given.sign == ":" else None
        return line.span() if line is not None and is_secret_value(given.name, line[0], kind) else None
    scheme = _SCHEME.match(text, at)
    if scheme is not None and "auth" in given.name.lower():
        at, kind = scheme.end(), "sure"
    bare = _BARE.match(text, at)
    if bare is None or text[bare.end() : bare.end() + 1] in ("(", "["):
        return None
    value = bare[0].rstrip(".,;:，。")
    return (at, at + len(value)) if value and _is_bare_secret(given, kind, value, bare.end()) else None


def _is_bare_secret(given: _Given, kind: Kind, value: str, end: int) -> bool:
    if not is_secret_value(given.name, value, kind) or _ATTRIBUTES.fullmatch(value):
        return False
    if kind == "likely":
        return looks_random(value)
    digits = value.isdigit() and (len(value) >= 4 or given.in_quotes)
    if given.sign in ("is", "是"):
        return digits or (looks_chosen(value) and not value[0].isdigit())
    return digits or looks_chosen(value) or (value.isascii() and _is_assigned(given, value, end))


def _is_assigned(given: _Given, value: str, end: int) -> bool:
    """`PASSWORD=x` of a shell, `--password=x`, `?password=x`, a quoted header, a line `password: x` of a file."""
    text, start = given.text, given.start
    before, after = text[max(0, start - 1) : start], text[end : end + 1]
    if given.sign == "=" and not given.spaced and (before in ("?", "&", ";", "-") or text[start] == "-"):
        return True
    if secret_kind(value):  # password=password: an argument of the same name
        return False
    if given.sign == "=" and not given.spaced:
        alone = before in (" ", "'", '"', "\n", "") and after in (" ", "'", '"', "\n", "")
        return alone or text[start].isupper()
    if given.sign == ":" and before in ("'", '"') and after == before:
        return not given.in_quotes
    line = text[text.rfind("\n", max(0, start - 60), start) + 1 : start]
    whole = not given.in_quotes and not line.strip(" \t-") and after in ("", "\n", "\r")
    return whole and given.sign in (":", "=") and len(value) >= 6 and value.isalpha() and value.islower()


# ---------------------------------------------------------------- addresses, headers, options, pairs


def _of_addresses(text: str) -> Iterator[Span]:
    for found in _USERINFO.finditer(text):
        password = found[1].rpartition("@")[0]
        if password:
            yield found.start(1), found.start(1) + len(password)
    for found in _USER_TOKEN.finditer(text):
        if looks_random(found[1], 20):
            yield found.span(1)
    for found in _QUERY.finditer(text):
        if looks_random(found[2], 16) and (found[1] != "key" or found[2] not in (found[2].lower(), found[2].upper())):
            yield found.span(2)


def _of_headers(text: str, low: str) -> Iterator[Span]:
    for found in _HEADER.finditer(low):
        value = text[found.start(2) : found.end(2)]
        if looks_random(value) if found[1] == "bearer" else _is_user_and_password(value):
            yield found.span(2)


def _is_user_and_password(value: str) -> bool:
    """Base64 of `user:password`?"""
    try:
        return b":" in base64.b64decode(value, validate=True)
    except ValueError:
        return False


def _of_options(text: str) -> Iterator[Span]:
    """`--password x`, `--api-key 'x'`; not the words of a manual page (`--password PASSWORD`, `--token is`)."""
    for found in _OPTION.finditer(text):
        if not secret_kind(found[1]):
            continue
        quoted = _QUOTED.match(text, found.end())
        bare = _BARE.match(text, found.end())
        if quoted is not None:
            span = _quoted(text, quoted, found[1], "sure")
        elif bare is None or bare[0].startswith("-") or bare[0].isupper() or is_plain_word(bare[0]):
            span = None
        else:
            span = bare.span() if is_secret_value(found[1], bare[0], "sure") else None
        if span is not None:
            yield span


def _of_pairs(text: str) -> Iterator[Span]:
    """`{"name": "API_KEY", "value": "x"}`"""
    for found in _PAIR.finditer(text):
        kind = secret_kind(found[1])
        if kind and is_secret_value(found[1], found[2], kind):
            yield found.span(2)
