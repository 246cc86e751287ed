"""Guidance per tool with its evidence: claims, how many calls carry each, and these calls themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from toolmem.config.extras import need_pandas
from toolmem.models import Claim, ToolCallResult, ToolMemory
from toolmem.readers.plain_text import counted, name_shown
from toolmem.research.report.blocks import Column, Html, clip, folded, html_text, marked, note, table
from toolmem.research.report.evaluation import Evaluation
from toolmem.research.report.numbers import percent, score
from toolmem.research.report.rows import Row, input_text

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
    need_pandas()
    import pandas as pd

    return pd.DataFrame(claims_rows(evaluation), columns=list(CLAIM_COLUMNS))


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
    parts = [_tool_part(memory, rows, place) for place, memory in enumerate(memories[:MOST_TOOLS])]
    left_out = len(memories) - len(parts)
    if left_out > 0:
        parts.append(note(f"{counted(left_out, 'more tool')} with fewer calls: memories.jsonl has all guidance.").text)
    return Html("".join(parts), f"guidance of {counted(len(memories), 'tool')}")


def _rows_by_id(evaluation: Evaluation) -> dict[str, int]:
    calls = zip(evaluation.row_numbers, evaluation.calls, strict=True)
    return {call.id: row for row, call in calls if call.id is not None}


def _calls(memory: ToolMemory) -> int:
    lifetime = memory.metadata.get("lifetime")
    return int(lifetime.get("calls", 0)) if isinstance(lifetime, dict) else len(memory.tool_call_results)


def _tool_part(memory: ToolMemory, rows: Mapping[str, int], place: int) -> str:
    claims = claims_of(memory)
    analyzed = memory.metadata.get("guidance_statistics") or {}
    if not memory.content:
        body = note("No guidance yet: no summary of this tool succeeded.")
        return folded(name_shown(memory.when_to_use) or "(no name)", body, "no guidance").text
    aside = f"{counted(analyzed.get('calls'), 'call')} analyzed, {counted(len(claims), 'claim')}"
    lead = _lead(memory, analyzed)
    text = Html(f'<div class="guidance">{_formatted(memory.content)}</div>')
    body = lead + text + _claims(memory, claims, rows, place)
    return folded(name_shown(memory.when_to_use) or "(no name)", body, aside, opened=place == 0).text


def _lead(memory: ToolMemory, analyzed: Mapping[str, Any]) -> Html:
    kept = len(memory.tool_call_results)
    words = [f"Written by `{memory.author}`" if memory.author else "Written"]
    if analyzed:
        words.append(
            f"from {counted(analyzed.get('calls'), 'judged call')}, the newest: success rate by the flag "
            f"{percent(analyzed.get('success_rate'))}, average score {score(analyzed.get('avg_score'))}."
        )
    return note(f"{' '.join(words)} The window holds {counted(kept, 'call')}.")


def _claims(memory: ToolMemory, claims: list[Claim], rows: Mapping[str, int], place: int) -> Html:
    if not claims:
        return note("No counted claims stand beside this guidance.")
    kept = {call.id: call for call in memory.tool_call_results if call.id is not None}
    cited = [call_id for call_id in dict.fromkeys(i for claim in claims for i in claim.call_ids) if call_id in kept]
    linked = {call_id: f"e{place}-{number}" for number, call_id in enumerate(cited)}

    def links(claim: Claim) -> str:
        return _cited_as(claim) + _links(list(claim.call_ids), linked, rows)

    shown = [{"text": claim.text, "kn": (claim.k, claim.n), "calls": claim} for claim in claims]
    columns = {
        "text": Column("Claim", html=marked, style="text"),
        "kn": Column("Count", write=lambda kn: f"{kn[0]:,} of {kn[1]:,}" if kn[1] else "", numeric=True),
        "calls": Column("Calls cited (rows)", html=links, style="rows"),
    }
    calls = folded(f"The calls cited ({len(cited)})", _cited(cited, kept, linked, rows)) if cited else Html("", "")
    return folded(
        "Evidence", table(shown, columns) + calls, f"{counted(len(claims), 'claim')} and the calls behind them"
    )


def _formatted(text: str) -> str:
    """Guidance as HTML: headings (`## x`), list items (`- x`), code in backticks, and lines as they are."""
    parts = []
    for line in text.strip().splitlines():
        words = line.strip()
        if words.startswith("#"):
            parts.append(f"<h4>{marked(words.lstrip('#').strip())}</h4>")
        elif words.startswith(("- ", "* ", "• ")):
            parts.append(f'<p class="item">{marked(words[2:].strip())}</p>')
        elif words:
            parts.append(f"<p>{marked(words)}</p>")
    return "".join(parts)


def _cited_as(claim: Claim) -> str:
    """Whether the ids are the calls that were compared (n) or the ones that were counted (k)."""
    return f"all {claim.n:,}: " if len(claim.call_ids) == claim.n > claim.k else ""


def _links(call_ids: list[str], linked: Mapping[str, str], rows: Mapping[str, int]) -> str:
    """Row numbers that lead to the call below; an id that the window no longer holds is shown without a link."""
    shown = [
        f'<a href="#{linked[call_id]}">{html_text(_row_text(call_id, rows))}</a>'
        if call_id in linked
        else html_text(_row_text(call_id, rows))
        for call_id in call_ids[:MOST_LINKS]
    ]
    rest = len(call_ids) - len(shown)
    return ", ".join(shown) + (f" and {rest} more" if rest else "")


def _row_text(call_id: str, rows: Mapping[str, int]) -> str:
    return str(rows[call_id]) if call_id in rows else clip(call_id, 24)


def _cited(
    cited: list[str], kept: Mapping[str, ToolCallResult], linked: Mapping[str, str], rows: Mapping[str, int]
) -> Html:
    entries = [
        {
            "row": (linked[call_id], _row_text(call_id, rows)),
            "outcome": _outcome(kept[call_id]),
            "input": clip(input_text(kept[call_id]), 160),
            "output": clip(kept[call_id].output, 200) or "(empty)",
        }
        for call_id in cited
    ]
    columns = {
        "row": Column("Row", html=lambda pair: f'<span id="{pair[0]}">{html_text(pair[1])}</span>', numeric=True),
        "outcome": Column("Outcome", style="line"),
        "input": Column("Input", style="code"),
        "output": Column("Output", style="code"),
    }
    return table(entries, columns)


def _outcome(call: ToolCallResult) -> str:
    failed = {True: "failed", False: "ran", None: "not known"}[call.failed]
    return failed if call.score is None else f"{failed}, score {call.score:.0f}"
