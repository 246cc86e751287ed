"""A condition that reaches beyond the view, costs more than linear time or binds every call by mistake is refused."""

from __future__ import annotations

import time
from typing import Any

import pytest

from toolmem.errors import RequestError
from toolmem.guard.call_conditions import check_condition, holds
from toolmem.guard.view import view_of
from toolmem.sentences.schemas import listed, text_like

GOOD = listed("targets", {"const": "a@b.org"})


def nested(levels: int) -> dict[str, Any]:
    return GOOD if levels == 0 else {"allOf": [nested(levels - 1)]}


@pytest.mark.parametrize(
    ("when", "place"),
    [
        ("never", "`when`: expected alternatives of tests, a JSON Schema"),
        (False, "`when`: expected alternatives of tests, a JSON Schema"),
        (["a"], "`when[0]`: expected an object of tests"),
        ({"$ref": "#"}, "`when.$ref`: not allowed"),
        ({"allOf": [{"$ref": "https://example.org/schema"}]}, "`when.allOf.0.$ref`: not allowed"),
        ({"not": {"$dynamicRef": "#a"}}, "`when.not.$dynamicRef`: not allowed"),
        ({"$schema": "http://json-schema.org/draft-04/schema#"}, "`when.$schema`: not allowed"),
        ({"$defs": {}}, "`when.$defs`: not allowed"),
        (listed("targets", {"pattern": "a"}), "contains.pattern`: holds for everything that is no string"),
        (listed("numbers", {"minimum": 3}), "contains.minimum`: holds for everything that is no number"),
        ({"properties": {"targets": {"const": []}}}, "`when.properties`: holds for everything without"),
        ({"not": {"required": ["nothing"]}}, "`when`: a call without arguments fulfils it"),
        ({"type": "object"}, "`when`: a call without arguments fulfils it"),
        (listed("targets", text_like("(?=a)")), "not a JSON Schema that can be checked in linear time"),
        (listed("targets", text_like(r"(a)\1")), "not a JSON Schema that can be checked in linear time"),
        (listed("targets", {"type": "string", "pattern": "("}), "not a JSON Schema that can be checked"),
        ({"type": 3}, "not a JSON Schema that can be checked"),
        (nested(17), "deeper than 16 levels"),
        (listed("targets", {"const": "x" * 9000}), "is the most: say less"),
        (listed("targets", {"const": float("nan")}), "not JSON"),
    ],
)
def test_what_cannot_be_kept_is_refused_with_its_place(when: Any, place: str) -> None:
    with pytest.raises(RequestError) as refused:
        check_condition(when)
    assert place in str(refused.value)
    assert refused.value.field == "when"


def test_true_binds_every_call_and_a_good_condition_comes_back_as_it_is() -> None:
    assert check_condition(True) is True
    assert check_condition(GOOD) == GOOD


def test_a_pattern_that_would_explode_elsewhere_takes_linear_time() -> None:
    when = check_condition(listed("values", text_like("(a+)+$")))
    view = view_of("t", {"x": "a" * 50_000 + "b"}).fields
    begun = time.process_time()
    assert not holds(when, view)
    assert time.process_time() - begun < 5


def test_a_condition_speaks_of_a_list_that_is_always_there() -> None:
    assert not holds(GOOD, view_of("t", {}).fields)
    assert holds(GOOD, view_of("t", {"to": "a@b.org"}).fields)
