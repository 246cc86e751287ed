"""Which tools a sentence means: by exact name, or by the things and actions that it speaks of."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from itertools import pairwise

from toolmem.rules.english_words import ACTION_VERBS, IRREGULAR
from toolmem.schema import ToolSchema

_NAME_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+|[\u3400-\u9fff]+")
_WORD = re.compile(r"[a-z]+(?:[-'][a-z]+)*")
_CJK = re.compile(r"[\u3400-\u9fff]")
_LINK = re.compile(
    r"https?://\S+|[\w.+-]+@[\w-]+\.[\w.-]+|\b[\w-]+(?:\.[\w-]+)+:\d\S*|\b[\w-]+(?:\.[\w-]+)*\.(?:com|org|net|io"
    r"|dev)\b\S*"
)
_PATH = re.compile(
    r"(?:^|[\s(])(?:(?:~|\.{1,2})?/[\w.-]+(?:/[\w.-]*)*|[\w.-]+/(?=[\s,;)]|$)|[\w.-]+/[\w.-]+/[\w./-]*)"
    r"|(?:^|\s)\.[a-z]{2,6}\b|\b[\w-]+\.(?:[a-z]{2,4}|json|yaml|toml|docx|xlsx|lock|tar\.gz)\b"
)
_UNSAID = frozenset(
    {
        "the",
        "a",
        "an",
        "of",
        "to",
        "for",
        "in",
        "on",
        "by",
        "with",
        "and",
        "or",
        "tool",
        "tools",
        "function",
        "api",
        "v",
        "all",
        "my",
    }
)
# Verbs of tool names beyond those of sentences, and words of names that are nouns, though one can "email" or "text".
_VERBS = ACTION_VERBS | frozenset(
    """
    adjust arm assert calibrate crop decline decrypt deposit detect disarm draw eject extend feed finish flag follow freeze
    heat hide inspect label like lower mark mute name order pair park pause pin play prescribe preview quarantine raise
    record redeem refill rent rephrase reserve resize resume return ring rotate seal shorten silence snooze sort speak
    split spray summarize swap toggle transcribe turn unfollow unfreeze unmute upvote vote water wire
    """.split()
)
_NOUNS = frozenset(
    """
    access bill build click download export file fill flight force hotel import issue link list load log login lookup mail
    message order phone place post print process purchase query record refund release report request review schedule
    score share ship snapshot store tag test text ticket touch track trade train transfer update upload view visit
    account backup balance bank branch budget cart contact database document dump play
    """.split()
) - frozenset("export import load schedule share ship store track trade transfer upload update print purchase play".split())
# Too many tools do these for a word to mean one of them.
_GENERIC = frozenset(
    "set change start stop use make take go do put call apply turn keep move play mark name order open close".split()
)
_ADDRESS = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)*|\b[\w.]+@(?=\s)")
_NOT_ACTS = re.compile(r"会议室|实付|应付|已付|未付|到付|对付|付出")  # their characters look like a thing or an action
_VAGUE = 3  # tools; a thing that means so many of them means none in particular
_ENDINGS = ("ing", "ed", "es", "s", "d")
_COMMON = frozenset(
    {
        "that",
        "this",
        "with",
        "from",
        "into",
        "your",
        "their",
        "which",
        "when",
        "where",
        "what",
        "have",
        "been",
        "will",
        "would",
        "about",
        "after",
        "before",
        "other",
        "given",
        "returns",
        "return",
        "using",
        "used",
        "user",
        "users",
        "name",
        "names",
        "list",
        "data",
        "value",
        "values",
        "must",
        "should",
        "only",
        "also",
        "each",
        "then",
        "than",
        "them",
        "they",
        "more",
    }
)


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Words of sentences -> words of tool names."""

    things: Mapping[str, frozenset[str]]
    core: frozenset[str]  # the words of tool names that a sentence speaks of, whatever the catalogue
    weak: Mapping[str, frozenset[str]]
    actions: Mapping[str, frozenset[str]]
    action_words: frozenset[str]  # words of tool names that are actions
    telling: Mapping[str, frozenset[str]]  # actions whose words mean their tool alone
    nouns: frozenset[str]  # words of tool names that are things, though they may be verbs too
    modified: re.Pattern[str]  # a Chinese thing in 里的, 中的, 上的: what is meant comes after it


