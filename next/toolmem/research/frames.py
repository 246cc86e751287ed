"""The tables of an evaluation as pandas DataFrames, the same rows as in its CSV files."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from msgspec import Struct

from toolmem.llm.usage import LedgerRow
from toolmem.research import tables
from toolmem.research.evaluation import Evaluation


def calls(found: Evaluation) -> pd.DataFrame:
    """One row for each recorded call, in the order of the recording."""
    return frame(tables.call_rows(found), tables.CallRow)


def tools(found: Evaluation) -> pd.DataFrame:
    """One row for each tool, those with most failures first."""
    return frame(tables.tool_rows(found), tables.ToolRow)


def errors(found: Evaluation) -> pd.DataFrame:
    """One row for each error class of each tool, the most frequent first."""
    return frame(tables.error_rows(found), tables.ErrorRow)


def lines(found: Evaluation) -> pd.DataFrame:
    """One row for each line of guidance."""
    return frame(tables.line_rows(found), tables.LineRow)


def rules(found: Evaluation) -> pd.DataFrame:
    """One row for each rule, beside the figures of its tool."""
    return frame(tables.rule_rows(found), tables.RuleRow)


def skips(found: Evaluation) -> pd.DataFrame:
    """One row for each tool and each of the two summaries."""
    return frame(tables.skip_rows(found), tables.SkipRow)


def costs(found: Evaluation) -> pd.DataFrame:
    """One row for each op and model; no rows where no model was asked."""
    return frame(tables.cost_rows(found.requests), tables.CostRow)


def ledger(found: Evaluation) -> pd.DataFrame:
    """One row for each request to a model, oldest first."""
    return frame(found.requests, LedgerRow)


def frame(rows: Sequence[Struct], kind: type[Struct]) -> pd.DataFrame:
    """Rows with nullable types; it has the columns of `kind` without rows, too."""
    columns = list(kind.__struct_fields__)
    values = [[getattr(row, name) for name in columns] for row in rows]
    return pd.DataFrame(values, columns=columns).convert_dtypes()
