"""Advise on one failed call: say what worked after the error that it met.

Up to three lines are on this error and similar ones. Then come one on a missing program, one on a
missing path, and two at most on parameters that the error names. Private text is hidden.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from toolmem.guidance.card import failure_line
from toolmem.guidance.evidence import Findings, examine, may_have_run
from toolmem.guidance.failures import count, error_of
from toolmem.guidance.named_parameters import Lessons, nearby_line, parameter_lines, program_line
from toolmem.guidance.observations import Calls
from toolmem.guidance.shown import is_forgotten
from toolmem.guidance.wording import Language, Wording
from toolmem.models.calls import ToolCallResult, shared_origin
from toolmem.models.guidance import Failure, Line, ToolHistory
from toolmem.models.protocols import Store
from toolmem.text.error_lines import error_line

MAX_CALLS = 500  # newest calls that are read, of the tool and of the workspace
BUDGET = 200  # tokens
MAX_ERRORS = 3
LEAST_ALIKE = 0.5  # share of words that two similar messages have in common


class Known(Struct, frozen=True, dict=True):
    """What a workspace knows of a tool. Calls are oldest first."""

    calls: Calls  # of the tool
    around: Calls = ()  # of all tools
    history: ToolHistory | None = None  # behind the tool's guidance; outlives the calls
    forgotten: Sequence[str] = ()  # keys of lines that a user removed

    @cached_property
    def found(self) -> Findings:
        return examine(self.calls, self.around)

    @cached_property
    def failures(self) -> list[Failure]:
        """Return the failures of history and calls, without removed ones and answers of no use."""
        counted = list(self.history.failures) if self.history else []
        counted += count(self.found, None).failures if self.calls else []
        known: dict[tuple[str, str], Failure] = {}
        for failure in counted:
            if failure.silent or self._is_forgotten(failure):
                continue
            old = known.get((failure.error, failure.part))
            if old is not None:
                imported = shared_origin([old.imported, failure.imported])
                failure = replace(max(failure, old, key=_counts), imported=imported)
            known[failure.error, failure.part] = failure
        return list(known.values())

    def _is_forgotten(self, failure: Failure) -> bool:
        if not self.forgotten:
            return False
        line = failure_line(failure, failure.k, Lessons(self.found, (), Wording()))
        return is_forgotten(line, self.forgotten)


def _counts(failure: Failure) -> tuple[int, int, int]:
    return failure.recovered, failure.k, len(failure.repairs)


def known_of(store: Store, workspace: str, tool: str) -> Known:
    """Read a tool's history, its newest calls, and the newest calls of all tools."""

    def newest(tool_name: str | None) -> list[ToolCallResult]:
        log = store.call_log(workspace, tool_names=tool_name, newest=True, limit=MAX_CALLS)
        return [each.call for each in log]

    own, around = newest(tool), newest(None)
    guidance = next((each.guidance for each in store.records(workspace, [tool])), None)
    if guidance is None:
        return Known(own, around)
    return Known(own, around, guidance.history, guidance.forgotten)


def advice_lines(known: Known, call: ToolCallResult, language: Language = "") -> list[Line]:
    """Write advice on the error of `call`, a judged call; the most specific line is first."""
    wording = Wording(language)
    # Examined with the other calls, which show which parameters hold SQL or commands.
    observation = examine([*known.calls, call]).observed[-1]
    line = error_line(call.output)
    key = error_of(line, observation)
    failures = known.failures
    if may_have_run(call):
        failures = list(map(_without_repeating, failures))
    lessons = Lessons(known.found, failures, wording)
    lines = list(_error_lines(failures, key, observation.part, lessons))[:MAX_ERRORS]
    shown = {repair for each in lines for repair in each.repairs}
    parameters = parameter_lines(lessons, call, observation, line)
    known_names = (
        program_line(lessons, observation, line),
        nearby_line(known.around, call, line, wording),
    )
    lines += [replace(each, error=key) for each in known_names if each is not None]
    lines += [replace(each, error=key) for each in parameters if not shown.issuperset(each.repairs)]
    return lines


def _without_repeating(failure: Failure) -> Failure:
    """Drop the advice to repeat the call from a failure: the call may have been carried out."""
    repairs = [each for each in failure.repairs if each.repair.kind != "repeated"]
    recovered = failure.recovered if repairs else 0
    change = failure.change if failure.change is not None and failure.change.size else None
    return replace(failure, repairs=repairs, recovered=recovered, change=change)


def _error_lines(
    failures: Sequence[Failure], key: str, part: str, lessons: Lessons
) -> Iterator[Line]:
    """Yield the line of this error, for this part of the tool if possible; then similar errors."""
    same = [each for each in failures if each.error == key]
    if same:
        failure = min(same, key=lambda each: each.part != part)
        yield failure_line(failure, failure.k, lessons)
    others = [each for each in failures if each.error != key and each.recovered]
    shares = [(_shared_words(key, each.error), each) for each in others]
    for share, failure in sorted(shares, key=lambda pair: (-pair[0], -pair[1].recovered)):
        if share >= LEAST_ALIKE:
            yield failure_line(failure, failure.k, lessons)


def _shared_words(first: str, second: str) -> float:
    """Return the share of words that two texts share, 0 to 1; 0 if they share fewer than two."""
    a, b = ({word for word in text.lower().split() if word.isalpha()} for text in (first, second))
    return len(a & b) / len(a | b) if len(a & b) > 1 else 0.0
