"""Rows as CSV text in which a spreadsheet finds no formula to run."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from operator import attrgetter
from typing import Any

import msgspec
from msgspec import Struct

# A formula may follow invisible characters: some programs drop them.
_INVISIBLE = r"[\s\x00-\x1f\x7f-\x9f\xad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]*"
_FORMULA = re.compile(_INVISIBLE + r"[=+\-@＝＋－＠﹢﹣﹦﹫−\t\r]")
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?(e[+-]?\d+)?", re.IGNORECASE)


def csv_text(columns: Sequence[str], rows: Iterable[Any], note: str = "") -> str:
    """Write rows as CSV: a header, the rows, and `note` as a last line. Lines end in "\\r\\n".

    `columns`: attributes of a row, such as `state` or `rule.tool_name`, whose heading is its last
    part. If lines ended in "\\n", Python before 3.13 would leave a lone "\\r" in a text unquoted.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow([name.rpartition(".")[2] for name in columns])
    values = [attrgetter(name) for name in columns]
    writer.writerows([cell(value(row)) for value in values] for row in rows)
    if note:
        writer.writerow([note])
    return text.getvalue()


def cell(value: Any) -> str:
    """Return the text of a cell, with an apostrophe before what a spreadsheet would run."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, dict | list | tuple | Struct):
        value = json.dumps(msgspec.to_builtins(value), ensure_ascii=False) if value else ""
    text = str(value).replace("\0", "\ufffd")
    if _FORMULA.match(text) and not _NUMBER.fullmatch(text):
        return "'" + text
    return text
