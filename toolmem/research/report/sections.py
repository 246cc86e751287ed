"""The report's prose that depends on data, and its tables, one function per section of the notebook."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, Union

from toolmem.guidance.policies import POLICY_REASONS
from toolmem.pages.numbers import count, interval, known, percent, score, seconds
from toolmem.pages.rendering import Html, clip, part
from toolmem.readers.plain_text import counted, noun
from toolmem.research.report.findings import Evaluation
from toolmem.research.report.plots import MOST_ROWS
from toolmem.research.report.recorded import UNCLASSIFIED, VERDICTS, Row, errors_rows, flag_and_judge_rows, totals
from toolmem.research.report.savings import NOTHING_SENT, runs_rows, skips_rows, spending_note
from toolmem.research.report.style import drawable

if TYPE_CHECKING:
    import pandas as pd

    from toolmem.research.report.timeline import Timeline

Rows = Union["pd.DataFrame", list[Row]]  # what a notebook has, or `rows`

REPORT = "report.html.j2"
NEITHER = "neither the recorded flag nor the judge says that the call failed"  # what `worked` means
REASONS = {
    "up_to_date": "nothing new",
    "new_calls": "new calls",
    "no_guidance": "no guidance yet",
    "nothing_judged": "no judged call",
    "forced": "forced",
    **POLICY_REASONS,
}


def headline(evaluation: Evaluation) -> Html:
    """The figures that a reader looks for first."""
    total, runs = totals(evaluation), runs_rows(evaluation)
    avoided, tokens = _sum(runs, "saved_requests"), _sum(runs, "saved_prompt_tokens")
    skipped = _sum(runs, "skipped")
    processed = skipped + _sum(runs, "summarized") + _sum(runs, "failed")
    saved = (
        f"{counted(avoided, 'request')}, {counted(tokens, 'token')} avoided" if avoided or tokens else "nothing sent"
    )
    if (avoided or tokens) and evaluation.backend in NOTHING_SENT:
        saved = f"would spare a model {counted(avoided, 'request')}, {counted(tokens, 'token')}"
    return part(
        "parts.html.j2",
        "cards",
        [
            (count(total["calls"]), noun(total["calls"], "recorded call"), f"of {counted(total['tools'], 'tool')}"),
            (
                percent(total["worked_rate"]),
                "worked",
                f"{NEITHER}; 95 % interval {interval(total['worked_low'], total['worked_high'])}",
            ),
            *([_by_flag(total)] if total["flag_wrong"] else []),
            (score(total["avg_score"]), "average score", f"{counted(total['scored'], 'call')} judged"),
            (f"{skipped} of {processed}", f"{noun(processed, 'summary')} skipped", saved),
        ],
    )


def _by_flag(total: Mapping[str, Any]) -> tuple[str, str, str]:
    wrong = counted(total["flag_wrong"], "call")
    return percent(total["success_rate"]), "success by the recorded flag", f"it passes {wrong} that the judge saw fail"


def source_facts(evaluation: Evaluation) -> Html:
    """What was evaluated, by whom and with which settings."""
    flag = "withheld from the judge" if evaluation.ignore_success else "shown to the judge"
    given = {name: value for name, value in evaluation.settings.items() if value not in ("", None)}
    settings = ", ".join(f"{name} = {str(value).lower()}" for name, value in given.items())
    phases = ", ".join(f"{name} {seconds(spent)}" for name, spent in evaluation.phases.items())
    inputs = evaluation.inputs
    names = ", ".join(inputs[:10]) + (f" and {len(inputs) - 10} more" if len(inputs) > 10 else "")
    return part(
        "parts.html.j2",
        "facts",
        [
            ("Input", f"{names} (format: {evaluation.input_format})"),
            ("Recorded success flag", flag),
            ("Judge", evaluation.judge),
            ("What its score means", evaluation.judge_meaning),
            ("Guidance written by", evaluation.writer),
            ("Embedder", evaluation.embedder),
            ("Window", window_text(evaluation)),
            ("Settings", settings),
            ("Store", evaluation.store),
            ("Workspace", evaluation.workspace),
            ("Started", f"{evaluation.started:%Y-%m-%d %H:%M:%S %Z}"),
            ("Time spent", phases),
            ("toolmem", evaluation.toolmem_version),
            ("Notes", "; ".join(evaluation.notes)),
        ],
    )


def note(text: str, kind: str = "") -> Html:
    """A paragraph; `code` between backticks is set as code. `kind`: "" or "attention"."""
    return part("parts.html.j2", "note", text, kind)


def scope(what: str, text: str) -> Html:
    """What a section counts: "recorded" (all recorded calls), "window" (what the store kept) or "runs"."""
    return part("parts.html.j2", "scope", what, text)


def window_text(evaluation: Evaluation) -> str:
    """Which calls the window holds, and which of them guidance was written from."""
    kept = sum(len(memory.tool_call_results) for memory in evaluation.memories)
    keep = f"at most the newest {counted(evaluation.keep, 'call')} per tool" if evaluation.keep else "the kept calls"
    recent = f"; guidance: from the newest {counted(evaluation.recent, 'judged call')}" if evaluation.recent else ""
    return f"{keep} ({kept:,} of {counted(len(evaluation.calls), 'recorded call')}){recent}"


def recorded_text(evaluation: Evaluation) -> str:
    """How many calls "all recorded calls" are."""
    tools = len({call.tool_name for call in evaluation.calls})
    return f"{counted(len(evaluation.calls), 'call')} of {counted(tools, 'tool')}."


def rates_note(evaluation: Evaluation, tools: Rows, *, figures: bool = True) -> Html:
    """What counts as worked, how the rate by the flag differs, and which tools the `figures` leave out."""
    rows = records(tools)
    flagged = sum(call.success is not None for call in evaluation.calls)
    wrong = _sum(rows, "flag_wrong")
    text = f"A call worked where {NEITHER}. " if flagged else "No call has a flag: the judge says which worked. "
    if wrong:
        text += (
            "The success rate by the recorded flag (`success_rate` in the files and the interfaces) is higher, because "
            f"it passes {counted(wrong, 'call')} that the judge saw fail. "
        )
    if evaluation.ignore_success and flagged:
        text += "The flag was withheld from the judge and the memory: figures of the window are as the judge saw it. "
    unknown = _sum(rows, "unknown")
    if unknown:
        text += f"Left out of the rates, because neither of them knows the outcome: {counted(unknown, 'call')}. "
    return note((text + (_left_out_of_figures(rows) if figures else "")).strip())


def _left_out_of_figures(tools: Iterable[Mapping[str, Any]]) -> str:
    rates = [known(tool["success_rate"]) for tool in tools]
    text = ""
    if (hidden := sum(rates) - MOST_ROWS) > 0:
        text += f"The figures show the {MOST_ROWS} tools with most calls; {hidden} more are in `tools.csv`. "
    if without := len(rates) - sum(rates):
        text += f"Not in the figure, because no call has a known outcome: {counted(without, 'tool')}. "
    if any(drawable(tool["tool_name"]) != tool["tool_name"] for tool in tools):
        text += (
            "Characters of names that no installed font can draw stand in the figures as escapes like `\\u67e5`; the "
            "tables have the names as they are. A font with Chinese, Japanese and Korean is `Noto Sans CJK`."
        )
    return text


def tools_table(tools: Rows, *, opened: bool = False) -> Html:
    """Every tool's figures, recorded calls beside window."""
    rows = [row | {"interval": interval(row["worked_low"], row["worked_high"])} for row in islice(records(tools), 200)]
    return part(REPORT, "tools", rows, len(tools), opened)


