"""The five recorded datasets: both files of each are read whole, and tell the same of the calls that both hold."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from toolmem.flow.runner import SystemClock
from toolmem.formats import Imported, read_file
from toolmem.models import ToolCallResult

FOLDER = Path(__file__).parents[3] / "shared" / "data" / "recorded_calls"
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason=f"the recorded calls are not there: {FOLDER.name}")

# dataset: (calls, calls in the conversations, of these not in the calls file, arguments that are Python literals)
DATASETS = {
    "tau_bench": (1772, 1772, 0, 64),
    "tau2_airline": (158, 158, 0, 0),
    "toolbench": (231, 39, 0, 0),
    "intercode": (12827, 351, 0, 0),
    "openhands": (81, 82, 1, 0),
}


def read(name: str) -> Imported:
    return read_file(FOLDER / f"{name}.jsonl.gz", clock=SystemClock())


def place(call: ToolCallResult) -> tuple[str, str]:
    return call.metadata["conversation_id"], call.metadata["tool_call_id"]


@pytest.mark.parametrize("dataset", DATASETS)
def test_both_files_of_a_recording_tell_the_same_of_a_call(dataset: str) -> None:
    from_calls, from_chat = read(f"{dataset}.calls"), read(f"{dataset}.conversations")
    in_calls, in_chat, only_in_chat, literals = DATASETS[dataset]
    assert (len(from_calls.calls), len(from_chat.calls)) == (in_calls, in_chat)
    assert not from_calls.failures
    assert not from_chat.failures
    assert [row for row, _ in from_chat.calls] == list(range(in_chat))
    known = {place(call): call for _, call in from_calls.calls}
    unknown, as_text = 0, 0
    for _, call in from_chat.calls:
        other = known.get(place(call))
        if other is None:
            unknown += 1
            continue
        assert (call.tool_name, call.output) == (other.tool_name, other.output)
        if other.metadata.get("input_note") == "python_literal":
            assert isinstance(call.input, str)  # the source wrote str(dict); it stays the text that it was
            as_text += 1
        else:
            assert call.input == other.input
    assert (unknown, as_text) == (only_in_chat, literals)
    assert len({call.id for _, call in from_chat.calls}) == in_chat


def test_fifteen_thousand_calls_are_read_in_seconds() -> None:
    started = time.process_time()
    read_calls = sum(len(read(f"{dataset}.calls").calls) for dataset in DATASETS)
    assert read_calls == 15_069
    assert time.process_time() - started < 5  # of CPU; 0.6 s alone on two cores
