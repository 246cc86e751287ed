"""Measure whether guidance from earlier conversations names the repairs of later failures.

The conversations are split by time, and no task is in both parts. A card is written from the
earlier part and rewritten at every thirtieth call, as in use; no model is asked. Of the later
failures that the tool's next calls repaired, those are counted whose repair the card names.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

from toolmem.guidance.card import MAX_TOKENS, CardWriter
from toolmem.guidance.differences import recoveries, repair_key
from toolmem.guidance.evidence import conversations, examine, outcomes
from toolmem.guidance.failures import count
from toolmem.guidance.shown import BULLET, fit
from toolmem.models.calls import ToolCallResult
from toolmem.models.guidance import Guidance, Repair
from toolmem.models.protocols import GuidanceWriter
from toolmem.pages.intervals import wilson_interval
from toolmem.text.error_lines import error_class_of, error_line, generalize

WINDOW = 30  # newest calls that a card is written from
EVERY = 10  # calls between two cards
MESSAGE_WORDS = 8  # words by which a message is recognized
MAX_CALLS = 5_000  # newest calls that are looked at
MIN_CONVERSATIONS = 10  # with a repaired failure: fewer say nothing

_WORD = re.compile(r"[a-z][a-z_']+|[\u4e00-\u9fff]{2}")

Calls = Sequence[ToolCallResult]


class Repaired(Struct, frozen=True):
    """A failure that one of the tool's next three calls in the same conversation repaired."""

    tool_name: str
    position: int  # of the failed call
    message: str  # the line that says what went wrong, without particulars
    error_class: str  # "no_output" where the failed call printed nothing
    repairs: frozenset[Repair]  # what differs between the two calls


class LaterRepairs(Struct, frozen=True, kw_only=True):
    """How many failures of the newer half have a repair that guidance from the older half names.

    A failure counts if the tool's next calls repaired it, each error once per conversation.
    """

    calls: int  # the newest, at most 5,000
    with_conversation: int  # of these calls; the others are not used
    conversations: int = 0  # of the newer half, with a repaired failure
    repaired: int = 0  # such failures
    known: int = 0  # of these: their error was in the calls that guidance was made from
    named: int | None = None  # of these: guidance names the repair; None: too few conversations
    low: float | None = None  # 95 % interval of the share that is named, by conversation
    high: float | None = None
    has_times: bool = True  # False: newer are the calls that were read later
    has_tasks: bool = False  # True: no task is in both halves

    def sentence(self, calls: int) -> str:
        """Return these figures as sentences. `calls`: the number of all calls, used here or not."""
        if not self.with_conversation:
            return "No call names its conversation. Which call repaired a failure is not known."
        which = "these calls" if calls == self.calls else f"the newest {self.calls:,} calls"
        if self.with_conversation < self.calls:
            newest = "" if calls == self.calls else f" of the newest {self.calls:,}"
            which = f"the {self.with_conversation:,} calls{newest} that name a conversation"
        older, newer = ("older", "newer") if self.has_times else ("first", "second")
        if self.named is None or self.low is None or self.high is None:
            has = "conversation has" if self.conversations == 1 else "conversations have"
            return (
                "How many repairs guidance names is not known. "
                f"Looked at: {which}. "
                f"In their {newer} half, {self.conversations} {has} a repaired failure. "
                f"At least {MIN_CONVERSATIONS} are needed."
            )
        low, high = 100 * self.low, 100 * self.high
        apart = " All runs of a task are in one half." if self.has_tasks else ""
        return (
            f"Guidance from the {older} half says how {self.named:,} of {self.repaired:,} later "
            "failures were repaired. "
            f"The 95 % interval of this share is {low:.0f} % to {high:.0f} %. "
            f"Both halves are of {which}.{apart} The next calls repaired these failures, in "
            f"{self.conversations:,} conversations. "
            f"The guidance had seen {self.known:,} of these errors."
        )


class Split(Struct, frozen=True):
    """The calls before a moment, and the calls after it, each in the given order."""

    earlier: Calls
    later: Calls


def later_repairs(calls: Calls) -> LaterRepairs:
    """Count the repairs in the newer half of `calls` that guidance from the older half names.

    `calls`: judged, oldest first. Failures of one conversation resemble each other, and prove less
    than independent ones. So Wilson's interval is computed for `n**2 / sum(size**2)` failures in
    place of `n` (`size`: of each conversation; L. Kish, "Survey Sampling", 1965, section 5.4).
    """
    newest = calls[-MAX_CALLS:]
    used = sorted((c for c in newest if c.conversation_id), key=lambda call: call.create_time)
    # By conversation, tool and error: was the error known, and is its repair named?
    found: dict[tuple[str, str, str], tuple[bool, bool]] = {}
    for fold in (0, 1):
        parts = split(used, fold)
        earlier = by_tool(parts.earlier)
        for tool, later in by_tool(parts.later).items():
            for one, known, named in _ask(earlier.get(tool, []), repaired_failures(later)):
                conversation = later[one.position].conversation_id
                found.setdefault((conversation, tool, one.message), (known, named))
    sizes = Counter(conversation for conversation, *_ in found)
    result = LaterRepairs(
        calls=len(newest),
        with_conversation=len(used),
        conversations=len(sizes),
        repaired=len(found),
        known=sum(known for known, _ in found.values()),
        has_times=len({call.create_time for call in used}) > 1,
        has_tasks=bool(used) and all(map(task_of, used)),
    )
    if len(sizes) < MIN_CONVERSATIONS:
        return result
    total = sum(named for _, named in found.values())
    independent = len(found) ** 2 / sum(size**2 for size in sizes.values())
    low, high = wilson_interval(total / len(found) * independent, independent)
    return replace(result, named=total, low=low, high=high)


