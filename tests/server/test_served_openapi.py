"""The OpenAPI document says what the service does: requests made from it, good ones and bad ones, never fail it."""

from __future__ import annotations

from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
)

from toolmem.app import ToolMemApp


def refused_or_named(ctx: Any, response: Any, case: Any) -> bool | None:
    """What breaks the document is refused; of a list of calls, one that is none is named beside the others."""
    if response.status_code == 200:
        told = response.json()
        metadata = told.get("metadata", {}) if isinstance(told, dict) else {}
        if metadata.get("evaluation", {}).get("failures"):
            return None
    return negative_data_rejection(ctx, response, case)


EXAMPLES = 40  # per operation; a third of them break the document
CHECKS = [
    *(not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance),
    refused_or_named,
]
OPERATIONS = [*((f"/{flow}", "POST") for flow in sorted(ToolMemApp().flows)), ("/rpc", "POST"), ("/health", "GET")]


@pytest.fixture(scope="module")
def schema(served):
    schema = schemathesis.openapi.from_url(f"{served.url}/openapi.json")
    # What breaks the document is refused: 413 where the break is a list that is too long.
    schema.config.checks.negative_data_rejection.expected_statuses = ["401", "403", "404", "413", "415", "422"]
    return schema


@pytest.mark.parametrize(("path", "method"), OPERATIONS, ids=lambda value: value.strip("/"))
def test_requests_made_from_the_document_are_answered_as_it_says(schema, path, method):
    operation = schema[path][method]
    cases = operation.as_strategy(generation_mode=GenerationMode.POSITIVE)
    if operation.body:
        cases = st.one_of(cases, cases, operation.as_strategy(generation_mode=GenerationMode.NEGATIVE))
    asked = 0

    @seed(20260101)
    @settings(
        max_examples=EXAMPLES, deadline=None, derandomize=False, database=None, suppress_health_check=list(HealthCheck)
    )
    @given(case=cases)
    def ask(case: Any) -> None:
        nonlocal asked
        asked += 1
        case.validate_response(case.call(), checks=CHECKS)

    ask()
    assert asked


def test_the_document_describes_every_flow_and_its_examples_work(served):
    document: dict[str, Any] = requests.get(f"{served.url}/openapi.json", timeout=10).json()
    flows = requests.get(f"{served.url}/health", timeout=10).json()["flows"]
    assert {f"/{flow}" for flow in flows} | {"/rpc", "/health"} <= set(document["paths"])
    assert all(document["paths"][f"/{flow}"]["post"]["summary"] for flow in flows)
    shown = document["paths"]["/rpc"]["post"]["requestBody"]["content"]["application/json"]["examples"]
    assert set(shown) == {"one", "batch"}
    for example in shown.values():
        assert requests.post(served.url + "/rpc", json=example["value"], timeout=10).status_code == 200
