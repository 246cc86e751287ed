"""Which of the active rules a sentence takes back, and which a newer instruction replaces.

A permission takes a rule back only where everything that it speaks of stands in the rule too: "you may email Sarah
about the invoice" leaves "never email Sarah" as it is. In doubt nothing is taken back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from enum import IntEnum
from functools import lru_cache
from typing import Literal

from toolmem.guard.word_lists import CHINESE, ENGLISH, form
from toolmem.late import late_pattern
from toolmem.late_dataclasses import dataclass
from toolmem.rules.capture.lifting import Lift, grammar_of
from toolmem.rules.capture.sentences import CJK
from toolmem.rules.capture.spoken_of import Term, general, normal, said_together, terms_of
from toolmem.rules.identity import same_text

Demanded = Literal["ban", "ask", "only", "duty"]
_PARTS_OF_NAME = late_pattern(r"[A-Z]?[a-z]+|[A-Z]+|\d+")


class Fit(IntEnum):
    """How well a rule fits what a sentence takes back."""

    NONE = 0
    LIMITED = 1  # it permits a part of what the rule forbids, or for once
    PERHAPS = 2
    MOSTLY = 3  # the rule says more
    EXACTLY = 4


@dataclass(frozen=True, slots=True)
class RuleSaid:
    """A rule as it is compared: its sentence, and the tools that it stands under."""

    text: str
    tools: frozenset[str] = frozenset()

    @property
    def demands(self) -> Demanded:
        return demands_of(self.text)

    @property
    def terms(self) -> tuple[Term, ...]:
        return terms_of(self.text)

    @property
    def core(self) -> tuple[Term, ...]:
        """Without the clause that only gives a reason."""
        cut = _without_reason(self.text)
        kept = [(term.text, term.literal) for term in terms_of(cut)]
        return tuple(term for term in self.terms if (term.text, term.literal) in kept) if kept else self.terms

    @property
    def of_tools(self) -> tuple[Term, ...]:
        """What the names of its tools say."""
        words = " ".join(part.lower() for tool in sorted(self.tools) for part in _PARTS_OF_NAME.findall(tool))
        return terms_of(words)


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a sentence that takes something back means among some rules."""

    meant: tuple[int, ...] = ()  # which of them
    fit: Fit = Fit.NONE

    @property
    def surely(self) -> bool:
        """Exactly one is meant, wholly and for good."""
        return len(self.meant) == 1 and self.fit >= Fit.MOSTLY


@lru_cache(maxsize=4096)
def demands_of(text: str) -> Demanded:
    """What kind of demand a rule is."""
    table = CHINESE if CJK.search(text) else ENGLISH
    if _FORMS[table is CHINESE]["ask"].search(text) or _ASKS.search(text):
        return "ask"
    if _FORMS[table is CHINESE]["only"].search(text) and not _negated_first(text, table is CHINESE):
        return "only"
    return "ban" if _FORMS[table is CHINESE]["not_"].search(text) or _BANS.search(text) else "duty"


_FORMS = [{name: form(name, table) for name in ("ask", "only", "not_", "reason")} for table in (ENGLISH, CHINESE)]
_ASKS = late_pattern(r"\b(?:ask|check|confirm|verify)(?: with \w+)? (?:first|before)\b", re.IGNORECASE)
_BANS = late_pattern(
    r"\b(?:avoid|stay away|keep away|keep out|refrain|hands off|leave .* alone|off[- ]limits|ban)\b|避免|远离"
)


def _negated_first(text: str, chinese: bool) -> bool:
    only, banned = _FORMS[chinese]["only"].search(text), _FORMS[chinese]["not_"].search(text)
    return bool(only and banned and banned.start() < only.start())


def _without_reason(text: str) -> str:
    cut = _FORMS[bool(CJK.search(text))]["reason"].sub("", text)
    return cut if terms_of(cut) else text


def rules_meant(lift: Lift, rules: Sequence[RuleSaid]) -> Meaning:
    """Which rules the sentence takes back, and how surely."""
    whole = _best(lift, lift.terms, lift.meant, rules)
    if whole.fit > Fit.LIMITED or len(lift.terms) < 2:
        return whole
    parts = [part for part in grammar_of(lift.sentence).forms["part"].split(lift.meant) if terms_of(part)]
    if len(parts) < 2:
        return whole
    found = [_best(lift, terms_of(part), part, rules) for part in parts]
    sure = [each for each in found if each.fit >= Fit.MOSTLY]
    if not sure:
        return whole
    meant = tuple(dict.fromkeys(number for each in sure for number in each.meant))
    return Meaning(meant, min(each.fit for each in sure))


def _best(lift: Lift, terms: Sequence[Term], words: str, rules: Sequence[RuleSaid]) -> Meaning:
    fits = [_fit(lift, terms, words, rule) for rule in rules]
    best = max(fits, default=Fit.NONE)
    if best == Fit.NONE:
        return Meaning()
    return Meaning(tuple(number for number, fit in enumerate(fits) if fit == best), best)


