"""Lines for one call: what then worked after the error that it met, or what its arguments have met before.

At an error: up to MAX_ERRORS lines on this error, on those of its class and on those alike, then up to two on
the parameters that it names, with the tool whose results carry their values. Before a call: a line for each form of
its arguments that failed, where what worked instead is known. Every line is a claim with counts and call ids; words of
calls stand in it as the card shows them (`counted.shown_values`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from toolmem.guard.effects import may_write
from toolmem.guidance.counted import values
from toolmem.guidance.counted.analysis import Analysis, analyze
from toolmem.guidance.counted.card_lines import Wording, quotable
from toolmem.guidance.counted.changes import ShownChange, change_between
from toolmem.guidance.counted.conditions import Observation, observe
from toolmem.guidance.counted.repair_history import LEFT_OPEN, after_error, counted, error_of, repair_of
from toolmem.guidance.counted.repairs import Repair
from toolmem.guidance.counted.shown_values import form_of, message_of, text_of
from toolmem.guidance.named_parameters import on_parameters
from toolmem.guidance.shown import BULLET, claim_text
from toolmem.models import Claim, FailureCount, RepairCount, RepairHistory, Subject, ToolCallResult
from toolmem.providers.tokenizer import estimated_tokens
from toolmem.readers.error_classes import error_class_of
from toolmem.readers.error_messages import telling_line

MAX_CALLS = 500  # of the tool, and of the workspace, that advice is read from
MAX_ERRORS = 3
MAX_PLANNED = 3  # lines before a call
MAX_KINDS = 4  # of repair that one line names
LEAST_IN_TEXTS = 2  # times that a repair of a statement or a command came before it is told unasked
OF_TEXTS = frozenset({"statement", "program", "tables", "names", "clause_added", "clause_dropped", "rewritten"}) | {
    *("flag_added", "flag_dropped", "arguments")
}
VAGUE = frozenset({"rewritten", "arguments", "names", "tables"})
SELDOM = 0.2  # share of calls of a form that worked: up to here the form is said to fail
UNKNOWN = frozenset({"", "error"})  # classes that say nothing
_SAY = Wording()


@dataclass(frozen=True)
class Known:
    """What was read of a workspace. Calls are oldest first; `around` are those of all tools."""

    tool_name: str
    calls: Sequence[ToolCallResult]
    around: Sequence[ToolCallResult] = ()
    card: RepairHistory | None = None  # of the tool's guidance, over calls that may be gone
    conversation: str = ""  # in which the call is made

    @cached_property
    def found(self) -> Analysis:
        return analyze(self.tool_name, self.calls)

    @cached_property
    def fresh(self) -> RepairHistory | None:
        return counted(self.found, None) if self.calls else None


@dataclass(frozen=True, slots=True)
class _Error:
    """One kind of error with what repaired it."""

    failure: FailureCount
    recovered: int
    repairs: Sequence[RepairCount]


# ---------------------------------------------------------------- at the error


def at_error(known: Known, given: Any, error: str) -> list[Claim]:
    """What is known of this error, most telling first."""
    met = _call(known, given, error)
    seen, line = observe(met, known.found.text_kinds), telling_line(error)
    key, kind = error_of(line, seen), error_class_of(line) if line else "no_output"
    again = not (kind in LEFT_OPEN and may_write(known.tool_name, met.input))
    told = list(_on_error(known, key, kind, again=again))
    targets = on_parameters(known.found, known.around, known.conversation, seen, line, key)
    named_already = {repair for each in told[:MAX_ERRORS] if each.kind == "error" for repair in _repairs(each)}
    new = (each for each in targets if each.counts["carried"] or not named_already.issuperset(_repairs(each)))
    return [*told[:MAX_ERRORS], *new]


def _repairs(one: Claim) -> set[tuple[str, str]]:
    """What was done, and to which parameter."""
    return {each[:2] for each in one.subject.repairs} if one.subject is not None else set()


def _call(known: Known, given: Any, output: str = "") -> ToolCallResult:
    return ToolCallResult(tool_name=known.tool_name, input=given, output=output, create_time=datetime.now(UTC))


def _on_error(known: Known, key: str, kind: str, *, again: bool) -> Iterator[Claim]:
    errors = _errors(known, again=again)
    own = errors.pop(key, None)
    if own is not None and (line := _own_line(known, own)):
        yield line
    others = [each for each in errors.values() if each.recovered]
    same = [each for each in others if kind not in UNKNOWN and _class_of(each.failure.error) == kind]
    if line := _class_line(same, kind):
        yield line
    alike = [(_alike(key, each.failure.error), each) for each in others if each not in same]
    alike = [(share, each) for share, each in alike if share >= 0.5]
    for _, each in sorted(alike, key=lambda pair: (-pair[0], -pair[1].recovered)):
        yield _error_line(each, f'a like error, "{quotable(each.failure.message)}"', known, "like_error")


def _errors(known: Known, *, again: bool) -> dict[str, _Error]:
    """By masked message; of the card and of the newest calls whichever knows more of it."""
    found: dict[str, _Error] = {}
    for history in (known.card, known.fresh):
        for failure in history.failures if history is not None else ():
            if failure.silent or history is None:
                continue
            repairs = [one for one in after_error(history, failure.error) if again or one.kind != "repeated"]
            recovered = history.recovered.get(failure.error, 0) if repairs else 0
            old = found.get(failure.error)
            if old is None or (recovered, failure.k) >= (old.recovered, old.failure.k):
                found[failure.error] = _Error(failure, recovered, repairs)
    return found


def _own_line(known: Known, own: _Error) -> Claim | None:
    if own.recovered:
        return _error_line(own, "this error", known)
    if not own.failure.tried:
        return None
    text = f"this error came in {_calls(own.failure.k)}; nothing worked after it yet"
    return _claim("error", text, own.failure.k, own.failure.k, own.failure.call_ids, own.failure.error)


def _error_line(one: _Error, what: str, known: Known, kind: str = "error") -> Claim:
    failure, repairs = one.failure, one.repairs[:MAX_KINDS]
    text = f"{what}, {_calls(failure.k)}; then worked{_times(one.recovered)}: {_kinds(repairs, one.recovered)}"
    if failure.repaired and failure.size and not failure.past and not known.found.text_kinds and failure.worked:
        text += f"; {failure.sent or 'without it'} failed, {failure.worked} worked"
    ids = tuple(dict.fromkeys([*(id_ for each in repairs for id_ in each.call_ids), *failure.call_ids]))
    claim = _claim(kind, text, one.recovered, failure.k, ids, failure.error, repairs)
    return claim.model_copy(update={"counts": {"most": repairs[0].k}})


def _class_line(same: Sequence[_Error], kind: str) -> Claim | None:
    """What repaired other errors of the class, counted together."""
    if not same:
        return None
    together: dict[Repair, RepairCount] = {}
    for one in (repair for each in same for repair in each.repairs):
        old = together.get(repair_of(one))
        ids = (*(old.call_ids if old else ()), *one.call_ids)
        together[repair_of(one)] = one.model_copy(update={"k": one.k + (old.k if old else 0), "call_ids": ids})
    repairs = sorted(together.values(), key=lambda one: (-one.k, repair_of(one)))[:MAX_KINDS]
    recovered, failed = sum(each.recovered for each in same), sum(each.failure.k for each in same)
    text = (
        f"other errors of the class {kind}, {_calls(failed)}; then worked{_times(recovered)}: "
        f"{_kinds(repairs, recovered)}"
    )
    ids = tuple(dict.fromkeys(id_ for each in repairs for id_ in each.call_ids))
    most = max(same, key=lambda each: each.recovered)
    return _claim("error_class", text, recovered, failed, ids, most.failure.error, repairs)


def _kinds(repairs: Iterable[RepairCount], recovered: int) -> str:
    said: dict[str, int] = {}
    for one in repairs:
        form = max(one.forms, key=lambda each: one.forms[each]) if one.forms else one.after
        words = _SAY.repair(repair_of(one)._replace(after=form))
        said[words] = said.get(words, 0) + one.k
    return ", ".join(f"{words} ({min(k, recovered)})" for words, k in said.items())


def _alike(first: str, second: str) -> float:
    """The share of the words of one message that the other one holds, of masked messages."""
    words, held = ({word for word in text.lower().split() if word.isalpha()} for text in (first, second))
    return len(words & held) / len(words | held) if len(words & held) > 1 else 0.0


def _class_of(error: str) -> str:
    return error_class_of(error) if error else "no_output"


# ---------------------------------------------------------------- before the call


def before_call(known: Known, given: Any) -> list[Claim]:
    """The forms of the planned arguments that failed before, where what worked instead is known."""
    if not known.calls:
        return []
    planned = observe(_call(known, given), known.found.text_kinds)
    told: dict[tuple[Any, ...], Claim] = {}
    for one in reversed(known.found.recoveries):
        differing = _form_that_failed(known.found, one.failure, one.success)
        if not differing or tuple(differing) in told or not all(_has(planned, each) for each in differing):
            continue
        if (line := _planned_line(known.found, one.failure, one.success, differing)) is not None:
            told[tuple(differing)] = line
        if len(told) == MAX_PLANNED:
            break
    return list(told.values())


def _form_that_failed(found: Analysis, failure: int, success: int) -> list[tuple[str, str]]:
    """(parameter, how it was written) for each that was changed: "" where it was not given."""
    before, after = found.seen[failure].params, found.seen[success].params
    forms = []
    for name in dict.fromkeys([*before, *after]):
        old, new = _form(before.get(name)), _form(after.get(name))
        if name in found.seen[failure].texts or name not in before or name not in after or before[name] != after[name]:
            if name in found.seen[failure].texts or old == new:
                return []  # another statement, another entity: no form
            forms.append((str(name), old))
    return forms


def _form(value: Any) -> str:
    """How a value is written, with its type; "" where there is none."""
    if value is None:
        return ""
    return f"{values.type_name(value)} {form_of(text_of(value)) if isinstance(value, str | int | float) else ''}"


def _has(seen: Observation, wanted: tuple[str, str]) -> bool:
    return _form(seen.params.get(wanted[0])) == wanted[1]


def _planned_line(found: Analysis, failure: int, success: int, differing: Sequence[tuple[str, str]]) -> Claim | None:
    alike = [i for i, seen in enumerate(found.seen) if all(_has(seen, each) for each in differing)]
    bad = [i for i in alike if found.outcomes[i] is False]
    good = sum(found.outcomes[i] is True for i in alike)
    message = message_of(found.calls[failure])
    change = change_between(found, failure, success, message)
    if change is None or good > SELDOM * len(alike):
        return None
    text = f"{len(bad)} of {good + len(bad)} calls written like this one failed: {_change(change, message)}"
    repairs = [RepairCount(error="", kind="changed", path=name, k=1) for name, _ in differing]
    ids = tuple(found.ids[i] for i in (*bad[-2:], success))
    return _claim("planned", text, len(bad), good + len(bad), ids, "", repairs)


def _change(change: ShownChange, message: str) -> str:
    sent = change.sent or f"without {_SAY.names(change.lacked)}"
    instead = [change.worked] if change.worked else []
    instead += [f"another {_SAY.names(change.others)}"] if change.others else []
    instead += [f"without {_SAY.names(change.left_out)}"] if change.left_out else []
    return f'{sent}: "{quotable(message)}"; then worked: {", ".join(instead)}'


# ---------------------------------------------------------------- words


def _claim(
    kind: str, text: str, k: int, n: int, ids: Sequence[str], error: str, repairs: Sequence[RepairCount] = ()
) -> Claim:
    about = Subject(form=kind, error=error, repairs=tuple(repair_of(each) for each in repairs))
    return Claim(text=claim_text(text), k=k, n=n, call_ids=tuple(ids), kind=kind, subject=about)


def _calls(n: int) -> str:
    return "1 call" if n == 1 else f"{n} calls"


def _times(n: int) -> str:
    return " (once)" if n == 1 else f" ({n} times)"


def unasked(lines: Iterable[Claim]) -> list[Claim]:
    """Those that are worth an agent's attention that did not ask: a way out of this very error, a source of its value.

    What came after an error of a statement or a command is mostly what the agent wanted next: it has to have come
    twice, and after half of the recoveries.
    """
    return [one for one in lines if _is_telling(one)]


def _is_telling(one: Claim) -> bool:
    if one.kind == "parameter":
        return one.counts.get("carried", 0) > 0
    if one.kind != "error" or one.subject is None or not one.subject.error or not one.subject.repairs:
        return one.kind == "missing_name" and one.counts.get("near", 0) > 0
    kind = one.subject.repairs[0][0]
    often = one.counts["most"] >= LEAST_IN_TEXTS and 2 * one.counts["most"] >= one.k
    vague = kind in VAGUE or _class_of(one.subject.error) == "failed_check"
    return (often and not vague) if kind in OF_TEXTS else True


def within(lines: Iterable[Claim], budget: int) -> list[Claim]:
    """The first that fit into `budget` tokens; one that is too long gives way to the next."""
    kept, left = [], budget
    for one in lines:
        if (tokens := estimated_tokens(BULLET + one.text) + 1) <= left:
            kept.append(one)
            left -= tokens
    return kept
