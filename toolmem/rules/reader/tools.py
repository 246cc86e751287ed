"""Find the tools that a demand is about: by name, or by what they deal with and what they do."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from toolmem.models.tools import ToolSchema
from toolmem.rules.reader import words

_SHELL = frozenset({"shell", "bash", "exec", "terminal"})
_OTHER_THINGS = frozenset({"email", "mail", "inbox", "message", "channel"})
_NAME_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[\u3400-\u9fff]+")
_TOUCH = re.compile(r"\b(?:touch|access|use)|碰|动")
_LINK = re.compile(r"\S+://\S+")
_NO_WORD = re.compile(r"[_\-./:\d]|[a-z][A-Z]")  # a name that is no ordinary word: send_email
_ABSOLUTE = r"(?:^|\s)(?:~|\.{1,2})?/[\w.]"
_PATH = re.compile(rf"{_ABSOLUTE}|(?<![\w/])[\w-]+/[\w./-]+|(?:^|\s)\.[a-z]\w+")
# What shows that a sentence is about a thing, besides its words.
_SIGNS = {
    "mail": re.compile(r"\w@\w"),
    "web": re.compile(r"(?<![\w@.])(?:[\w-]+\.)+(?:com|org|net|io|dev|cn|de)\b"),
    "payment": re.compile(r"[$€£¥￥]\s?\d|\d\s?(?:dollars?|euros?|元|美元)"),
    **dict.fromkeys(("chat", "message"), re.compile(r"(?<!\S)#[a-z]")),
    "file": re.compile(rf"{_ABSOLUTE}|\b[\w-]+\.(?:json|ya?ml|toml|md|py|txt|lock|env)\b"),
}
_GIT = re.compile(
    r"(?<!\S)--?[a-z]|\bgit\b|force-?push|\bpush\b.*\b(?:to|main|master)\b|\b(?:re)?base\b|\bcommit\b"
    r"|推送|强推|提交"
)


def catalogue_of(ran: Sequence[str], tools: Sequence[str | ToolSchema]) -> dict[str, ToolSchema]:
    """All tools by their names in lower case; the first spelling counts."""
    known: dict[str, ToolSchema] = {}
    for each in (*tools, *ran):
        schema = each if isinstance(each, ToolSchema) else ToolSchema(name=each)
        known.setdefault(schema.name.lower(), schema)
    return known


def name_words(name: str) -> frozenset[str]:
    """The words of a tool's name, the same for "sendEmail", "send_email" and "sendemail"."""
    found = {word.lower() for word in _NAME_WORD.findall(name)}
    for word in found - words.NAME_WORDS:
        parts = [(word[:cut], word[cut:]) for cut in range(3, len(word) - 2)]
        found = found.union(*(pair for pair in parts if words.NAME_WORDS.issuperset(pair)))
    return frozenset(form for word in found for form in words.stems(word))


def is_shell(tool: ToolSchema) -> bool:
    return bool(name_words(tool.name) & _SHELL)


def tools_meant(sentence: str, demanded: str, catalogue: Mapping[str, ToolSchema]) -> list[str]:
    """Find the tools that a demand limits; none where it means none.

    `demanded`: the part of the sentence, in lower case, that says what is limited.
    """
    tools = catalogue.values()
    if named := [tool.name for tool in tools if _is_named(tool.name, sentence)]:
        return named
    said_words = words.words_in(demanded)
    things = _things(sentence, demanded, said_words)
    actions = words.mentioned(demanded, said_words, words.ACTIONS)
    path = bool(_PATH.search(_LINK.sub(" ", sentence)))
    by_shell = path or said_words & words.PROGRAMS or _GIT.search(demanded)
    shells = [tool.name for tool in tools if by_shell and is_shell(tool)]
    files = [tool.name for tool in tools if path and _handles_files(tool, demanded, actions)]
    if files:
        return list(dict.fromkeys([*files, *shells]))
    scores = {tool.name: _score(tool, demanded, said_words, things, actions) for tool in tools}
    best = max(scores.values(), default=0)
    likely = [name for name, score in scores.items() if score == best > 0]
    return list(dict.fromkeys([*likely, *shells])) or _by_description(said_words, catalogue)


def _is_named(name: str, sentence: str) -> bool:
    """Whether a sentence names a tool: send_email, `search`, "the search tool"."""
    quoted = re.escape(name)
    form = rf"`{quoted}`|\b{quoted} tool\b"
    if _NO_WORD.search(name):
        form += rf"|(?<![\w-]){quoted}(?!\w)"
    return bool(re.search(form, sentence, re.I))


def _things(sentence: str, demanded: str, said_words: frozenset[str]) -> set[str]:
    """The things that a sentence mentions: by word, or by an address, host, channel or file."""
    said = words.mentioned(demanded, said_words, words.SPOKEN)
    shown = {name for name, sign in _SIGNS.items() if sign.search(sentence)}
    return said | shown - ({"web"} if "mail" in said | shown else set())


def _score(
    tool: ToolSchema, demanded: str, said_words: frozenset[str], things: set[str], actions: set[str]
) -> int:
    """Score how well a tool's name fits what is said; 0 where the tool does something else."""
    names = name_words(tool.name)
    if "force" in names and "force" not in demanded and "强" not in demanded:
        return 0
    deals_with = {thing for thing in things if names & words.IN_NAMES[thing]}
    acts = names - words.NOUNS
    does = {name for name, listed in words.ACTIONS.items() if acts & listed}
    if deals_with:
        score = 2 * len(deals_with) + len(does & actions)
    else:
        score = 2 if does & actions & words.SPECIFIC_ACTIONS and not things - {"git"} else 0
    does_other = does and actions - {"run"} and not does & actions
    if deals_with and does_other and not names & {"shell", "bash", "browser"}:
        vague = deals_with <= {"file", "message", "web", "sql", "git"}
        score = 0 if vague else score - 1
    shared = names & said_words - words.FILLERS - {"text"}
    return score + any(len(word) > 3 for word in shared)


def _handles_files(tool: ToolSchema, demanded: str, actions: set[str]) -> bool:
    """Whether a tool does with files what is said. Touching one is reading or changing it."""
    names = name_words(tool.name)
    does = {name for name in ("read", "write", "delete") if names & words.ACTIONS[name]}
    touch = _TOUCH.search(demanded) or not actions & {"read", "write", "delete"}
    wanted = {"read", "write", "delete"} if touch else actions
    plain = names & {"read", "write", "edit"} and not names & _OTHER_THINGS
    return bool(does & wanted and (plain or names & {"file", "files", "document"}))


def _by_description(said_words: frozenset[str], catalogue: Mapping[str, ToolSchema]) -> list[str]:
    """The tools whose descriptions share the most words with a demand, at least two."""
    long = {word for word in said_words if len(word) > 3}
    texts = {tool.name: tool.description.lower() for tool in catalogue.values()}
    shared = {name: len(long & words.words_in(text)) for name, text in texts.items()}
    best = max(shared.values(), default=0)
    return [name for name, count in shared.items() if count == best] if best >= 2 else []
