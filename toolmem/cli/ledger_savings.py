"""`toolmem ledger --savings`: the bill of judging and summarizing, the single-pass bound, and freshness."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolmem.cli.console import counted, print_json, print_table, say

if TYPE_CHECKING:
    from toolmem.app import ToolMemApp
    from toolmem.flow.report import RunReport
    from toolmem.protocols import LedgerEntry
    from toolmem.research.report.bill import Bill, Kind
    from toolmem.research.report.freshness import Waiting
    from toolmem.research.report.single_pass import LineTokens, SinglePass
    from toolmem.research.report.summary import Table
    from toolmem.stored import StoredMemory


def kinds_of(app: ToolMemApp) -> dict[str, Kind]:
    """What the configured ops do, by their keys."""
    from toolmem.ops import ParseToolCallResultOp, RejudgeOp, RetryEvaluationsOp, SummaryToolMemoryOp
    from toolmem.research.report.bill import JUDGING, KINDS, SUMMARIZING

    kinds: dict[str, Kind] = dict(KINDS)
    for node in app.flows.values():
        for op in node.ops():
            if isinstance(op, ParseToolCallResultOp | RejudgeOp | RetryEvaluationsOp):
                kinds[op.key] = JUDGING
            elif isinstance(op, SummaryToolMemoryOp):
                kinds[op.key] = SUMMARIZING
    return kinds


def count_lines(app: ToolMemApp, memories: Iterable[StoredMemory]) -> list[LineTokens]:
    """The lines of each tool's kept calls, as the configured summary prompt shows them."""
    from toolmem.guidance.llm_writer import writer_prompts
    from toolmem.ops import SummaryToolMemoryOp
    from toolmem.providers.tokenizer import QwenTokenizer
    from toolmem.research.backtest.call_lines import LineCounter

    op = app.op_of("summary_tool_memory", SummaryToolMemoryOp)
    language: Any = app.settings.language if op.settings.language is None else op.settings.language
    counter = LineCounter(
        QwenTokenizer(),
        window=op.params.model_dump()["recent_call_count"],
        prompts=writer_prompts(op.settings.prompt_path),
        language=language,
    )
    return counter.of_memories(memories)


def show_savings(
    app: ToolMemApp,
    workspace: str,
    by: Sequence[str],
    entries: Sequence[LedgerEntry],
    reports: Sequence[RunReport] | None,
    memories: Sequence[StoredMemory],
    *,
    narrowed: bool,
    elsewhere: str,
    as_json: bool,
    csv: Path | None,
    plots: Path | None,
) -> None:
    """Print the bill. `reports` None: none were named. `narrowed`: to a time, so that no bound holds.

    `elsewhere`: where nothing was found, other workspaces and how they are chosen.
    """
    from toolmem.research.report.bill import make_bill
    from toolmem.research.report.bill_sums import sum_bill
    from toolmem.research.report.freshness import waiting
    from toolmem.research.report.single_pass import single_pass

    zone = app.settings.zone
    bill = make_bill(entries, reports or (), prices=app.services.price, kinds=kinds_of(app))
    bound = [] if narrowed else single_pass(bill, count_lines(app, memories))
    happened = waiting(reports or ())
    if csv is not None:
        from toolmem.research.report.tables import write_rows

        rows = [each.row() for each in sum_bill(bill, by, zone=zone)]
        write_rows(list(rows[0]) if rows else list(by), [list(row.values()) for row in rows], csv)
        say(f"{counted(len(rows), 'row')} in {csv}")
    if plots is not None:
        _draw(bill, happened, plots, zone, app.settings.time_zone)
    if as_json:
        print_json(_as_json(workspace, by, bill, bound, happened, zone))
    else:
        _print(workspace, by, bill, bound, happened, zone, elsewhere, reports is None)


def _as_json(
    workspace: str,
    by: Sequence[str],
    bill: Bill,
    bound: Sequence[SinglePass],
    happened: Sequence[Waiting],
    zone: tzinfo,
) -> dict[str, Any]:
    from toolmem.research.report.bill_sums import notes, sum_bill
    from toolmem.research.report.freshness import freshness

    return {
        "workspace": workspace,
        "by": list(by),
        "bill": [each.row() for each in sum_bill(bill, by, zone=zone)],
        "total": [each.row() for each in sum_bill(bill, [])],
        "notes": notes(bill),
        "single_pass": [each.row() for each in bound],
        "freshness": [asdict(each) for each in freshness(happened)],
        "waiting": [asdict(each) for each in happened],
    }


def _print(
    workspace: str,
    by: Sequence[str],
    bill: Bill,
    bound: Sequence[SinglePass],
    happened: Sequence[Waiting],
    zone: tzinfo,
    elsewhere: str,
    without_reports: bool,
) -> None:
    from toolmem.research.report.bill_sums import bill_table
    from toolmem.research.report.freshness import freshness_table
    from toolmem.research.report.single_pass import single_pass_table

    if bill.charges:
        _print_table(bill_table(bill, by, zone=zone))
    else:
        say(f"nothing was asked or avoided on behalf of workspace {workspace!r}{elsewhere}")
    if any(row.input_tokens for row in bound):
        _print_table(single_pass_table(bound))
    if happened:
        _print_table(freshness_table(happened))
    if without_reports:
        say("what was avoided, under which policy, and how fresh guidance was, stands in run reports: --reports DIR")


def _print_table(table: Table) -> None:
    print_table(table.title, table.columns, table.rows, numeric=table.numeric, notes=table.notes)


def _draw(bill: Bill, happened: Sequence[Waiting], folder: Path, zone: tzinfo, time_zone: str) -> None:
    from toolmem.research.report.cost_plots import bill_chart, by_tool, days_chart, freshness_chart

    charts = {
        "bill_by_tool.svg": bill_chart(bill, "tool", zone=zone),
        "bill_by_day.svg": days_chart(bill, zone=zone),
        "freshness.svg": freshness_chart(by_tool(happened), time_zone),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, chart in charts.items():
        if chart is None:
            say(f"{name}: nothing to draw")
        else:
            chart.save(str(folder / name))
            say(f"{folder / name}")
