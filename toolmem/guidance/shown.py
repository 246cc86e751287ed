"""Fit guidance into a number of tokens, for one tool or for several in one prompt.

Lines are never cut; a line that does not fit is skipped. A line that a user removed is recognized
by its content without counts, so that later summaries do not bring it back. The module also makes
the `ToolMemory` and the statistics of a tool that users are shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from itertools import count
from math import ceil
from shlex import quote

from msgspec.structs import replace

from toolmem.errors import RequestError
from toolmem.guidance.wording import Language, Wording, in_backticks
from toolmem.llm.tokens import token_weight
from toolmem.models.calls import ToolCallResult, with_all_fields
from toolmem.models.guidance import Guidance, Line
from toolmem.models.protocols import Store
from toolmem.models.tools import CallSums, ToolMemory, ToolRecord, ToolStatistics

BULLET = "- "  # before each line of guidance
FIGURES = "Statistics: "  # before the figures below a model's text
MAX_FORGOTTEN = 200  # keys of lines that a user removed
_EXAMPLES_SHARE = 4  # examples have a quarter of a card reserved
_WORTHLESS = ("worthless", "silent")  # kinds; the second is an older name
# The round in which a kind of line is placed. 0: failures, and a model's own lines.
_TURN = dict.fromkeys(_WORTHLESS, 1) | {"withheld": -1, "example": 2}
_TURN |= {"names": 3, "rate": 3, "left_out": 3}
# Counts in a model's text: `3 of 10`, `3/10`, `30 %`, `12 calls`, `12 次`.
_COUNTS = re.compile(
    r"\d[\d.,]{0,12}(?: ?[%次]| ?/ ?\d{1,12}| (?:out )?of \d{1,12}| (?:call|time)s?\b)"
)


def within(lines: Sequence[Line], max_tokens: int) -> list[Line]:
    """Return the lines that fit, in order. Up to a quarter of `max_tokens` is for examples."""
    costs = [token_weight(BULLET + line.text) + 1 for line in lines]  # 1 for the line break
    examples = sum(cost for line, cost in zip(lines, costs, strict=True) if line.kind == "example")
    reserved = min(examples, max_tokens // _EXAMPLES_SHARE)
    left = float(max_tokens)
    kept: list[Line] = []
    for line, cost in zip(lines, costs, strict=True):
        if line.kind == "example":
            reserved = 0
        if cost <= left - reserved:
            kept.append(line)
            left -= cost
    return kept


def fit(guidance: Guidance, max_tokens: int) -> str:
    """Fit the guidance of one tool into `max_tokens`; return "" if no line fits.

    The lines of a model's own text come first, then those of the card, most valuable first.
    """
    if token_weight(guidance.text) <= max_tokens:
        return guidance.text
    texts = _content(guidance.text)
    kept: set[int] = set()
    for *_, i in sorted(_order(guidance, texts)):
        if token_weight(_assembled(texts, kept | {i})) <= max_tokens:
            kept.add(i)
    return _assembled(texts, kept)


def fit_together(tools: Sequence[tuple[str, Guidance]], max_tokens: int) -> list[str]:
    """Fit guidance of several tools into `max_tokens`; return a text for each, "" if none fits.

    `tools`: (heading, guidance). Headings cost tokens, too. Failures come before examples. Tools
    get one line in turn, the tool with the most failures first.
    """
    contents = [_content(guidance.text) for _, guidance in tools]
    failed = [sum(line.k for line in one.lines if _TURN.get(line.kind, 0) < 2) for _, one in tools]
    order: list[tuple[int, int, int, int, int]] = []
    for place, (_, guidance) in enumerate(tools):
        taken: dict[int, int] = {}
        for turn, _, i in sorted(_order(guidance, contents[place])):
            taken[turn] = taken.get(turn, 0) + 1
            order.append((turn, taken[turn], -failed[place], place, i))
    kept: list[set[int]] = [set() for _ in tools]
    left = float(max_tokens)
    for *_, place, i in sorted(order):
        with_line = _assembled(contents[place], kept[place] | {i})
        cost = token_weight(with_line) - token_weight(_assembled(contents[place], kept[place]))
        cost += 1 if kept[place] else token_weight(tools[place][0]) + 2
        if cost <= left:
            kept[place].add(i)
            left -= cost
    return [_assembled(texts, some) for texts, some in zip(contents, kept, strict=True)]


def _content(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]


def _order(guidance: Guidance, texts: Sequence[str]) -> list[tuple[int, int, int]]:
    """Return (turn, rank, position) of each line that is no heading, the sort key for keeping."""
    known = {BULLET + line.text: (rank, line) for rank, line in enumerate(guidance.lines)}
    found: list[tuple[int, int, int]] = []
    for i, text in enumerate(texts):
        rank, line = known.get(text, (i - len(texts), None))
        if not text.startswith("#"):
            found.append((_TURN.get(line.kind, 0) if line else 0, rank, i))
    return found


def _assembled(texts: Sequence[str], kept: set[int]) -> str:
    """Join the lines at the positions in `kept`, each under its heading."""
    out: list[str] = []
    heading = ""
    for i, text in enumerate(texts):
        if text.startswith("#"):
            heading = text
        elif i in kept:
            out += [heading, text] if heading else [text]
            heading = ""
    return "\n".join(out)


def numbered(text: str) -> list[str]:
    """Number the lines of guidance, so that a user can name one to remove; headings have none."""
    numbers = count(1)
    return [
        line if line.startswith("#") else f"{next(numbers)}. {line.removeprefix(BULLET)}"
        for line in _content(text)
    ]


def lines_of(guidance: Guidance) -> list[Line]:
    """Return the lines of the guidance's text, without headings."""
    texts = _content(guidance.text)
    return [_line_behind(text, guidance) for text in texts if not text.startswith("#")]


