"""The tree says each thing once: counts that hold (`python benchmarks/tree_counts.py` prints them)."""

from __future__ import annotations

from benchmarks.tree_counts import classes_that_stand_twice, functions, modules_that_stand_twice, trees

LONGEST_MODULE = 400  # lines
LONGEST_FUNCTION = 99


def test_one_class_name_is_one_thing():
    assert classes_that_stand_twice() == set()


def test_one_module_name_is_one_module():
    assert modules_that_stand_twice() == set()


def test_no_module_and_no_function_grows_beyond_what_can_be_read_at_once():
    assert {name for name, (lines, _) in trees().items() if lines > LONGEST_MODULE} == set()
    assert {name for lines, name in functions() if lines > LONGEST_FUNCTION} == set()
