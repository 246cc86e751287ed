"""What the summary runs did and spent, and what the skip saved."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolmem.readers.plain_text import counted
from toolmem.research.report.findings import Evaluation, SummaryRun
from toolmem.research.report.recorded import Row, frame

if TYPE_CHECKING:
    import pandas as pd

TOKENS_ESTIMATED = "estimated (Qwen's tokenizer comes with toolmem[dashscope])"
NOTHING_SENT = ("offline", "dry_run")  # backends that ask no model

_SUMMED = ("requests", "prompt_tokens", "completion_tokens", "saved_requests", "saved_prompt_tokens")
SKIP_COLUMNS = ("run", "tool_name", "action", "reason", *_SUMMED, "estimated")
RUN_COLUMNS = ("run", "summarized", "skipped", "failed", "not_analyzed", *_SUMMED, "estimated", "seconds", "answer")


def skips_frame(evaluation: Evaluation) -> pd.DataFrame:
    """One row per summary run and tool: what was done with it, what that cost, what a skip saved."""
    return frame(skips_rows(evaluation), SKIP_COLUMNS)


def skips_rows(evaluation: Evaluation) -> list[Row]:
    """The rows of `skips_frame`."""
    rows: list[Row] = [
        {"run": run.label, "tool_name": use.tool, **use.model_dump(exclude={"tool"})}
        for run in evaluation.summaries
        for use in run.tools
    ]
    return [{name: row[name] for name in SKIP_COLUMNS} for row in rows]


def runs_frame(evaluation: Evaluation) -> pd.DataFrame:
    """One row per summary run.

    Columns: run, summarized, skipped, failed (tools), not_analyzed (new calls outside the analyzed window), requests,
    prompt_tokens, completion_tokens (spent), saved_requests, saved_prompt_tokens (avoided by the skip), estimated (at
    least one of the token counts is the tokenizer's), seconds, answer.
    """
    return frame(runs_rows(evaluation), RUN_COLUMNS)


def runs_rows(evaluation: Evaluation) -> list[Row]:
    """The rows of `runs_frame`."""
    return [_run_figures(run) for run in evaluation.summaries]


def _run_figures(run: SummaryRun) -> Row:
    actions = [use.action for use in run.tools]
    left_out = run.response.metadata.get("not_analyzed")
    return {
        "run": run.label,
        "summarized": actions.count("summarized"),
        "skipped": actions.count("skipped"),
        "failed": actions.count("failed"),
        "not_analyzed": sum(left_out.values()) if isinstance(left_out, dict) else 0,
        **{name: sum(getattr(use, name) for use in run.tools) for name in _SUMMED},
        "estimated": any(use.estimated for use in run.tools),
        "seconds": run.seconds,
        "answer": run.response.answer,
    }


def resummarized(evaluation: Evaluation) -> list[str]:
    """Tools that were summarized by the first run and again by the second, which had nothing new.

    Empty unless the skip was switched off (`force`) or fails its purpose.
    """
    if len(evaluation.summaries) < 2:
        return []
    first, second = ({use.tool for use in run.tools if use.action == "summarized"} for run in evaluation.summaries[:2])
    return sorted(first & second)


def spending_note(evaluation: Evaluation) -> str:
    """One or two sentences on how to read the requests and tokens of the skip table."""
    runs = [use for run in evaluation.summaries for use in run.tools]
    as_counted = "as the tokenizer counts them" if evaluation.tokens_by == "tokenizer" else TOKENS_ESTIMATED
    by = "counted by the tokenizer" if evaluation.tokens_by == "tokenizer" else TOKENS_ESTIMATED
    sent = sum(use.requests for use in runs)
    tokens = sum(use.prompt_tokens + use.saved_prompt_tokens for use in runs)
    if evaluation.backend == "offline" and tokens == 0:
        return (
            "The offline writer sends nothing, so no request was spent and none avoided. With "
            "`llm.default.backend=dry_run` the true prompts are built, counted and priced, and still not sent."
        )
    if evaluation.backend == "offline":
        return (
            "The offline writer sends nothing. What the skip avoided are the requests that a model would have been "
            f"sent, with the tokens of their prompts {as_counted}. `llm.default.backend=dry_run` counts "
            "and prices all prompts, those of the evaluations too, and sends nothing either."
        )
    if evaluation.backend == "dry_run":
        return (
            f"Dry run: the requests were built and their tokens {by}, but nothing was sent. Where "
            "a prompt would hold text that only the model could have written, the count is an estimate."
        )
    were = f"{counted(sent, 'request')} {'was' if sent == 1 else 'were'} sent; token counts"
    if any(use.estimated for use in runs):
        return f"{were} that a reply did not state were {by}."
    return f"{were} are those of the replies."