def _line_behind(text: str, guidance: Guidance) -> Line:
    """Return the card's line with this text, or else a line that holds a model's own text."""
    own = Line(text.removeprefix(BULLET), "rate" if text.startswith(FIGURES) else "model")
    return next((line for line in guidance.lines if BULLET + line.text == text), own)


def line_keys(line: Line) -> list[str]:
    """Return keys that recognize a line in later guidance; the first identifies the whole line.

    If the line was counted from calls, the second identifies its error and the third, if there is
    one, the call that worked. Keys ignore counts, the failed call, the language and import marks.
    """
    contents: list[tuple[object, ...]]
    text = line.text.removesuffix(line.mark)
    is_rate = line.kind in ("rate", "left_out")
    if line.worked or line.part is not None or (is_rate and line.call_ids):
        repairs = {
            (each.kind, each.path, each.after, each.before if each.kind == "renamed" else "")
            for each in line.repairs
        }
        kind = "silent" if line.kind in _WORTHLESS else line.kind
        about = (kind, line.error, line.part)
        contents = [(*about, line.worked or sorted(repairs)), (*about, [])]
        contents += [("worked", line.worked)] if line.worked else []
    elif is_rate:
        words = "".join(character for character in text if not character.isdigit())
        contents = [(line.kind, FIGURES if line.text.startswith(FIGURES) else words)]
    else:
        contents = [("text", " ".join(_COUNTS.sub("", text).casefold().split()).strip("-*. "))]
    return [blake2b(ascii(each).encode(), digest_size=8).hexdigest() for each in contents]


def without_forgotten(guidance: Guidance) -> Guidance:
    """Return guidance, of a card or of a model, without the lines that a user removed.

    Its history drops all repairs of the errors in these lines, so that others can be counted.
    """
    if not guidance.forgotten:
        return guidance
    keys = guidance.forgotten

    def without(text: str) -> str:
        texts = _content(text)
        lines = [_line_behind(each, guidance) for each in texts]
        kept = {i for i, line in enumerate(lines) if not is_forgotten(line, keys)}
        return _assembled(texts, kept) if len(kept) < len(texts) else text

    history = guidance.history
    removed = [line for line in guidance.lines if is_forgotten(line, keys)]
    if history is not None:
        errors = {(line.error, line.part, line.kind in _WORTHLESS) for line in removed}
        failures = [
            replace(failure, change=None, repairs=[], recovered=0, repaired=0, told_again=0)
            if (failure.error, failure.part, failure.silent) in errors
            else failure
            for failure in history.failures
        ]
        history = replace(history, failures=failures)
    return replace(
        guidance,
        text=without(guidance.text),
        written=without(guidance.written),
        lines=[line for line in guidance.lines if line not in removed],
        history=history,
    )


