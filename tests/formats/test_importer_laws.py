"""What holds for every input of the importers."""

from __future__ import annotations

import contextlib
import json
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from toolmem.errors import RecordError, RequestError
from toolmem.flow.runner import SystemClock
from toolmem.formats import RecordNotes, read_file, read_record, read_records, write_calls
from toolmem.models import ToolCallResult

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


# Texts with lone surrogates among them, as broken programs send them.
texts = st.text(st.characters(codec=None), max_size=20)
scalars = st.none() | st.booleans() | st.integers() | st.floats() | texts
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4), max_leaves=12
)
fields = [
    "tool_name",
    "input",
    "output",
    "success",
    "create_time",
    "time_cost",
    "token_cost",
    "context",
    "id",
    "metadata",
    "score",
    "judge",
    "seq",
    "is_summarized",
]
records = st.dictionaries(st.sampled_from(fields) | texts, values, max_size=8) | values
clean_texts = st.text(st.characters(codec="utf-8"), max_size=30)
clean_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | clean_texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(clean_texts, inner, max_size=4),
    max_leaves=10,
)
calls = st.builds(
    ToolCallResult,
    tool_name=clean_texts.map(str.strip).filter(bool),
    input=st.dictionaries(clean_texts, clean_values, max_size=4) | st.lists(clean_values, max_size=4) | clean_texts,
    output=clean_texts,
    success=st.none() | st.booleans(),
    create_time=st.datetimes(min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 30), timezones=st.just(UTC)),
    time_cost=st.none() | st.floats(0, allow_infinity=False),
    token_cost=st.none() | st.integers(0, 2**63 - 1),
    context=clean_texts,
    id=st.none() | clean_texts.filter(lambda text: bool(text.strip())),
    metadata=st.dictionaries(clean_texts, clean_values, max_size=4),
)


@given(records)
def test_any_value_is_a_record_or_a_record_error(record: Any) -> None:
    for trust in (False, True):
        try:
            call = read_record(record, 0, clock=SystemClock(), notes=RecordNotes(), trust=trust)
        except RecordError:
            continue
        else:
            assert call.tool_name.strip()
            assert call.create_time.utcoffset() == timedelta(0)
            call.model_dump_json().encode()


@given(st.lists(records, max_size=6))
def test_each_record_is_read_or_named_once(batch: list[Any]) -> None:
    done = read_records(batch, clock=SystemClock())
    assert sorted([i for i, _ in done.calls] + [f.index for f in done.failures]) == list(range(len(batch)))


@given(st.lists(calls, min_size=1, max_size=5), st.booleans())
def test_what_was_written_is_read_back(written: list[ToolCallResult], compressed: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / ("calls.jsonl.gz" if compressed else "calls.jsonl")
        write_calls(path, written)
        imported = read_file(path, clock=SystemClock())
    assert [call for _, call in imported.calls] == written
    assert not imported.failures


def is_noise(line: bytes) -> bool:
    """Whatever cannot be taken for a call itself."""
    return b"tool_name" not in line and b"messages" not in line and b"role" not in line


noise = (
    (st.binary(max_size=60) | clean_texts.map(str.encode) | values.map(lambda v: json.dumps(v).encode()))
    .map(lambda line: line.replace(b"\n", b""))
    .filter(is_noise)
)


@given(st.lists(noise, max_size=8), st.data())
def test_noise_between_good_lines_never_loses_a_good_line(lines: list[bytes], data: st.DataObject) -> None:
    good = [json.dumps({"tool_name": f"tool{n}", "output": "ok"}).encode() for n in range(3)]
    for line in good:
        lines.insert(data.draw(st.integers(0, len(lines))), line)
    # Bytes in front of everything may pass for a compressed file or for another encoding of the whole.
    content = b"\n".join(lines)
    if content.startswith((b"\x1f\x8b", b"\xef\xbb\xbf")):
        content = b"\n" + content
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "calls.jsonl"
        path.write_bytes(content)
        imported = read_file(path, clock=SystemClock())
    assert sorted(call.tool_name for _, call in imported.calls) == ["tool0", "tool1", "tool2"]


messages = st.dictionaries(
    st.sampled_from(["role", "content", "tool_calls", "tool_call_id", "name", "function_call", "timestamp"]),
    st.sampled_from(["user", "assistant", "tool", "function", "x", None, 5])
    | st.lists(
        st.fixed_dictionaries(
            {"id": st.sampled_from(["x", "y", "", None, 5])},
            optional={
                "function": values
                | st.fixed_dictionaries({"name": st.sampled_from(["t", "", None]), "arguments": values})
            },
        ),
        max_size=3,
    )
    | values,
    max_size=5,
)


@given(st.lists(messages | values, max_size=8), values, values)
def test_any_conversation_is_read_or_refused(chat: list[Any], conversation_id: Any, tools: Any) -> None:
    good = [
        {"role": "assistant", "tool_calls": [{"id": "good", "function": {"name": "t", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "good", "content": "ok"},
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "conversations.jsonl"
        path.write_text(json.dumps({"id": conversation_id, "tools": tools, "messages": [*chat, *good]}))
        imported = read_file(path, clock=SystemClock())
        assert ("t", "ok") in {(call.tool_name, call.output) for _, call in imported.calls}
        path.write_text(json.dumps({"messages": chat}))
        with contextlib.suppress(RequestError):  # no answered call: refused; anything else would fail the test
            read_file(path, clock=SystemClock())
