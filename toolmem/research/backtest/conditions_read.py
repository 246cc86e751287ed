"""Warnings in a text, as conditions on calls, as far as they can be read.

A unit (see `reading`) is a warning where it says that something fails or should be avoided: by a word for it outside
of quotations (`WARNS`), or by counts ("0 of 14 worked; others 47 of 58") that are worse than those it compares with.
What to do after an error, and how often an error came, are no warnings.

What it warns of is read as one condition: a parameter that is given or missing, a value in quotation marks or a number
after a parameter's name, a bound on it, a shape in the data-driven writer's words, a statement, clause, table, program
or flag that occurs in the calls, or the same failed call once more. Values by description ("dates in the past"),
conditions on several parameters at once and conditions on results are not read; such warnings are counted apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from toolmem.guidance.counted.conditions import Condition, Observation
from toolmem.guidance.counted.phrases import SHAPES
from toolmem.guidance.counted.render import DIGITS
from toolmem.research.backtest.reading import QUOTED, units_of

REPEATED = Condition("repeated", "")  # a call that failed before in its conversation, sent again unchanged

WARNS = re.compile(
    r"\b(?:avoid|never|do not|don't|don’t|must not|should not|cannot|can't|leave out|omit|always give|always include|"
    r"fails?|failed|refuse[sd]?|reject(?:s|ed)?|not (?:accepted|allowed|supported|work)|(?:is|are) invalid|unsupported|"
    r"error)\b|避免|不要|切勿|请勿|从未|失败|拒绝|不支持|务必给出|无效|报错|不能",
    re.IGNORECASE,
)
_COUNTS = re.compile(r"(\d+) of (\d+) worked; [a-z ]+ (\d+) of (\d+)")
_COUNTS_ZH = re.compile(r"(\d+) 次中 (\d+) 次成功；\D+(\d+) 次中 (\d+) 次")
_REPEAT = re.compile(
    r"(?:do not|don't|don’t|never|avoid)[^.;]{0,30}\b(?:failed call|same call|unchanged|identical|verbatim)|"
    r"(?:不要|切勿|避免|勿)[^。；]{0,6}(?:原样|重发|相同)",
    re.IGNORECASE,
)
_MORE = r"≥|>=|at least|from|至少|不少于|不小于"
_ABOVE = r">|above|over|more than|greater than|larger than|exceed(?:s|ing)?|超过|大于|高于|多于"
_BELOW = r"<|below|under|less than|fewer than|smaller than|小于|低于|少于"
_BOUND = re.compile(
    rf"^[`'\"\s]*(?:is|are|of|values?|with|set to|the|为|的|有|涉及|\s)*?\s*({_MORE}|{_ABOVE}|{_BELOW})"
    r"\s*(-?\d+(?:\.\d+)?)"
    r"\s*(values|items|elements|entries|个值|characters|个字符)?",
    re.IGNORECASE,
)
_OR_MORE = re.compile(r"^[`\s]*(?:with|of|有)?\s*(\d+) ?(?:or more|个以上（含）的) ?(values|items|characters|值|字符)")
_VALUE = re.compile(
    r"^[`\s]*(?:=|==|:|is|as|to|set to|equals?|with|为|是|设为)*\s*"
    r"('[^'\n]{0,80}'|\"[^\"\n]{0,80}\"|`[^`\n]{0,80}`|true\b|false\b|null\b|-?\d+(?:\.\d+)?\b)",
    re.IGNORECASE,
)
_NEVER = re.compile(r"never with (.+?) \(0 of|为([^，]+?)时从未")
_UP_TO = re.compile(r"worked up to (-?[\d.]+)|不超过 (-?[\d.]+) 时可用")
_FROM_ON = re.compile(r"worked from (-?[\d.]+) on|不小于 (-?[\d.]+) 时可用")
_ANOTHER_FORM = re.compile(r"worked as (.+?) \(.*never in another form|为(.+?)时可用.*其他写法从未")
_NEVER_AS = re.compile(r"never as (.+?) \(0 of")
_MISSING = re.compile(
    r"(?:without|missing|omitting|leaving out|always (?:give|include|pass)|不给出|缺少|务必给出)\s*(?:the )?[`'\"]?$",
    re.I,
)
_GIVEN = re.compile(
    r"(?:with|leave out|omit|do not (?:give|pass|use|set|include)|avoid|不要给出|避免给出|给出|去掉)"
    r"\s*(?:the )?[`'\"]?$",
    re.I,
)
_QUOTED_VALUE = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"|[\w.-]+")
# What to do after an error, and reports of errors.
_AFTERWARDS = re.compile(
    r"^\W*(?:after|if you (?:see|get)|on|when you (?:see|get)) (?!an? earlier)|^\W*出现|of \d+ failures|次失败中",
    re.IGNORECASE,
)
_ADVICE = re.compile(
    r"\b(?:avoid|never|do not|don't|don’t|must not|should not|always|leave out)\b|避免|不要|切勿|请勿|从未|务必",
    re.IGNORECASE,
)
_SHAPE_WORDS = tuple(
    (phrase.lower(), name)
    for name, pair in SHAPES.items()
    for phrase in pair
    if "{x}" not in phrase and len(phrase) > 1
)
_TYPES = frozenset({"null", "boolean", "number", "string", "array", "object"})
_DIGITS_OR_SIGN = re.compile("|".join([*map(re.escape, DIGITS), r"[\\#]"]))  # as `values.text_shape` writes them
_LIKE = re.compile(r"a text of the form (\S+?)(?=[:;,）)]|\s|$)|形如 (\S+?) 的文本")


@dataclass(frozen=True, slots=True)
class Warned:
    """A warning, and what it warns of: calls where one of `conditions` holds, among those where `within` does."""

    text: str
    conditions: tuple[Condition, ...]  # empty: not read
    within: Condition | None = None


def read_warnings(text: str, seen: Sequence[Observation]) -> list[Warned]:
    """The warnings of `text`. `seen`: observations of calls of the tool, for the names that occur in them."""
    known: set[Condition] = {condition for one in seen for condition in one.conditions}
    paths = sorted({c.path for c in known if c.kind == "present" and c.path}, key=lambda path: (-len(path), path))
    found = []
    for unit in units_of(text):
        counted = _worse(unit)
        if counted is False or (counted is None and not _warns(unit)):
            continue
        conditions, within = _read(unit, paths, known)
        if counted is None and not conditions and not _is_advice(unit):
            continue  # a report of an error, no warning of anything that the caller does
        found.append(Warned(unit, conditions, within))
    return found


def _warns(unit: str) -> bool:
    return _AFTERWARDS.search(unit) is None and WARNS.search(QUOTED.sub("…", unit)) is not None


def _worse(unit: str) -> bool | None:
    """Whether the counts of a comparison say that it goes worse; None where there is none."""
    if found := _COUNTS.search(unit):
        k, n, other_k, other_n = map(int, found.groups())
    elif found := _COUNTS_ZH.search(unit):
        n, k, other_n, other_k = map(int, found.groups())
    else:
        return None
    return k * other_n < other_k * n


def _is_advice(unit: str) -> bool:
    return _ADVICE.search(unit) is not None


def _read(
    unit: str, paths: Sequence[str], known: Iterable[Condition]
) -> tuple[tuple[Condition, ...], Condition | None]:
    if _REPEAT.search(unit):
        return (REPEATED,), None
    if texts := _of_statement(unit, known):
        return texts
    for path in paths:
        found = re.search(rf"`{re.escape(path)}`", unit) or re.search(rf"(?<![\w`.]){re.escape(path)}(?![\w.])", unit)
        if found is None or (len(path) < 4 and unit[found.start()] != "`"):
            continue
        if conditions := tuple(_of_parameter(unit, path, found.start(), found.end())):
            return conditions, None
    return (), None


def _of_parameter(unit: str, path: str, start: int, end: int) -> Iterator[Condition]:
    """What is said of the parameter that is named at `start`."""
    before, after = unit[max(0, start - 40) : start], unit[end : end + 160]
    if refused := list(_refused(unit, path)):
        yield from refused
    elif bound := _BOUND.match(after):
        yield _bound(path, bound.group(1).lower(), float(bound.group(2)), bound.group(3) or "")
    elif more := _OR_MORE.match(after):
        yield Condition("at_least", path, _measure(more.group(2)), float(more.group(1)))
    elif value := _VALUE.match(after):
        yield Condition("value", path, _spelled(value.group(1)))
    elif shape := _shape(after[:70].lower()):
        yield Condition("type" if shape in _TYPES else "shape", path, shape)
    elif re.match(r"[`\s]*(?:with capital letters|含大写字母)", after):
        yield Condition("uppercase", path)
    elif re.match(r"[`\s]*(?:as a prose sentence|为自然语句)", after):
        yield Condition("prose", path)
    elif _MISSING.search(before):
        yield Condition("absent", path)
    elif _GIVEN.search(before):
        yield Condition("present", path)


def _refused(unit: str, path: str) -> Iterator[Condition]:
    """ "`units` worked with metric, never with imperial or kelvin": the data-driven writer's refusals."""
    if found := _UP_TO.search(unit):
        yield Condition("above", path, "number", float(found.group(1) or found.group(2)))
    elif found := _FROM_ON.search(unit):
        yield Condition("under", path, "number", float(found.group(1) or found.group(2)))
    elif found := _ANOTHER_FORM.search(unit):
        if shape := _shape((found.group(1) or found.group(2)).lower()):
            yield Condition("unlike", path, shape)
    elif found := _NEVER.search(unit):
        said = found.group(1) or found.group(2)
        if shape := _shape(said.lower()):
            yield Condition("type" if shape in _TYPES else "shape", path, shape)
        else:
            yield from (Condition("value", path, one) for one in _QUOTED_VALUE.findall(said) if one not in {"or", "或"})
    elif (found := _NEVER_AS.search(unit)) and (shape := _shape(found.group(1).lower())):
        yield Condition("type" if shape in _TYPES else "shape", path, shape)