def _fit(lift: Lift, terms: Sequence[Term], words: str, rule: RuleSaid) -> Fit:
    fit = _whole_fit(lift, terms, words, rule)
    if fit <= Fit.LIMITED or lift.lifts == "release":
        return fit
    if lift.limited or lift.passing or (fit < Fit.EXACTLY and not lift.for_good):
        return Fit.LIMITED
    return fit


def _whole_fit(lift: Lift, terms: Sequence[Term], words: str, rule: RuleSaid) -> Fit:
    if not _can_lift(lift, rule):
        return Fit.NONE
    if not terms:
        return _fit_of_nothing(lift, rule)
    said = [*rule.terms, *rule.of_tools]
    if not all(term.within(said) for term in terms):
        return _fit_of_more(lift, terms, said, rule)
    if not any(term.within(rule.terms) for term in terms) or not _same_action(terms, rule):
        return Fit.NONE
    if lift.lifts == "permission" and rule.demands == "only":  # else it permits what the rule permits
        return Fit.EXACTLY if lift.says("others") else Fit.NONE
    if lift.lifts != "release" and _one_object(lift, terms, rule):
        return Fit.LIMITED
    left = _left(lift, terms, rule)
    if not left:
        return Fit.PERHAPS if _only_acts(lift, terms, rule) else Fit.EXACTLY
    joins = grammar_of(rule.text).forms["listed"]
    covered = [term for term in rule.core if term not in left]
    if said_together(normal(rule.text), left, covered, joins):
        return Fit.LIMITED if lift.lifts != "release" else Fit.PERHAPS
    if any(term.distinctive and term.within(rule.terms) for term in terms):
        return Fit.MOSTLY
    if lift.says("pronoun") or lift.says("anybody"):
        return Fit.EXACTLY if _stands_for(lift, left) else Fit.MOSTLY
    return Fit.MOSTLY if lift.lifts != "permission" else Fit.PERHAPS


def _can_lift(lift: Lift, rule: RuleSaid) -> bool:
    demands = rule.demands
    if lift.lifts in ("release", "back"):
        return True
    forms = grammar_of(lift.sentence).forms
    without = bool(forms["without_asking"].search(lift.sentence.lower()))
    if lift.lifts == "permission":
        left_out = demands == "duty" and lift.for_good and lift.says("without")
        return demands in ("ban", "only") or (demands == "ask" and (lift.for_good or without)) or left_out
    if lift.lifts == "unbound":
        return demands == "only"
    asks = bool(forms["asks"].search(lift.sentence.lower()))
    return demands == "ask" if asks else demands in ("duty", "only")


def _fit_of_nothing(lift: Lift, rule: RuleSaid) -> Fit:
    """The sentence names nothing: "you don't have to ask any more", "drop that rule", "you may do that again"."""
    if lift.lifts == "release":
        return Fit.MOSTLY if lift.says("any_rule") else Fit.NONE  # "the limit" is one that is not named
    if lift.lifts == "unneeded":
        return Fit.MOSTLY if rule.demands == "ask" and lift.for_good else Fit.NONE
    named = any(term.within(terms_of(lift.around)) for term in rule.core if term.distinctive)
    return Fit.MOSTLY if named and lift.for_good and lift.says("pronoun") else Fit.NONE


def _fit_of_more(lift: Lift, terms: Sequence[Term], said: Sequence[Term], rule: RuleSaid) -> Fit:
    """The sentence speaks of what the rule does not speak of."""
    if lift.lifts == "release":
        return Fit.NONE
    shared = [term for term in terms if term.within(rule.terms)]
    named = any(term.distinctive for term in rule.core)
    if not any(term.distinctive for term in shared) and (named or len(shared) < len(rule.core)):
        return Fit.NONE
    return Fit.LIMITED if _same_action(terms, rule) else Fit.NONE


def _same_action(terms: Sequence[Term], rule: RuleSaid) -> bool:
    """Whether what is permitted is what the rule forbids first, not something that it only mentions."""
    acts = [term for term in terms if term.families]
    first = _first_acts(rule)
    if not acts or not first:
        return True
    return any(term.within(first) or any(one.widened_by([term]) for one in first) for term in acts)


def _first_acts(rule: RuleSaid) -> list[Term]:
    core = rule.core
    if not core or not core[0].families:
        return [term for term in core if term.families] if CJK.search(rule.text) else []
    joins = grammar_of(rule.text).forms["listed"]
    first = [core[0]]
    for term in core[1:]:
        if not term.families or not said_together(normal(rule.text), first, [term], joins):
            break
        first.append(term)
    return [*first, *rule.of_tools] if not first[0].channel else first


