from __future__ import annotations

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from toolmem.config.scalars import read_scalar, write_scalar


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("false", False),
        ("null", None),
        ("0", 0),
        ("-12", -12),
        ("+3", 3),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1e3", 1000.0),
        (" 7 ", 7),
        ("'4'", "4"),
        ('"4"', "4"),
        ("'it''s'", "it's"),
        ('"a\\nb"', "a\nb"),
        ("'true'", "true"),
        ('{"a": [1, "x", null]}', {"a": [1, "x", None]}),
        ("[]", []),
        ("", ""),
        ("12:30", "12:30"),
        ("no", "no"),
        ("yes", "yes"),
        ("on", "on"),
        ("off", "off"),
        ("True", "True"),
        ("NULL", "NULL"),
        ("~", "~"),
        ("007", "007"),
        ("-01", "-01"),
        ("00.5", "00.5"),
        ("1_000", "1_000"),
        ("0x1f", "0x1f"),
        ("0o17", "0o17"),
        ("2025-01-01", "2025-01-01"),
        ("1.2.3", "1.2.3"),
        ("[a, b]", "[a, b]"),
        ("{a: 1}", "{a: 1}"),
        ("inf", "inf"),
        ("nan", "nan"),
        ("qwen-plus", "qwen-plus"),
        ("a=b", "a=b"),
        ("'", "'"),
        (" text ", " text "),
    ],
)
def test_plain_text_is_read_by_our_rules_and_not_by_those_of_yaml_1_1(text, value):
    read = read_scalar(text)
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize(
    "text", ["1e999", "-1e999", ".inf", "-.inf", ".nan", "Infinity", "NaN", "[1e999]", '{"a": NaN}']
)
def test_an_infinite_number_is_refused(text):
    with pytest.raises(ValueError, match="not a finite number"):
        read_scalar(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"a": 1, "a": 2}', "stands twice"),
        ("9" * 5000, "too long"),
        (f"[{'9' * 5000}]", "too long"),
        ("[" * 100_000 + "]" * 100_000, "nested too deeply"),
    ],
)
def test_what_cannot_be_meant_is_refused(text, said):
    with pytest.raises(ValueError, match=said):
        read_scalar(text)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**50), 10**50)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=10,
)


@given(value=json_values)
@example(value="1e999")
@example(value="'quoted'")
@example(value='"quoted"')
@example(value=" 4 ")
@example(value='[1, "a"]')
def test_what_is_written_reads_as_the_same_value(value):
    again = read_scalar(write_scalar(value))
    assert again == value
    assert type(again) is type(value)


@given(text=st.text())
def test_any_text_is_read_or_refused_with_a_reason(text):
    reason = ""
    value = None
    try:
        value = read_scalar(text)
    except ValueError as error:
        reason = str(error)
    assert bool(reason) or not isinstance(value, float) or math.isfinite(value)


@given(text=st.text())
def test_single_quotes_make_text_of_anything(text):
    assert read_scalar("'" + text.replace("'", "''") + "'") == text