def is_forgotten(line: Line, forgotten: Sequence[str]) -> bool:
    """Whether a user removed a line with this content. `forgotten`: keys of removed lines."""
    if not forgotten:
        return False
    keys = line_keys(line)
    # A call that was removed together with its failure is not shown as an example either.
    return keys[0] in forgotten or (line.kind == "example" and keys[-1] in forgotten)


def require_trusted(store: Store) -> None:
    """Raise RequestError if a stranger may have written what a store holds."""
    if store.untrusted:
        command = f"toolmem store trust --store {quote(store.location)}"
        raise RequestError(f"{store.untrusted}. To trust it: {command}")


def guidance_section(
    records: Iterable[ToolRecord], max_tokens: int, language: Language = ""
) -> str:
    """Fit guidance of these tools into `max_tokens`, with headings; return "" if none fits."""
    known = [
        (f"### `{in_backticks(record.tool_name)}`", record.guidance)
        for record in records
        if record.guidance is not None and record.guidance.text
    ]
    wording = Wording(language)
    title = f"{wording.phrase('prompt_title')}\n\n{wording.phrase('prompt_source')}"
    texts = fit_together(known, max_tokens - ceil(token_weight(title)))
    parts = [f"{heading}\n{text}" for (heading, _), text in zip(known, texts, strict=True) if text]
    return "\n\n".join([title, *parts]) if parts else ""


def statistics(sums: CallSums) -> ToolStatistics:
    """Return rates and averages, each over the calls whose value is known."""
    silent = sums.silent or 0
    known = sums.successes + sums.failures
    return ToolStatistics(
        calls=sums.calls,
        success_rate=_mean(sums.successes - silent, known),
        silent_failures=silent,
        avg_score=_mean(sums.score_sum, sums.judged),
        avg_time_cost=_mean(sums.time_sum, sums.time_calls),
        avg_token_cost=_mean(sums.token_sum, sums.token_calls),
    )


def _mean(total: float, count: int) -> float | None:
    """Return the mean, rounded because the last digits of a sum are inexact; None without calls."""
    return round(total / count, 9) if count else None


def sums_of(calls: Iterable[ToolCallResult]) -> CallSums:
    """Add up outcomes, scores, times and tokens of calls."""
    sums = CallSums(silent=0, no_use=0)
    for call in calls:
        sums.add(call)
    return sums


def calls_since_guidance(record: ToolRecord) -> int:
    """Count the calls that are newer than every call which the tool's guidance covers."""
    count = 0
    while count < len(record.new) and record.new[-1 - count] == record.last_seq - count:
        count += 1
    return count


def tool_memory(record: ToolRecord, calls: Sequence[ToolCallResult] = ()) -> ToolMemory:
    """Return a tool's memory in the form that users get, with `calls` inside."""
    guidance = record.guidance
    window = record.window
    figures = statistics(window)
    return ToolMemory(
        workspace_id=record.workspace,
        memory_id=record.memory_id,
        when_to_use=record.tool_name,
        content=guidance.text if guidance else "",
        score=figures.avg_score,
        time_created=record.time_created,
        time_modified=record.time_modified,
        author=guidance.author if guidance else "",
        tool_call_results=list(calls),
        metadata={
            # `success_rate` means what it means in ReMe; `worked_rate` is toolmem's own.
            "statistics": with_all_fields(figures)
            | {
                "success_rate": _mean(window.successes, window.successes + window.failures),
                "success_rate_by": "flag",
                "worked_rate": figures.success_rate,
            },
            "claims": [
                {name: getattr(line, name) for name in ("kind", "text", "k", "n", "call_ids")}
                for line in (guidance.lines if guidance else ())
            ],
            "lifetime": with_all_fields(record.counters),
            "new_calls": calls_since_guidance(record),
        },
    )


def main_failure(guidance: Guidance | None) -> Line | None:
    """The guidance line of the most frequent failure; None where there is none."""
    lines = guidance.lines if guidance else []
    failures = [line for line in lines if line.kind in ("failure", "worthless", "silent", "model")]
    return max(failures, key=lambda line: line.k, default=None)
