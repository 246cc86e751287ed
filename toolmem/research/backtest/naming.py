"""What guidance names, by its claims: for which error which kind of repair.

The text is cut to a token budget by whole sentences (`toolmem.guidance.shown`); a claim counts where its sentence is
kept. Claims without a subject (a model's sentences) name nothing.
"""

from __future__ import annotations

import re
from functools import lru_cache

from toolmem.guidance.counted.repair_history import same
from toolmem.guidance.counted.repairs import Repair
from toolmem.guidance.shown import BULLET, fit
from toolmem.models import Claim, Guidance
from toolmem.providers.tokenizer import QwenTokenizer
from toolmem.readers.error_classes import error_class_of
from toolmem.research.backtest.opportunities import Opportunity

GENERAL = 2  # claims about any failure that count: naming everything for everything is not knowing what repairs
MESSAGE_WORDS = 8  # words of a message by which it is recognized

_WORD = re.compile(r"[a-z][a-z_']+|[\u4e00-\u9fff]{2}")


def named(opportunity: Opportunity, guidance: Guidance | None, budget: int, *, strict: bool = False) -> bool:
    """Whether `guidance`, cut to `budget` tokens, names a repair of `opportunity` for its error.

    An error is known by its masked message, by its class, or by half of the words that its message begins with. What
    a value was before, and its shape, need not agree. `strict`: claims about any failure count for nothing.
    """
    if guidance is None:
        return False
    asked = {_kind(repair) for repair in opportunity.repairs}
    general = 0
    for claim in kept(guidance, budget):
        repairs = {_kind(repair) for repair in _repairs_of(claim)}
        anyhow = _about_any(claim)
        general += anyhow
        if repairs & asked and ((anyhow and general <= GENERAL and not strict) or _about(claim, opportunity)):
            return True
    return False


def kept(guidance: Guidance, budget: int) -> list[Claim]:
    """The claims whose sentences stand within `budget` tokens (Qwen's tokenizer), the most valuable first."""
    places = _kept(guidance.text, tuple(claim.text for claim in guidance.claims), budget)
    return [claim for place, claim in enumerate(guidance.claims) if place in places]


@lru_cache(maxsize=512)  # the same guidance is asked about at many failures
def _kept(text: str, claims: tuple[str, ...], budget: int) -> frozenset[int]:
    of_texts = [Claim(text=claim, k=0, n=0, call_ids=()) for claim in claims]
    whole = Guidance(text=text, claims=of_texts, author="", prompt_version="")
    lines = set(fit(whole, budget, QwenTokenizer().count).splitlines())
    return frozenset(place for place, claim in enumerate(claims) if BULLET + claim in lines)


def _repairs_of(claim: Claim) -> list[Repair]:
    about = claim.subject
    return [] if about is None else [Repair(*one) for one in about.repairs]


def _about_any(claim: Claim) -> bool:
    about = claim.subject
    return about is not None and about.form == "repair_any"


def _about(claim: Claim, asked: Opportunity) -> bool:
    error = claim.subject.error if claim.subject is not None else ""
    if claim.subject is None or claim.subject.form == "repair_any":
        return False
    if error == asked.message or (asked.error_class not in {"", "error"} and _class_of(error) == asked.error_class):
        return True
    words, held = _words(asked.message)[:MESSAGE_WORDS], set(_words(error))
    shared = sum(word in held for word in words)
    return bool(words) and shared >= min(2, len(words)) and 2 * shared >= len(words)


@lru_cache(maxsize=4096)
def _class_of(error: str) -> str:
    return error_class_of(error) if error else "no_output"


@lru_cache(maxsize=4096)
def _words(message: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_WORD.findall(message.lower())))


def _kind(repair: Repair) -> Repair:
    """A repair without what was changed, and without the shapes of a changed value."""
    return same(repair)._replace(before="")
