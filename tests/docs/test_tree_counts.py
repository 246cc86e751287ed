"""The tree says each thing once: counts that only shrink (`python benchmarks/tree_counts.py` prints them)."""

from __future__ import annotations

from benchmarks.tree_counts import classes_that_stand_twice, functions, modules_that_stand_twice, trees

CLASSES_TODAY = {"Claim", "Operation", "Plan", "Said", "Step", "_Pending"}  # take out; nothing comes in
MODULES_TODAY = {"names", "naming", "rule_store"}
LONGEST_MODULE = 400  # lines
LONGEST_FUNCTION = 99


def test_one_class_name_is_one_thing():
    assert classes_that_stand_twice() <= CLASSES_TODAY


def test_one_module_name_is_one_module():
    assert modules_that_stand_twice() <= MODULES_TODAY


def test_no_module_and_no_function_grows_beyond_what_can_be_read_at_once():
    assert {name for name, (lines, _) in trees().items() if lines > LONGEST_MODULE} == set()
    assert {name for lines, name in functions() if lines > LONGEST_FUNCTION} == set()
