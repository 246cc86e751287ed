"""An evaluation travels through a directory unchanged."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolmem.errors import Refused
from toolmem.models import ToolCallResult
from toolmem.research.report import Evaluation

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
CALLS = st.builds(
    ToolCallResult,
    tool_name=TEXT,
    input=st.one_of(st.dictionaries(TEXT, st.one_of(TEXT, st.integers(-9, 9), st.none()), max_size=3), TEXT),
    output=TEXT,
    success=st.one_of(st.none(), st.booleans()),
    create_time=st.datetimes(min_value=datetime(1970, 1, 2), timezones=st.just(UTC)),
    time_cost=st.one_of(st.none(), st.floats(0, 1e6)),
    token_cost=st.one_of(st.none(), st.integers(0, 10**9)),
    score=st.sampled_from([None, 0.0, 1.0]),
)


def test_a_saved_evaluation_is_loaded_as_it_was(build, tmp_path):
    evaluation = build(tools=["search", "天气/查询", "a,b\u2028c"])
    assert Evaluation.load(evaluation.save(tmp_path / "new" / "folder")) == evaluation


@given(calls=st.lists(CALLS, max_size=5))
def test_any_call_survives_the_journey(calls, tmp_path_factory):
    folder = tmp_path_factory.mktemp("exchange")
    evaluation = Evaluation(
        inputs=["x"],
        input_format="calls",
        judge="j",
        judge_meaning="m",
        started=datetime(2026, 1, 1, tzinfo=UTC),
        calls=calls,
    )
    assert Evaluation.load(evaluation.save(folder)).calls == calls


def test_a_directory_without_an_evaluation_is_refused_by_name(tmp_path):
    with pytest.raises(Refused, match=r"evaluation\.json is missing.*toolmem evaluate"):
        Evaluation.load(tmp_path)


def test_a_damaged_evaluation_is_refused(build, tmp_path):
    build().save(tmp_path)
    (tmp_path / "calls.jsonl").write_text('{"tool_name": 3}\n')
    with pytest.raises(Refused, match="cannot read"):
        Evaluation.load(tmp_path)


def test_row_numbers_must_be_as_many_as_the_calls(build):
    with pytest.raises(ValueError, match="2 row numbers for 60 calls"):
        build(rows=[0, 4])
