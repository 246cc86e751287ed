"""The same file as input twice: read twice, and said."""

from __future__ import annotations

import json

import pytest

from toolmem.app import ToolMemApp
from toolmem.research.recordings import read_recording


def test_a_file_that_is_given_twice_is_said_to_count_twice(tmp_path):
    path = tmp_path / "calls.jsonl"
    path.write_text(
        '{"tool_name": "a", "create_time": "2026-01-01T00:00:00Z", "conversation_id": 1}\n', encoding="utf-8"
    )
    twice = read_recording(ToolMemApp(), [path, tmp_path / "." / "calls.jsonl"])
    assert len(twice.calls) == 2
    assert twice.notes == ["calls.jsonl is given twice: its calls are counted twice"]
    assert read_recording(ToolMemApp(), [path]).notes == []


@pytest.mark.parametrize(
    ("sessions", "told"),
    [
        ([None, None], "no call names its conversation (conversation_id), and"),
        ([None, "s", "s"], "1 of 3 calls name no conversation (conversation_id), and"),
        (["s", "s"], ""),
    ],
)
def test_a_recording_without_conversations_is_told_that_it_gets_no_repairs(tmp_path, sessions, told):
    path = tmp_path / "calls.jsonl"
    lines = [
        json.dumps({"tool_name": "a", "create_time": f"2026-01-01T00:00:0{i}Z", "session_id": session})
        for i, session in enumerate(sessions)
    ]
    path.write_text("\n".join(lines), encoding="utf-8")
    notes = read_recording(ToolMemApp(), [path]).notes
    assert len(notes) == bool(told)
    assert all(note.startswith(told) and "no repairs are told" in note for note in notes)
