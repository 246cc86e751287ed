"""Measure guidance on a recording: made of earlier conversations, asked about later ones.

Each tool's calls are split at a moment, no task on both sides. A card is written from the earlier
part as it would have been while the tool was in use. Of the later failures that the tool's next
calls repaired, it must name the kind of repair for that error, within a number of tokens.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import cache
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from toolmem.guidance.card import CardWriter
from toolmem.guidance.differences import recoveries, repair_key
from toolmem.guidance.evidence import conversations, examine
from toolmem.guidance.shown import BULLET, fit
from toolmem.models.calls import ToolCallResult
from toolmem.models.guidance import Guidance, Line, Repair
from toolmem.models.protocols import GuidanceWriter
from toolmem.text.error_lines import error_class_of, generalize

BUDGETS = (200, 500, 1_000)  # tokens of guidance per tool
WINDOW = 30  # newest calls that a card is written from
EVERY = 10  # calls between two cards
MESSAGE_WORDS = 8  # words by which a message is recognized

_WORD = re.compile(r"[a-z][a-z_']+|[\u4e00-\u9fff]{2}")

Calls = Sequence[ToolCallResult]


class Repaired(Struct, frozen=True):
    """A later failure after which the tool worked again, within three calls of its conversation."""

    tool_name: str
    position: int  # of the failed call
    message: str  # the line that says what went wrong, without particulars
    error_class: str  # "no_output" where the failed call printed nothing
    repairs: frozenset[Repair]  # what differs between the two calls


class Coverage(Struct, frozen=True):
    """How many of the repaired failures the guidance names the repair of."""

    budget: int  # tokens of guidance per tool
    named: int
    repaired: int

    @property
    def share(self) -> float | None:
        """None where no failure was repaired."""
        return self.named / self.repaired if self.repaired else None


class Split(Struct, frozen=True):
    """The calls of one tool before a moment, and after it. Each part is in the order given."""

    earlier: Calls
    later: Calls


def backtest(
    calls: Calls, budgets: Sequence[int] = BUDGETS, writer: GuidanceWriter | None = None
) -> list[Coverage]:
    """The coverage of judged calls, oldest first, for each number of tokens.

    Where every task was run several times, a second fold swaps the sides of those tasks, so that
    each task is asked about once. `writer`: one that asks no model; left out: the card writer.
    """
    used = writer or CardWriter(max_tokens=max(budgets))
    pairs: list[tuple[Repaired, Guidance]] = []
    for own in by_tool(calls).values():
        for fold in (0, 1):
            parts = split(own, fold)
            if parts.earlier and parts.later:
                guidance = written_in_use(used, parts.earlier)
                pairs += [(each, guidance) for each in repaired_failures(parts.later)]
    return [
        Coverage(budget, sum(is_named(one, text, budget) for one, text in pairs), len(pairs))
        for budget in budgets
    ]


def by_tool(calls: Calls) -> dict[str, list[ToolCallResult]]:
    """The calls of each tool, in the order given."""
    tools: defaultdict[str, list[ToolCallResult]] = defaultdict(list)
    for call in calls:
        tools[call.tool_name].append(call)
    return tools


def written_in_use(writer: GuidanceWriter, calls: Calls) -> Guidance:
    """What a writer says after these calls, asked at every tenth for the newest thirty."""
    numbered = [replace(call, seq=seq) for seq, call in enumerate(calls, 1)]
    guidance: Any = None
    for end in range(len(calls) % EVERY or EVERY, len(calls) + 1, EVERY):
        window = numbered[max(0, end - WINDOW) : end]
        guidance = writer.write(window[0].tool_name, window, guidance)
    written: Guidance = guidance
    return written


def split(calls: Calls, fold: int = 0) -> Split:
    """Half of the conversations of one tool, by their first call, lie before the cut.

    A task with conversations on both sides goes where it has more of them; where they are equal,
    by turns, and in fold 1 to the other side, which then asks about these tasks alone. Without
    named conversations the calls are cut by time.
    """
    groups = sorted(conversations(calls), key=lambda group: (calls[group[0]].create_time, group[0]))
    if sum(map(len, groups)) < len(calls):
        ordered = sorted(calls, key=lambda call: call.create_time)
        half = len(calls) // 2
        return Split(ordered[:half], [] if fold else ordered[half:])
    half = len(groups) // 2
    tasks = [task_of(calls[group[0]]) for group in groups]
    sides, equal = _sides(tasks, half, fold) if all(tasks) else ({}, frozenset())
    before = [i for i in range(half) if sides.get(tasks[i], "earlier") == "earlier"]
    after = [i for i in range(half, len(groups)) if sides.get(tasks[i], "later") == "later"]
    after = [i for i in after if not fold or tasks[i] in equal]
    later = sorted(position for i in after for position in groups[i])
    begin = min((calls[groups[i][0]].create_time for i in after), default=None)
    earlier = []
    for i in before:
        is_timeless = all(calls[position].create_time == begin for position in groups[i])
        for position in groups[i]:
            if begin is None or is_timeless or calls[position].create_time < begin:
                earlier.append(position)
    return Split([calls[i] for i in sorted(earlier)], [calls[i] for i in later])


def task_of(call: ToolCallResult) -> str:
    """The task that a call belongs to, whatever run it is of; "" where its metadata names none."""
    task = call.metadata.get("task_id")
    if task in (None, ""):
        return ""
    spaces = [call.metadata.get(key) or "" for key in ("dataset", "domain")]
    return "/".join(map(str, (*spaces, task)))


def _sides(tasks: Sequence[str], half: int, fold: int) -> tuple[dict[str, str], frozenset[str]]:
    """Each task's side of the cut, and the tasks with as many conversations on either side."""
    first, second = Counter(tasks[:half]), Counter(tasks[half:])
    equal = [task for task in dict.fromkeys(tasks) if first[task] == second[task]]
    sides = {task: "earlier" if first[task] > second[task] else "later" for task in tasks}
    for place, task in enumerate(equal):
        sides[task] = "later" if (place + fold) % 2 else "earlier"
    return sides, frozenset(equal)


