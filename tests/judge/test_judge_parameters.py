"""The check of an input against a tool's JSON schema."""

from __future__ import annotations

from typing import Any

import pytest

from toolmem.judge.parameters import check
from toolmem.models import ToolSchema


def schema(required: list[str] | None = None, **properties: Any) -> ToolSchema:
    parameters: dict[str, Any] = {"type": "object", "properties": properties, "required": required or []}
    return ToolSchema(name="t", parameters=parameters)


def found(given: Any, declared: ToolSchema) -> list[tuple[str, str]]:
    return [(problem.violation, problem.parameter) for problem in check(given, declared)]


CITY = schema(["city"], city={"type": "string"}, days={"type": "integer", "minimum": 1, "maximum": 10})


def test_an_input_that_fits_has_no_problem() -> None:
    assert check({"city": "Oslo", "days": 3}, CITY) == []


def test_without_a_schema_nothing_is_said() -> None:
    assert check({"anything": 1}, None) == []
    assert check({"anything": 1}, ToolSchema(name="t")) == []


def test_a_missing_parameter_is_named() -> None:
    assert found({"days": 3}, CITY) == [("missing_parameter", "city")]


def test_an_unknown_parameter_comes_with_the_nearest_name() -> None:
    (problem,) = check({"city": "Oslo", "dayz": 3}, CITY)
    assert (problem.violation, problem.error_class) == ("unknown_parameter", "unknown_parameter")
    assert problem.message == "parameter 'dayz' is not in the schema (did you mean 'days'?)"


def test_unknown_parameters_are_fine_where_the_schema_allows_them() -> None:
    parameters = {"properties": {"a": {}}, "additionalProperties": True}
    assert check({"b": 1}, ToolSchema(name="t", parameters=parameters)) == []


@pytest.mark.parametrize(
    ("declared", "value"),
    [
        ("string", 5), ("integer", "5"), ("integer", 2.5), ("integer", True), ("number", "1.5"), ("number", False),
        ("boolean", "true"), ("boolean", 1), ("array", "a,b"), ("object", [1]), ("null", 0), (["string", "null"], 3),
    ],
)  # fmt: skip
def test_a_wrong_type_is_found(declared: Any, value: Any) -> None:
    assert found({"x": value}, schema(x={"type": declared})) == [("wrong_type", "x")]


@pytest.mark.parametrize(
    ("declared", "value"),
    [("integer", 3.0), ("number", 3), (["string", "null"], None), ("array", []), ("no_such_type", 1), (None, 1)],
)
def test_a_right_type_passes(declared: Any, value: Any) -> None:
    assert found({"x": value}, schema(x={"type": declared} if declared else {})) == []


def test_a_value_outside_of_the_enum_is_found() -> None:
    (problem,) = check({"unit": "kelvin"}, schema(unit={"type": "string", "enum": ["celsius", "fahrenheit"]}))
    assert problem.message == "parameter 'unit' is 'kelvin', the schema allows 'celsius', 'fahrenheit'"


@pytest.mark.parametrize(
    ("limits", "value"),
    [
        ({"minimum": 1}, 0), ({"maximum": 10}, 11), ({"exclusiveMinimum": 0}, 0), ({"exclusiveMaximum": 1}, 1.0),
        ({"minLength": 2}, "a"), ({"maxLength": 2}, "abc"), ({"minItems": 1}, []), ({"maxItems": 1}, [1, 2]),
    ],
)  # fmt: skip
def test_a_value_out_of_range_is_found(limits: dict[str, Any], value: Any) -> None:
    assert found({"x": value}, schema(x=limits)) == [("out_of_range", "x")]


def test_nested_objects_and_lists_are_checked_with_their_path() -> None:
    flight = {"type": "object", "properties": {"date": {"type": "string"}}, "required": ["date"]}
    declared = schema(flights={"type": "array", "items": flight})
    assert found({"flights": [{"date": "2025-01-01"}, {"day": 1}]}, declared) == [
        ("missing_parameter", "flights.1.date"),
        ("unknown_parameter", "flights.1.day"),
    ]


def test_one_of_several_forms_is_enough() -> None:
    declared = schema(x={"anyOf": [{"type": "integer"}, {"type": "string", "enum": ["all"]}]})
    assert found({"x": 1}, declared) == found({"x": "all"}, declared) == []
    assert len(found({"x": "some"}, declared)) == 1


def test_an_input_that_is_no_object_is_told() -> None:
    assert found("Oslo", CITY) == [("not_an_object", "")]


def test_a_schema_with_nonsense_in_it_never_raises() -> None:
    for parameters in (
        {"properties": 5},
        {"properties": {"a": 5}},
        {"required": "city"},
        {"properties": {"a": {"enum": 3}}},
    ):
        check({"a": {"b": 1}}, ToolSchema(name="t", parameters=parameters))


def test_at_most_eight_problems_are_told() -> None:
    assert len(check({f"p{i}": 1 for i in range(50)}, CITY)) == 8
