"""Find secrets in a text: tokens, named values, passwords of URLs, headers, options.

The text is never parsed: JSON, JSON inside JSON, Python's `repr`, YAML, shell, XML and a line that
was cut in the middle are read alike. Only a bounded part around a finding is read, so that the time
is linear in the text.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from msgspec import Struct

from toolmem.text.forms import word_set
from toolmem.text.patterns import late_pattern
from toolmem.text.secret_names import (
    LONGEST_NAME,
    Kind,
    is_placeholder,
    is_plain_word,
    is_secret_value,
    looks_like_password,
    looks_random,
    secret_kind,
)

Span = tuple[int, int]  # start and end, as in text[start:end]

_SHORT = 200  # characters of a text whose spans are remembered
_LONGEST_VALUE = 4000  # characters of a value in quotes
_MOST_ESCAPED_QUOTES = 20  # of a value in quotes
_WORDS = word_set(
    "passw passphrase passcode _pass pwd secret token key auth cookie credential jwt cvv cvc otp "
    "密码 口令 密钥 令牌"
)
_ESCAPED_WORDS = [json.dumps(word)[1:-1] for word in _WORDS if not word.isascii()]
_HINTS = word_set("key token auth pass secret cookie pwd credential jwt cvv cvc otp \\u")
# The end of a name, its closing quote, and a sign that its value follows. Read in lower case.
_NAMED = late_pattern(
    rf"((?:{'|'.join(map(re.escape, sorted((*_WORDS, *_ESCAPED_WORDS))))})[a-z0-9_-]{{0,40}}+)"
    r"(\\{0,8}+[\"'`]?\]?)"
    r"([ \t]{0,8}+(?:=>|:=|==?|[:：＝])[ \t]{0,8}+|>| is |[ \t]?是[ \t]?|[ \t]{1,3}+(?=[\"']))"
)
_NAME_CHARACTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"
_ESCAPED_CHARACTER = late_pattern(r"\\u([0-9a-fA-F]{4})")
_QUOTE = late_pattern(r"\\{0,8}+[\"'`]")
_BARE = late_pattern(r"[^\s\"'`<>(){}\[\],;|&\\]{1,400}+")
_BARE_COOKIE = late_pattern(r"[^\r\n\"'`\\<>]{1,1000}+")
_SCHEME = late_pattern(r"(?:bearer|basic|token|apikey|bot|digest)[ \t]{1,4}+", re.IGNORECASE)
_ATTRIBUTES = late_pattern(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")  # settings.api_key
_USER_AND_PASSWORD = late_pattern(r"://[^\s/?#@:\"'<>\\]{0,200}+:([^\s/?#\"'<>\\]{1,400}+)")
_USER_TOKEN = late_pattern(r"://([A-Za-z0-9_-]{20,250}+)@")
_QUERY = late_pattern(r"[?&]([A-Za-z-]{0,24}[Ss]ignature|sig|key)=([A-Za-z0-9%+/=_-]{16,1000}+)")
_HEADER = late_pattern(r"(bearer|basic)(?:[ \t]|%20|\+){1,4}+([a-z0-9._~+/=-]{8,8000}+)")
_OPTION = late_pattern(r"(?<![\w-])--([A-Za-z][\w-]{0,40}+)(?:=|[ \t]{1,4}+)")
_PAIR = late_pattern(
    r"\"(?:name|key|header)\"[ ]?:[ ]?\"([\w. -]{1,64}+)\","
    r"\s{0,40}+\"value\"[ ]?:[ ]?\"([^\"\\]{1,4000}+)\"",
    re.IGNORECASE,
)
_PASSWORD = r"[\"']?([^\s\"'`\\|;&]{1,200}+)"
_COMMANDS = (  # (a text that a command line holds, the option with its password)
    ("mysql", rf"\bmysql\w{{0,10}}+[^\n|;&]{{0,200}}?\s-p{_PASSWORD}"),
    ("sshpass", rf"\bsshpass\s{{1,4}}+-p\s{{0,4}}+{_PASSWORD}"),
    ("redis-cli", rf"\bredis-cli\b[^\n|;&]{{0,200}}?\s-a\s{{1,4}}+{_PASSWORD}"),
    ("docker", rf"\bdocker login\b[^\n|;&]{{0,200}}?\s-p\s{{1,4}}+{_PASSWORD}"),
    (
        "curl",
        r"\bcurl\b[^\n|;]{0,400}?\s(?:-u|--user)[ =]{0,4}+[\"']?[^\s:\"'`\\]{0,100}+:" + _PASSWORD,
    ),
    ("identified by", r"\bidentified by [\"']([^\"'\n]{1,200}+)"),
)
_ASCII_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}


# Tokens that are known by their form alone. Most are one long word, so these forms are tried only
# on long words. No expression backtracks.
_SHORTEST_TOKEN = 16  # characters of the shortest token
_END = r"(?![A-Za-z0-9_-])"
_LONG_WORD = late_pattern(r"[A-Za-z0-9_-]{16,}+")
_JOINT = late_pattern(r"[-_](?=[A-Za-z])")
_LONGEST_PREFIX = 64  # characters of a word before a token in it: `backup_ghp_...`
_WORD_TOKENS = late_pattern(
    "|".join(
        (
            r"A[KS]IA[A-Z0-9]{16}(?![A-Za-z0-9])",  # Amazon
            rf"LTAI[A-Za-z0-9]{{12,26}}+{_END}",  # Alibaba Cloud
            r"AIza[A-Za-z0-9_-]{30,45}+|GOCSPX-[A-Za-z0-9_-]{20,60}+",  # Google
            r"gh[pousr]_[A-Za-z0-9]{20,255}+|github_pat_[A-Za-z0-9_]{20,255}+",
            r"glpat-[A-Za-z0-9_-]{16,64}+",  # GitLab
            r"xox[abeoprs]-[A-Za-z0-9-]{10,250}+|xapp-\d-[A-Za-z0-9-]{10,250}+",  # Slack
            r"[sr]k_(?:live|test)_[A-Za-z0-9]{8,250}+|whsec_[A-Za-z0-9+/=]{16,100}+",  # Stripe
            # OpenAI, Anthropic, DashScope, DeepSeek and services that use their form
            rf"sk-[A-Za-z0-9]{{20,200}}+{_END}",
            r"sk-(?:live|test|proj|ant|or|svcacct|admin)-(?=[A-Za-z_-]{0,40}+[0-9])"
            r"[A-Za-z0-9_-]{8,250}+",
            r"xai-[A-Za-z0-9]{40,120}+|gsk_[A-Za-z0-9]{30,80}+|tvly-[A-Za-z0-9-]{20,60}+",
            r"(?:hf|r8)_[A-Za-z0-9]{30,60}+",  # Hugging Face, Replicate
            rf"npm_[A-Za-z0-9]{{36}}{_END}|pypi-[A-Za-z0-9_-]{{50,400}}+",
            r"dop_v1_[a-f0-9]{64}|shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}",  # DigitalOcean, Shopify
            r"eyJ[A-Za-z0-9_-]{8,4000}+\.eyJ[A-Za-z0-9_-]{8,8000}+"  # JSON web tokens
            r"(?:\.[A-Za-z0-9_-]{0,2000}+)?+",
        )
    )
)
# Tokens of several words: (a text that each of them holds, its form).
_OTHER_TOKENS = (
    ("ya29.", r"\bya29\.[A-Za-z0-9_-]{20,2000}+"),  # Google
    ("SG.", r"\bSG\.[A-Za-z0-9_-]{16,64}+\.[A-Za-z0-9_-]{16,64}+"),  # SendGrid
    ("hvs.", r"\bhvs\.[A-Za-z0-9_-]{24,200}+"),  # Vault
    (":AA", rf"\b\d{{8,10}}:AA[A-Za-z0-9_-]{{33}}{_END}"),  # Telegram
    (
        "hooks.slack.com",
        r"(?<=hooks\.slack\.com/services/)T[A-Z0-9]{6,14}+/B[A-Z0-9]{6,14}+/[A-Za-z0-9]{16,40}+",
    ),
    (
        "PRIVATE KEY",
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
        r"[^-]{0,16000}+(?:-(?!----)[^-]{0,4000}+){0,40}+"
        r"(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----)?+",
    ),
)


def secret_spans(text: str) -> Sequence[Span]:
    """Return (start, end) of each secret in a text, in order; none overlaps another."""
    return _spans_of_short(text) if len(text) <= _SHORT else _spans(text)


def _spans(text: str) -> Sequence[Span]:
    found = list(_tokens(text)) if len(text) >= _SHORTEST_TOKEN else []
    low = text.lower()
    if len(low) != len(text):  # in lower case, İ has two characters
        low = text.translate(_ASCII_LOWER)
    if "://" in low:
        found += _of_urls(text)
    if not low.isascii() or any(map(low.__contains__, _HINTS)):
        found += _named(text, low)
        found += _of_options(text)
        found += _of_pairs(text)
    if "bearer" in low or "basic" in low:
        found += _of_headers(text, low)
    for command, expression in _COMMANDS:
        if command in low:
            found += (each.span(1) for each in re.finditer(expression, low))
    return _without_overlaps(text, found) if found else ()


# The same names of models, tasks and users come with every call.
_spans_of_short = lru_cache(maxsize=10_000)(_spans)


def _without_overlaps(text: str, found: list[Span]) -> list[Span]:
    """Sort the spans, and drop placeholders and spans that overlap an earlier one."""
    kept: list[Span] = []
    for start, end in sorted(found, key=lambda span: (span[0], -span[1])):
        overlaps = bool(kept) and start < kept[-1][1]
        if not overlaps and not is_placeholder(text[start : min(end, start + 200)]):
            kept.append((start, end))
    return kept


# ---------------------------------------------------------------- a name and its value


class _Name(Struct):
    """A name in a text that may hold a secret, and the sign that its value follows."""

    text: str
    start: int
    value_at: int
    name: str
    kind: Kind
    sign: str  # "=", ":", "is", ">", ...; "" where the value's quote follows the name
    spaced: bool  # there are blanks around the sign
    in_quotes: bool  # the name ends with a quote

    @property
    def before(self) -> str:
        """Return the character before the name; "" at the beginning of the text."""
        return self.text[max(0, self.start - 1) : self.start]


def _named(text: str, low: str) -> Iterator[Span]:
    read_to = 0
    for found in _NAMED.finditer(low):
        if found.start() < read_to:
            continue
        start, name, kind = _name_at(text, found.start(), found.end(1))
        if not kind:
            continue
        sign = found[3].strip()
        in_quotes = found[2][:1] not in ("", "]")
        spaced = sign != found[3]
        span = _value(_Name(text, start, found.end(), name, kind, sign, spaced, in_quotes))
        if span is not None:
            read_to = span[1]
            yield span


def _name_at(text: str, begin: int, end: int) -> tuple[int, str, Kind]:
    """Return (start, name, kind) of a name. `api key` gets the kind of both words together."""
    before = text[max(0, begin - LONGEST_NAME) : begin]
    rest = before.rstrip(_NAME_CHARACTERS)
    head = before[len(rest) :]
    if rest.endswith("\\") and head[:1] in ("n", "r", "t"):  # \n of JSON text
        head = head[1:]
    name = _ESCAPED_CHARACTER.sub(lambda code: chr(int(code[1], 16)), head + text[begin:end])
    kind = secret_kind(name)
    if not kind and rest[-1:] == " ":
        word = rest[len(rest[:-1].rstrip(_NAME_CHARACTERS)) : -1]
        kind = secret_kind(f"{word} {name}") if word else ""
    return begin - len(head), name, kind


def _value(found: _Name) -> Span | None:
    if found.sign == ">":  # <password>x</password>
        at = found.value_at
        end = found.text.find("<", at, at + _LONGEST_VALUE)
        is_element = found.before == "<" and end > at
        value = found.text[at:end] if is_element else ""
        return (at, end) if is_secret_value(found.name, value, found.kind) else None
    quote = _QUOTE.match(found.text, found.value_at)
    if quote is None:
        return _bare_value(found)
    is_strict = found.sign not in ("=", ":", "：", "=>", ":=")
    return _quoted_value(found.text, quote, found.name, found.kind, is_strict)


def _quoted_value(
    text: str, quote: re.Match[str], name: str, kind: Kind, is_strict: bool = False
) -> Span | None:
    at = quote.end()
    end = _end_of_quoted(text, at, quote[0])
    if end is None:  # the text was cut off: the value goes on to the next blank
        bare = _BARE.match(text, at)
        end = at if bare is None else bare.end()
    value = text[at:end]
    if "\n" in value or value.startswith((")", ",", ";")):  # the quote closes: print("Password: ")
        return None
    if scheme := scheme_length(value):
        return at + scheme, end
    is_secret = is_secret_value(name, value, kind)
    return (at, end) if is_secret and (looks_like_password(value) or not is_strict) else None


def scheme_length(value: str) -> int:
    """Return the length of `Bearer ` or the like before credentials; 0 if there is none."""
    scheme = _SCHEME.match(value)
    rest = value[scheme.end() :] if scheme else ""
    if scheme is None or len(rest) < 6 or re.search(r"\s", rest) or is_placeholder(rest):
        return 0
    return scheme.end()


def _end_of_quoted(text: str, at: int, quote: str) -> int | None:
    """Find the closing quote: the same sign after as many backslashes. None if it is cut off."""
    limit = at + _LONGEST_VALUE
    position = at
    for _ in range(_MOST_ESCAPED_QUOTES):
        end = text.find(quote[-1], position, limit)
        if end < 0:
            return None
        part = text[max(at, end - 20) : end]
        backslashes = len(part) - len(part.rstrip("\\"))
        if len(quote) == 1 and backslashes % 2 == 0:
            return end
        if len(quote) > 1 and backslashes == len(quote) - 1:
            return end - backslashes
        position = end + 1
    return None


def _bare_value(found: _Name) -> Span | None:
    """Find a value without quotes, unless it may be code, a type or a word of a sentence."""
    text = found.text
    at = found.value_at
    kind = found.kind
    if "cookie" in found.name.lower():
        line = _BARE_COOKIE.match(text, at) if found.sign == ":" else None
        return line.span() if line and is_secret_value(found.name, line[0], kind) else None
    scheme = _SCHEME.match(text, at)
    if scheme is not None and "auth" in found.name.lower():
        at = scheme.end()
        kind = "sure"
    bare = _BARE.match(text, at)
    if bare is None or text[bare.end() : bare.end() + 1] in ("(", "["):
        return None
    value = bare[0].rstrip(".,;:，。")
    is_secret = _is_bare_secret(found, kind, value, bare.end())
    return (at, at + len(value)) if is_secret else None


def _is_bare_secret(found: _Name, kind: Kind, value: str, end: int) -> bool:
    if not is_secret_value(found.name, value, kind) or _ATTRIBUTES.fullmatch(value):
        return False
    if kind == "likely":
        return looks_random(value)
    is_number = value.isdigit() and (len(value) >= 4 or found.in_quotes)
    if found.sign in ("is", "是"):
        return is_number or (looks_like_password(value) and not value[0].isdigit())
    if is_number or looks_like_password(value):
        return True
    return value.isascii() and _is_assigned(found, value, end)


def _is_assigned(found: _Name, value: str, end: int) -> bool:
    """Whether a name is given a value: `PASSWORD=x`, `?password=x`, a header, a line of a file."""
    text = found.text
    start = found.start
    before = found.before
    after = text[end : end + 1]
    is_joined = found.sign == "=" and not found.spaced
    if is_joined and (before in ("?", "&", ";", "-") or text[start] == "-"):
        return True
    if secret_kind(value):  # password=password: an argument of the same name
        return False
    if is_joined:
        edges = (" ", "'", '"', "\n", "")
        return (before in edges and after in edges) or text[start].isupper()
    if found.sign == ":" and before in ("'", '"') and after == before:
        return not found.in_quotes
    line = text[text.rfind("\n", max(0, start - 60), start) + 1 : start]
    is_line = not found.in_quotes and not line.strip(" \t-") and after in ("", "\n", "\r")
    is_word = len(value) >= 6 and value.isalpha() and value.islower()
    return is_line and is_word and found.sign in (":", "=")


# --------------------------------------------------- URLs, headers, options, pairs, tokens


def _of_urls(text: str) -> Iterator[Span]:
    for found in _USER_AND_PASSWORD.finditer(text):
        password = found[1].rpartition("@")[0]
        if password:
            yield found.start(1), found.start(1) + len(password)
    for found in _USER_TOKEN.finditer(text):
        if looks_random(found[1], 20):
            yield found.span(1)
    for found in _QUERY.finditer(text):
        value = found[2]
        is_mixed = value not in (value.lower(), value.upper())
        if looks_random(value, 16) and (is_mixed or found[1] != "key"):
            yield found.span(2)


def _of_headers(text: str, low: str) -> Iterator[Span]:
    for found in _HEADER.finditer(low):
        value = text[found.start(2) : found.end(2)]
        try:
            is_basic = b":" in base64.b64decode(value, validate=True)  # user:password
        except ValueError:
            is_basic = False
        is_secret = looks_random(value) if found[1] == "bearer" else is_basic
        if is_secret:
            yield found.span(2)


def _of_options(text: str) -> Iterator[Span]:
    """Find `--password x`, but not `--password PASSWORD` or `--token is` of a manual."""
    for found in _OPTION.finditer(text):
        if not secret_kind(found[1]):
            continue
        if (quote := _QUOTE.match(text, found.end())) is not None:
            if (span := _quoted_value(text, quote, found[1], "sure")) is not None:
                yield span
        elif (bare := _BARE.match(text, found.end())) and is_option_value(found[1], bare[0]):
            yield bare.span()


def is_option_value(option: str, value: str) -> bool:
    """Whether the word after an option that takes a secret is really a secret."""
    if value.startswith("-") or value.isupper() or is_plain_word(value):
        return False
    return is_secret_value(option, value, "sure")


def _of_pairs(text: str) -> Iterator[Span]:
    """Find the value in pairs such as `{"name": "API_KEY", "value": "x"}`."""
    for found in _PAIR.finditer(text):
        kind = secret_kind(found[1])
        if kind and is_secret_value(found[1], found[2], kind):
            yield found.span(2)


def _tokens(text: str) -> Iterator[Span]:
    """Find tokens that are recognized by their form alone."""
    for word in _LONG_WORD.finditer(text):
        start = word.start()
        if text[start] in "nrt" and text[max(0, start - 1) : start] == "\\":  # \n of JSON text
            start += 1
        end = min(word.start() + _LONGEST_PREFIX, word.end())
        joints = _JOINT.finditer(text, word.start(), end)
        places = (start, *(joint.end() for joint in joints))
        token = next(filter(None, (_WORD_TOKENS.match(text, at) for at in places)), None)
        if token is not None:
            yield token.span()
    for literal, form in _OTHER_TOKENS:
        if literal in text:
            yield from (found.span() for found in re.finditer(form, text))
