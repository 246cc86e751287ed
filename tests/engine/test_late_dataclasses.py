"""Dataclasses whose methods are made late are dataclasses: what `dataclasses` makes of the same fields is the judge."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import subprocess
import sys
from dataclasses import KW_ONLY
from typing import Any, ClassVar

import pytest
from pydantic import TypeAdapter

from toolmem import late_dataclasses


def twins(with_what: Any) -> tuple[type, type, type]:
    """The same three classes, made by one module or the other."""
    dataclass, field = with_what.dataclass, with_what.field

    @dataclass(frozen=True, slots=True)
    class Point:
        x: int
        y: int = 2
        tags: tuple[str, ...] = field(default=(), compare=False)
        many: ClassVar[int] = 7

        def sum(self) -> int:
            return self.x + self.y

    @dataclass(slots=True, kw_only=True)
    class Basket:
        name: str
        things: list[str] = field(default_factory=list)
        hidden: int = field(default=3, repr=False)
        made: str = field(init=False, default="later")

        def __post_init__(self) -> None:
            self.made = f"made of {self.name}"

    @dataclass
    class Loose:
        first: int
        _: KW_ONLY
        second: str = "b"

    return Point, Basket, Loose


@late_dataclasses.dataclass(frozen=True, slots=True)
class Kept:
    name: str
    of: dict[str, int] = late_dataclasses.field(default_factory=dict)


@late_dataclasses.dataclass(frozen=True, slots=True)
class KeptLonger(Kept):
    days: int = 1


OURS, THEIRS = twins(late_dataclasses), twins(dataclasses)
CALLS: list[tuple[int, tuple[Any, ...], dict[str, Any]]] = [
    *((0, (1,), {}), (0, (1, 3), {"tags": ("a",)}), (0, (), {"y": 4, "x": 5}), (0, (), {}), (0, (1, 2, (), 4), {})),
    *((1, (), {"name": "n"}), (1, (), {"name": "n", "things": ["t"], "hidden": 4}), (1, ("n",), {}), (1, (), {})),
    *((1, (), {"name": "n", "made": "x"}), (2, (1,), {}), (2, (1,), {"second": "c"}), (2, (1,), {"third": "c"})),
]


def told(which: type, given: tuple[Any, ...], named: dict[str, Any]) -> Any:
    try:
        made = which(*given, **named)
    except TypeError:
        return TypeError
    hashable = isinstance(made.__hash__, type(None)) is False
    return repr(made), hashable, dataclasses.asdict(made), made == which(*given, **named), made.__match_args__


@pytest.mark.parametrize(("which", "given", "named"), CALLS)
def test_an_instance_is_made_shown_and_compared_as_one_of_dataclasses(
    which: int, given: tuple[Any, ...], named: dict[str, Any]
) -> None:
    assert told(OURS[which], given, named) == told(THEIRS[which], given, named)


@pytest.mark.parametrize("which", [0, 1, 2])
def test_its_fields_and_its_signature_are_those_of_dataclasses(which: int) -> None:
    def described(made: type) -> list[Any]:
        known = dataclasses.fields(made)  # type: ignore[arg-type]
        return [(f.name, f.type, f.default, f.default_factory, f.init, f.repr, f.compare, f.kw_only) for f in known]

    assert described(OURS[which]) == described(THEIRS[which])
    ours, theirs = inspect.signature(OURS[which]), inspect.signature(THEIRS[which])
    assert str(ours) == str(theirs)


def test_a_frozen_one_is_changed_by_replace_alone_and_hashes_as_it_compares() -> None:
    point = OURS[0](1, tags=("a",))
    for change in (lambda: setattr(point, "x", 2), lambda: delattr(point, "x"), lambda: setattr(point, "z", 2)):
        with pytest.raises((dataclasses.FrozenInstanceError, TypeError)):
            change()
    for replace in (late_dataclasses.replace, dataclasses.replace):
        assert replace(point, y=9) == OURS[0](1, 9)
    assert {point, OURS[0](1, tags=("b",))} == {point}
    assert point.sum() == 3
    assert OURS[0].many == 7
    assert not hasattr(point, "__dict__")


def test_each_has_lists_of_its_own_and_is_copied_and_pickled_whole() -> None:
    assert Kept("a").of is not Kept("a").of
    kept = KeptLonger("a", {"b": 1}, days=3)
    for again in (copy.copy(kept), copy.deepcopy(kept), pickle.loads(pickle.dumps(kept))):
        assert again == kept
        assert type(again) is KeptLonger
    assert kept != Kept("a", {"b": 1})
    assert repr(kept) == "KeptLonger(name='a', of={'b': 1}, days=3)"
    assert [each.name for each in dataclasses.fields(kept)] == ["name", "of", "days"]


def test_pydantic_takes_one_and_dataclasses_inherits_from_one() -> None:
    assert TypeAdapter(KeptLonger).validate_python({"name": "a", "days": "4"}) == KeptLonger("a", days=4)
    assert TypeAdapter(Kept).dump_python(Kept("a")) == {"name": "a", "of": {}}

    @dataclasses.dataclass(frozen=True)
    class Further(Kept):
        more: int = 0

    assert list(inspect.signature(Further).parameters) == ["name", "of", "more"]
    assert dataclasses.replace(Further("a", more=2), name="b") == Further("b", more=2)
    assert late_dataclasses.replace(Further("a", more=2), name="b") == Further("b", more=2)
    with pytest.raises(TypeError, match="Further"):
        late_dataclasses.dataclass(slots=True)(type("Back", (Further,), {"__annotations__": {"x": "int"}}))


def test_making_and_using_them_loads_no_dataclasses() -> None:
    script = """
import sys
from toolmem.guard.decision import Finding, decide
assert decide("d", [Finding("rule", "deny", "no")]).stops
assert not {"dataclasses", "inspect"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", script], check=True)
