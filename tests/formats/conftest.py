"""Recordings of lines, written and read."""

import json
from datetime import UTC, datetime
from pathlib import Path

from toolmem.formats.recording import read_recording

NOW = datetime(2027, 1, 1, tzinfo=UTC)
PAYLOADS = Path(__file__).parent / "payloads"


def lines(*values):
    """A line of JSON for each value; a text stands as it is."""
    return "".join(f"{each if isinstance(each, str) else json.dumps(each)}\n" for each in values)


def write(path, *values):
    path.write_text(lines(*values))
    return path


def read(path, **options):
    return read_recording([path], NOW, **options)