@dataclass(frozen=True, slots=True)
class _Tool:
    name: str
    things: frozenset[str]
    actions: frozenset[str]
    description: frozenset[str]
    rare: frozenset[str]  # those of its actions that the table does not know

    @property
    def words(self) -> frozenset[str]:
        return self.things | self.actions


@dataclass(frozen=True, slots=True)
class _Said:
    """Words of tool names that a text means -> the words that mean them."""

    things: Mapping[str, frozenset[str]]
    weak: Mapping[str, frozenset[str]]
    actions: Mapping[str, frozenset[str]]
    plain: frozenset[str]  # stems of all its words
    by_path: Mapping[str, frozenset[str]]  # what a path in it may mean


def without_modifiers(text: str, table: Table) -> str:
    """Chinese text without the things that only modify another: 邮件里的链接 is a link."""
    return table.modified.sub(" ", text)


def load_table(nouns: Mapping[str, Sequence[str]] | None = None) -> Table:
    """The built-in table, and `nouns` beside it: word of a tool's name -> words of a sentence that mean it."""
    return _table(tuple(sorted((word.lower(), tuple(means)) for word, means in (nouns or {}).items())))


@lru_cache(maxsize=16)
def _table(nouns: tuple[tuple[str, tuple[str, ...]], ...]) -> Table:
    import yaml

    text = resources.files("toolmem.rules").joinpath("nouns.yaml").read_text(encoding="utf-8")
    built_in = yaml.safe_load(text)
    core: dict[str, list[str]] = {name: list(means) for name, means in built_in["things"].items()}
    for name, means in nouns:
        core.setdefault(name, []).extend([*means, name])
    further = {name: means for name, means in built_in["further_things"].items() if name not in core}
    things = {**further, **core}
    chinese = sorted({word for words in things.values() for word in words if _CJK.match(word)}, key=len, reverse=True)
    return Table(
        things=_turned(things),
        core=frozenset(core),
        weak=_turned(built_in["weak"]),
        actions=_turned(built_in["actions"]),
        action_words=frozenset(built_in["actions"]),
        nouns=frozenset({*things, *built_in["weak"], *_NOUNS}),
        modified=re.compile(rf"(?:{'|'.join(chinese)})(?:里面?|中|上面?|内|里头)的(?=[\u3400-\u9fff])"),
        telling={action: frozenset(words) for action, words in built_in["telling"].items()},
    )


def _turned(means: Mapping[str, Iterable[str]]) -> dict[str, frozenset[str]]:
    turned: dict[str, set[str]] = {}
    for name, words in means.items():
        for word in words:
            turned.setdefault(word.lower(), set()).add(name)
    return {word: frozenset(names) for word, names in turned.items()}


def tools_named(written: str, texts: Sequence[str], tools: Sequence[ToolSchema], table: Table) -> tuple[str, ...]:
    """The tools that a sentence means, in the order of `tools`; empty where it means none.

    `written` is the sentence as typed (exact names count even in quotes); `texts` are parts of it, from the demand
    itself to the whole sentence: the first that means a tool decides.
    """
    exact = [tool.name for tool in tools if _is_identifier(tool.name) and _holds_name(written, tool.name)]
    exact += [tool.name for tool in tools if tool.name not in exact and _shows_name(written, tool.name)]
    if exact:
        return tuple(exact)
    profiles = [_profile(tool.name, tool.description, table) for tool in tools]
    found: tuple[str, ...] = ()
    for text in texts:
        meant = _meant(_said(text, table), profiles, table)
        # What follows may only narrow: "hotels need my okay before you reserve them" is about reserving.
        found = found or meant if not found or not set(meant) < set(found) else meant or found
    if found:
        return found
    return _described(_said(texts[0], table), profiles) if texts else ()


