"""Guidance within a token budget: whole sentences, the most valuable first."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from toolmem.guidance.shown import OneGuidance

BULLET = "- "


def fit(guidance: OneGuidance, budget_tokens: int, count: Callable[[str], int]) -> str:
    """The text of `guidance` in at most `budget_tokens` tokens as `count` counts them; "" where nothing fits.

    Lines that are claims are taken in the order of `guidance.claims` (most valuable first), each with the heading
    that it needs; one that is too long is passed over for the next. Lines that are no claim, as in a model's text,
    come after those, from the top. Whole lines only.
    """
    if count(guidance.text) <= budget_tokens:
        return guidance.text
    lines = [line for line in guidance.text.splitlines() if line.strip()]
    rank = {BULLET + claim.text: i for i, claim in enumerate(guidance.claims)}
    content = [i for i, line in enumerate(lines) if not line.startswith("#")]
    content.sort(key=lambda i: (rank.get(lines[i], len(rank)), i))
    kept: set[int] = set()
    for i in content:
        if count(_assembled(lines, kept | {i})) <= budget_tokens:
            kept.add(i)
    return _assembled(lines, kept)


def _assembled(lines: Sequence[str], kept: set[int]) -> str:
    """The lines `kept`, each under the heading it had."""
    out: list[str] = []
    heading: str | None = None
    for i, line in enumerate(lines):
        if line.startswith("#"):
            heading = line
        elif i in kept:
            if heading is not None:
                out.append(heading)
                heading = None
            out.append(line)
    return "\n".join(out)
