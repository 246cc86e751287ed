"""Decrees: what a user forbids or bounds for good, and what for this session only.

A decree is a user's standing demand on what the agent may do with its tools. Questions, statements about oneself,
idioms, reports, conditions of one task, quoted text and wishes about the wording of answers are none. Where in doubt,
it is none, or holds for the session: a decree wrongly pinned would bind the agent for ever.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

from toolmem.light_models import ToolSchema
from toolmem.rules.capture.chinese import read_chinese
from toolmem.rules.capture.english import questions_it, read_english
from toolmem.rules.capture.pasted import MASK
from toolmem.rules.capture.reading import Reading
from toolmem.rules.capture.sentences import Sentence, ends_with, sentences
from toolmem.rules.capture.shown_text import own_sentences
from toolmem.rules.capture.tool_words import Table, load_table, without_modifiers
from toolmem.rules.capture.which_tools import able_too, named_exactly, speaks_of_tools, tools_named

UNSCOPED = "__unscoped__"
_SHORT_ANSWER = 60  # characters
MAX_SENTENCE = 500  # characters; a rule is never cut, so a longer sentence is not captured

_CJK = re.compile(r"[\u3400-\u9fff]")
_CUE = re.compile(
    r"\b(?:never|don['’]?t|do not|must not|stop \w+ing|avoid \w+ing|no longer|only (?:use|run|send)|ask me before)\b"
    r"|不要|绝不|禁止|不准|不许|别再|只能|必须先",
    re.IGNORECASE,
)
_SUBORDINATE = re.compile(
    r"\b(?:before|until|till|when|whenever|while|after|unless|if|because|than(?= (?:the|an?|they|he|she|it|i|we"
    r"|what)\b)|which|who|whose|(?<=\w\w )that"
    r"(?= (?:you|i|we|he|she|they|is|are|was|were|has|have|had|can|could|may|might|must|will|would|do|does|did|[a-z]+s"
    r"|[a-z]+ed|[a-z]+)\b))\b",
    re.IGNORECASE,
)
_DUTY_BEFORE = re.compile(
    r"\W*(?:please |you |always |must |should |have to |need to |first ){1,4}\w+ .{0,80}?"
    r"\b(?:before|prior to) (?P<act>.+)",
    re.IGNORECASE | re.DOTALL,
)
_BEFORE_DUTY = re.compile(r"(?:之前|以前|前)[，,]?[^，,]{0,6}(?:必须|务必|一定|都要|都得|应当|先)")
_SOURCE = re.compile(r"\b(?:from|about|found in|inside) (?:(?:the|my|our|any|all|your|an?) )?[\w-]+", re.IGNORECASE)
_AS_BEFORE = re.compile(
    r"\b(?:it|that|this|those|these|either|neither|so|such|any of (?:it|that|this|those)|them)\b|这|那|它",
    re.IGNORECASE,
)
_SHORT_QUOTE = re.compile(rf"(?<!{MASK}){MASK}{{1,32}}(?!{MASK})")
# A whole message that says: what I demanded before holds for good.
_ALWAYS = re.compile(
    r"\W*(?:(?:yes|yep|yeah|ok|okay|sure|please|and|that|this|it|is|holds|applies|keep|make|rule|a|always|forever"
    r"|for good|from now on|permanently|thanks|thank you|i mean|i meant|i said)\b\W*){1,8}",
    re.IGNORECASE,
)
_ALWAYS_SAID = re.compile(r"\b(?:always|forever|for good|from now on|permanently)\b", re.IGNORECASE)
_ALWAYS_ZH = re.compile(
    r"\W*(?:(?:是的?|对|好的?|嗯|请|就)\W*)?(?:始终|永远|总是|一直|以后(?:都|也)?|长期)(?:都)?(?:是)?(?:这样|如此|有效|保留|不要|遵守)?\W*"
)


@dataclass(frozen=True, slots=True)
class Decree:
    """One sentence that binds the agent, and on which tools."""

    tool_names: tuple[str, ...]  # as the turn or the catalogue writes them; (UNSCOPED,) where there is no tool at all
    rule: str  # the sentence as it was said, without its final stop
    also: tuple[str, ...] = ()  # tools that it limits besides: the shell that can run git

    @property
    def bound(self) -> tuple[str, ...]:
        """Every tool that it limits."""
        return (*self.tool_names, *self.also)

    @property
    def unscoped(self) -> bool:
        return self.tool_names == (UNSCOPED,)


@dataclass(slots=True)
class DecreesFound:
    """What one message demands."""

    standing: list[Decree] = field(default_factory=list)  # for good
    session: list[Decree] = field(default_factory=list)  # for this task, object or moment
    too_long: int = 0  # sentences with a cue, over MAX_SENTENCE characters: not captured


def find_decrees(
    message: str,
    *,
    ran: Sequence[str] = (),
    catalogue: Sequence[str | ToolSchema] = (),
    nouns: Mapping[str, Sequence[str]] | None = None,
) -> DecreesFound:
    """The decrees of a user's message, English and Chinese.

    `ran`: the tools of the turn, in order; `catalogue`: all tools there are. A decree is about the tools that it names
    or means among both; about the first tool of the turn where it names none; about no tool in particular (UNSCOPED)
    where there is none. `nouns` adds to the table of words: word of a tool's name -> words of a sentence that mean it.
    Linear in the length of the message.
    """
    found = DecreesFound()
    table = load_table(nouns)
    tools = _known(ran, catalogue)
    before: tuple[str, ...] = ()  # the tools of the decree in the sentence before this one
    own = own_sentences(list(sentences(message)), _read)
    for sentence, following in zip_longest(own, own[1:]):
        if len(sentence.text) > MAX_SENTENCE:
            found.too_long += bool(_CUE.search(sentence.masked))
            continue
        reading = _read(sentence)
        spoken_of, before = before, ()
        if reading is not None and following is not None and questions_it(following):
            reading = None
        if reading is None or (reading.by_subject and not _subject_named(sentence, reading, tools, table)):
            continue
        named = _tools_of(sentence, reading, tools, table)
        if not named and _AS_BEFORE.search(sentence.masked[reading.cue : reading.end]):
            named = spoken_of  # "Don't read my inbox. Don't do it again."
        before = named
        spoken = sentence.masked[reading.start : reading.end]
        if named or not reading.needs_tool or (not tools and speaks_of_tools(spoken, table)):
            also = () if named_exactly(sentence.text, tools) else able_too(spoken, named, tools, table)
            decree = Decree(named or (tuple(ran[:1]) or (UNSCOPED,)), _rule_text(sentence.text), also)
            listed = found.standing if reading.kind == "standing" else found.session
            if decree not in listed:
                listed.append(decree)
    return found


def says_always(message: str) -> bool:
    """ "Always", "yes, always please", 永远: an answer to "say 'always' to keep it", and nothing else."""
    if len(message) > _SHORT_ANSWER or ends_with(message, "?？"):
        return False
    return bool((_ALWAYS.fullmatch(message) and _ALWAYS_SAID.search(message)) or _ALWAYS_ZH.fullmatch(message))


def _read(sentence: Sentence) -> Reading | None:
    if _CJK.search(sentence.masked):
        return read_chinese(sentence)
    return read_english(sentence)


def _known(ran: Sequence[str], catalogue: Sequence[str | ToolSchema]) -> list[ToolSchema]:
    """The tools of the turn and of the catalogue, each once, whatever its casing."""
    known: dict[str, ToolSchema] = {}
    for entry in [*catalogue, *ran]:
        schema = entry if isinstance(entry, ToolSchema) else ToolSchema(name=entry)
        known.setdefault(schema.name.casefold(), schema)
    return list(known.values())


def _subject_named(sentence: Sentence, reading: Reading, tools: Sequence[ToolSchema], table: Table) -> bool:
    """ "The browser must not ..." is for the agent, "employees must not ..." for others."""
    subject = sentence.text[reading.start : reading.cue]
    return bool(tools_named(subject, [subject], tools, table))


def _tools_of(sentence: Sentence, reading: Reading, tools: Sequence[ToolSchema], table: Table) -> tuple[str, ...]:
    text = _with_short_quotes(sentence)
    demand = text[reading.cue : reading.end]
    action = _SUBORDINATE.split(demand, maxsplit=1)[0]
    parts = [without_modifiers(_SOURCE.sub(" ", action), table), action, demand, text[reading.start : reading.end]]
    if duty := _DUTY_BEFORE.match(demand):
        parts.insert(0, duty["act"])  # "always run the tests before you commit" limits the commit
    elif _BEFORE_DUTY.match(demand):
        parts.insert(0, text[reading.start : reading.cue])  # 提交之前必须先跑测试
    if not reading.by_itself:
        parts += [text[reading.cue :], text]
    parts = list(dict.fromkeys(parts))
    return tools_named(sentence.text, parts, tools, table)


def _with_short_quotes(sentence: Sentence) -> str:
    """The sentence with its short quotes shown again: 'never use "force push"' names what it quotes."""
    return _SHORT_QUOTE.sub(lambda quote: sentence.text[quote.start() : quote.end()], sentence.masked)


def _rule_text(text: str) -> str:
    """The sentence without the stop that ends it; an abbreviation or an ellipsis keeps its dots."""
    text = text.strip()
    return text if text.endswith("..") else text.rstrip(" \t\r\n.。!！;；,，")
