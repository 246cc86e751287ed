"""The tables of an evaluation as pandas DataFrames, the same rows as in its CSV files."""

from __future__ import annotations

import pandas as pd

from toolmem.config.names import hint
from toolmem.errors import RequestError
from toolmem.research.evaluation import Evaluation
from toolmem.research.tables import TABLES, columns


def frame(found: Evaluation, table: str) -> pd.DataFrame:
    """A table of `tables.TABLES`: calls, tools, groups, errors, lines, rules, skips, bad_records,
    costs or ledger. Raises RequestError where there is none of this name.

    The types are nullable. A table without rows has its columns, too.
    """
    if table not in TABLES:
        raise RequestError(f"table: there is no {table!r} ({hint(table, TABLES)})", "table")
    kind, rows = TABLES[table]
    names = columns(kind)
    values = [[getattr(row, name) for name in names] for row in rows(found)]
    return pd.DataFrame(values, columns=names).convert_dtypes()
