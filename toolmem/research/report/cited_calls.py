"""Guidance per tool with its evidence: claims, how many calls carry each, and these calls themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from toolmem.models import Claim, ToolCallResult, ToolMemory
from toolmem.pages.rendering import Html, clip, part
from toolmem.readers.plain_text import name_shown
from toolmem.research.report.findings import Evaluation
from toolmem.research.report.recorded import Row, frame, input_text

if TYPE_CHECKING:
    import pandas as pd

MOST_TOOLS = 60  # on the page; memories.jsonl has all
MOST_LINKS = 12  # calls linked from one claim; the others are counted


def claims_of(memory: ToolMemory) -> list[Claim]:
    """The counted claims beside a tool's guidance."""
    return [Claim.model_validate(claim) for claim in memory.metadata.get("claims") or ()]


def claims_frame(evaluation: Evaluation) -> pd.DataFrame:
    """One row per claim: tool_name, kind, text, k, n, calls (how many it cites), found (those of them in the window),
    rows (of calls.csv, separated by blanks; the call's id where it is no recorded call).
    """
    return frame(claims_rows(evaluation), CLAIM_COLUMNS)


CLAIM_COLUMNS = ("tool_name", "kind", "text", "k", "n", "calls", "found", "rows")


def claims_rows(evaluation: Evaluation) -> list[Row]:
    """The rows of `claims_frame`."""
    rows = _rows_by_id(evaluation)
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
                "rows": " ".join(_row_text(call_id, rows) for call_id in claim.call_ids),
            }
            for claim in claims_of(memory)
        ]
    return found


def guidance_block(evaluation: Evaluation) -> Html:
    """A folded part per tool, those with most calls first: guidance, claims with `k of n`, and the calls they cite."""
    memories = sorted(evaluation.memories, key=lambda memory: (-_calls(memory), memory.when_to_use))
    rows = _rows_by_id(evaluation)
    tools = [_of_tool(memory, rows, place) for place, memory in enumerate(memories[:MOST_TOOLS])]
    return part("report.html.j2", "guidance", tools, len(memories) - len(tools))


def _rows_by_id(evaluation: Evaluation) -> dict[str, int]:
    calls = zip(evaluation.row_numbers, evaluation.calls, strict=True)
    return {call.id: row for row, call in calls if call.id is not None}


def _calls(memory: ToolMemory) -> int:
    lifetime = memory.metadata.get("lifetime")
    return int(lifetime.get("calls", 0)) if isinstance(lifetime, dict) else len(memory.tool_call_results)


def _of_tool(memory: ToolMemory, rows: Mapping[str, int], place: int) -> dict[str, Any]:
    """What the template shows of one tool. Calls that are cited and kept have an anchor, to which claims lead."""
    claims = claims_of(memory)
    kept = {call.id: call for call in memory.tool_call_results if call.id is not None}
    cited = [call_id for call_id in dict.fromkeys(i for claim in claims for i in claim.call_ids) if call_id in kept]
    anchors = {call_id: f"e{place}-{number}" for number, call_id in enumerate(cited)}
    return {
        "name": name_shown(memory.when_to_use) or "(no name)",
        "author": memory.author,
        "analyzed": memory.metadata.get("guidance_statistics") or {},
        "kept": len(memory.tool_call_results),
        "lines": [_line(line.strip()) for line in memory.content.splitlines() if line.strip()],
        "claims": [_claim(claim, anchors, rows) for claim in claims],
        "cited": [_cited(kept[call_id], anchors[call_id], _row_text(call_id, rows)) for call_id in cited],
    }


def _line(line: str) -> tuple[str, str]:
    """A line of guidance and what it is: heading (`## x`), list item (`- x`), or a line as it is."""
    if line.startswith("#"):
        return "heading", line.lstrip("#").strip()
    return ("item", line[2:].strip()) if line.startswith(("- ", "* ", "• ")) else ("", line)


def _claim(claim: Claim, anchors: Mapping[str, str], rows: Mapping[str, int]) -> dict[str, Any]:
    shown = claim.call_ids[:MOST_LINKS]
    return {
        "text": claim.text,
        "count": f"{claim.k:,} of {claim.n:,}" if claim.n else "",
        # whether the ids are the calls that were compared (n) or the ones that were counted (k)
        "which": f"all {claim.n:,}: " if len(claim.call_ids) == claim.n > claim.k else "",
        "shown": [(_row_text(call_id, rows), anchors.get(call_id)) for call_id in shown],
        "more": len(claim.call_ids) - len(shown),
    }


def _cited(call: ToolCallResult, anchor: str, row: str) -> dict[str, str]:
    failed = {True: "failed", False: "ran", None: "not known"}[call.failed]
    return {
        "anchor": anchor,
        "row": row,
        "outcome": failed if call.score is None else f"{failed}, score {call.score:.0f}",
        "input": clip(input_text(call), 160),
        "output": clip(call.output, 200) or "(empty)",
    }


def _row_text(call_id: str, rows: Mapping[str, int]) -> str:
    return str(rows[call_id]) if call_id in rows else clip(call_id, 24)
