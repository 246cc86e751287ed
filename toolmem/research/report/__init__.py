"""The report: what an evaluation found, as DataFrames, figures, CSV files and one HTML page.

The road of an evaluation through this room:

    evaluation.py   the plain data that `toolmem evaluate` hands over, saved to and loaded from a directory
    frames.py       calls, tools and errors as DataFrames; savings.py: the summary runs and what the skip saved
    tables.py       calls.csv, tools.csv, skips.csv, errors.csv, summary.json
    plots.py, timeline.py, costs.py     the figures, in the one look of style.py
    blocks.py, sections.py, evidence.py the tables and sentences of the page
    summary.py      the tables that the command prints
    bill.py, bill_sums.py               what judging and summarizing cost and avoided, from the ledger and run reports
    single_pass.py, freshness.py        beside it: each call read once; calls that the guidance does not hold yet
    cost_plots.py, money_chart.py       the figures of the bill, and money against what it buys
    page.py         executes the notebook in a kernel (kernel.py) and writes the page

The notebook 01_evaluate_tool_calls.md uses the names below; they are as good in a notebook of your own.
"""

from toolmem.pages.rendering import Html
from toolmem.readers.proportions import wilson_interval
from toolmem.research.report.bill import Bill, make_bill
from toolmem.research.report.bill_sums import bill_frame, bill_table, charges_frame
from toolmem.research.report.cost_plots import bill_chart, days_chart, freshness_chart
from toolmem.research.report.costs import cost_chart
from toolmem.research.report.evaluation import BadRecord, Evaluation, SummaryRun, ToolUsage
from toolmem.research.report.evidence import claims_frame, claims_of, guidance_block
from toolmem.research.report.frames import (
    calls_frame,
    errors_frame,
    flag_and_judge_frame,
    tools_frame,
)
from toolmem.research.report.freshness import freshness_frame, waiting, waiting_frame
from toolmem.research.report.money_chart import money_chart
from toolmem.research.report.page import notebook_path, render_page
from toolmem.research.report.plots import error_chart, score_chart, success_chart
from toolmem.research.report.rows import totals
from toolmem.research.report.savings import resummarized, runs_frame, skips_frame
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
    scope,
    skips_table,
    source_facts,
    timeline_note,
    tools_table,
    window_text,
)
from toolmem.research.report.single_pass import single_pass, single_pass_frame
from toolmem.research.report.style import Chart
from toolmem.research.report.summary import Table, skip_table, spending_table, summary_table
from toolmem.research.report.tables import summary, write_tables
from toolmem.research.report.timeline import timeline, timeline_chart

__all__ = [
    "BadRecord",
    "Bill",
    "Chart",
    "Evaluation",
    "Html",
    "SummaryRun",
    "Table",
    "ToolUsage",
    "agreement_table",
    "bill_chart",
    "bill_frame",
    "bill_table",
    "calls_frame",
    "charges_frame",
    "claims_frame",
    "claims_of",
    "cost_chart",
    "cost_note",
    "days_chart",
    "error_chart",
    "errors_frame",
    "errors_note",
    "errors_table",
    "flag_and_judge_frame",
    "freshness_chart",
    "freshness_frame",
    "guidance_block",
    "headline",
    "judge_note",
    "make_bill",
    "money_chart",
    "notebook_path",
    "problems_block",
    "rates_note",
    "recorded_text",
    "render_page",
    "resummarized",
    "runs_frame",
    "runs_table",
    "scope",
    "score_chart",
    "single_pass",
    "single_pass_frame",
    "skip_table",
    "skips_frame",
    "skips_table",
    "source_facts",
    "spending_table",
    "success_chart",
    "summary",
    "summary_table",
    "timeline",
    "timeline_chart",
    "timeline_note",
    "tools_frame",
    "tools_table",
    "totals",
    "waiting",
    "waiting_frame",
    "wilson_interval",
    "window_text",
    "write_tables",
]
