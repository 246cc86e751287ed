"""`convertData`: JSON to CSV and back."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

from examples.recording.tools.tool import Answer, Arguments, Tool, done, failure, object_schema


class ConversionError(ValueError):
    """The data cannot be converted; the message says where."""


class ConvertData(Tool):
    name = "convertData"
    description = "Convert a JSON list of flat objects to CSV, or CSV with a header line to JSON."
    parameters = object_schema(
        ("data", "sourceFormat", "targetFormat"),
        data={"type": "string", "description": "The text to convert."},
        sourceFormat={"type": "string", "enum": ["json", "csv"]},
        targetFormat={"type": "string", "enum": ["json", "csv"]},
        delimiter={"type": "string", "default": ",", "description": "One character, for the CSV side."},
    )

    def run(self, arguments: Arguments) -> Answer:
        source, target = arguments["sourceFormat"], arguments["targetFormat"]
        delimiter = arguments.get("delimiter", ",")
        try:
            if source == target:
                raise ConversionError(f"source and target are both {source}")
            if len(delimiter) != 1:
                raise ConversionError(f"delimiter must be one character, got {delimiter!r}")
            convert = _to_csv if source == "json" else _to_json
            return done(convert(arguments["data"], delimiter))
        except ConversionError as error:
            return failure(f"ConversionError: {error}")


def _to_csv(data: str, delimiter: str) -> str:
    try:
        rows = json.loads(data)
    except json.JSONDecodeError as error:
        raise ConversionError(f"not JSON: {error}") from None
    if not isinstance(rows, list):
        raise ConversionError(f"expected a list of objects, got {type(rows).__name__}")
    columns: list[str] = []
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, dict):
            raise ConversionError(f"item {number} is not an object: {json.dumps(row)}")
        for name, value in row.items():
            if isinstance(value, dict | list):
                raise ConversionError(f"item {number}: '{name}' is nested; CSV cells are plain values")
            if name not in columns:
                columns.append(name)
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, delimiter=delimiter, lineterminator="\n", restval="")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().rstrip("\n")


def _to_json(data: str, delimiter: str) -> str:
    lines = list(csv.reader(io.StringIO(data.strip()), delimiter=delimiter))
    if len(lines) < 2:
        raise ConversionError("no data below the header line")
    header, rows = lines[0], lines[1:]
    if len(header) == 1:
        raise ConversionError(f"only one column {header[0]!r}: is '{delimiter}' the delimiter?")
    items: list[dict[str, Any]] = []
    for number, cells in enumerate(rows, start=2):
        if len(cells) != len(header):
            raise ConversionError(f"line {number} has {len(cells)} fields, the header has {len(header)}")
        items.append(dict(zip(header, cells, strict=True)))
    return json.dumps(items, ensure_ascii=False)
