from __future__ import annotations

import importlib.metadata

import pytest

from toolmem.config.nearest_names import nearest
from toolmem.errors import ConfigError
from toolmem.flow.expression import parse
from toolmem.flow.op import Op
from toolmem.flow.registry import ENTRY_POINTS, OpRegistry, known_ops, register


class BroughtByAPackageOp(Op):
    async def execute(self, context):
        raise AssertionError


@pytest.fixture
def entry_points(monkeypatch):
    """An installed package that brings one good op and one that cannot be loaded."""
    asked = []
    entries = [
        importlib.metadata.EntryPoint("good", f"{__name__}:BroughtByAPackageOp", ENTRY_POINTS),
        importlib.metadata.EntryPoint("bad", "no_such_module:Op", ENTRY_POINTS),
    ]

    def listed(*, group):
        asked.append(group)
        return entries

    monkeypatch.setattr(importlib.metadata, "entry_points", listed)
    return asked


def test_entry_points_are_looked_at_when_a_name_is_not_known_without_them(entry_points, ops):
    registry = OpRegistry(ENTRY_POINTS)
    registry.register(ops["count_words_op"])
    assert registry["count_words_op"] is ops["count_words_op"]
    assert entry_points == []
    flow = parse("brought_by_a_package_op >> count_words_op", registry)
    assert type(next(flow.ops())).__name__ == "BroughtByAPackageOp"
    assert entry_points == [ENTRY_POINTS]


def test_a_broken_entry_point_is_told_and_does_not_hide_the_others(entry_points, caplog):
    registry = OpRegistry(ENTRY_POINTS)
    assert "brought_by_a_package_op" in registry
    assert "ModuleNotFoundError" in registry.broken["bad"]
    assert "bad = no_such_module:Op brings no op" in caplog.text


def test_two_classes_of_one_name_are_refused_and_one_defined_again_replaces():
    registry = OpRegistry()

    def cell():
        class NotebookOp(Op):
            async def execute(self, context):
                raise AssertionError

        return NotebookOp

    registry.register(cell())
    second = cell()
    registry.register(second)
    assert registry["notebook_op"] is second

    class NotebookOp(Op):
        async def execute(self, context):
            raise AssertionError

    with pytest.raises(ConfigError, match="'notebook_op' is known already"):
        registry.register(NotebookOp)


def test_only_ops_are_registered():
    with pytest.raises(ConfigError, match="expected a subclass of Op"):
        OpRegistry().register(int)


def test_register_is_a_decorator_for_this_process():
    @register
    class DecoratedForThisTestOp(Op):
        async def execute(self, context):
            raise AssertionError

    assert known_ops()["decorated_for_this_test_op"] is DecoratedForThisTestOp


def test_the_nearest_name_is_found_whatever_its_case():
    assert nearest("Recent_Cal_Count", ["recent_call_count", "force"]) == "recent_call_count"
    assert nearest("zzz", ["recent_call_count"]) is None
