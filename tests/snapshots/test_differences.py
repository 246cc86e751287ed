"""The sentences in which a changed surface or output is told."""

from __future__ import annotations

from differences import differences


def test_equal_values_have_no_difference() -> None:
    value = {"a": [1, {"b": None}], "c": ["x", "y"]}
    assert list(differences(value, value)) == []


def test_what_came_went_and_changed_is_told_with_its_place() -> None:
    before = {"commands": {"run": {"exit": 1}, "old": {}}, "names": ["a", "b"]}
    after = {"commands": {"run": {"exit": 2}, "new": {}}, "names": ["b", "c"]}
    assert list(differences(before, after)) == [
        "commands > new: new ({})",
        "commands > old: gone (it was {})",
        "commands > run > exit: was 1, is 2",
        "names: no longer has 'a'",
        "names: now has 'c'",
    ]


def test_another_order_of_the_same_entries_is_told() -> None:
    assert list(differences({"names": ["a", "b"]}, {"names": ["b", "a"]})) == [
        "names: the same entries in another order, ['b', 'a']"
    ]
