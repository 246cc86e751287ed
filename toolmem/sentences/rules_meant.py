"""Which of the rules that hold a sentence takes back, and which a newer instruction replaces. In doubt none."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from toolmem.late import late_pattern
from toolmem.late_dataclasses import dataclass
from toolmem.sentences.reading import ASK, NOT, ONLY, REASON
from toolmem.sentences.split_text import small
from toolmem.sentences.taken_back import Fit, Lift
from toolmem.sentences.terms import Term, terms_of

_DEFINITE = late_pattern(r"\b(?:this|that|it|these|those)\b|这|那(?!条|个规)")
_PERSON = late_pattern(r"\b(?:him|her|them)\b|[他她]")
_ANYBODY = late_pattern(r"\b(?:any|anyone|anybody|people|other|everyone)\b|任何|别的|其他")
_PROVIDED = late_pattern(r"\b(?:if|when|after|once|with|unless|provided|while|as long as)\b")
_REACHED = frozenset(("email", "host", "path"))  # literals that say whom or where


@dataclass(frozen=True, slots=True)
class RuleSaid:
    """A rule as it is compared."""

    text: str

    @property
    def demands(self) -> str:
        return demands_of(self.text)

    @property
    def core(self) -> tuple[Term, ...]:
        """Without the clause that only gives a reason."""
        return terms_of(REASON.sub("", self.text)) or terms_of(self.text)


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
def demands_of(text: str) -> str:
    """What kind of demand a rule is: ask, only, ban or duty."""
    if ASK.search(text):
        return "ask"
    only, ban = ONLY.search(text), NOT.search(text)
    if only and not (ban and ban.start() < only.start()):
        return "only"
    return "ban" if ban or re.search(r"\b(?:avoid|stop|away|off[- ]limits|hands off)\b", text.lower()) else "duty"


_LIFTED = {"permission": {"ban"}, "unneeded": {"ask", "duty"}, "unbound": {"only"}}


def rules_meant(lift: Lift, rules: Sequence[RuleSaid]) -> Meaning:
    """Which rules the sentence takes back, and how surely."""
    fits = [_fit(lift, lift.terms, rule) for rule in rules]
    best = max(fits, default=Fit.NONE)
    return Meaning(tuple(number for number, fit in enumerate(fits) if fit == best), best) if best else Meaning()


def _fit(lift: Lift, terms: Sequence[Term], rule: RuleSaid) -> Fit:
    if rule.demands not in _LIFTED.get(lift.lifts, {rule.demands}) and not _widens(lift, rule):
        return Fit.NONE
    core = rule.core
    if _PERSON.search(small(lift.meant)):  # "her" stands for a name elsewhere in the sentence
        terms = (*terms, *(term for term in terms_of(lift.around) if term.distinctive and term.within(core)))
    fit = _whole_fit(lift, terms, core)
    if fit <= Fit.LIMITED or lift.lifts in ("release", "back"):
        return fit
    definite = _DEFINITE.search(small(lift.meant)) and not _DEFINITE.search(small(rule.text))
    less = definite or lift.passing or lift.limited or (fit < Fit.EXACTLY and not lift.for_good)
    return Fit.LIMITED if less else fit


def _widens(lift: Lift, rule: RuleSaid) -> bool:
    """ "You may email anyone again" takes back "only email addresses at acme.com"."""
    return lift.lifts == "permission" and rule.demands == "only" and bool(_ANYBODY.search(small(lift.sentence)))


def _whole_fit(lift: Lift, terms: Sequence[Term], core: Sequence[Term]) -> Fit:
    permits = lift.lifts == "permission"
    if not terms:
        return Fit.MOSTLY if lift.lifts in ("unneeded", "release") else Fit.NONE
    shared = [term for term in terms if term.within(core) or any(each.widened_by([term]) for each in core)]
    outside = [term for term in terms if term not in shared and not term.is_kind]
    if outside:
        others = any(term.distinctive and term.literal for term in outside)
        named = any(term.distinctive for term in shared) and len(shared) > 1
        return Fit.LIMITED if named and permits and not others else Fit.NONE
    if not shared:
        return Fit.NONE
    left = [term for term in core if not term.widened_by(terms) and not term.is_kind]
    named = any(term.distinctive for term in terms)
    reached = all(term.literal in _REACHED for term in left)
    mailed = any(term.literal == "email" for term in terms) and all(term.distinctive for term in left)
    if not left or (named and reached) or mailed:
        return Fit.EXACTLY
    if named or lift.lifts == "unbound":
        return Fit.MOSTLY
    widened = not permits or (_ANYBODY.search(small(lift.meant)) and demands_of(lift.sentence) != "ban")
    return Fit.MOSTLY if widened and not any(term.distinctive for term in left) else Fit.PERHAPS


# ---------------------------------------------------------------- newer instructions


def replaces(newer: str, older: str) -> bool:
    """Whether a newer instruction on a tool stands in the place of an older one: the same action on the same target."""
    new, old = RuleSaid(newer), RuleSaid(older)
    if new.core == old.core and new.demands == old.demands:
        return False
    if new.demands != old.demands:
        bounds = new.demands == "only" and old.demands == "ban"
        return _same_target(new, old) or (bounds and _same_target(RuleSaid(_PROVIDED.split(newer)[0]), old))
    amounts = [[t for t in each.core if t.literal in ("money", "number") or t.text.isdigit()] for each in (new, old)]
    bounds = len(amounts[0]) == len(amounts[1]) == 1
    return (new.demands == "only" or bounds) and _skeleton(new) == _skeleton(old) is not None


def says_the_same(one: str, other: str) -> bool:
    """Whether two instructions demand the same of the same target, in other words or another language."""
    first, second = RuleSaid(one), RuleSaid(other)
    return first.demands == second.demands and _same_target(first, second)


def _same_target(new: RuleSaid, old: RuleSaid) -> bool:
    names = any(term.distinctive and term.within(old.core) for term in new.core)
    one, other = ([t for t in rule.core if not (names and t.is_kind)] for rule in (new, old))
    if not one or not other:
        return False
    rest = [t for t in one if not t.within(other)] + [t for t in other if not t.within(one)]
    shared = [t for t in one if t.literal in _REACHED and t.within(other)]
    return not rest or (bool(shared) and len(rest) == 1 and rest[0].distinctive and not rest[0].literal)


def _skeleton(rule: RuleSaid) -> tuple[object, ...] | None:
    """What a sentence speaks of, with a gap where its one name or amount stands."""
    names = [term for term in rule.core if term.distinctive]
    if len(names) != 1:
        return None
    return tuple("_" if term.distinctive else (term.families, term.things) for term in rule.core)
