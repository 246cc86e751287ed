"""The lines of a card: what was counted, as claims, and their words.

In order: failures by error with what worked instead, answers that were worth nothing, whole calls that worked, values
that part all from none, the rate where it is low. A line is said from its claim alone; nothing reads one back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from toolmem.guidance.counted.analysis import Analysis
from toolmem.guidance.counted.changes import whole
from toolmem.guidance.counted.conditions import Observation
from toolmem.guidance.counted.phrases import PHRASES
from toolmem.guidance.counted.repair_history import KEPT_IDS, after_error, repair_of
from toolmem.guidance.counted.repairs import Repair
from toolmem.guidance.counted.shown_values import form_of, output_of
from toolmem.guidance.counted.value_patterns import value_patterns
from toolmem.guidance.counted.values import type_name
from toolmem.guidance.shown import claim_text
from toolmem.models import Claim, FailureCount, Language, RepairCount, RepairHistory, Subject
from toolmem.readers import shell, sql
from toolmem.readers.error_messages import mask
from toolmem.readers.plain_text import plain

MAX_LINES = 40
LINE = 100  # characters that a line is worth in itself: short ones do not push out what happens often
MAX_EXAMPLES = 3
MAX_KINDS = 5  # kinds of repair named for one error beside what is shown
MAX_MASKED = 400  # of a value that is compared
MAX_OUTPUT = 24  # characters of an output that is shown: a longer one would be its beginning
LOW_RATE = 0.9
_COUNTED = {"k", "error", "silent", "call_ids", "recovered"}
_SHOWN = frozenset({"changed", "added", "dropped", "renamed", "repeated"})  # kinds of repair that arguments show


def lines(found: Analysis, history: RepairHistory, language: Language) -> list[Claim]:
    """All lines, most valuable first; at most MAX_LINES."""
    say = Wording(language)
    told: list[Claim] = []
    for some in _with_leads(history):  # of equal ones the newest come first
        some = [one.model_copy(update={"text": say.line(one)}) for one in some]
        told += sorted(some, key=lambda one: (one.kind == "silent", -worth(one) / (LINE + len(one.text))))
    shown = frozenset(str(one.detail["worked"]) for one in told if one.detail.get("worked"))
    others = [*_examples(found, shown), *_patterns(found), *_rate(found)]
    return [*told, *(one.model_copy(update={"text": say.line(one)}) for one in others)][:MAX_LINES]


def _with_leads(history: RepairHistory) -> tuple[list[Claim], list[Claim]]:
    """One line for each failure, and those that say one of them of another part of the tool; the newest first."""
    parts: dict[tuple[str, bool], list[FailureCount]] = {}
    for one in reversed(history.failures):
        if one.message or not one.silent:
            parts.setdefault((one.error, one.silent), []).append(one)
    leads, others = list[Claim](), list[Claim]()
    for some in parts.values():
        lead = max(some, key=lambda one: one.k)
        others += [_failure(one, history, one.part) for one in some if one is not lead]
        ids = [each for one in some for each in one.call_ids][:KEPT_IDS]
        lead = lead.model_copy(update={"k": sum(one.k for one in some), "call_ids": tuple(ids)})
        leads.append(_failure(lead, history, lead.part if len(some) == 1 else None))
    return leads, others


def worth(one: Claim) -> float:
    """The calls that a line would have helped, those with a way out before all."""
    way_out = one.detail.get("repaired") and (one.detail.get("worked") or not one.detail.get("others"))
    return one.k + 2.0 * one.counts.get("recovered", 0) + (1.0 if way_out else 0.0)


def _failure(one: FailureCount, history: RepairHistory, part: str | None) -> Claim:
    """`part`: whose repairs are counted, None for those of all parts."""
    recovered = 0 if one.silent else one.recovered if part else history.recovered.get(one.error, 0)
    repairs = [] if one.silent else after_error(history, one.error, part)
    told = _told(one, repairs)
    shown = one.model_dump(mode="json", exclude=_COUNTED, exclude_defaults=True)
    detail = {**shown, "repairs": [[[*_words_of(each)], each.k] for each in told]}
    form = "empty" if one.silent else "failed" if one.message else "failed_silently"
    named = tuple(repair_of(each) for each in repairs if each in told or each.kind in _SHOWN)
    return Claim(
        text="",
        k=one.k,
        n=history.calls,
        call_ids=one.call_ids,
        kind="silent" if one.silent else "failure",
        subject=Subject(form=form, error=one.error, repairs=named),
        counts={"recovered": recovered},
        detail=detail,
    )


def _told(one: FailureCount, repairs: Sequence[RepairCount]) -> list[RepairCount]:
    """The repairs that the arguments shown do not show."""
    shown = {*one.lacked, *one.others, *one.left_out}
    told = [
        each
        for each in repairs
        if each.kind not in _SHOWN or (each.path not in shown and f'"{each.path}"' not in one.worked + one.sent)
    ]
    if one.repaired and not one.size:
        told = [each for each in told if each.kind != "repeated"]
    return told


def _words_of(one: RepairCount) -> Repair:
    """With the form of the statement that repaired most often."""
    form = max(one.forms, key=lambda each: one.forms[each]) if one.forms else one.after
    return repair_of(one)._replace(after=form)


def _examples(found: Analysis, shown: frozenset[str]) -> Iterator[Claim]:
    """Whole calls that worked, none of `shown`, no two with the same parameters whose values are written alike.

    Each time the one that shows most parameters, and forms of values, which none before it shows; of equal ones the
    newest.
    """
    alike: dict[Any, int] = {}
    for i in reversed(found.where(True)):
        if found.useful[i] is not False and whole(found.seen[i]) not in shown:
            alike.setdefault(_alike(found.seen[i]), i)
    left = {i: _forms(found.seen[i]) for i in alike.values()}
    told: set[tuple[str, str]] = set()
    for place in range(min(MAX_EXAMPLES, len(left))):
        i = max(left, key=lambda i: len(left[i] - told))
        told |= left.pop(i)
        output = output_of(found.calls[i], MAX_OUTPUT + 1)
        detail = {"sent": whole(found.seen[i]), "output": output if not place and len(output) <= MAX_OUTPUT else ""}
        yield Claim(
            text="", k=1, n=1, call_ids=(found.ids[i],), kind="example", subject=Subject(form="example"), detail=detail
        )


def _alike(seen: Observation) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((str(name), _written(seen.texts.get(name), value)) for name, value in seen.params.items()))


def _forms(seen: Observation) -> set[tuple[str, str]]:
    """Parameters, and how their values are written."""
    forms = {
        (str(name), form_of(value) if isinstance(value, str) and name not in seen.texts else "")
        for name, value in seen.params.items()
    }
    return forms | {(str(name), "") for name in seen.params}


def _written(text: sql.Statement | shell.Command | None, value: Any) -> str:
    """A value without its particulars: the skeleton of a statement, the program of a command."""
    if text is not None:
        return text.skeleton if isinstance(text, sql.Statement) else text.program
    return mask(value[:MAX_MASKED]) if isinstance(value, str) else type_name(value)


def _patterns(found: Analysis) -> Iterator[Claim]:
    for one in value_patterns(found):
        ids = tuple(found.ids[i] for i in one.bad)
        subject = Subject(form="pattern", path=one.condition.path, condition=one.condition)
        counts = {"ok": len(one.good), "on": len(one.good)}
        yield Claim(text="", k=0, n=len(one.bad), call_ids=ids, kind="parameter", subject=subject, counts=counts)


def _rate(found: Analysis) -> Iterator[Claim]:
    good, bad = found.where(True), found.where(False)
    n = len(good) + len(bad)
    if bad and len(good) < LOW_RATE * n:
        ids = tuple(found.ids[i] for i in sorted([*good, *bad]))
        yield Claim(text="", k=len(good), n=n, call_ids=ids, kind="overall", subject=Subject(form="rate"))


class Wording:
    """Words in one language: "" is English, "zh" Chinese."""

    def __init__(self, language: Language = "") -> None:
        self._index = 1 if language == "zh" else 0

    def say(self, key: str, **fields: Any) -> str:
        return PHRASES[key][self._index].format_map(fields)

    def line(self, claim: Claim) -> str:
        """Raises KeyError or TypeError where the data of a claim do not fit its form."""
        about = claim.subject
        if about is None:
            return claim.text
        if about.form == "example":
            return claim_text(self._example(claim.detail))
        if about.form == "pattern" and about.condition is not None:
            kind, path, detail = about.condition
            condition = self.say(kind, path=named(path), detail=detail.removeprefix("like:"))
            return claim_text(self.say("pattern", condition=condition, n=claim.n, **claim.counts))
        if about.form == "rate":
            return self.say("rate", k=claim.k, n=claim.n, percent=_percent(claim.k, claim.n))
        return claim_text(self._failed(claim, about.form))

    def _example(self, shown: dict[str, Any]) -> str:
        text = quotable(shown.get("output", ""))
        return self.say("example", sent=shown.get("sent", "{}"), output=f' -> "{text}"' if text else "")

    def _failed(self, claim: Claim, form: str) -> str:
        shown = claim.detail
        lacked = shown.get("lacked", ())
        sent = shown.get("sent") or (self.say("left_out", names=self.names(lacked)) if lacked else self.say("any_call"))
        calls = self.say("calls", n=claim.k) if claim.k > 1 else ""
        error = quotable(shown.get("message", ""))
        part = named(shown["part"]) if shown.get("part") else ""
        if part and part.lower() not in sent.lower():
            sent = f"`{part}` {sent}"
        return self.say(form, sent=sent, error=error, calls=calls, then=self._then(claim, shown))

    def _then(self, claim: Claim, shown: dict[str, Any]) -> str:
        recovered = claim.counts.get("recovered", 0)
        what = [self._instead(shown)] if shown.get("repaired") else []
        kinds: dict[str, int] = {}
        for repair, k in shown.get("repairs", ()):
            said = self.repair(Repair(*repair))
            kinds[said] = kinds.get(said, 0) + k
        several = recovered > 1
        for said, k in [*kinds.items()][:MAX_KINDS]:
            what.append(self.say("counted", what=said, k=min(k, recovered)) if several else said)
        if any(what):
            what[-1] += self.say("of_all", n=recovered) if kinds and several else ""
            key = "answered" if claim.kind == "silent" else "past" if shown.get("past") else "then"
            return self.say(key, what=self.say("list").join(filter(None, what)))
        return self.say("nothing") if shown.get("tried") else ""

    def _instead(self, shown: dict[str, Any]) -> str:
        if not shown.get("size"):
            between = self.names(shown.get("between", ()))
            return self.say("again_after", names=between) if between else self.say("repeated")
        parts = [shown["worked"]] if shown.get("worked") else []
        for key, names in (("another", shown.get("others")), ("left_out", shown.get("left_out"))):
            parts += [self.say(key, names=self.names(names))] if names else []
        return self.say("list").join(parts)

    def names(self, names: Sequence[str]) -> str:
        return self.say("list").join(f"`{named(name)}`" for name in names)

    def repair(self, repair: Repair) -> str:
        """What was done, in a few words."""
        kind, path, before, after = repair
        return self.say(kind, path=named(path), before=plain(before, 40), after=plain(after, 60))


def _percent(k: int, n: int) -> int:
    """Rounded, a half upwards; only none of them are 0."""
    return max((200 * k + n) // (2 * n), min(k, 1)) if n else 0


def named(name: str) -> str:
    """A parameter as it may stand between backticks."""
    return plain(name, 60).replace("`", "'") or "input"


def quotable(text: str) -> str:
    """As it may stand between quotation marks."""
    return text.replace("“", "'").replace("”", "'").replace('"', "'") if text[:1] not in "{[" else text
