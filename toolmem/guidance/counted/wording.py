"""How findings are put into words: conditions, repairs, shapes and counts in one language."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from toolmem.guidance.counted.conditions import Condition
from toolmem.guidance.counted.error_messages import MASK, ErrorGroup
from toolmem.guidance.counted.patterns import Pattern
from toolmem.guidance.counted.phrases import CONDITIONS, HEADINGS, PHRASES, SHAPES
from toolmem.guidance.counted.refusals import Refusal
from toolmem.guidance.counted.repairs import Repair
from toolmem.models import Language
from toolmem.readers.plain_text import hides, plain

MAX_MESSAGE = 110  # characters of a quoted error message
MAX_NAME = 80  # of a parameter, a key or a column
MAX_FIELD = 1_000  # of whatever is filled into a sentence
MAX_MENTION = 70  # of one that is quoted in full elsewhere
MAX_SHOWN = 40  # characters of a value that is shown before and after a change
CONTEXT = 8  # characters that are left on either side of what differs in two long texts
DIGITS = ("[digits]", "[数字]")  # of any number: `reports/q[digits].txt`
_REFUSED_AS = {"shape": "type"}  # kinds of refused values that are told alike


class Wording:
    """Words in one language: "" is English, "zh" Chinese."""

    def __init__(self, language: Language = "") -> None:
        self._index = 1 if language == "zh" else 0

    @property
    def language(self) -> int:
        """0 English, 1 Chinese: the place of a text in `phrases`."""
        return self._index

    def say(self, key: str, **fields: Any) -> str:
        return self._fill(PHRASES, key, fields)

    def heading(self, part: str) -> str:
        return HEADINGS[part][self._index]

    def join(self, items: list[str]) -> str:
        return ("、" if self._index else ", ").join(items)

    def extras(self, items: list[str]) -> str:
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
        if condition.kind == "statement" and not detail:
            return f"`{path}`: {self.say('no_statement')}"
        if condition.kind == "program" and not detail:
            return f"`{path}`: {self.say('no_program')}"
        shape = self.shape(detail) if condition.kind in {"shape", "type", "unlike"} else ""
        return self._fill(
            CONDITIONS, key, {"path": path, "detail": detail, "shape": shape, "bound": number(condition.bound)}
        )

    def pattern(self, pattern: Pattern, key: str = "pattern") -> str:
        """The sentence of a pattern: its counts, and those of the calls that it is compared with."""
        plain = "others" if pattern.within is None else "otherwise"
        if pattern.condition.kind in {"at_least", "below"} and pattern.condition.detail == "number":
            plain = "other_numbers"
        opposite = {"present": "without_it", "absent": "with_it"}.get(pattern.condition.kind, plain)
        return self.say(
            key,
            condition=self._opening(pattern),
            k=pattern.k,
            n=pattern.n,
            others=self.say(opposite),
            ok=pattern.other_k,
            on=pattern.other_n,
        )

    def sentence_of(self, condition: Condition) -> str:
        """The condition as the beginning of a sentence."""
        return self._capital(self.condition(condition), condition)

    def _opening(self, pattern: Pattern) -> str:
        return self._capital(self.circumstance(pattern), pattern.within or pattern.condition)

    @staticmethod
    def _capital(said: str, leads: Condition) -> str:
        """With a capital, unless it begins with a name."""
        named = leads.kind in {"statement", "program", "flag", "part", "clause", "value"}
        return said if named or said[:1] == "`" else said[:1].upper() + said[1:]

    def circumstance(self, pattern: Pattern) -> str:
        """The condition, with the calls among which it is compared where that is not clear from itself."""
        said = self.condition(pattern.condition)
        within = pattern.within
        if within is None or within.kind == "present" or pattern.condition.kind == "flag":
            return said
        if within.kind == "statement" and pattern.condition.kind in {"clause", "table"}:
            key = f"within_{pattern.condition.kind}"
            return self.say(key, within=within.detail, detail=pattern.condition.detail)
        return self.say("within", within=self.condition(within), condition=said)

    def error(self, group: ErrorGroup, limit: int = MAX_MESSAGE) -> str:
        return self.message(group.label, limit)

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
        fields = {"path": repair.path or "input", "before": repair.before, "after": repair.after}
        if repair.kind == "statement":
            fields["before"] = repair.before or self.say("no_statement")
            fields["after"] = form or repair.after or self.say("no_statement")
            return self.say("to_statement", **fields)
        if repair.kind == "program":
            fields["before"] = repair.before or self.say("no_program")
            fields["after"] = repair.after or self.say("no_program")
            return self.say("to_program", **fields)
        if repair.kind == "action":
            return self.say("to_action", **fields)
        if repair.kind == "changed" and repair.before and repair.after:
            fields |= {"before": self.shape(repair.before), "after": self.shape(repair.after)}
            return self.say("changed_shape", **fields) + shown
        return self.say(repair.kind, **fields) + shown

    def both(self, items: list[str]) -> str:
        """`a, b and c`"""
        return self._listed(items, " 并", " and ")

    def either(self, items: list[str]) -> str:
        """`a, b or c`"""
        return self._listed(items, " 或 ", " or ")

    def _listed(self, items: list[str], chinese: str, english: str) -> str:
        last = chinese if self._index else english
        return last.join([*([self.join(items[:-1])] if len(items) > 1 else []), *items[-1:]])

    def refusal(self, refusal: Refusal, worked: list[str]) -> str:
        """What works at a parameter, and what never did. `worked`: its working values, for refused values."""
        condition = refusal.conditions[0]
        fields: dict[str, Any] = {"path": refusal.path, "n": len(refusal.positions), "named": len(refusal.named)}
        fields |= {"ok": refusal.other_k, "on": refusal.other_n}
        if condition.kind == "value":
            fields["good"] = self.either(worked)
            fields["bad"] = self.either([one.detail for one in refusal.conditions])
        elif condition.kind in {"above", "under"}:
            fields["good"] = number(condition.bound)
        else:
            fields["good"] = self.either(worked) if condition.kind != "unlike" else self.shape(condition.detail)
            fields["bad"] = self.shape(condition.detail)
        return self.say(f"refused_{_REFUSED_AS.get(condition.kind, condition.kind)}", **fields)

    def duration(self, seconds: float) -> str:
        """A time in the unit that reads well: 2.5 s, 15.7 ms, 60 µs."""
        for unit, factor in (("s", 1.0), ("ms", 1e3)):
            if seconds * factor >= 1:
                return f"{seconds * factor:.3g} {unit}"
        return f"{seconds * 1e6:.3g} µs" if seconds else "0 s"

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


def spelled(before: Any, after: Any) -> str:
    """`'$' → 'USD'`: a change in a few characters, "" where it does not fit. Of long texts what differs is shown."""
    if isinstance(before, str) and isinstance(after, str):
        if max(len(before), len(after)) > MAX_SHOWN:
            before, after = _differing(before, after)
        sides = [repr(" ".join(side.split())) for side in (before, after)]
    else:
        sides = [json.dumps(side, ensure_ascii=False, default=str) for side in (before, after)]
    if sides[0] == sides[1] or max(map(len, sides)) > MAX_SHOWN + 2:
        return ""
    return f"{sides[0]} → {sides[1]}"


def _differing(a: str, b: str) -> tuple[str, str]:
    """Two long texts without their common beginning and end, but for a few characters of each."""
    start = _shared_length(a, b)
    end = min(_shared_length(a[::-1], b[::-1]), len(a) - start, len(b) - start)
    start, end = max(0, start - CONTEXT), max(0, end - CONTEXT)

    def cut(text: str) -> str:
        return (MASK if start else "") + text[start : len(text) - end] + (MASK if end else "")

    return cut(a), cut(b)


def _shared_length(a: str, b: str) -> int:
    """Characters with which both texts begin."""
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def quoted(message: str, limit: int = MAX_MESSAGE) -> str:
    """The message in quotation marks, cut at its end where it is long."""
    flat = " ".join(message.split())
    if len(flat) > limit:
        flat = flat[: limit - 1].rstrip() + "…"
    return f"“{flat}”"


def number(value: float) -> str:
    """Short: whole numbers without a point, others with up to four digits that count."""
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else f"{value:.4g}"


def percent(share: float) -> str:
    return f"{100 * share:.0f}%"
