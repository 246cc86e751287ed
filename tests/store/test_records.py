"""Keyed records, and the stamp of the rules."""

import pytest

from toolmem.errors import Conflict, RequestError


def test_a_record_is_swapped_by_version(store):
    assert store.put("w", "n", "k", {"a": 1}, expected_version=0).version == 1
    with pytest.raises(Conflict):
        store.put("w", "n", "k", {"a": 2}, expected_version=0)
    assert store.put("w", "n", "k", {"a": 2}, expected_version=1).version == 2
    with pytest.raises(Conflict):
        store.put("w", "n", "k", {"a": 3}, expected_version=1)
    found = store.get("w", "n", "k")
    assert found.read(dict) == {"a": 2}
    assert found.time_created <= found.time_modified
    assert store.delete("w", "n", "k")
    assert not store.delete("w", "n", "k")
    assert store.get("w", "n", "k") is None


def test_a_value_that_is_no_json_is_refused_and_leaves_the_old_one(store):
    store.put("w", "n", "k", {"a": 1})
    with pytest.raises(RequestError):
        store.put("w", "n", "k", {"a": object()})
    assert store.get("w", "n", "k").read(dict) == {"a": 1}


def test_the_stamp_changes_with_rules_alone_and_never_comes_back(store):
    stamps = [store.get_many("w", []).rules_stamp]

    def changes():
        stamps.append(store.get_many("w", []).rules_stamp)
        return stamps[-1] not in stamps[:-1]

    store.put("w", "tool-send", "note/1", {})
    assert not changes()
    store.put("w", "tool-send", "rule/1", {"rule": "never"})
    assert changes()
    store.put("w", "tool-send", "rule/1", {"rule": "always"})
    assert changes()
    store.delete("w", "tool-send", "rule/1")
    assert changes()
    store.delete_workspace("w")
    assert changes()
    store.put("w", "tool-send", "rule/1", {"rule": "never"})
    assert changes()


def test_records_and_stamp_are_read_together_in_the_order_asked(store):
    store.put("w", "a", "1", {})
    store.put("w", "b", "2", {})
    found = store.get_many("w", [("b", "2"), ("a", "none"), ("a", "1")])
    assert [each and each.key for each in found.records] == ["2", None, "1"]


def test_records_are_listed_by_prefix_to_the_last_code_point(store):
    for key in ("a", "a\ud7ff", "a\ue000", "a\U0010ffff", "b"):
        store.put("w", "n", key, {})

    def listed(**asked):
        return [each.key for each in store.list_records("w", "n", **asked)]

    assert listed(key_prefix="a\ud7ff") == ["a\ud7ff"]
    assert listed(key_prefix="a\U0010ffff") == ["a\U0010ffff"]
    assert listed(key_prefix="a") == ["a", "a\ud7ff", "a\ue000", "a\U0010ffff"]
    assert listed(newest=2) == ["a\U0010ffff", "b"]


def test_namespaces_are_listed_by_prefix_without_the_stores_own(store):
    for namespace in ("tool-a", "tool-b", "notes", ".hidden"):
        store.put("w", namespace, "k", {})
    assert store.namespaces("w") == ["notes", "tool-a", "tool-b"]
    assert [each.namespace for each in store.list_records("w")] == ["notes", "tool-a", "tool-b"]
    assert [r.namespace for r in store.list_records("w", prefix="tool-")] == ["tool-a", "tool-b"]
