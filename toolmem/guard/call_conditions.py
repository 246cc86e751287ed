"""Conditions of rules: JSON Schemas over a call's view, or alternatives of tests, made safe before they are kept.

Of schemas draft 2020-12, fixed. What could reach beyond the view, or cost more than linear time, is refused with its
place.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from toolmem.errors import RequestError
from toolmem.guard.view import view_of
from toolmem.guard.word_lists import split

LONGEST = 8 * 1024  # bytes of a condition, as JSON
DEEPEST = 16  # levels
_FORBIDDEN = split(
    "$ref $schema $dynamicRef $recursiveRef $id $anchor $dynamicAnchor $recursiveAnchor $defs definitions $vocabulary "
    "format contentMediaType contentEncoding contentSchema unevaluatedProperties unevaluatedItems"
)
_OF_SCHEMAS = split("allOf anyOf oneOf prefixItems")
_OF_ONE = split("not contains items additionalProperties propertyNames if then else")
_BY_NAME = split("properties patternProperties dependentSchemas")
_NEEDS_TYPE = {
    "pattern": "string",
    "minLength": "string",
    "maxLength": "string",
    "minimum": "number",
    "maximum": "number",
    "exclusiveMinimum": "number",
    "exclusiveMaximum": "number",
    "multipleOf": "number",
}

Condition = Mapping[str, Any] | bool


def check_condition(when: Any, field: str = "when") -> Condition:
    """`when`, where it can be kept; else a RequestError that names the place and the remedy.

    A JSON Schema, true, or alternatives: a list of them, or an object of `when` and `unless`, as it is kept then.
    """
    kept = require_safe(when, field)
    if of_alternatives(kept):
        _check_of_nothing(kept, field)
        return kept
    if isinstance(kept, Mapping):
        _require_schema(kept, field)
    nothing = view_of("", {}).fields
    if kept is not True and holds(kept, nothing, field=field):
        raise RequestError(
            f"`{field}`: a call without arguments fulfils it, so it would bind every call: add `required` and a "
            "`contains`, or write true if every call is meant",
            field=field,
        )
    for place, schema in _of_the_view(kept, field):
        _check_names(place, schema, nothing.keys(), field)
    return kept


def _require_schema(when: Mapping[str, Any], field: str) -> None:
    """An alternative that stands alone would be a JSON Schema that asks for nothing."""
    from toolmem.guard.alternatives import TESTS

    if found := [name for name in when if name in (*TESTS, "unless")]:
        told = "write a list of alternatives, each an object of tests, or an object of `when` and `unless`"
        raise RequestError(f"`{field}.{found[0]}`: no keyword of a JSON Schema: {told}", field=field)


def _check_of_nothing(kept: Condition, field: str) -> None:
    from toolmem.guard.alternatives import of_given_calls, read_alternatives
    from toolmem.guard.compiled_conditions import CompiledConditions

    given = of_given_calls(read_alternatives(kept))
    if CompiledConditions(given).hold(view_of("", {}), datetime.now(UTC)):
        told = 'a call without arguments is stopped: add a test, or write "always": true if every call is meant'
        raise RequestError(f"`{field}`: {told}", field=field)


def require_safe(when: Any, field: str = "when") -> Condition:
    """`when`, where it is bounded and refers to nothing; patterns are tried when it is first checked."""
    if when is True:
        return True
    if of_alternatives(when):
        from toolmem.guard.alternatives import as_written, read_alternatives

        return {**as_written(read_alternatives(when, field)), **_examples(when, field)}
    if not isinstance(when, Mapping):
        told = f"`{field}`: expected alternatives of tests, a JSON Schema over the call's view, or true for every call"
        raise RequestError(told, field=field)
    try:
        text = json.dumps(when, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise RequestError(f"`{field}`: not JSON: {str(error)[:100]}", field=field) from None
    if len(text.encode("utf-8", "surrogatepass")) > LONGEST:
        raise RequestError(f"`{field}`: {len(text)} characters, and {LONGEST} bytes is the most: say less", field=field)
    for place, schema in _schemas(when, field, 1):
        _check_keywords(place, schema, field)
    return when


def _examples(when: Any, field: str) -> dict[str, Any]:
    """The example calls of alternatives, which check nothing."""
    found = {name: when[name] for name in ("stops", "passes") if isinstance(when, Mapping) and when.get(name)}
    text = json.dumps(found, ensure_ascii=False, default=str)
    if len(text) > LONGEST or not all(isinstance(each, list) for each in found.values()):
        raise RequestError(f"`{field}`: stops and passes: expected a few short example calls", field=field)
    return found


def of_alternatives(when: Any) -> bool:
    """Is a condition written as alternatives of tests, and not as a JSON Schema?"""
    return isinstance(when, list) or (isinstance(when, Mapping) and "when" in when)


def needs_history(when: Any) -> bool:
    """Does a condition ask for earlier calls, or how many there were?"""
    if not of_alternatives(when):
        return False
    listed = [*when.get("when", ()), *when.get("unless", ())] if isinstance(when, Mapping) else when
    return any(isinstance(each, Mapping) and ("earlier" in each or "more_than" in each) for each in listed)


def holds(when: Condition, view: Mapping[str, Any], *, field: str = "when") -> bool:
    """Does a view fulfil a condition?"""
    return when if isinstance(when, bool) else bool(validator_of(when, field).is_valid(view))


def validator_of(when: Mapping[str, Any], field: str = "when") -> Any:
    """What tells whether a view fulfils a condition (`is_valid`); made once. Raises RequestError."""
    return _validator(json.dumps(when, sort_keys=True), field)


@lru_cache(maxsize=4096)
def _validator(text: str, field: str) -> Any:
    import jsonschema_rs  # 47 ms, and only rules with a condition need it

    try:
        linear = jsonschema_rs.RegexOptions(size_limit=1_000_000)
        return jsonschema_rs.Draft202012Validator(json.loads(text), pattern_options=linear, offline=True)
    except ValueError as error:  # its ValidationError is one
        told = f"not a JSON Schema that can be checked in linear time: {' '.join(str(error).split())[:200]}"
        raise RequestError(f"`{field}`: {told}", field=field) from None


def _schemas(schema: Any, place: str, depth: int) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every schema of a condition with its place."""
    if depth > DEEPEST:
        raise RequestError(f"`{place[:200]}`: deeper than {DEEPEST} levels: say it flatter", field=place.split(".")[0])
    if not isinstance(schema, Mapping):
        return
    yield place, schema
    for keyword, value in schema.items():
        here = f"{place}.{keyword}"
        if keyword in _OF_ONE:
            yield from _schemas(value, here, depth + 1)
        elif keyword in _OF_SCHEMAS and isinstance(value, list):
            for index, each in enumerate(value):
                yield from _schemas(each, f"{here}.{index}", depth + 1)
        elif keyword in _BY_NAME and isinstance(value, Mapping):
            for name, each in value.items():
                yield from _schemas(each, f"{here}.{name}", depth + 1)


