"""Lines for one call: what worked after the error that it met.

Up to three lines on this error, on errors of its class and on errors alike; then up to two on the
parameters that it names. Words of calls are shown as on a card.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from toolmem.guidance.card import failure_line
from toolmem.guidance.evidence import Findings, examine, may_have_run
from toolmem.guidance.failures import count, error_of
from toolmem.guidance.named_parameters import (
    Lessons,
    nearby_line,
    parameter_lines,
    program_line,
)
from toolmem.guidance.shown import is_forgotten
from toolmem.guidance.wording import Language, Wording
from toolmem.models.calls import ToolCallResult, shared_origin
from toolmem.models.guidance import Failure, Line, ToolHistory
from toolmem.models.protocols import Store
from toolmem.text.error_lines import error_line

MAX_CALLS = 500  # of the tool, and of the workspace, that advice is read from
BUDGET = 200  # tokens
MAX_ERRORS = 3
LEAST_ALIKE = 0.5  # share of words that two alike messages have in common


class Known(Struct, frozen=True, dict=True):
    """What a workspace knows of a tool. Calls are oldest first."""

    calls: Sequence[ToolCallResult]  # of the tool
    around: Sequence[ToolCallResult] = ()  # of all tools
    card: ToolHistory | None = None  # behind the tool's guidance, also of calls no longer kept
    forgotten: Sequence[str] = ()  # keys of lines that a user took away

    @cached_property
    def found(self) -> Findings:
        return examine(self.calls, self.around)

    @cached_property
    def failures(self) -> list[Failure]:
        """Failures of the card and of the calls; of the same one, that with more recoveries."""
        known: dict[tuple[str, str], Failure] = {}
        fresh = count(self.found, None) if self.calls else None
        for history in (self.card, fresh):
            for one in history.failures if history is not None else ():
                old = known.get((one.error, one.part))
                if one.silent or (self.forgotten and self._is_forgotten(one)):
                    continue
                if old is not None:
                    imported = shared_origin([old.imported, one.imported])
                    one = replace(max(one, old, key=_how_much), imported=imported)
                known[one.error, one.part] = one
        return list(known.values())

    def _is_forgotten(self, one: Failure) -> bool:
        wording = Wording()
        return is_forgotten(
            failure_line(one, one.k, wording, Lessons(self.found, (), wording)), self.forgotten
        )


def _how_much(one: Failure) -> tuple[int, int, int]:
    return one.recovered, one.k, len(one.repairs)


def known_of(store: Store, workspace: str, tool: str) -> Known:
    """The newest calls in the log, and the history behind the tool's card."""
    own, around = (
        [
            each.call
            for each in store.call_log(workspace, tool_names=t, newest=True, limit=MAX_CALLS)
        ]
        for t in (tool, None)
    )
    guidance = next((each.guidance for each in store.records(workspace, [tool])), None)
    if guidance is None:
        return Known(own, around)
    return Known(own, around, guidance.history, guidance.forgotten)


def at_error(known: Known, call: ToolCallResult, language: Language = "") -> list[Line]:
    """Lines on the error of `call`, which is judged; the most specific first."""
    wording = Wording(language)
    # The other calls show which parameters hold SQL or commands.
    observation = examine([*known.calls, call]).observed[-1]
    line = error_line(call.output)
    key = error_of(line, observation)
    repeats = not may_have_run(call)
    failures = [one if repeats else _without_repeating(one) for one in known.failures]
    lessons = Lessons(known.found, failures, wording)
    lines = list(_error_lines(failures, key, observation.part, wording, lessons))[:MAX_ERRORS]
    named = {repair for each in lines for repair in each.repairs}
    parameters = parameter_lines(known.found, lessons, call, observation, line, wording)
    known_names = (
        program_line(known.found, observation, line, wording),
        nearby_line(known.around, call, line, wording),
    )
    lines += [replace(each, error=key) for each in known_names if each is not None]
    lines += [replace(each, error=key) for each in parameters if not named.issuperset(each.repairs)]
    return lines


def _without_repeating(one: Failure) -> Failure:
    """The failure without the advice to repeat the call, which may have been carried out."""
    repairs = [each for each in one.repairs if each.repair.kind != "repeated"]
    change = one.change if one.change is not None and one.change.size else None
    return replace(one, repairs=repairs, recovered=one.recovered if repairs else 0, change=change)


def _error_lines(
    failures: Sequence[Failure], key: str, part: str, wording: Wording, lessons: Lessons
) -> Iterator[Line]:
    own = sorted((one for one in failures if one.error == key), key=lambda one: one.part != part)
    yield from (failure_line(one, one.k, wording, lessons) for one in own[:1])
    others = [one for one in failures if one.error != key and one.recovered]
    alike = [(_shared_words(key, one.error), one) for one in others]
    for share, one in sorted(alike, key=lambda pair: (-pair[0], -pair[1].recovered)):
        if share >= LEAST_ALIKE:
            yield failure_line(one, one.k, wording, lessons)


def _shared_words(first: str, second: str) -> float:
    """Share of common words, from 0 to 1; 0 where fewer than two are common."""
    a, b = ({word for word in text.lower().split() if word.isalpha()} for text in (first, second))
    return len(a & b) / len(a | b) if len(a & b) > 1 else 0.0