def speaks_of_tools(text: str, table: Table) -> bool:
    """Does a text speak of any thing that tools are for, whether or not there is such a tool?"""
    said = _said(text, table)
    return bool(table.core & said.things.keys() or "file" in said.by_path)


def _is_identifier(name: str) -> bool:
    return bool(re.search(r"[_\-./:\d]|[a-z][A-Z]", name))


def _holds_name(written: str, name: str) -> bool:
    return bool(re.search(rf"(?<![\w-]){re.escape(name)}(?![\w])", written, re.IGNORECASE))


def _shows_name(written: str, name: str) -> bool:
    """A plain word is a tool's name where it is shown as one: `shell`, the shell tool."""
    if len(written) > 600 or "`" not in written and "tool" not in written.lower():
        return False
    shown = re.escape(name)
    return bool(re.search(rf"`{shown}`|\btool [\"'“]?{shown}\b|(?<![\w-]){shown} tool\b", written, re.IGNORECASE))


@lru_cache(maxsize=4096)
def _profile(name: str, description: str, table: Table) -> _Tool:
    words = [word.lower() for word in _NAME_WORD.findall(name)]
    words = [word for word in words if word not in _UNSAID and not word.isdigit()] or words
    actions = frozenset(word for word in words if word in table.action_words)
    rare = frozenset(word for word in words if word in _VERBS and word not in table.nouns) - actions
    if len(words) > len(rare | actions):
        actions |= rare
    else:
        rare = frozenset()
    told = frozenset().union(*(_stems(word) for word in _WORD.findall(description[:300].lower()) if len(word) > 3))
    return _Tool(name, frozenset(words) - actions, actions, told - _COMMON, rare - _GENERIC)


def _said(text: str, table: Table) -> _Said:
    """What a text speaks of; links and addresses count for nothing, a path is a file."""
    small = _LINK.sub(" ", text.lower().replace("’", "'"))
    small = _NOT_ACTS.sub(" ", small)
    words = _WORD.findall(small)
    stems = {stem: word for word in words for part in {word, *word.split("-")} for stem in _stems(part)}
    stems |= {first + second: second for first, second in pairwise(words)}  # "look up" for lookup, "call back"
    said: list[dict[str, set[str]]] = []
    for meanings in (table.things, table.weak, table.actions):
        found: dict[str, set[str]] = {}
        for phrase, names in meanings.items():
            if _speaks_of(phrase, small, stems):
                for name in names:
                    found.setdefault(name, set()).add(phrase)
        said.append(found)
    by_path = {}
    if _PATH.search(small):
        by_path = {word: frozenset({"a path"}) for word in ("file", "path", "directory", "folder")}
    if _ADDRESS.search(text):
        for word in ("mail", "email", "gmail"):
            said[1].setdefault(word, set()).add("an address")
    things, weak, actions = ({name: frozenset(by) for name, by in found.items()} for found in said)
    return _Said(things, weak, actions, frozenset(stems), by_path)


def _speaks_of(phrase: str, text: str, stems: Mapping[str, str]) -> bool:
    if phrase in stems:
        return True
    if _CJK.match(phrase):
        return phrase in text
    return " " in phrase and re.search(rf"\b{re.escape(phrase)}s?\b", text) is not None


def _meant(said: _Said, tools: Sequence[_Tool], table: Table) -> tuple[str, ...]:
    found = _meant_by_words(said, tools, table)
    if "file" not in said.by_path:
        return found
    # A path means file tools only where nothing else is meant: "run no commands that touch /etc" is about commands.
    shown = _Said(_joined(said.things, said.by_path), said.weak, said.actions, said.plain, {})
    return found or _meant_by_words(shown, tools, table)


def _joined(
    things: Mapping[str, frozenset[str]], more: Mapping[str, frozenset[str]]
) -> Mapping[str, frozenset[str]]:
    return {name: things.get(name, frozenset()) | more.get(name, frozenset()) for name in {*things, *more}}


