from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolmem.guidance.counted.values import canonical, leaves, number_of, parameters, text_shape

json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=True), st.text(max_size=20)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=20,
)


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("", "empty"),
        ("  ", "empty"),
        ("2024-05-14", "date"),
        ("2024-05-14T10:00:00Z", "datetime"),
        ("09:30", "time"),
        ("5/14/2024", "slash_date"),
        ("35", "integer_text"),
        ("-3.5", "number_text"),
        ("a@b.org", "email"),
        ("https://example.org/x", "url"),
        ("/etc/hosts", "path"),
        ('{"a": 1}', "json_text"),
        ("#W9502126", "like:\\#W#"),
        ("gift_card_6847880", "like:gift_card_#"),
        ("economy", "word"),
        ("no longer needed", "words"),
        ("a\nb", "lines"),
    ],
)
def test_shapes_of_texts(text: str, shape: str) -> None:
    assert text_shape(text) == shape


def test_nested_parameters_are_named_by_their_path() -> None:
    given_ = {"cabin": "economy", "flights": [{"date": "2024-05-14"}, {"date": "2024-05-15", "seat": {"row": 3}}]}
    assert list(leaves(given_)) == [
        ("cabin", "economy"),
        ("flights", given_["flights"]),
        ("flights[].date", "2024-05-14"),
        ("flights[].date", "2024-05-15"),
        ("flights[].seat.row", 3),
    ]


def test_an_input_that_is_a_text_or_a_list_has_one_nameless_parameter() -> None:
    assert parameters("ls -l") == {"": "ls -l"}
    assert parameters([1, 2]) == {"": [1, 2]}
    assert parameters('{"a": 1}') == {"a": 1}
    assert parameters('{"a": ') == {"": '{"a": '}
    assert parameters("") == parameters({}) == parameters([]) == {}


def test_numbers_are_read_from_texts_but_truth_values_are_none() -> None:
    assert number_of("35") == 35.0
    assert number_of(2.5) == 2.5
    assert number_of(True) is None
    assert number_of(float("nan")) is None
    assert number_of(10**400) is None


@given(st.one_of(st.dictionaries(st.text(max_size=5), json_values, max_size=5), st.lists(json_values), st.text()))
def test_any_input_can_be_looked_into(given_: dict[str, object] | list[object] | str) -> None:
    params = parameters(given_)
    assert sum(1 for _ in leaves(params)) <= 200
    assert isinstance(canonical(given_), str)


@given(st.dictionaries(st.text(max_size=5), json_values, min_size=2, max_size=5))
def test_the_order_of_keys_does_not_make_another_input(given_: dict[str, object]) -> None:
    assert canonical(given_) == canonical(dict(reversed(list(given_.items()))))
