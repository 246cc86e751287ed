"""Sentences that take an instruction back: "you may email Sarah again", "forget the rule about force-pushing".

A cue of `lifting_en.yaml` or `lifting_zh.yaml` counts where the sentence says it to the agent and for good: not in a
question, a report, under a condition, for this once, or of somebody else. Which rules are meant is `rules_meant`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, Literal

from toolmem.late import late_pattern
from toolmem.late_dataclasses import dataclass
from toolmem.rules.capture.cues import Forms
from toolmem.rules.capture.english import small
from toolmem.rules.capture.pasted import MASK
from toolmem.rules.capture.sentences import CJK, Sentence
from toolmem.rules.capture.spoken_of import LIFTING, Term, terms_of

Kind = Literal["permission", "unneeded", "unbound", "release", "back"]
_LONGEST = 500  # characters of a sentence
_SHORT_QUOTE = late_pattern(rf"(?<!{MASK}){MASK}{{1,120}}(?!{MASK})")


@dataclass(frozen=True, slots=True)
class LiftCue:
    """A form by which a sentence takes an instruction back."""

    id: str
    lifts: Kind
    what: str  # where what is meant stands: after, before or both sides of it
    instead: bool  # a sentence that it reads demands nothing, though other words may say so: "stop asking me"
    needs: str  # a form that what is meant must hold; "" none
    pattern: re.Pattern[str]


class LiftGrammar:
    """How one language takes instructions back."""

    def __init__(self, table: dict[str, Any]) -> None:
        self.forms = Forms(table["forms"])
        self._rows = table["cues"]

    @cached_property
    def cues(self) -> list[LiftCue]:
        compiled = [(row, re.compile(row["written"])) for row in self._rows]
        return [
            LiftCue(row["id"], row["lifts"], row["what"], row["instead"], row["needs"], pattern)
            for row, pattern in compiled
        ]

    def says(self, form: str, text: str) -> bool:
        """Whether a text holds a form."""
        return bool(self.forms[form].search(text))


LIFT_ENGLISH, LIFT_CHINESE = LiftGrammar(LIFTING["en"]), LiftGrammar(LIFTING["zh"])


def grammar_of(text: str) -> LiftGrammar:
    """The grammar of the language in which a text is written."""
    return LIFT_CHINESE if CJK.search(text) else LIFT_ENGLISH


@dataclass(frozen=True, slots=True)
class Lift:
    """What a clause takes back, before the rules are looked at."""

    sentence: str
    cue: str
    lifts: Kind
    meant: str  # the words that say what
    around: str = ""  # the rest of the sentence: what a pronoun may stand for
    limited: bool = False  # under a condition, or with exceptions: nothing is taken back by it
    passing: bool = False  # for once, or for a while: nor by this
    for_good: bool = False  # "again", "from now on"
    at: int = 0  # which sentence of its message
    instead: bool = False  # what else its words demand does not count

    @property
    def terms(self) -> tuple[Term, ...]:
        return terms_of(self.meant)

    @property
    def bounds(self) -> bool:
        """Whether the rest of the sentence demands something in its place: ", but ask me first"."""
        grammar = grammar_of(self.sentence)
        return grammar.says("asks", small(self.around)) or grammar.says("bounds", small(self.around))

    def says(self, form: str) -> bool:
        """Whether its words hold a form."""
        return grammar_of(self.sentence).says(form, small(self.meant))


def find_lifts(own: Sequence[Sentence]) -> list[Lift]:
    """What each sentence takes back, in order; of one sentence several where several of its clauses do."""
    read = (read_lifts(each, own[at + 1] if at + 1 < len(own) else None, at) for at, each in enumerate(own))
    return [lift for lifts in read for lift in lifts]


def read_lifts(sentence: Sentence, following: Sentence | None = None, at: int = 0) -> list[Lift]:
    """What the sentence takes back, by each clause that does."""
    if len(sentence.text) > _LONGEST:
        return []
    # Short quotes are shown again: "forget 'never email Sarah'" takes back what it quotes.
    text = _SHORT_QUOTE.sub(lambda quote: sentence.text[quote.start() : quote.end()], sentence.masked)
    own, after = small(sentence.masked), small(following.masked) if following is not None else ""
    grammar = grammar_of(text)
    said = _statement(grammar, small(text), own, question=sentence.question)
    if said is None or grammar.says("taken_next", after):
        return []
    by_clause: dict[int, LiftingClause] = {}
    for clause in _clauses_that_lift(grammar, said, own):
        by_clause.setdefault(clause.meant[1], clause)
    return [
        Lift(
            sentence.text.strip(),
            clause.cue.id,
            clause.cue.lifts,
            grammar.forms["as_wished"].sub(" ", clause.words(text)),
            clause.around(text),
            limited=clause.limited,
            passing=clause.passing or grammar.says("limit_next", after),
            for_good=clause.cue.lifts == "release" or grammar.says("durable", said),
            at=at,
            instead=clause.cue.instead,
        )
        for clause in by_clause.values()
    ]


def _statement(grammar: LiftGrammar, text: str, own: str, *, question: bool) -> str | None:
    """The sentence without "okay?" at its end; None for a question."""
    if grammar.says("polite", own):  # "could you please forget the rule about ...?"
        return text
    if question:
        tag = grammar.forms["tag"].search(text)
        if tag is None:
            return None
        text = text[: tag.start()]
    return None if grammar.says("question", text) else text


def _clauses_that_lift(grammar: LiftGrammar, said: str, own: str) -> Iterator[LiftingClause]:
    """`own`: the sentence with quotes hidden, in which a cue must stand."""
    for cue in grammar.cues:
        for match in cue.pattern.finditer(said):
            clause = LiftingClause(grammar, said, cue, match)
            if MASK not in own[match.start() : match.end()] and clause.is_said_to_agent:
                yield clause


class LiftingClause:
    """The clause in which a cue stands, and those around it."""

    def __init__(self, grammar: LiftGrammar, said: str, cue: LiftCue, match: re.Match[str]) -> None:
        self.cue, self.match = cue, match
        self._grammar, self._said = grammar, said
        boundary = grammar.forms["boundary"]
        before = [found.end() for found in boundary.finditer(said, 0, match.start())]
        following = list(boundary.finditer(said, match.end()))
        self._start = before[-1] if before else 0
        self._end = following[0].start() if following else len(said)
        self._earlier = boundary.split(said[: self._start])
        # "but" belongs to what it begins, a comma does not.
        self._later = [said[each.start() if each[0].isalpha() else each.end() :] for each in following]

    @property
    def meant(self) -> tuple[int, int]:
        """Where what is meant stands."""
        if self.cue.what == "after":
            return self.match.end(), self._end
        return self._start, self.match.start() if self.cue.what == "before" else self._end

    def words(self, text: str) -> str:
        """The words of the sentence, as it is written, that say what is meant."""
        start, end = self.meant
        inside = text[slice(*self.match.span("what"))] if self.match.groupdict().get("what") else ""
        if self.cue.what == "both":
            return f"{text[start : self.match.start()]} {inside} {text[self.match.end() : end]}"
        return inside or text[start:end]

    def around(self, text: str) -> str:
        """The rest of it, without the cue."""
        start, end = min(self.meant[0], self.match.start()), max(self.meant[1], self.match.end())
        return f"{text[:start]} {text[end:]}"

    @property
    def is_said_to_agent(self) -> bool:
        """Whether nobody else is meant, reports it or makes it depend on something, and it is not negated."""
        needs = self.cue.needs
        if needs and not self._grammar.says(needs, self._said[slice(*self.meant)]):
            return False
        lead = self._said[self._start : self.match.start()]
        earlier = self._earlier
        if self._grammar.says("joined", lead):  # "I changed my mind and you may ..."
            earlier, lead = [*earlier, lead], ""
        return self._leads(lead) and not any(self._is_of_others(each) for each in earlier)

    def _leads(self, lead: str) -> bool:
        """Whether what precedes the cue in its clause lets it count."""
        permits = self.cue.lifts == "permission"
        negated = self._grammar.says("negated", lead)
        if self.cue.what == "after":
            return not (terms_of(lead) or negated or self._grammar.says("other_lead", lead))
        if self.cue.what == "before":
            return not (negated and permits)
        clause = self._said[self._start : self._end]
        negated = negated and self.cue.lifts != "release"
        negated = negated or (permits and self._grammar.says("negated", self._said[self.match.end() : self._end]))
        other = self.cue.lifts != "release" and self._grammar.says("other_subject", clause)
        return not (negated or other or self._reports(lead))

    def _is_of_others(self, clause: str) -> bool:
        own = self._grammar.forms["as_wished"].sub(" ", clause)
        return self._reports(own) or self._grammar.says("condition", self._grammar.forms["own_word"].sub(" ", own))

    def _reports(self, clause: str) -> bool:
        return self._grammar.says("reported", self._grammar.forms["own_word"].sub(" ", clause))

    @property
    def passing(self) -> bool:
        """Whether it holds for once or for a while."""
        whole = self._grammar.forms["not_limit"].sub(" ", self._said)
        return self._grammar.says("limit", self._grammar.forms["as_wished"].sub(" ", whole))

    @property
    def limited(self) -> bool:
        """Whether it holds under a condition, or not for everything."""
        as_wished = self._grammar.forms["as_wished"]
        if self.cue.what == "before" and terms_of(self._said[self.match.end() : self._end]):
            return True  # "emailing Sarah is fine on Mondays"
        meant = as_wished.sub(" ", self._said[slice(*self.meant)])
        if self.cue.lifts == "permission" and self._grammar.says("condition_inside", meant):
            return True
        later = [as_wished.sub(" ", each) for each in self._later]
        return any(self._grammar.says(form, each) for each in later for form in ("condition", "limit_after"))
