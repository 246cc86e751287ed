"""The input of a call against the tool's JSON schema: names, required ones, types, enums, ranges."""

from __future__ import annotations

import difflib
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from toolmem.light_models import ToolSchema
from toolmem.readers.json_values import is_json_type, json_type
from toolmem.readers.masking import has_mask

Violation = Literal[
    "unknown_parameter", "missing_parameter", "wrong_type", "not_in_enum", "out_of_range", "not_an_object"
]

Bounds = tuple[tuple[str, Callable[[float, float], bool], str], ...]

_NUMBER_BOUNDS: Bounds = (
    ("minimum", operator.ge, "at least"),
    ("maximum", operator.le, "at most"),
    ("exclusiveMinimum", operator.gt, "more than"),
    ("exclusiveMaximum", operator.lt, "less than"),
)
_TEXT_BOUNDS: Bounds = (("minLength", operator.ge, "at least"), ("maxLength", operator.le, "at most"))
_ARRAY_BOUNDS: Bounds = (("minItems", operator.ge, "at least"), ("maxItems", operator.le, "at most"))

_DEPTH = 6
_MOST = 8  # violations that are told of one call
_SHOWN = 60  # characters of a value in a message


@dataclass(frozen=True, slots=True)
class ParameterProblem:
    """One way in which an input breaks its schema. `parameter` is a dotted path, as in `flights.0.date`."""

    violation: Violation
    parameter: str
    message: str

    @property
    def error_class(self) -> str:
        return self.violation if self.violation in ("unknown_parameter", "missing_parameter") else "invalid_value"


def check(given: Any, schema: ToolSchema | None) -> list[ParameterProblem]:
    """The problems of an input, at most 8, in the order of the input. Never raises, whatever the schema says.

    A schema without `properties` says nothing about names. Unknown names are problems unless the schema allows
    `additionalProperties`; JSON Schema would allow them by default, but a tool's function would not take them.
    """
    if schema is None or not schema.parameters:
        return []
    parameters = schema.parameters
    if not isinstance(given, dict):
        if not _properties(parameters):
            return []
        return [ParameterProblem("not_an_object", "", f"the input is {json_type(given)}, the schema wants an object")]
    problems: list[ParameterProblem] = []
    _check_object(given, parameters, "", problems, 0)
    return problems[:_MOST]


def _properties(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    properties = schema.get("properties")
    return properties if isinstance(properties, Mapping) else {}


def _check_object(
    given: Mapping[str, Any], schema: Mapping[str, Any], path: str, problems: list[ParameterProblem], depth: int
) -> None:
    properties = _properties(schema)
    required = schema.get("required")
    names = [name for name in required if isinstance(name, str)] if isinstance(required, list) else []
    problems.extend(
        ParameterProblem("missing_parameter", path + name, f"required parameter '{path}{name}' is missing")
        for name in names
        if name not in given
    )
    closed = schema.get("additionalProperties") in (None, False) and "patternProperties" not in schema
    for name, value in given.items():
        if len(problems) >= _MOST:
            return
        if name in properties:
            _check_value(value, properties[name], path + str(name), problems, depth + 1)
        elif properties and closed:
            near = difflib.get_close_matches(str(name)[:80], [str(p) for p in properties], n=1, cutoff=0.6)
            hint = f" (did you mean '{near[0]}'?)" if near else ""
            message = f"parameter '{path}{str(name)[:_SHOWN]}' is not in the schema{hint}"
            problems.append(ParameterProblem("unknown_parameter", path + str(name), message))


def _check_value(value: Any, schema: Any, path: str, problems: list[ParameterProblem], depth: int) -> None:
    if not isinstance(schema, Mapping) or depth > _DEPTH or len(problems) >= _MOST:
        return
    if isinstance(value, str) and has_mask(value):  # what stood there fitted or not: nobody can tell any more
        return
    for combination in ("anyOf", "oneOf"):
        choices = schema.get(combination)
        if isinstance(choices, list) and choices:
            attempts: list[list[ParameterProblem]] = []
            for choice in choices[:20]:
                attempt: list[ParameterProblem] = []
                _check_value(value, choice, path, attempt, depth + 1)
                attempts.append(attempt)
            if all(attempts):
                problems.extend(min(attempts, key=len)[:1])
            return
    if value is None and (schema.get("nullable") is True or ("default" in schema and schema["default"] is None)):
        return
    types = _types(schema.get("type"))
    if types and not any(is_json_type(value, name) for name in types):
        message = f"parameter '{path}' is {json_type(value)} {_shown(value)}, the schema wants {' or '.join(types)}"
        problems.append(ParameterProblem("wrong_type", path, message))
        return
    _check_enum(value, schema, path, problems)
    _check_range(value, schema, path, problems)
    if isinstance(value, dict):
        _check_object(value, schema, path + ".", problems, depth)
    elif isinstance(value, list):
        for i, item in enumerate(value[:50]):
            _check_value(item, schema.get("items"), f"{path}.{i}", problems, depth + 1)


def _check_enum(value: Any, schema: Mapping[str, Any], path: str, problems: list[ParameterProblem]) -> None:
    allowed = [schema["const"]] if "const" in schema else schema.get("enum")
    if _is_list(allowed) and allowed and value not in allowed:
        shown = ", ".join(_shown(item) for item in allowed[:8]) + (", ..." if len(allowed) > 8 else "")
        message = f"parameter '{path}' is {_shown(value)}, the schema allows {shown}"
        problems.append(ParameterProblem("not_in_enum", path, message))


def _check_range(value: Any, schema: Mapping[str, Any], path: str, problems: list[ParameterProblem]) -> None:
    if isinstance(value, bool):
        return
    if isinstance(value, (int, float)):
        bounds, measured, shown, unit = _NUMBER_BOUNDS, value, _shown(value), ""
    elif isinstance(value, (str, list)):
        text = isinstance(value, str)
        unit = " characters" if text else " items"
        bounds, measured = _TEXT_BOUNDS if text else _ARRAY_BOUNDS, len(value)
        shown = f"{measured}{unit} long"
    else:
        return
    for name, holds, words in bounds:
        bound = schema.get(name)
        if isinstance(bound, (int, float)) and not isinstance(bound, bool) and not holds(measured, bound):
            message = f"parameter '{path}' is {shown}, the schema wants {words} {bound}{unit}"
            problems.append(ParameterProblem("out_of_range", path, message))


def _types(wanted: Any) -> list[str]:
    if isinstance(wanted, str):
        return [wanted]
    return [name for name in wanted if isinstance(name, str)] if _is_list(wanted) else []


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def _shown(value: Any) -> str:
    long = isinstance(value, dict | list) and len(value) >= 20
    text = re.sub(r"\s+", " ", f"{json_type(value)} of {len(value)}" if long else repr(value))
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."