def _of_statement(unit: str, known: Iterable[Condition]) -> tuple[tuple[Condition, ...], Condition | None] | None:
    """A clause, table, statement, flag, part or program that occurs in the calls, the most particular first."""
    held = [
        condition
        for condition in known
        if condition.kind in {"clause", "table", "statement", "flag", "part", "program"}
        and condition.detail
        and re.search(rf"(?<![\w-]){re.escape(condition.detail)}(?![\w-])", unit)
    ]
    for kind in ("flag", "clause", "table", "part", "statement", "program"):
        of_kind = sorted((one for one in held if one.kind == kind), key=lambda one: (-len(one.detail), one))
        if kind == "table":
            of_kind = [one for one in of_kind if re.search(rf"(?:table |表 ?)`?{re.escape(one.detail)}", unit)]
        if not of_kind:
            continue
        statements = [one for one in held if one.kind == "statement"]
        within = min(statements) if kind in {"clause", "table"} and len(statements) == 1 else None
        return (of_kind[0],), within
    return None


def _bound(path: str, word: str, number: float, unit: str) -> Condition:
    measure = _measure(unit)
    if re.fullmatch(_MORE, word):
        return Condition("at_least", path, measure, number)
    return Condition("above" if re.fullmatch(_ABOVE, word) else "below", path, measure, number)


def _measure(unit: str) -> str:
    if "char" in unit or "字符" in unit:
        return "characters"
    return "items" if unit else "number"


def _shape(text: str) -> str:
    """The shape that is told first in the writer's words; "" for none."""
    if found := _LIKE.search(text):
        form = found.group(1) or found.group(2)
        return f"like:{_DIGITS_OR_SIGN.sub(lambda sign: '#' if sign[0] in DIGITS else f'{chr(92)}{sign[0]}', form)}"
    told = [(text.find(phrase), -len(phrase), name) for phrase, name in _SHAPE_WORDS if phrase in text]
    return min(told)[2] if told else ""


def _spelled(value: str) -> str:
    bare = value.strip("'\"`")
    return value.lower() if value.lower() in {"true", "false", "null"} or value[:1] not in "'\"`" else repr(bare)
