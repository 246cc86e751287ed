"""Cut guidance to a number of tokens: one tool's, or that of several tools in one prompt.

Lines are taken whole; one that does not fit is skipped for the next.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil
from shlex import quote

from toolmem.errors import RequestError
from toolmem.guidance.wording import Language, Wording, in_backticks
from toolmem.llm.tokens import token_weight
from toolmem.models.calls import ToolCallResult, with_all_fields
from toolmem.models.guidance import Guidance, Line
from toolmem.models.protocols import Store
from toolmem.models.tools import CallSums, ToolMemory, ToolRecord, ToolStatistics

BULLET = "- "  # before each line of guidance
_EXAMPLES_SHARE = 4  # calls that worked get a quarter of a card, where there are any
# Round in which a kind of line is placed in a prompt. 0: failures, and a model's own lines.
_TURN = {"withheld": -1, "silent": 1, "example": 2, "names": 2, "rate": 3, "left_out": 3}


def within(lines: Sequence[Line], max_tokens: int) -> list[Line]:
    """The lines that fit, in their order; failures leave room for examples."""
    costs = [token_weight(BULLET + line.text) + 1 for line in lines]  # and a line break
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
    """The text of one tool in at most `max_tokens`; "" where nothing fits.

    A model's own text is taken first, from its top; then lines of the card, most valuable first.
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
    """The texts of several tools (with their headings) in at most `max_tokens`; "" where none fits.

    Failures come before examples, line by line in turn: tools with most failures first.
    """
    contents = [_content(guidance.text) for _, guidance in tools]
    failed = [sum(line.k for line in one.lines if _turn(line) < 2) for _, one in tools]
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
    return [_assembled(lines, some) for lines, some in zip(contents, kept, strict=True)]


def _content(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]


def _turn(line: Line) -> int:
    return _TURN.get(line.kind, 0)


def _order(guidance: Guidance, texts: Sequence[str]) -> list[tuple[int, int, int]]:
    """(turn, rank, position) of each line of the text that is no heading."""
    known = {BULLET + line.text: (rank, line) for rank, line in enumerate(guidance.lines)}
    found: list[tuple[int, int, int]] = []
    for i, text in enumerate(texts):
        rank, line = known.get(text, (i - len(texts), None))
        if not text.startswith("#"):
            found.append((_turn(line) if line else 0, rank, i))
    return found


def _assembled(texts: Sequence[str], kept: set[int]) -> str:
    """The lines kept, each under the heading that it had."""
    out: list[str] = []
    heading = ""
    for i, text in enumerate(texts):
        if text.startswith("#"):
            heading = text
        elif i in kept:
            out += [heading, text] if heading else [text]
            heading = ""
    return "\n".join(out)


def require_trusted(store: Store) -> None:
    """Raises RequestError where a stranger may have written the rules and guidance of a store."""
    if store.untrusted:
        command = f"toolmem store trust --store {quote(store.location)}"
        raise RequestError(f"{store.untrusted}. To trust it: {command}")


def guidance_section(
    records: Iterable[ToolRecord], max_tokens: int, language: Language = ""
) -> str:
    """The guidance of these tools in at most `max_tokens`, headings included.

    "" where no tool has guidance, or none of it fits.
    """
    known = [
        (f"### `{in_backticks(record.tool_name)}`", record.guidance)
        for record in records
        if record.guidance is not None and record.guidance.text
    ]
    say = Wording(language)
    title = f"{say.say('prompt_title')}\n\n{say.say('prompt_source')}"
    texts = fit_together(known, max_tokens - ceil(token_weight(title)))
    parts = [f"{heading}\n{text}" for (heading, _), text in zip(known, texts, strict=True) if text]
    return "\n\n".join([title, *parts]) if parts else ""


def statistics(sums: CallSums) -> ToolStatistics:
    """Rates and averages; calls of which a value is unknown are left out of it."""
    return ToolStatistics(
        calls=sums.calls,
        success_rate=_mean(sums.successes, sums.successes + sums.failures),
        avg_score=_mean(sums.score_sum, sums.judged),
        avg_time_cost=_mean(sums.time_sum, sums.time_calls),
        avg_token_cost=_mean(sums.token_sum, sums.token_calls),
    )


def _mean(total: float, count: int) -> float | None:
    """Rounded: a sum that calls were added to and taken out of is off by a few last digits."""
    return round(total / count, 9) if count else None


def sums_of(calls: Iterable[ToolCallResult]) -> CallSums:
    """The sums over some calls."""
    sums = CallSums()
    for call in calls:
        sums.add(call)
    return sums


def tool_memory(record: ToolRecord, calls: Sequence[ToolCallResult] = ()) -> ToolMemory:
    """A tool's memory; `calls`: those that are to be shown with it."""
    guidance, figures = record.guidance, statistics(record.window)
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
            "statistics": with_all_fields(figures),
            "claims": [
                {name: getattr(line, name) for name in ("kind", "text", "k", "n", "call_ids")}
                for line in (guidance.lines if guidance else ())
            ],
            "lifetime": with_all_fields(record.counters),
            "new_calls": len(record.new),
        },
    )
