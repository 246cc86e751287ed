"""Recordings as pandas DataFrames, and back from Parquet and CSV files."""

import json
import sys

import pandas as pd
import pytest

from toolmem import read_calls
from toolmem.errors import RequestError

CALLS = [
    {"tool_name": "look", "input": {"q": [1, None]}, "output": "9%\r99%", "success": True,
     "id": "a", "time_cost": 0.5, "token_cost": 3, "metadata": {"session_id": 7, "n": {"k": 1}},
     "create_time": "2026-01-01T00:00:00.123456+02:00"},
    {"tool_name": "look", "input": {"n": "1"}, "output": 'a,\r\n"b"', "conversation_id": "b"},
    {"tool_name": "look", "input": "ls -l", "success": False, "context": "nan"},
    {"tool_name": "look", "time_cost": -1},
]  # fmt: skip


@pytest.fixture
def frame(tmp_path):
    (tmp_path / "calls.jsonl").write_text("\n".join(map(json.dumps, CALLS)))
    with pytest.warns(UserWarning, match="1 of 4 records could not be read; line 4: time_cost: "):
        return read_calls(tmp_path / "calls.jsonl")


@pytest.mark.parametrize("chosen", [slice(0), slice(1), slice(2, 3), slice(3)])
def test_columns_have_the_types_of_their_fields_whatever_the_rows_hold(frame, chosen, memory):
    memory.add(frame[chosen].to_dict("records"))
    stored = memory.calls().to_frame()
    pd.testing.assert_series_equal(stored.dtypes, frame.dtypes)
    pd.testing.assert_series_equal(stored["input"], frame["input"][chosen].reset_index(drop=True))
    types = {"success": "boolean", "score": "float64", "create_time": "datetime64[us, UTC]"}
    assert {name: str(stored.dtypes[name]) for name in types} == types


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("chosen", [slice(3), slice(1, 2)])
def test_calls_are_read_back_from_the_files_that_pandas_writes(frame, tmp_path, kind, chosen):
    if kind == "parquet":
        pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
    getattr(frame[chosen], f"to_{kind}")(tmp_path / f"x.{kind}")
    again = read_calls([tmp_path / f"x.{kind}"])
    pd.testing.assert_frame_equal(again, frame[chosen].reset_index(drop=True))
    assert [bad["line"] for bad in frame.attrs["bad_records"]] == [4]


def test_parquet_without_pyarrow_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    (tmp_path / "x.parquet").write_bytes(b"PAR1")
    with pytest.raises(RequestError, match="pip install pyarrow"):
        read_calls(tmp_path / "x.parquet")
