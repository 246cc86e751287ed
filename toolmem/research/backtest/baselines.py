"""Guidance to compare with. It tests nothing, merges nothing and leaves nothing out.

* **counting only**: how often each error message came, and how often each kind of repair was followed by success, two
  lists in one order, most frequent first. That a repair goes with an error is not counted; a repair is told as one of
  any failure, and counts like every other claim about any failure: the two most frequent ones.
* **pairs**: how often each kind of repair followed each error message, most frequent first. It does nothing but the
  measured thing, without any other use for a reader: a mark to look up to.

Both name repairs in the data-driven writer's words and are cut to the same budgets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from toolmem.guidance.counted.card_lines import Wording
from toolmem.guidance.counted.repairs import Repair
from toolmem.guidance.outcomes import went_wrong
from toolmem.guidance.shown import BULLET, claim_text
from toolmem.models import Claim, Guidance, Language, Subject, ToolCallResult
from toolmem.readers.error_messages import mask, telling_line
from toolmem.readers.plain_text import plain
from toolmem.research.backtest.opportunities import opportunities

MAX_ERROR = 110  # characters of a message


def counting_only(calls: Sequence[ToolCallResult], language: Language = "") -> Guidance:
    """Errors with counts and repairs with counts, of the calls of one tool, not joined."""
    failures = Counter(mask(telling_line(call.output)) for call in calls if went_wrong(call))
    asked = opportunities(calls)
    repaired = Counter(_plain(repair) for one in asked for repair in one.repairs)
    errors = [_claim("error", error, k, failures.total()) for error, k in failures.items()]
    repairs = [_claim("repair_any", "", k, len(asked), repair) for repair, k in repaired.items()]
    return _listed([*errors, *repairs], language)


def counting_pairs(calls: Sequence[ToolCallResult], language: Language = "") -> Guidance:
    """Pairs of an error and a repair with counts, of the calls of one tool."""
    asked = opportunities(calls)
    of_error = Counter(one.message for one in asked)
    pairs = Counter((one.message, _plain(repair)) for one in asked for repair in one.repairs)
    claims = [_claim("repair", error, k, of_error[error], repair) for (error, repair), k in pairs.items()]
    return _listed(claims, language)


def _plain(repair: Repair) -> Repair:
    """Without the shapes of a changed value."""
    return Repair(repair.kind, repair.path) if repair.kind == "changed" else repair


def _claim(form: str, error: str, k: int, n: int, *repairs: Repair) -> Claim:
    subject = Subject(form=form, error=error, repairs=repairs)
    return Claim(text="", k=k, n=n, call_ids=(), kind="error" if form == "error" else "repair", subject=subject)


def _listed(claims: Iterable[Claim], language: Language) -> Guidance:
    told = [claim.model_copy(update={"text": claim_text(_sentence(claim, language))}) for claim in claims]
    told.sort(key=lambda claim: (-claim.k, claim.text))
    text = "\n".join(BULLET + claim.text for claim in told)
    return Guidance(text=text, claims=told, author="counting", prompt_version="")


_SENTENCES = {
    "error": ("“{error}”: {k} of {n} failures.", "“{error}”：{n} 次失败中 {k} 次。"),
    "repair": ("After “{error}”: {what} ({k} of {n} recoveries).", "“{error}”之后：{what}（{n} 次恢复中 {k} 次）。"),
    "repair_any": (
        "After any failure: {what} ({k} of {n} recoveries).",
        "任何失败之后：{what}（{n} 次恢复中 {k} 次）。",
    ),
}


def _sentence(claim: Claim, language: Language) -> str:
    about = claim.subject or Subject(form="error")
    what = ", ".join(Wording(language).repair(Repair(*repair)) for repair in about.repairs)
    template = _SENTENCES[about.form][language == "zh"]
    return template.format(error=plain(about.error, MAX_ERROR), what=what, k=claim.k, n=claim.n)
