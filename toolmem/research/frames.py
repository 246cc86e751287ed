"""The tables of an evaluation as pandas DataFrames, the same rows as in its CSV files."""

from __future__ import annotations

import pandas as pd

from toolmem.config.names import hint
from toolmem.errors import RequestError
from toolmem.formats.data_frames import frame_of
from toolmem.research.evaluation import Evaluation
from toolmem.research.tables import TABLES, columns


def frame(evaluation: Evaluation, table: str) -> pd.DataFrame:
    """Return a table: calls, tools, groups, errors, lines, rules, skips, bad_records, costs or
    ledger. Raises RequestError if no table has this name.

    Columns are typed as in `toolmem.read_calls`, and named as there if it has the same column. A
    table without rows has its columns too.
    """
    if table not in TABLES:
        raise RequestError(f"table: there is no {table!r} ({hint(table, TABLES)})", "table")
    kind, rows = TABLES[table]
    return frame_of(kind, rows(evaluation))[columns(kind)]