def _of_the_view(schema: Any, place: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The schemas of a condition that speak of the view itself, not of what is in it."""
    if isinstance(schema, Mapping):
        yield place, schema
        for keyword in ("not", "if", "then", "else"):
            yield from _of_the_view(schema.get(keyword), f"{place}.{keyword}")
        for keyword in ("allOf", "anyOf", "oneOf"):
            for index, each in enumerate(schema.get(keyword) or ()):
                yield from _of_the_view(each, f"{place}.{keyword}.{index}")


def _check_names(place: str, schema: Mapping[str, Any], known: Collection[str], field: str) -> None:
    """A name that no view has would bind no call, and nobody would notice."""
    for keyword in ("required", "properties"):
        for name in schema.get(keyword) or ():
            if name not in known:
                told = f"{str(name)[:80]!r} is not in a call's view ({', '.join(known)})"
                raise RequestError(f"`{place}.{keyword}`: {told}; a parameter stands inside `arguments`", field=field)


def _check_keywords(place: str, schema: Mapping[str, Any], field: str) -> None:
    for keyword in schema:
        if not isinstance(keyword, str):
            raise RequestError(f"`{place}`: expected names that are text, got {keyword!r}"[:200], field=field)
        if keyword in _FORBIDDEN or keyword.startswith("$"):
            raise RequestError(f"`{place}.{keyword}`: not allowed in a condition, which stands for itself", field=field)
        if keyword in _NEEDS_TYPE and "type" not in schema:
            wanted = _NEEDS_TYPE[keyword]
            raise RequestError(
                f'`{place}.{keyword}`: holds for everything that is no {wanted}: write "type": "{wanted}" beside it',
                field=field,
            )
    if "properties" in schema and "required" not in schema:
        raise RequestError(
            f"`{place}.properties`: holds for everything without these properties: name them in `required`", field=field
        )