def repaired_failures(calls: Calls) -> list[Repaired]:
    """The repaired failures of one tool. Only calls that name their conversation count."""
    seen = examine(calls)
    found = []
    for one in recoveries(seen.attempts._replace(worked=seen.worked)):
        failed, line = calls[one.failure], seen.messages[one.failure]
        error_class = failed.error_class if line else "no_output"
        message = generalize(line)
        found.append(Repaired(failed.tool_name, one.failure, message, error_class, one.repairs))
    return found


def is_named(one: Repaired, guidance: Guidance, budget: int) -> bool:
    """Whether guidance, cut to `budget` tokens, names a repair of this failure for its error.

    An error is known by its message, by its class, or by half of the words that its message begins
    with. What a value was before need not agree.
    """
    kept = set(fit(guidance, budget).splitlines())
    asked = set(map(_kind, one.repairs))
    return any(
        asked.intersection(map(_kind, line.repairs)) and _is_about(line, one)
        for line in guidance.lines
        if BULLET + line.text in kept
    )


def _is_about(line: Line, one: Repaired) -> bool:
    if line.error == one.message:
        return True
    if one.error_class not in ("", "error") and _class_of(line.error) == one.error_class:
        return True
    words, known = _words(one.message)[:MESSAGE_WORDS], set(_words(line.error))
    shared = sum(word in known for word in words)
    return bool(words) and shared >= min(2, len(words)) and 2 * shared >= len(words)


def _kind(repair: Repair) -> Repair:
    return replace(repair_key(repair), before="")


@cache
def _class_of(error: str) -> str:
    return error_class_of(error) if error else "no_output"


@cache
def _words(message: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_WORD.findall(message.lower())))
