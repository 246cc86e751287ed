"""The tables of an evaluation as pandas DataFrames, the same rows as in its CSV files."""

from __future__ import annotations

import pandas as pd

from toolmem.research.evaluation import Evaluation
from toolmem.research.tables import TABLES


def frame(found: Evaluation, table: str) -> pd.DataFrame:
    """One of `tables.TABLES`: calls, tools, errors, lines, rules, skips, costs or ledger.

    The types are nullable. A table without rows has its columns, too.
    """
    kind, rows = TABLES[table]
    columns = list(kind.__struct_fields__)
    values = [[getattr(row, name) for name in columns] for row in rows(found)]
    return pd.DataFrame(values, columns=columns).convert_dtypes()
