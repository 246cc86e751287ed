"""What a sentence demands, taken apart: what is done, to what, and the literals it names."""

from __future__ import annotations

import re

from toolmem.guard.view import address, idna, number_in, plain
from toolmem.late import late_pattern
from toolmem.late_dataclasses import dataclass, field
from toolmem.readers.shell import COMMON_PROGRAMS, looks_like_command
from toolmem.sentences.said_words import FILE_ENDINGS


@dataclass(frozen=True, slots=True)
class LiteralValue:
    """Something that a sentence names letter for letter."""

    kind: str  # email, host, path, name (whole words), word (an identifier, a number), channel, program
    text: str
    content: bool = False  # the sentence speaks of what is written, not of whom or where


@dataclass(slots=True)
class Demand:
    """A sentence taken apart."""

    effect: str = "remind"
    only: bool = False
    families: set[str] = field(default_factory=set)
    verbs: list[str] = field(default_factory=list)
    things: set[str] = field(default_factory=set)
    literals: list[LiteralValue] = field(default_factory=list)
    bound: tuple[str, float] | None = None  # exclusiveMinimum, 5000
    currency: tuple[str, ...] = ()  # of the bound, as calls may write it
    unread: list[str] = field(default_factory=list)
    content: bool = False
    force: bool = False  # "force push"
    rows: bool = False  # "delete from the orders table"


_FIRST_MARK = 0xE000  # one private character stands for each literal
MARKED = late_pattern("[\ue000-\uf8ff]")
_HOST_NAME = r"(?:[\w-]{1,63}\.){1,8}"
_CURRENCY = r"dollars?|euros?|pounds?|usd|eur|gbp|cny|rmb|yuan|bucks|[$€£]|元|块钱?|美元|欧元|英镑|人民币"
# A program, perhaps a word that says what it is to do, and at least one option: rm -rf, git reset --hard
_COMMAND = (
    rf"(?<![\w./-])(?:{'|'.join(sorted(COMMON_PROGRAMS, key=len, reverse=True))})(?:[ ]+[a-z][\w-]{{0,30}}){{0,2}}"
    r"(?:[ ]+--?[A-Za-z][\w-]{0,30}){1,4}(?![\w=])"
)
_LITERALS = tuple(
    (kind, late_pattern(pattern, flags))
    for kind, flags, pattern in (
        ("quoted", 0, r"`([^`]{1,200})`|“([^”]{1,200})”|\"([^\"]{1,200})\"|「([^」]{1,200})」|《([^》]{1,200})》"),
        ("command", re.ASCII, _COMMAND),
        ("email", re.ASCII, rf"(?<![\w.%+-])[\w.%+-]{{1,64}}@{_HOST_NAME}[a-zA-Z][\w-]{{1,62}}"),
        ("path", re.ASCII, r"(?<![\w./:@-])[\w-]+(?:/[\w.-]+)*/[\w.-]*\.\w{1,5}\b"),
        (
            "host",
            re.ASCII,
            rf"(?:https?://|@)?(?<![\w.-]){_HOST_NAME}(?:[a-z]{{2,}}|[A-Z]{{2,}})\b(?::\d+)?(?:/[^\s,;]*)?",
        ),
        ("path", re.ASCII, r"(?<![\w/])(?:~|\.{1,2})?/[\w.~-][\w./~-]*|(?<![\w/])~/?(?=\s|$)"),
        ("path", re.ASCII, r"(?<![\w.])\.[A-Za-z][\w.-]*|[\w.-]+(?:/[\w.-]+)*/[\w-]+\.\w{1,5}\b"),
        ("word", re.ASCII, r"\b(?!and/or\b)[a-z0-9][\w.-]*/[\w.-]*[a-z0-9]\b(?!/)"),
        ("time", re.I | re.ASCII, r"\b\d{1,2}(?::\d{2})?\s?[ap]\.?m\b\.?|\b\d{1,2}:\d{2}\b"),
        ("channel", 0, r"(?<![\w&])#[\w-]{1,80}"),
        ("user", 0, r"(?<![\w.])@[\w.-]{1,80}"),
        ("money", re.I | re.ASCII, r"(?:[$€£¥]|\b(?:USD|EUR|GBP|CNY|RMB)\s?)\d[\d,.']*\d?k?\b"),
        ("money", re.I | re.ASCII, rf"(?<![\w.,])\d[\d,.']*\d?\s?(?:k\b)?\s?(?:{_CURRENCY})"),
        ("number", re.ASCII, r"(?<![\w.,])\d{1,3}(?:[,']\d{3})+(?:\.\d{1,4})?(?![\w,]*\d)"),
        ("number", re.I, r"(?<![\w.,])\d{1,9}(?:\.\d{1,4})?\s?[k千万](?![a-z\d])"),
        ("word", re.ASCII, r"\b(?=[\w-]*\d)[A-Za-z0-9][\w-]{0,80}\b(?!\.\d)|\b[A-Za-z]+(?:_[A-Za-z0-9]+)+\b"),
    )
)


