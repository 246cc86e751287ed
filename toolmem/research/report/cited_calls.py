"""Guidance per tool with its evidence: its lines, how many calls carry each, these calls, and what followed them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolmem.guidance.shown import BULLET, WITHHELD
from toolmem.models import Claim, ToolMemory
from toolmem.pages.rendering import Html, part
from toolmem.readers.plain_text import counted, name_shown
from toolmem.research.report.call_order import RecordedCalls, row_text, rows_by_id
from toolmem.research.report.findings import Evaluation
from toolmem.research.report.recorded import Row, frame

if TYPE_CHECKING:
    import pandas as pd

MOST_TOOLS = 60  # on the page; memories.jsonl has all
MOST_TOLD = 20  # of them, whose lines show the calls behind them
MOST_LINES = 40  # of a tool that do
MOST_CALLS = 5  # of a line, the newest; claims.csv has all
_Shown = tuple[str, str, dict[str, Any] | None]  # of a line: what it is, its words, its claim
_FAILURES = frozenset({"failure", "silent"})


def claims_of(memory: ToolMemory) -> list[Claim]:
    """The counted claims beside a tool's guidance."""
    return [Claim.model_validate(claim) for claim in memory.metadata.get("claims") or ()]


def claims_frame(evaluation: Evaluation) -> pd.DataFrame:
    """One row per claim: tool_name, kind, text, k, n, calls (how many it cites), found (those of them in the window),
    rows (of calls.csv, separated by blanks; the call's id where it is no recorded call); shown, followed, worked: the
    conversations that were given the line, did as it tells, and had success with it (0 where nothing is known of it).
    """
    return frame(claims_rows(evaluation), CLAIM_COLUMNS)


PROOF = ("shown", "followed", "worked")  # counts of a claim, as `toolmem.guidance.proof` counts them
CLAIM_COLUMNS = ("tool_name", "kind", "text", "k", "n", "calls", "found", "rows", *PROOF)


def claims_rows(evaluation: Evaluation) -> list[Row]:
    """The rows of `claims_frame`."""
    rows = rows_by_id(evaluation)
    found: list[Row] = []
    for memory in evaluation.memories:
        kept = {call.id for call in memory.tool_call_results}
        found += [
            {
                "tool_name": memory.when_to_use,
                "kind": claim.kind,
                "text": claim.text,
                "k": claim.k,
                "n": claim.n,
                "calls": len(claim.call_ids),
                "found": sum(call_id in kept for call_id in claim.call_ids),
                "rows": " ".join(row_text(call_id, rows) for call_id in claim.call_ids),
                **{name: claim.counts.get(name, 0) for name in PROOF},
            }
            for claim in claims_of(memory)
        ]
    return found


def guidance_block(evaluation: Evaluation) -> Html:
    """A folded part per tool, those with most failures to tell of first: its lines as an agent reads them.

    Lines that were followed and then worked come first, most often of all; those that are withheld stand beside the
    text. Below each line, folded: the newest MOST_CALLS calls behind it, and what followed each in its conversation.
    """
    memories = sorted(evaluation.memories, key=lambda memory: (*_telling(memory), memory.when_to_use))
    calls = RecordedCalls(evaluation)
    tools = [_of_tool(memory, calls, told=place < MOST_TOLD) for place, memory in enumerate(memories[:MOST_TOOLS])]
    return part("report.html.j2", "guidance", tools, len(memories) - len(tools))


def _telling(memory: ToolMemory) -> tuple[int, int]:
    failures = sum(claim.k for claim in claims_of(memory) if claim.kind in _FAILURES)
    lifetime = memory.metadata.get("lifetime")
    return -failures, -int(lifetime.get("calls", 0) if isinstance(lifetime, dict) else len(memory.tool_call_results))


def _of_tool(memory: ToolMemory, calls: RecordedCalls, *, told: bool) -> dict[str, Any]:
    """What the template shows of one tool: lines of its text, those that are claims with the calls behind them."""
    claims = claims_of(memory)
    shown = [_claim(claim, calls, told=told and place < MOST_LINES) for place, claim in enumerate(claims)]
    of_line = {claim.text: one for claim, one in zip(claims, shown, strict=True)}
    lines = _ranked([_line(line.strip(), of_line) for line in memory.content.splitlines() if line.strip()])
    in_text = {words for _, words, one in lines if one is not None}
    return {
        "name": name_shown(memory.when_to_use) or "(no name)",
        "author": memory.author,
        "analyzed": memory.metadata.get("guidance_statistics") or {},
        "kept": len(memory.tool_call_results),
        "claims": len(claims),
        "lines": lines,
        "beside": [("item", claim.text, of_line[claim.text]) for claim in claims if claim.text not in in_text],
    }


def _ranked(lines: list[_Shown]) -> list[_Shown]:
    """Those that are claims by how often they were followed and then worked, in the places that claims have."""
    claims = sorted((line for line in lines if line[2]), key=lambda line: -line[2]["worked"] if line[2] else 0)
    in_turn = iter(claims)
    return [next(in_turn) if line[2] else line for line in lines]


def _line(line: str, of_line: dict[str, dict[str, Any]]) -> _Shown:
    """A line of guidance: heading (`## x`), list item (`- x`) or as it is; its words; the claim that it is."""
    if line.startswith("#"):
        return "heading", line.lstrip("#").strip(), None
    item = line.startswith((BULLET, "* ", "• "))
    words = line[2:].strip() if item else line
    return "item" if item else "", words, of_line.get(words)


def _claim(claim: Claim, calls: RecordedCalls, *, told: bool) -> dict[str, Any]:
    shown = claim.call_ids[-MOST_CALLS:] if told else ()
    return {
        "count": _count(claim),
        "worked": claim.counts.get("worked", 0),
        "calls": [*calls.with_what_followed(shown)],
        "shown": len(shown),
        "more": len(claim.call_ids) - len(shown),
    }


def _count(claim: Claim) -> str:
    """How many calls carry it, how many of the failures were recovered, and what the line was good for."""
    parts = [f"{claim.k:,} of {counted(claim.n, 'call')}"] if claim.n else []
    if claim.kind == "failure" and "recovered" in claim.counts:
        parts.append(f"{claim.counts['recovered']:,} recovered")
    if "shown" in claim.counts:
        parts += [f"{name} {claim.counts.get(name, 0):,}" for name in PROOF]
    if claim.kind == WITHHELD:
        parts.append("withheld")
    return ", ".join(parts)