def judge_note(evaluation: Evaluation) -> Html:
    """Who judged, what the score means, and a warning where scores of several judges are mixed."""
    seen = sorted({str(call.judge) for call in evaluation.calls if call.judge is not None})
    text = note(f"Judge: `{evaluation.judge}`. {evaluation.judge_meaning}")
    if len(seen) > 1:
        names = ", ".join(f"`{name}`" for name in seen)
        text += note(f"The scores come from {len(seen)} judges: {names}. Averages mix them.", "attention")
    return text


def agreement_table(evaluation: Evaluation) -> Html:
    """The recorded flag against the judge: calls."""
    found = [row for row in flag_and_judge_rows(evaluation) if any(row[verdict] for verdict in VERDICTS)]
    shown = [row | {"flag": row["flag"].removeprefix("recorded ")} for row in found]
    hidden = sum(call.success is True and call.execution_failed is True for call in evaluation.calls)
    return part(REPORT, "agreement", shown, VERDICTS, hidden)


def timeline_note(evaluation: Evaluation, line: Timeline | None) -> Html:
    """Bins, and what was left out; or why there is nothing to draw."""
    if line is None:
        times = sorted(call.create_time for call in evaluation.calls)
        if not times:
            return note("There is no call.")
        return note(
            f"All calls carry the same time, {times[0]:%Y-%m-%d %H:%M:%S} UTC, so there is nothing to draw. "
            "A recording without times of its own gets the time at which it was read."
        )
    text = f"One bar is {line.width_text}."
    if line.gaps:
        text += f" Stretches without calls ({counted(line.empty, 'bin')}) are left out: wider gaps between bars."
    return note(text)


