"""`toolmem ledger --savings`: what judging and summarizing cost, the single-pass bound, and staleness."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolmem.cli.console import counted, print_json, print_table, say

if TYPE_CHECKING:
    from toolmem.app import ToolMemApp
    from toolmem.cli.ledger import Asked
    from toolmem.research.report.charges import CostReport, Kind
    from toolmem.research.report.single_pass import LineTokens, SinglePass
    from toolmem.research.report.staleness import Waiting


def kinds_of(app: ToolMemApp) -> dict[str, Kind]:
    """What the configured ops do, by their keys."""
    from toolmem.ops import ParseToolCallResultOp, RejudgeOp, RetryEvaluationsOp, SummaryToolMemoryOp
    from toolmem.research.report.charges import JUDGING, KINDS, SUMMARIZING

    kinds: dict[str, Kind] = dict(KINDS)
    for node in app.flows.values():
        for op in node.ops():
            if isinstance(op, ParseToolCallResultOp | RejudgeOp | RetryEvaluationsOp):
                kinds[op.key] = JUDGING
            elif isinstance(op, SummaryToolMemoryOp):
                kinds[op.key] = SUMMARIZING
    return kinds


def count_lines(asked: Asked) -> list[LineTokens]:
    """The lines of each tool's kept calls, as the configured summary prompt shows them."""
    from toolmem.guidance.llm_writer import writer_prompts
    from toolmem.ops import SummaryToolMemoryOp
    from toolmem.providers.tokenizer import QwenTokenizer
    from toolmem.research.report.single_pass import LineCounter

    op = asked.app.op_of("summary_tool_memory", SummaryToolMemoryOp)
    language: Any = asked.app.settings.language if op.settings.language is None else op.settings.language
    window = op.params.model_dump()["recent_call_count"]
    prompts = writer_prompts(op.settings.prompt_path)
    return LineCounter(QwenTokenizer(), window=window, prompts=prompts, language=language).of_memories(asked.memories)


def show_savings(asked: Asked, *, as_json: bool, csv: Path | None, plots: Path | None) -> None:
    """Print the cost report. Of a part of the time there is no bound."""
    from toolmem.research.report.charge_sums import cost_frame
    from toolmem.research.report.charges import cost_report
    from toolmem.research.report.single_pass import single_pass
    from toolmem.research.report.staleness import waiting

    report = cost_report(asked.entries, asked.runs, prices=asked.app.services.price, kinds=kinds_of(asked.app))
    bound = [] if asked.since or asked.until else single_pass(report, count_lines(asked))
    happened = waiting(asked.runs)
    if csv is not None:
        from toolmem.research.report.csv_files import write_csv

        frame = cost_frame(report, asked.by, zone=asked.app.settings.zone)
        write_csv(frame, csv)
        say(f"{counted(len(frame), 'row')} in {csv}")
    if plots is not None:
        _draw(asked, report, happened, plots)
    if as_json:
        print_json(_as_json(asked, report, bound, happened))
    else:
        _print(asked, report, bound, happened)


def _as_json(asked: Asked, report: CostReport, bound: list[SinglePass], happened: list[Waiting]) -> dict[str, Any]:
    from toolmem.research.report.charge_sums import cost_sums, notes
    from toolmem.research.report.staleness import staleness

    return {
        "workspace": asked.workspace,
        "by": asked.by,
        "bill": [each._asdict() for each in cost_sums(report, asked.by, zone=asked.app.settings.zone)],
        "total": [each._asdict() for each in cost_sums(report, [])],
        "notes": notes(report),
        "single_pass": [asdict(each) for each in bound],
        "freshness": [asdict(each) for each in staleness(happened)],
        "waiting": [asdict(each) for each in happened],
    }


def _print(asked: Asked, report: CostReport, bound: list[SinglePass], happened: list[Waiting]) -> None:
    from toolmem.research.report.charge_sums import cost_table
    from toolmem.research.report.single_pass import single_pass_table
    from toolmem.research.report.staleness import staleness_table

    tables = []
    if report.charges:
        tables.append(cost_table(report, asked.by, zone=asked.app.settings.zone))
    else:
        elsewhere = "" if asked.entries or asked.runs else asked.other_places()
        say(f"nothing was asked or avoided on behalf of workspace {asked.workspace!r}{elsewhere}")
    if any(row.input_tokens for row in bound):
        tables.append(single_pass_table(bound))
    if happened:
        tables.append(staleness_table(happened))
    for table in tables:
        print_table(table.title, table.columns, table.rows, numeric=table.numeric, notes=table.notes)
    if asked.reports is None:
        say("what was avoided, under which policy, and how stale guidance was, stands in run reports: --reports DIR")


def _draw(asked: Asked, report: CostReport, happened: list[Waiting], folder: Path) -> None:
    from toolmem.research.report.cost_plots import by_tool, days_chart, spending_chart, staleness_chart

    zone = asked.app.settings.zone
    charts = {
        "bill_by_tool.svg": spending_chart(report, "tool", zone=zone),
        "bill_by_day.svg": days_chart(report, zone=zone),
        "freshness.svg": staleness_chart(by_tool(happened), asked.app.settings.time_zone),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, chart in charts.items():
        if chart is None:
            say(f"{name}: nothing to draw")
        else:
            chart.save(str(folder / name))
            say(f"{folder / name}")
