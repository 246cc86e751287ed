"""Times, ranges and JSON as rows hold them."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolmem.models import merge_ranges
from toolmem.store.codec import clip, dump_json, members, micros, moment, read_ranges, without, write_ranges

seqs = st.sets(st.integers(1, 60))


@given(st.datetimes(timezones=st.timezones(), min_value=datetime(1900, 1, 1), max_value=datetime(2200, 1, 1)))
def test_times_keep_their_microseconds(time: datetime):
    assert moment(micros(time)) == time.astimezone(UTC)
    assert moment(micros(time)).utcoffset() == timedelta(0)


def test_a_time_without_a_zone_is_refused():
    with pytest.raises(ValueError, match="time zone"):
        micros(datetime(2026, 1, 1))
    assert micros(datetime(1970, 1, 1, 1, tzinfo=timezone(timedelta(hours=1)))) == 0
    assert micros(datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)) == -1


@given(seqs)
def test_ranges_come_back_from_their_row(held: set[int]):
    ranges = merge_ranges(sorted(held))
    assert members(read_ranges(write_ranges(ranges))) == held


@given(seqs, seqs)
def test_without_takes_out_exactly_what_it_is_given(held: set[int], gone: set[int]):
    assert members(without(merge_ranges(sorted(held)), gone)) == held - gone


@given(seqs, st.integers(1, 60), st.integers(1, 60))
def test_clip_keeps_what_lies_between(held: set[int], first: int, last: int):
    assert members(clip(merge_ranges(sorted(held)), first, last)) == {seq for seq in held if first <= seq <= last}


@pytest.mark.parametrize("value", [float("nan"), float("-inf"), "\ud800", {"k": "a\udfff"}])
def test_what_json_cannot_carry_is_refused(value: object):
    with pytest.raises(ValueError):
        dump_json(value)