def _ask(earlier: Calls, repaired: Sequence[Repaired]) -> Iterator[tuple[Repaired, bool, bool]]:
    """Yield each failure, whether `earlier` had its error, and whether a card names its repair."""
    guidance = _card_of(earlier) if repaired and earlier else Guidance(text="", author="")
    errors = {generalize(error_line(call.output)) for call in earlier if call.failed}
    for one in repaired:
        named = is_named(one, guidance, MAX_TOKENS)
        is_known = named or one.message in errors or any(_is_about(e, one) for e in errors)
        yield one, is_known, named


def _card_of(calls: Calls) -> Guidance:
    """Write the card of these calls as if it had been rewritten at every thirtieth call.

    Only the last card is written out; for the others the history of failures is enough.
    """
    numbered = [replace(call, seq=seq) for seq, call in enumerate(calls, 1)]
    old = Guidance(text="", author=CardWriter.author)
    first = len(calls) % WINDOW or WINDOW
    for end in range(first, len(calls), WINDOW):
        window = numbered[max(0, end - WINDOW) : end]
        old = replace(old, history=count(examine(window), old.history))
    return CardWriter().write(calls[0].tool_name, numbered[-WINDOW:], old)


def by_tool(calls: Calls) -> dict[str, list[ToolCallResult]]:
    """The calls of each tool, in the given order."""
    tools: defaultdict[str, list[ToolCallResult]] = defaultdict(list)
    for call in calls:
        tools[call.tool_name].append(call)
    return tools


def written_in_use(writer: GuidanceWriter, calls: Calls) -> Guidance:
    """Write guidance after every tenth call, from the newest thirty; return the last guidance."""
    numbered = [replace(call, seq=seq) for seq, call in enumerate(calls, 1)]
    guidance: Any = None
    for end in range(len(calls) % EVERY or EVERY, len(calls) + 1, EVERY):
        window = numbered[max(0, end - WINDOW) : end]
        guidance = writer.write(window[0].tool_name, window, guidance)
    return cast(Guidance, guidance)


def split(calls: Calls, fold: int = 0) -> Split:
    """Split the conversations into halves, by the time of their first call.

    A task in both halves stays only in the half with more of its conversations. Of tasks with
    equally many in both, every second one stays in the later half. With `fold` 1, `later` has the
    others of these, and nothing else. If some call names no conversation, calls are split by time.
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
    """Return `dataset/domain/task_id` of a call's metadata; "" if that has no `task_id`."""
    task = call.metadata.get("task_id")
    if task in (None, ""):
        return ""
    groups = [call.metadata.get(key) or "" for key in ("dataset", "domain")]
    return "/".join(map(str, (*groups, task)))


def _sides(tasks: Sequence[str], half: int, fold: int) -> tuple[dict[str, str], frozenset[str]]:
    """The side of each task, and the tasks with equal numbers of conversations in both halves."""
    first = Counter(tasks[:half])
    second = Counter(tasks[half:])
    equal = [task for task in dict.fromkeys(tasks) if first[task] == second[task]]
    sides = {task: "earlier" if first[task] > second[task] else "later" for task in tasks}
    for place, task in enumerate(equal):
        sides[task] = "later" if (place + fold) % 2 else "earlier"
    return sides, frozenset(equal)


def repaired_failures(calls: Calls) -> list[Repaired]:
    """Find the repaired failures in one tool's calls. Calls without a conversation are not used."""
    seen = outcomes(calls)
    found = []
    for one in recoveries(seen.attempts._replace(worked=seen.worked)):
        failed = calls[one.failure]
        line = seen.messages[one.failure]
        error_class = failed.error_class if line else "no_output"
        message = generalize(line)
        found.append(Repaired(failed.tool_name, one.failure, message, error_class, one.repairs))
    return found


def is_named(one: Repaired, guidance: Guidance, budget: int) -> bool:
    """Whether guidance, cut to `budget` tokens, names a repair of this failure.

    A line of guidance counts if its error has the message or class of the failure, or half of the
    message's first eight words. A repair counts whatever value it replaced.
    """
    kept = set(fit(guidance, budget).splitlines())
    asked = set(map(_kind, one.repairs))
    return any(
        asked.intersection(map(_kind, line.repairs)) and _is_about(line.error, one)
        for line in guidance.lines
        if BULLET + line.text in kept
    )


def _is_about(error: str, one: Repaired) -> bool:
    """Whether an error is the error of a failure."""
    if error == one.message:
        return True
    if one.error_class not in ("", "error") and _class_of(error) == one.error_class:
        return True
    words = _words(one.message)[:MESSAGE_WORDS]
    known = set(_words(error))
    shared = sum(word in known for word in words)
    return bool(words) and shared >= min(2, len(words)) and 2 * shared >= len(words)


def _kind(repair: Repair) -> Repair:
    return replace(repair_key(repair), before="")


@lru_cache(MAX_CALLS)
def _class_of(error: str) -> str:
    return error_class_of(error) if error else "no_output"


@lru_cache(MAX_CALLS)
def _words(message: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_WORD.findall(message.lower())))