class Literals:
    """A text whose literals are marks, so that none of their words is read as the sentence's own."""

    def __init__(self, text: str) -> None:
        self.found: list[tuple[str, str]] = []
        text = MARKED.sub("", text)
        for kind, pattern in _LITERALS:
            text = pattern.sub(lambda match, kind=kind: self._mark(kind, match), text)  # type: ignore[misc]
        self.text = text

    def _mark(self, kind: str, match: re.Match[str]) -> str:
        if MARKED.search(match.group()):
            return match.group()
        self.found.append((kind, next((group for group in match.groups() if group), match.group())))
        return f" {chr(_FIRST_MARK + len(self.found) - 1)} "

    def __getitem__(self, mark: str) -> tuple[str, str]:
        return self.found[ord(mark) - _FIRST_MARK]


def take_literal(kind: str, text: str, demand: Demand) -> None:
    """What the sentence names, or that it was not understood."""
    literal = _literal(kind, text, demand)
    if literal is None:
        demand.unread.append(text)
    else:
        demand.literals.append(literal)


def _literal(kind: str, text: str, demand: Demand) -> LiteralValue | None:
    if kind in {"money", "time"}:
        return None
    if kind == "email":
        return LiteralValue("email", address(text), demand.content)
    if kind == "host":
        bare = re.sub(r"^https?://|^@", "", text)
        host, _, path = bare.partition("/")
        if host.rpartition(".")[2].lower() in FILE_ENDINGS and not text.startswith(("http", "www.", "@")):
            return LiteralValue("path", plain(bare))
        return None if path else LiteralValue("host", idna(host.partition(":")[0]), demand.content)
    if kind in {"path", "command"}:
        return LiteralValue("path" if kind == "path" else "program", plain(text))
    if kind in {"channel", "user"}:
        return LiteralValue("channel", plain(text[1:]))
    if kind == "quoted":
        runs = "run" in demand.families and looks_like_command(text)
        return LiteralValue("program" if runs else "name", plain(text), demand.content)
    return LiteralValue("word", plain(text), demand.content)


_CURRENCIES = (
    (late_pattern(r"\$|dollar|bucks|usd|美元", re.I), ("usd", "$", "us$", "dollar", "dollars", "us dollars")),
    (late_pattern(r"€|euro|eur|欧元", re.I), ("eur", "€", "euro", "euros")),
    (late_pattern(r"£|pound|gbp|英镑", re.I), ("gbp", "£", "pound", "pounds")),
    (late_pattern(r"¥|cny|rmb|yuan|人民币|元|块", re.I), ("cny", "rmb", "¥", "yuan", "元", "人民币")),
)


def currency(text: str) -> tuple[str, ...]:
    """How calls may write the currency of an amount; empty where it names none."""
    return next((spellings for said, spellings in _CURRENCIES if said.search(text)), ())


def money(text: str) -> float | None:
    bare = re.sub(rf"(?i)[$€£¥]|{_CURRENCY}", "", text).strip().rstrip(".,")
    return number_in(plain(bare))
