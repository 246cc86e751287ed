"""Claims in words: the one place where a finding becomes a sentence of English or Chinese.

A sentence is said from the claim alone (`Claim.kind`, `subject`, `k`, `n`, `counts`, `detail`); nothing reads one back.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from toolmem.guidance.counted.conditions import Condition
from toolmem.guidance.counted.phrases import CONDITIONS, PHRASES, SHAPES
from toolmem.guidance.counted.repairs import Repair
from toolmem.guidance.counted.worth import better, value
from toolmem.guidance.shown import BULLET, HEADINGS, claim_text
from toolmem.models import Claim, Language, Subject
from toolmem.readers.plain_text import hides, plain
from toolmem.readers.proportions import wilson_interval

PARTS = tuple(HEADINGS)
_PART_OF = {  # by kind; of "overall" by form; all others are issues
    **dict.fromkeys(("usage",), "core"),
    **dict.fromkeys(("refused", "inconclusive"), "success"),
    **dict.fromkeys(
        ("sequence", "repair", "repair_since", "target", "unrecovered", "repeat", "all_failed"), "practices"
    ),
    **dict.fromkeys(("overall", "overall_unknown", "recorded_flag"), "statistics"),
}
_PREVENTING = frozenset({"parameter", "refused", "sequence"})

MAX_MESSAGE = 110  # characters of a quoted error message
MAX_NAME = 80  # of a parameter, a key or a column
MAX_FIELD = 1_000  # of whatever is filled into a sentence
MAX_MENTION = 70  # of one that is quoted in full elsewhere
HEADING = "## "
DIGITS = ("[digits]", "[数字]")  # of any number: `reports/q[digits].txt`
MOSTLY = "~"  # before a form of statement that most, not all, of the repairs have


def said(claims: Iterable[Claim], say: Wording, failures: int) -> list[Claim]:
    """The claims with their sentences, most valuable first; equal ones by part, then by text.

    `failures`: how many calls of the tool failed.
    """
    told = [one.model_copy(update={"text": sentence(one, say)}) for one in claims]
    return sorted(told, key=lambda one: (-value(one, failures), PARTS.index(part_of(one)), one.text))


def sentence(claim: Claim, say: Wording) -> str:
    """Raises KeyError, TypeError or ValueError where the data of a claim do not fit its form."""
    if claim.subject is None:
        return claim.text
    fields = {
        "k": claim.k,
        "n": claim.n,
        **claim.counts,
        **_FIELDS.get(claim.kind, _of_subject)(claim, claim.subject, say),
    }
    return claim_text(say.say(_phrase(claim, claim.subject), **fields))


def part_of(claim: Claim) -> str:
    """The part of the text where it stands."""
    if claim.kind == "parameter":
        return "success" if better(claim) else "issues"
    form = claim.subject.form if claim.subject is not None and claim.kind == "overall" else claim.kind
    return _PART_OF.get(form, "issues")


def lay_out(claims: Sequence[Claim], say: Wording) -> str:
    """The text of guidance: its parts in order, each sentence on a line of its own: prevention first, then by value."""
    lines: list[str] = []
    for part in PARTS:
        of_part = sorted((one for one in claims if part_of(one) == part), key=lambda one: one.kind not in _PREVENTING)
        if of_part:
            lines += [f"{HEADING}{say.heading(part)}", *(BULLET + one.text for one in of_part)]
    return "\n".join(lines)


def _phrase(claim: Claim, about: Subject) -> str:
    if not about.form.startswith("repair"):
        return about.form
    widely = "_widely" if claim.detail.get("widely") else ""
    if "since" in claim.detail:
        return f"{about.form}{widely}_since"
    return "repair_once" if claim.n == 1 and about.form == "repair" and not widely else f"{about.form}{widely}"


class Wording:
    """Words in one language: "" is English, "zh" Chinese."""

    def __init__(self, language: Language = "") -> None:
        self._index = 1 if language == "zh" else 0

    def say(self, key: str, **fields: Any) -> str:
        return self._fill(PHRASES, key, fields)

    def heading(self, part: str) -> str:
        return HEADINGS[part][self._index]

    def join(self, items: Sequence[str]) -> str:
        return ("、" if self._index else ", ").join(items)

    def extras(self, items: Iterable[str]) -> str:
        mark = "；" if self._index else "; "
        return "".join(mark + item for item in items)

    def shape(self, name: str, x: str = "") -> str:
        """A shape of `values.text_shape` or a type of `values.type_name`, in words."""
        if name.startswith("like:"):
            return self._fill(SHAPES, "like", {"x": self._spelled(name.removeprefix("like:"))})
        return self._fill(SHAPES, name, {"x": x})

    def condition(self, condition: Condition) -> str:
        key = condition.kind
        if key in {"at_least", "below", "above", "under"}:
            key = f"{key} {condition.detail}"
        detail, path = condition.detail, condition.path or "input"
        if condition.kind in {"statement", "program"} and not detail:
            return f"`{path}`: {self.say(f'no_{condition.kind}')}"
        shape = self.shape(detail) if condition.kind in {"shape", "type", "unlike"} else ""
        fields = {"path": path, "detail": detail, "shape": shape, "bound": number(condition.bound)}
        return self._fill(CONDITIONS, key, fields)

    def opening(self, condition: Condition, within: Condition | None = None) -> str:
        """The condition as the beginning of a sentence: with a capital, unless it begins with a name."""
        said, leads = self.circumstance(condition, within), within or condition
        named = leads.kind in {"statement", "program", "flag", "part", "clause", "value"}
        return said if named or said[:1] == "`" else said[:1].upper() + said[1:]

    def circumstance(self, condition: Condition, within: Condition | None) -> str:
        """The condition, with the calls among which it is compared where that is not clear from itself."""
        said = self.condition(condition)
        if within is None or within.kind == "present" or condition.kind == "flag":
            return said
        if within.kind == "statement" and condition.kind in {"clause", "table"}:
            return self.say(f"within_{condition.kind}", within=within.detail, detail=condition.detail)
        return self.say("within", within=self.condition(within), condition=said)

    def message(self, label: str, limit: int = MAX_MESSAGE) -> str:
        """An error message in quotation marks."""
        return quoted(label, limit) if label else self.say("no_output")

    def _spelled(self, form: str) -> str:
        """A form of `values.text_shape` with its runs of digits in words."""
        return re.sub(r"\\(.)|#", lambda found: found[1] or DIGITS[self._index], form)

    def repair(self, repair: Repair, form: str = "", shown: str = "") -> str:
        """What to do, as an instruction.

        `form`: the most frequent form of the statement that repaired; `shown`: an example of the change.
        """
        kind, path, before, after = repair
        if kind in {"statement", "program"}:
            nothing = self.say(f"no_{kind}")
            return self.say(f"to_{kind}", before=before or nothing, after=form or after or nothing)
        if kind == "action":
            return self.say("to_action", path=path or "input", before=before, after=after)
        if kind == "changed" and before and after:
            kind, before, after = "changed_shape", self.shape(before), self.shape(after)
        return self.say(kind, path=path or "input", before=before, after=after) + shown

    def form(self, kind: str, form: str) -> str:
        """How the statement that repaired was written, where it was written alike each time, or mostly."""
        return self.say("mostly", kind=kind, form=form.removeprefix(MOSTLY)) if form.startswith(MOSTLY) else form

    def listed(self, items: Sequence[str], last: str) -> str:
        """`a, b and c`, or `a, b or c`: `last` is "both" or "either"."""
        return self.say(last).join([*([self.join(items[:-1])] if len(items) > 1 else []), *items[-1:]])

    def given(self, name: str, shape: str = "", *held: str) -> str:
        """A parameter, or an answer without a name, with what it holds: as in `Subject.named`."""
        label = f"`{named(name) or 'input'}`"
        if shape == "choices":
            return f"{label} ({' | '.join(held) if len(held) > 1 else self.say('always', x=held[0])})"
        return f"{label} ({self.holding(shape, *held)})" if shape else label

    def holding(self, shape: str, *held: str) -> str:
        return self.shape(shape, self.join([*map(named, held)]))

    def _fill(self, table: Mapping[str, tuple[str, str]], key: str, fields: Mapping[str, Any]) -> str:
        template = table[key][self._index]
        fields = {name: _plain(name, field) for name, field in fields.items()}
        if "|" in template:
            fields = {name: _Count(field) if isinstance(field, int) else field for name, field in fields.items()}
        return template.format_map(fields)


def _plain(name: str, field: Any) -> Any:
    """What a call may have brought in, without what cannot be seen, and bounded. Spaces around it stay."""
    if not isinstance(field, str):
        return field
    if name == "path":
        return named(field)
    return field if len(field) <= MAX_FIELD and not hides(field) else plain(field, MAX_FIELD)


def named(name: str) -> str:
    """A parameter, a key or a column, as it may stand between backticks."""
    return plain(name, MAX_NAME).replace("`", "'")


class _Count(int):
    """A number that takes the noun which goes with it: `{n:call|calls}`."""

    def __format__(self, nouns: str) -> str:
        one, bar, many = nouns.partition("|")
        if not bar:
            return super().__format__(nouns)
        noun = one if self == 1 else many
        return noun.replace("#", str(int(self))) if "#" in many else f"{int(self)} {noun}"


def quoted(message: str, limit: int = MAX_MESSAGE) -> str:
    """The message in quotation marks, cut at its end where it is long."""
    flat = " ".join(message.split())
    if len(flat) > limit:
        flat = flat[: limit - 1].rstrip() + "…"
    return f"“{flat}”"


def number(value: float) -> str:
    """Short: whole numbers without a point, others with up to four digits that count."""
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else f"{value:.4g}"


def duration(seconds: float) -> str:
    """A time in the unit that reads well: 2.5 s, 15.7 ms, 60 µs."""
    for unit, factor in (("s", 1.0), ("ms", 1e3)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs" if seconds else "0 s"


def percent(share: float) -> str:
    return f"{100 * share:.0f}%"


# ---------------------------------------------------------------- what fills the phrase of a claim, by its kind


def _of_subject(claim: Claim, about: Subject, say: Wording) -> dict[str, Any]:
    """What most sentences hold: a parameter, a condition, an error."""
    fields: dict[str, Any] = {"path": about.path, "error": say.message(claim.detail.get("label", ""), MAX_MENTION)}
    fields["example"] = ""
    if about.conditions:
        fields["condition"] = say.opening(Condition(*about.conditions[0]))
    if shown := claim.detail.get("example"):
        fields["example"] = say.say("example", x=quoted(shown))
    return fields


_EXTRAS: Mapping[str, Callable[[Any], Any]] = {
    "score": "{:.2f}".format,
    "time": duration,
    "tokens": "{:.0f}".format,
    "unknown": int,
    "mixed_judges": int,
}


def _overall(claim: Claim, about: Subject, say: Wording) -> dict[str, Any]:
    extras = [say.say(name, x=spell(claim.detail[name])) for name, spell in _EXTRAS.items() if name in claim.detail]
    fields: dict[str, Any] = {"extras": say.extras(extras), "n": claim.counts.get("calls", claim.n)}
    if claim.n:
        low, high = wilson_interval(claim.k, claim.n)
        fields |= {"rate": percent(claim.k / claim.n), "low": percent(low), "high": percent(high)}
    return fields


def _usage(claim: Claim, about: Subject, say: Wording) -> dict[str, Any]:
    params = say.join([say.given(*one) for one in about.named])
    if more := claim.detail.get("more"):
        names = [f"`{named(name)}`" for name in claim.detail.get("names", ())]
        params = say.say("and_more_named" if names else "and_more", params=params, x=more, names=say.join(names))
    return {"params": params, "which": say.say(about.path) if about.path else ""}


def _pattern(claim: Claim, about: Subject, say: Wording) -> dict[str, Any]:
    """The condition, and by which words the calls that it is compared with are told."""
    condition, within = Condition(*about.conditions[0]), about.within and Condition(*about.within)
    plain = "others" if within is None else "otherwise"
    if condition.kind in {"at_least", "below"} and condition.detail == "number":
        plain = "other_numbers"
    opposite = {"present": "without_it", "absent": "with_it"}.get(condition.kind, plain)
    return {"condition": say.opening(condition, within), "others": say.say(opposite)}


def _sequence(claim: Claim, about: Subject, say: Wording) -> dict[str, Any]:
    assert about.within is not None
    return {"action": about.within[2].strip("'"), "first": about.conditions[0][2].strip("'")}


def _refused(claim: Claim, about: Subject, say: Wording) -> dict[str, Any]:
    """What works at a parameter, and what never did."""
    conditions = [Condition(*one) for one in about.conditions]
    worked, first = claim.detail.get("worked", ()), conditions[0]
    if first.kind == "value":
        told = {"good": say.listed(worked, "either"), "bad": say.listed([one.detail for one in conditions], "either")}
    elif first.kind in {"above", "under"}:
        told = {"good": number(first.bound)}
    elif first.kind == "unlike":
        told = {"good": say.shape(first.detail)}
    else:
        told = {"good": say.listed([one if one == "…" else say.shape(one) for one in worked], "either")}
        told["bad"] = say.shape(first.detail)
    return {"path": about.path, "named": claim.k, **told}


def _error(claim: Claim, about: Subject, say: Wording) -> dict[str, Any]:
    label, error_class = claim.detail.get("label", ""), claim.detail.get("class", "")
    things, example = claim.detail.get("things"), quoted(claim.detail.get("example", ""))
    shown = say.join(things) if things else example if "example" in claim.detail and example != quoted(label) else ""
    recovered = claim.counts.get("recovered")
    return {
        "message": say.message(label),
        "cls": f" ({error_class})" if error_class else "",
        "example": say.say("example", x=shown) if shown else "",
        "recovered": "" if recovered is None else say.say("recovered", r=recovered),
    }


def _repair(claim: Claim, about: Subject, say: Wording) -> dict[str, Any]:
    forms, examples = claim.detail.get("forms", ()), claim.detail.get("examples", ())
    told = [
        say.repair(Repair(*one), say.form(one[3], form), say.say("example", x=shown) if shown else "")
        for one, form, shown in zip(about.repairs, forms, examples, strict=True)
    ]
    error = say.message(claim.detail.get("label", ""), MAX_MENTION)
    return {"repair": say.listed(told, "both"), "error": error, "since": claim.detail.get("since", "")}


_FIELDS: Mapping[str, Callable[[Claim, Subject, Wording], dict[str, Any]]] = {
    "overall": _overall,
    "recorded_flag": _overall,
    "usage": _usage,
    "parameter": _pattern,
    "empty_pattern": _pattern,
    "sequence": _sequence,
    "refused": _refused,
    "error_class": _error,
    "repair": _repair,
    "repair_since": _repair,
}