def cost_note(evaluation: Evaluation, column: str, *, figures: bool = True) -> Html:
    """How many calls have a known cost, and what they add up to."""
    values = [value for call in evaluation.calls if (value := getattr(call, column)) is not None]
    what = "time" if column == "time_cost" else "token cost"
    total = len(evaluation.calls)
    if not values:
        drawn = ", so there is nothing to draw" if figures else ""
        return note(f"The {what} of no recorded call is known{drawn}.")
    amount = seconds(sum(values)) if column == "time_cost" else counted(sum(values), "token")
    text = f"The {what} is known for {len(values):,} of {counted(total, 'call')}: {amount} altogether."
    if len(values) < total:
        text += " The others are left out."
    if not figures:
        return note(text)
    return note(text + " One point is a call; boxes span the quartiles, whiskers the 5th to the 95th percentile.")


def errors_note(evaluation: Evaluation, errors: Rows) -> Html:
    """What counts as an error here, and what does not."""
    failed = sum(call.failed is True for call in evaluation.calls)
    rows = records(errors)
    if not rows:
        return note("No recorded call failed and the judge named no error class.")
    text = f"{failed:,} of {counted(len(evaluation.calls), 'call')} failed."
    more = _sum(rows, "calls") - failed
    if more > 0:
        text += f" Flagged as a success although the judge names an error class: {counted(more, 'call')}."
    low = sum(1 for call in evaluation.calls if call.score == 0 and not call.failed and not call.error_class)
    if low:
        text += f" Ran without an error and still scored 0 (an empty answer, for instance): {counted(low, 'call')}."
    if any(row["error_class"] == UNCLASSIFIED for row in rows):
        text += f" `{UNCLASSIFIED}`: recorded as failed, and the judge named no class."
    return note(text)


def errors_table(evaluation: Evaluation, per_class: int = 3) -> Html:
    """Examples of each error class, from the tools that have most of it."""
    seen: Counter[str] = Counter()
    shown = []
    for row in errors_rows(evaluation):
        seen[row["error_class"]] += 1
        if seen[row["error_class"]] <= per_class:
            shown.append(row | {"input": clip(row["input"], 160), "output": clip(row["output"], 220) or "(empty)"})
    return part(REPORT, "errors", shown[:60])


def runs_table(evaluation: Evaluation) -> Html:
    """The skip table: what each summary run did, spent and avoided."""
    runs = runs_rows(evaluation)
    return part(REPORT, "runs", runs, spending_note(evaluation), runs[-1]["not_analyzed"] if runs else 0)


def skips_table(evaluation: Evaluation) -> Html:
    """What each run did with each tool."""
    rows = skips_rows(evaluation)
    return part(REPORT, "skips", [row | {"because": _in_words(row["reason"])} for row in rows[:300]], len(rows))


def problems_block(evaluation: Evaluation, most: int = 200) -> Html:
    """Records that could not be used, and calls without a verdict, by name."""
    unjudged = [
        {
            "row": row,
            "tool_name": call.tool_name,
            "status": call.evaluation_status,
            "reason": clip(call.evaluation, 200),
        }
        for row, call in zip(evaluation.row_numbers, evaluation.calls, strict=True)
        if call.score is None
    ]
    unwritten = [
        {"run": run.label, "tool": use.tool, "reason": _in_words(use.reason)}
        for run in evaluation.summaries
        for use in run.tools
        if use.action == "failed"
    ]
    return part(REPORT, "problems", evaluation.failures, unjudged, unwritten, most)


def _in_words(reason: str) -> str:
    return REASONS.get(reason, reason)


def records(rows: Rows) -> list[Row]:
    """Rows as they are, those of a frame as dictionaries."""
    return rows if isinstance(rows, list) else [*rows.to_dict("records")]  # type: ignore[list-item]


def _sum(rows: Iterable[Mapping[str, Any]], name: str) -> int:
    return sum(int(row[name]) for row in rows)