def _meant_by_words(said: _Said, tools: Sequence[_Tool], table: Table) -> tuple[str, ...]:
    evidence = [_evidence(said, tool, table) for tool in tools]
    whole = {i for i, (things, weak, actions) in enumerate(evidence) if actions and (things or weak)}
    whole -= _outdone(whole, tools, said)
    explained = frozenset().union(*(things | weak | actions for things, weak, actions in (evidence[i] for i in whole)))
    by_thing = {i for i, (things, _, _) in enumerate(evidence) if i not in whole and things - explained}
    by_action = {
        i
        for i, (things, _, actions) in enumerate(evidence)
        if i not in whole and not things and (_telling(tools[i], actions, table) | _alone(i, tools, actions)) - explained
    }
    if len(by_thing) >= _VAGUE and not any(evidence[i][2] for i in by_thing) and by_action:
        by_thing = set()  # "files" may mean all file tools; "translate no files" means one that translates
    chosen = whole | (by_thing or by_action)
    chosen -= _outdone(chosen, tools, said)
    return tuple(tool.name for i, tool in enumerate(tools) if i in chosen)


def _alone(i: int, tools: Sequence[_Tool], said: frozenset[str]) -> frozenset[str]:
    """A rare verb that only one tool has in its name means that tool: "don't disarm it"."""
    rare = tools[i].rare - frozenset().union(*(tool.words for j, tool in enumerate(tools) if j != i))
    return frozenset(word for word in said if _stems(word) & rare)


def _telling(tool: _Tool, said: frozenset[str], table: Table) -> frozenset[str]:
    return said & frozenset().union(*(table.telling.get(action, frozenset()) for action in tool.actions))


def _evidence(said: _Said, tool: _Tool, table: Table) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """(words that mean its thing, words that may mean it, words that mean its action)"""
    vague = frozenset().union(*table.weak.values())
    things: frozenset[str] = frozenset()
    weak: frozenset[str] = frozenset()
    parts = 0  # of its name, said by words that alone would be too weak
    for word in tool.things:
        known = len(weak)
        own = frozenset(sorted(_stems(word) & said.plain, key=len)[:1])
        if word in vague and word not in said.things:
            weak |= own
        else:
            things |= own
        things |= said.things.get(word, frozenset())
        weak |= said.weak.get(word, frozenset())
        parts += len(weak) > known
    if parts > 1:
        things |= weak  # "customer records" for update_customer_record
    actions: frozenset[str] = frozenset()
    for word in tool.actions:
        actions |= said.actions.get(word, frozenset()) | (frozenset({word}) & said.plain)
    return things, weak, actions


def _outdone(chosen: set[int], tools: Sequence[_Tool], said: _Said) -> set[int]:
    """Of git_push and git_force_push only one is meant: the second where "force" is said, else the first."""
    lose = set()
    for i in chosen:
        for j in range(len(tools)):
            extra = tools[j].words - tools[i].words
            if i == j or not tools[i].words < tools[j].words:
                continue
            if all(word in said.plain or word in said.actions or word in said.things for word in extra):
                lose.add(i)
            else:
                lose.add(j)
    return lose & chosen


def _described(said: _Said, tools: Sequence[_Tool]) -> tuple[str, ...]:
    """By the words of the descriptions, where names say nothing: the tools that share most, at least two."""
    shared = {tool.name: len(said.plain & tool.description) for tool in tools}
    most = max(shared.values(), default=0)
    return tuple(name for name, count in shared.items() if count == most) if most >= 2 else ()


def _stems(word: str) -> frozenset[str]:
    """The word and what its base form may be."""
    stems = {word, IRREGULAR.get(word, word)}
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 2:
            stem = word[: -len(ending)]
            stems |= {stem, stem + "e"} if ending != "s" else {stem}
            if len(stem) > 2 and stem[-1] == stem[-2]:
                stems.add(stem[:-1])
            if stem.endswith("i") and ending in ("es", "ed"):
                stems.add(stem[:-1] + "y")
    return frozenset(stems)
