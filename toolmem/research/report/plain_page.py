"""The page of an evaluation without figures: what the core makes by itself, without a notebook."""

from __future__ import annotations

from pathlib import Path

from toolmem.readers.plain_text import counted
from toolmem.research.report.blocks import Html, note, scope
from toolmem.research.report.evaluation import Evaluation
from toolmem.research.report.evidence import guidance_block
from toolmem.research.report.pages import put, rendered
from toolmem.research.report.rows import errors_rows, tools_rows
from toolmem.research.report.sections import (
    agreement_table,
    cost_note,
    errors_note,
    errors_table,
    headline,
    judge_note,
    problems_block,
    rates_note,
    recorded_text,
    runs_table,
    skips_table,
    source_facts,
    tools_table,
    window_text,
)

COUNTED = (
    "Each section says what it counts. All recorded calls are the calls of the input, whatever the store kept of them. "
    "The window is what the store keeps of each tool: its newest calls. The calls and their verdicts stand in "
    "`calls.csv`, one row per call in input order; the row numbers on this page are those."
)
INTERVAL = (
    "The interval is Wilson's at 95 %: two tools whose intervals overlap widely cannot be told apart by these calls. "
    "It takes the calls as independent, which calls of one conversation are not quite."
)
CLAIMS = (
    "A claim is a sentence with the counts behind it: so many of so many calls. The calls that it cites stand below, "
    "with their row in `calls.csv`; `claims.csv` lists all of them."
)


def write_plain_page(evaluation: Evaluation, out_html: Path | str) -> Path:
    """Write the page; answers its path."""
    sections = [(heading.lower().replace(" ", "-"), heading, parts) for heading, parts in _sections(evaluation).items()]
    page = rendered(
        "evaluation.html.j2",
        title="Evaluation of recorded tool calls",
        contents=[(anchor, heading) for anchor, heading, _ in sections],
        headline=headline(evaluation),
        sections=sections,
    )
    return put(page, Path(out_html))


def _sections(evaluation: Evaluation) -> dict[str, list[Html]]:
    recorded = scope("recorded", recorded_text(evaluation))
    tools = tools_rows(evaluation)
    return {
        "What was evaluated": [source_facts(evaluation), note(COUNTED)],
        "How often each tool worked": [
            recorded,
            rates_note(evaluation, tools, figures=False),
            tools_table(tools, opened=True),
            note(INTERVAL),
        ],
        "Scores": [recorded, judge_note(evaluation), agreement_table(evaluation)],
        "Time and tokens per call": [
            recorded,
            *(cost_note(evaluation, column, figures=False) for column in ("time_cost", "token_cost")),
        ],
        "Error classes": _errors(evaluation, recorded),
        "Guidance per tool": [scope("window", window_text(evaluation) + "."), note(CLAIMS), guidance_block(evaluation)],
        "What the skip saved": [
            scope("runs", f"{counted(len(evaluation.summaries), 'run')} of summary_tool_memory, one after the other."),
            runs_table(evaluation),
            skips_table(evaluation),
        ],
        "What could not be used": [recorded, problems_block(evaluation)],
    }


def _errors(evaluation: Evaluation, recorded: Html) -> list[Html]:
    errors = errors_rows(evaluation)
    said = [recorded, errors_note(evaluation, errors)]
    return [*said, errors_table(evaluation)] if errors else said
