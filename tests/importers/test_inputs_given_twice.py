"""The same file as input twice: read twice, and said."""

from __future__ import annotations

from toolmem.app import ToolMemApp
from toolmem.recording import read_recording


def test_a_file_that_is_given_twice_is_said_to_count_twice(tmp_path):
    path = tmp_path / "calls.jsonl"
    path.write_text('{"tool_name": "a", "create_time": "2026-01-01T00:00:00Z"}\n', encoding="utf-8")
    twice = read_recording(ToolMemApp(), [path, tmp_path / "." / "calls.jsonl"])
    assert len(twice.calls) == 2
    assert twice.notes == ["calls.jsonl is given twice: its calls are counted twice"]
    assert read_recording(ToolMemApp(), [path]).notes == []
