"""Instructions of a user: what is forbidden or bounded for good, and what for this session only.

Questions, reports, idioms, conditions of one task, quoted text and wishes about the wording of answers are none.
Where in doubt, it is none, or holds for the session: an instruction wrongly pinned would bind the agent for ever.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from toolmem.late import late_pattern
from toolmem.late_dataclasses import dataclass, field
from toolmem.light_models import ToolSchema
from toolmem.rules.identity import UNSCOPED
from toolmem.sentences.demanding import Demanded, demanded_in
from toolmem.sentences.shown_text import mask_pasted, own_sentences
from toolmem.sentences.split_text import MASK, Sentence, ends_with, small, split_message
from toolmem.sentences.taken_back import Lift, find_lifts
from toolmem.sentences.tools_meant import able_too, named_exactly, speaks_of_tools, tools_named

_SHORT_ANSWER = 60  # characters
_MOST_LIFTS = 20  # of a message: each is compared with every rule
MAX_SENTENCE = 500  # characters; a rule is never cut, so a longer sentence is not captured
_SHORT_QUOTE = late_pattern(rf"(?<!{MASK}){MASK}{{1,32}}(?!{MASK})")
_CUE = late_pattern(
    r"\b(?:never|don't|do not|must not|stop|avoid|only|no longer|always)\b|不要|别|禁止|不准|不许|必须|只能|永远"
)
_ANSWER = late_pattern(
    r"\W*(?:(?:yes|ok(?:ay)?|please|sure|yeah|keep (?:it|that)|for good)\W+)*always(?:\W+(?:please|thanks"
    r"|yes))*\W*|\W*(?:好的?|是的?|对|嗯)?[，,\s]*(?:请)?永远(?:保留|如此|这样)?\W*"
)
_BEFORE = late_pattern(r"\bbefore you (.{3,})|(.{2,})之?前(?:必须|务必|都要|要)?先")
_TALKS_ABOUT_IT = late_pattern(
    r"\W*(?:is|does|do|did|was|are) (?:that|this|it|they|he|she|we)\b|\W*(?:right|true|really)\b"
)
_AS_BEFORE = late_pattern(r"\b(?:do|doing) (?:it|that|this|so)\b|\bthose\b|这么做|这样做|这种事")


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
    too_long: int = 0  # sentences that demand something, over MAX_SENTENCE characters: not captured
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
    (UNSCOPED) where there is none. `nouns` adds words that mean a tool: word of its name -> words that mean it.
    Linear in the length of the message.
    """
    own = own_sentences(list(split_message(message, mask_pasted)), demanded_in)
    long = [each for each in own if len(each.text) > MAX_SENTENCE]
    too_long = sum(_CUE.search(small(each.masked)) is not None for each in long)
    found = InstructionsFound(too_long=too_long, lifts=find_lifts(own)[:_MOST_LIFTS])
    tools = _known(ran, catalogue)
    before: tuple[str, ...] = ()  # the tools of the sentence before
    for at, sentence in enumerate(own):
        demands = (
            [] if len(sentence.text) > MAX_SENTENCE or _is_questioned(own[at + 1 : at + 2]) else demanded_in(sentence)
        )
        if not demands:
            before = ()
            continue
        named = _tools_of(sentence, demands, tools, nouns or {})
        if not named and _AS_BEFORE.search(small(sentence.masked)):
            named = before
        before = named
        if named or not all(each.named for each in demands) or (not tools and speaks_of_tools(sentence.masked)):
            said = " ".join(sentence.masked[each.start : each.end] for each in demands)
            also = () if named_exactly(sentence.text, tools) else able_too(said, named, tools)
            instruction = Instruction(
                named or tuple(ran[:1]) or (UNSCOPED,), _rule_text(sentence.text), also, not named, at
            )
            standing = any(each.kind == "standing" for each in demands)
            listed = found.standing if standing else found.session
            if instruction not in listed or found.lifts:  # said, taken back, and said again
                listed.append(instruction)
    return found


def _tools_of(
    sentence: Sentence, demands: Sequence[Demanded], tools: Sequence[ToolSchema], nouns: Mapping[str, Sequence[str]]
) -> tuple[str, ...]:
    # Short quotes are shown again: 'never use "force push"' names what it quotes.
    text = _SHORT_QUOTE.sub(lambda quote: sentence.text[quote.start() : quote.end()], sentence.masked)
    found: dict[str, None] = {}
    for each in demands:
        found |= dict.fromkeys(tools_named(sentence.text, _parts(text[each.start : each.end]), tools, nouns))
    if not found and not all(each.named for each in demands):
        found |= dict.fromkeys(tools_named(sentence.text, [text], tools, nouns))
    return tuple(tool.name for tool in tools if tool.name in found)


def _parts(demand: str) -> list[str]:
    """What is limited, then the whole: "always run the tests before you commit" limits the commit."""
    duty = _BEFORE.search(demand)
    return [next(part for part in duty.groups() if part), demand] if duty else [demand]


def says_always(message: str) -> bool:
    """Tell an answer to "say 'always' to keep it" from all else: "always", "yes, always please", 永远."""
    return len(message) <= _SHORT_ANSWER and not ends_with(message, "?？") and bool(_ANSWER.fullmatch(small(message)))


def _is_questioned(following: Sequence[Sentence]) -> bool:
    """Does the next sentence talk about it: "Is that wise?", "Is that still true?"."""
    return any(each.question and _TALKS_ABOUT_IT.match(small(each.masked)) for each in following)


def _known(ran: Sequence[str], catalogue: Sequence[str | ToolSchema]) -> list[ToolSchema]:
    """The tools of the turn and of the catalogue, each once, whatever its casing."""
    known: dict[str, ToolSchema] = {}
    for entry in [*catalogue, *ran]:
        schema = entry if isinstance(entry, ToolSchema) else ToolSchema(name=entry)
        known.setdefault(schema.name.casefold(), schema)
    return list(known.values())


def _rule_text(text: str) -> str:
    """The sentence without the stop that ends it; an abbreviation or an ellipsis keeps its dots."""
    text = text.strip()
    return text if text.endswith("..") else text.rstrip(" \t\r\n.。!！;；,，")
