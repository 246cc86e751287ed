"""The report: what an evaluation found, as DataFrames, figures, CSV files and one HTML page.

findings        the plain data that `toolmem evaluate` hands over, saved to and loaded from a directory
corrected_rates, corrected_tables, label_files      rates corrected by the labels of a person
recorded        calls, tools and errors as rows and DataFrames; savings: the summary runs and what the skip saved
csv_files       calls.csv, tools.csv, skips.csv, errors.csv, claims.csv, summary.json
plots, timeline, costs      the figures, in the one look of style
sections, cited_calls       the tables and sentences of the page, from the templates of `toolmem.pages`
report_page     executes the notebook in a kernel and writes the page
summary         the tables that the command prints
charges         what judging and summarizing cost and avoided, from the usage log and run_reports
single_pass, staleness      beside it: each call read once; calls that the guidance does not hold yet

The notebook 01_evaluate_tool_calls.md uses the names below; they are as good in a notebook of your own.
"""

from toolmem.pages.rendering import Html
from toolmem.readers.proportions import wilson_interval
from toolmem.research.report.charges import (
    Charge,
    CostReport,
    charges_frame,
    cost_frame,
    cost_report,
    cost_table,
)
from toolmem.research.report.cited_calls import claims_frame, claims_of, guidance_block
from toolmem.research.report.corrected_rates import CorrectedRate, corrected_rates
from toolmem.research.report.corrected_tables import corrected_block, corrected_table
from toolmem.research.report.csv_files import summary, write_tables
from toolmem.research.report.findings import BadRecord, Evaluation, SummaryRun, ToolUsage
from toolmem.research.report.plots import cost_chart, error_chart, score_chart, success_chart
from toolmem.research.report.recorded import (
    calls_frame,
    errors_frame,
    flag_and_judge_frame,
    tools_frame,
    totals,
)
from toolmem.research.report.report_page import notebook_path, render_page
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
from toolmem.research.report.single_pass import single_pass
from toolmem.research.report.staleness import staleness_frame, waiting, waiting_frame
from toolmem.research.report.style import Chart
from toolmem.research.report.summary import PrintedTable, skip_table, spending_table, summary_table
from toolmem.research.report.timeline import timeline, timeline_chart

__all__ = [
    "BadRecord",
    "Charge",
    "Chart",
    "CorrectedRate",
    "CostReport",
    "Evaluation",
    "Html",
    "PrintedTable",
    "SummaryRun",
    "ToolUsage",
    "agreement_table",
    "calls_frame",
    "charges_frame",
    "claims_frame",
    "claims_of",
    "corrected_block",
    "corrected_rates",
    "corrected_table",
    "cost_chart",
    "cost_frame",
    "cost_note",
    "cost_report",
    "cost_table",
    "error_chart",
    "errors_frame",
    "errors_note",
    "errors_table",
    "flag_and_judge_frame",
    "guidance_block",
    "headline",
    "judge_note",
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
    "skip_table",
    "skips_frame",
    "skips_table",
    "source_facts",
    "spending_table",
    "staleness_frame",
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
