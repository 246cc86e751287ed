"""Instructions of a user: what is forbidden or bounded for good, and what for this session only.

An instruction is a user's standing demand on what the agent may do with its tools. Questions, statements about oneself,
idioms, reports, conditions of one task, quoted text and wishes about the wording of answers are none. Where in doubt,
it is none, or holds for the session: an instruction wrongly pinned would bind the agent for ever.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest

from toolmem.late import late_pattern
from toolmem.late_dataclasses import dataclass, field
from toolmem.light_models import ToolSchema
from toolmem.rules.capture.chinese import CHINESE, read_chinese
from toolmem.rules.capture.cues import Cue, CueReading, combined
from toolmem.rules.capture.english import ENGLISH, questions_it, read_english, small
from toolmem.rules.capture.lifting import Lift, find_lifts, read_lifts
from toolmem.rules.capture.pasted import MASK
from toolmem.rules.capture.sentences import CJK, Sentence, ends_with, sentences
from toolmem.rules.capture.shown_text import own_sentences
from toolmem.rules.capture.tools_meant import (
    NounTable,
    able_too,
    load_table,
    named_exactly,
    speaks_of_tools,
    tools_named,
    without_modifiers,
)
from toolmem.rules.identity import UNSCOPED

_SHORT_ANSWER = 60  # characters
_MOST_LIFTS = 20  # of a message: each is compared with every rule
MAX_SENTENCE = 500  # characters; a rule is never cut, so a longer sentence is not captured
_SHORT_QUOTE = late_pattern(rf"(?<!{MASK}){MASK}{{1,32}}(?!{MASK})")


@dataclass(frozen=True, slots=True)
class Instruction:
    """One sentence that binds the agent, and on which tools."""

    tool_names: tuple[str, ...]  # as the turn or the catalogue writes them; (UNSCOPED,) where there is no tool at all
    rule: str  # the sentence as it was said, without its final stop
    also: tuple[str, ...] = ()  # tools that it limits besides: the shell that can run git
    guessed: bool = field(default=False, compare=False)  # it names none: the first tool of the turn stands for it
    at: int = field(default=0, compare=False)  # which of the user's own sentences it is

    @property
    def bound(self) -> tuple[str, ...]:
        """Every tool that it limits."""
        return (*self.tool_names, *self.also)

    @property
    def unscoped(self) -> bool:
        return self.tool_names == (UNSCOPED,)


@dataclass(slots=True)
class InstructionsFound:
    """What one message demands."""

    standing: list[Instruction] = field(default_factory=list)  # for good
    session: list[Instruction] = field(default_factory=list)  # for this task, object or moment
    too_long: int = 0  # sentences with a cue, over MAX_SENTENCE characters: not captured
    lifts: list[Lift] = field(default_factory=list)  # sentences that take an instruction back


def find_instructions(
    message: str,
    *,
    ran: Sequence[str] = (),
    catalogue: Sequence[str | ToolSchema] = (),
    nouns: Mapping[str, Sequence[str]] | None = None,
) -> InstructionsFound:
    """The instructions of a user's message, English and Chinese.

    `ran`: the tools of the turn, in order; `catalogue`: all tools there are. An instruction is about the tools that it
    names or means among both; about the first tool of the turn where it names none; about no tool in particular
    (UNSCOPED) where there is none. `nouns` adds to the table: word of a tool's name -> words that mean it.
    Linear in the length of the message.
    """
    own = own_sentences(list(sentences(message)), _demands_or_lifts)
    found = InstructionsFound(too_long=sum(_is_too_long(sentence) and _demands(sentence) for sentence in own))
    found.lifts = find_lifts(own)[:_MOST_LIFTS]
    read = [(sentence, _read(sentence, following)) for sentence, following in zip_longest(own, own[1:])]
    if not any(reading for _, reading in read):
        return found
    table, tools = load_table(nouns), _known(ran, catalogue)
    before: tuple[str, ...] = ()  # the tools of the instruction in the sentence before this one
    for at, (sentence, reading) in enumerate(read):
        spoken_of, before = before, ()
        if reading is None or (reading.by_subject and not _subject_named(sentence, reading, tools, table)):
            continue
        named = _tools_of(sentence, reading, tools, table)
        if not named and _has("as_before", sentence.masked[reading.cue : reading.end]):
            named = spoken_of  # "Don't read my inbox. Don't do it again."
        before = named
        spoken = sentence.masked[reading.start : reading.end]
        if named or not reading.needs_tool or (not tools and speaks_of_tools(spoken, table)):
            also = () if named_exactly(sentence.text, tools) else able_too(spoken, named, tools, table)
            meant = named or (tuple(ran[:1]) or (UNSCOPED,))
            instruction = Instruction(meant, _rule_text(sentence.text), also, not named, at)
            listed = found.standing if reading.kind == "standing" else found.session
            if instruction not in listed or found.lifts:  # said, taken back, and said again
                listed.append(instruction)
    return found


def doubtful(message: str) -> list[str]:
    """List what a model may be asked about: the user's own sentences that no cue reads.

    They hold what a cue looks for, or such words in another language.
    """
    own = own_sentences(list(sentences(message)), _demands)
    asked = [each for each in own if not (each.question or _is_too_long(each) or readings(each))]
    return [_rule_text(each.text) for each in asked if _may_demand(each.masked)]


def _may_demand(text: str) -> bool:
    written = small(text)
    cues = [cue for language in (ENGLISH, CHINESE) for cue in language.cues_in(written)]
    starts = (match.start() for cue in cues for match in cue.pattern.finditer(written))
    told = ENGLISH.forms["person_before"]  # "I don't have it with me"
    foreign = ENGLISH.forms["in_other_languages"].search(text)
    return foreign is not None or any(not told.search(written[:start]) for start in starts)


def says_always(message: str) -> bool:
    """Tell an answer to "say 'always' to keep it" from all else: "always", "yes, always please", 永远."""
    if len(message) > _SHORT_ANSWER or ends_with(message, "?？"):
        return False
    english = ENGLISH.forms["answer"].fullmatch(message) and ENGLISH.forms["always_said"].search(message)
    return bool(english or CHINESE.forms["answer"].fullmatch(message))


def _has(form: str, text: str) -> bool:
    return any(language.forms[form].search(text) for language in (ENGLISH, CHINESE))


def readings(sentence: Sentence) -> list[tuple[Cue, CueReading]]:
    """What each cue reads in a sentence."""
    return read_chinese(sentence) if CJK.search(sentence.masked) else read_english(sentence)


def _is_too_long(sentence: Sentence) -> bool:
    return len(sentence.text) > MAX_SENTENCE


def _demands(sentence: Sentence) -> bool:
    """Does a sentence demand anything? One that is too long is not read for it."""
    return _has("plain_cue", sentence.masked) if _is_too_long(sentence) else bool(readings(sentence))


def _demands_or_lifts(sentence: Sentence) -> bool:
    return _demands(sentence) or (not sentence.question and bool(read_lifts(sentence)))


def _read(sentence: Sentence, following: Sentence | None) -> CueReading | None:
    """One reading of a sentence, where it is not too long and the next one does not talk about it."""
    if _is_too_long(sentence) or (following is not None and questions_it(following)):
        return None
    return combined(reading for _, reading in readings(sentence))


def _known(ran: Sequence[str], catalogue: Sequence[str | ToolSchema]) -> list[ToolSchema]:
    """The tools of the turn and of the catalogue, each once, whatever its casing."""
    known: dict[str, ToolSchema] = {}
    for entry in [*catalogue, *ran]:
        schema = entry if isinstance(entry, ToolSchema) else ToolSchema(name=entry)
        known.setdefault(schema.name.casefold(), schema)
    return list(known.values())


def _subject_named(sentence: Sentence, reading: CueReading, tools: Sequence[ToolSchema], table: NounTable) -> bool:
    """Tell "the browser must not ...", which is for the agent, from "employees must not ...", which is for others."""
    subject = sentence.text[reading.start : reading.cue]
    return bool(tools_named(subject, [subject], tools, table))


def _tools_of(
    sentence: Sentence, reading: CueReading, tools: Sequence[ToolSchema], table: NounTable
) -> tuple[str, ...]:
    # Short quotes are shown again: 'never use "force push"' names what it quotes.
    text = _SHORT_QUOTE.sub(lambda quote: sentence.text[quote.start() : quote.end()], sentence.masked)
    demand = text[reading.cue : reading.end]
    action = ENGLISH.forms["subordinate_clause"].split(demand, maxsplit=1)[0]
    parts = [without_modifiers(ENGLISH.forms["source"].sub(" ", action), table), action, demand]
    parts.append(text[reading.start : reading.end])
    if duty := ENGLISH.forms["duty_before"].match(demand):
        parts.insert(0, duty["act"])  # "always run the tests before you commit" limits the commit
    elif CHINESE.forms["before_duty"].match(demand):
        parts.insert(0, text[reading.start : reading.cue])  # 提交之前必须先跑测试
    if not reading.by_itself:
        parts += [text[reading.cue :], text]
    return tools_named(sentence.text, list(dict.fromkeys(parts)), tools, table)


def _rule_text(text: str) -> str:
    """The sentence without the stop that ends it; an abbreviation or an ellipsis keeps its dots."""
    text = text.strip()
    return text if text.endswith("..") else text.rstrip(" \t\r\n.。!！;；,，")