def _one_object(lift: Lift, terms: Sequence[Term], rule: RuleSaid) -> bool:
    """Whether it permits something with one object at hand: "push it to main", "delete the file"."""
    if lift.for_good and not lift.says("pointing"):
        return False
    if lift.says("pointing"):
        return True
    if lift.says("object_it"):
        return True
    forms = grammar_of(lift.sentence).forms
    definite = set(forms["definite"].findall(normal(lift.meant)))
    written = normal(rule.text)
    bare = {word for word in definite if not re.search(rf"\b(?:the|my|our|your) (?:\w+ )?{re.escape(word)}\b", written)}
    return any(term.text in bare and term.within(rule.terms) and not term.distinctive for term in terms)


def _left(lift: Lift, terms: Sequence[Term], rule: RuleSaid) -> list[Term]:
    """What the rule speaks of and the sentence does not."""
    left = [term for term in rule.core if not term.widened_by(terms) and not general(term)]
    address = {term.literal for term in left} & {"email", "host", "path"}
    named = [term for term in terms if term.distinctive and term.within(rule.core)]
    if left and named and all(term.literal in address for term in left):
        return []  # "Sarah at sarah@example.com" is Sarah
    if left and any(term.literal in ("email", "path") for term in named) and all(term.distinctive for term in left):
        return []  # sarah@example.com is "Sarah at sarah@example.com"
    return [term for term in left if not (term.families and any(one.generic for one in terms if one.families))]


def _only_acts(lift: Lift, terms: Sequence[Term], rule: RuleSaid) -> bool:
    """ "You may delete again" may mean other things than "never delete files" does."""
    if lift.lifts != "permission" or lift.says("pronoun") or lift.says("anybody"):
        return False
    nouns = [term for term in rule.core if general(term) and not term.within(terms)]
    return bool(nouns) and all(term.families for term in terms)


def _stands_for(lift: Lift, left: Iterable[Term]) -> bool:
    around = terms_of(lift.around)
    names = [term for term in left if term.distinctive and term.literal not in ("email", "host", "path")]
    return all(term.within(around) for term in names or left if term.distinctive)


# ---------------------------------------------------------------- newer instructions


def replaces(newer: str, older: str, tool: str = "") -> bool:
    """Whether a newer instruction on a tool stands in the place of an older one: the same action on the same target."""
    if same_text(newer) == same_text(older):
        return False
    tools = frozenset((tool,)) if tool else frozenset()
    new, old = RuleSaid(newer, tools), RuleSaid(older, tools)
    if new.demands != old.demands and _same_target(new, old):
        return True
    if new.demands == old.demands == "only" or _bounds_amount(new, old):
        return _skeleton(newer) == _skeleton(older) is not None
    return new.demands == "only" and old.demands == "ban" and _permits_under_condition(new, old)


def says_the_same(one: str, other: str) -> bool:
    """Whether two instructions demand the same of the same target, in other words or another language."""
    first, second = RuleSaid(one), RuleSaid(other)
    return first.demands == second.demands and _same_target(first, second)


def _same_target(new: RuleSaid, old: RuleSaid) -> bool:
    names = [term for term in new.core if term.distinctive and term.within(old.core)]
    one, other = (_aimed_at(each, kinds=not names) for each in (new, old))
    if not one or not other:
        return False
    if not (all(t.within(other) for t in one) and all(t.within(one) for t in other)):
        return _same_address(one, other)
    return True


def _aimed_at(rule: RuleSaid, *, kinds: bool) -> list[Term]:
    """Without what only says which tool it is, "in the shell"; `kinds`: with what only says of what kind a thing is."""
    return [
        t for t in rule.core if (kinds or not general(t)) and (t.families or t.literal or not t.within(rule.of_tools))
    ]


def _same_address(one: Sequence[Term], other: Sequence[Term]) -> bool:
    """The same address, and everything else but its name is the same."""
    shared = [t for t in one if t.literal in ("email", "host", "path") and t.within(other)]
    rest = [t for t in one if not t.within(other)] + [t for t in other if not t.within(one)]
    return bool(shared) and all(t.distinctive and not t.literal for t in rest) and len(rest) <= 1


def _bounds_amount(new: RuleSaid, old: RuleSaid) -> bool:
    amounts = [[t for t in each.core if t.literal in ("money",) or t.text.isdigit()] for each in (new, old)]
    return new.demands == old.demands and len(amounts[0]) == len(amounts[1]) == 1


def _skeleton(text: str) -> tuple[str, ...] | None:
    """The words of a sentence with a gap where its one name or amount stands."""
    terms = [term for term in RuleSaid(text).core if term.distinctive]
    if len(terms) != 1:
        return None
    written = normal(text)
    gap = written[: terms[0].start] + " _ " + written[terms[0].end :]
    return tuple(re.findall(r"[\w]+|[\u3400-\u9fff]", gap))


_CONDITION = late_pattern(r"\b(?:if|when|after|once|with|unless|provided|while|as long as)\b")


def _permits_under_condition(new: RuleSaid, old: RuleSaid) -> bool:
    """ "Only push to main after the tests pass" takes the place of "never push to main"."""
    parts = _CONDITION.split(normal(new.text), maxsplit=1)
    return len(parts) == 2 and _same_target(RuleSaid(parts[0]), RuleSaid(old.text))
