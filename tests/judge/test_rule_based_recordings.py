"""The rule-based check on recorded calls, the flag withheld: the project's own sample, and the public recordings."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from toolmem.judge.rule_based import RuleBasedCheck
from toolmem.models import ToolCallResult
from toolmem.sample import sample_path

DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "recorded_calls"
WORDS = ("error", "traceback", "exception", "no such file", "not found", "invalid", "cannot", "denied", "failed")


def told_failed(record: dict[str, Any]) -> bool:
    call = ToolCallResult(
        tool_name=record["tool_name"],
        input=record["input"],
        output=record["output"],
        create_time=datetime(2025, 1, 1, tzinfo=UTC),
    )
    return RuleBasedCheck().check(call).execution_failed is True


def balanced_accuracy(labels: list[bool], told: list[bool]) -> float:
    failures = [t for label, t in zip(labels, told, strict=True) if label]
    clean = [not t for label, t in zip(labels, told, strict=True) if not label]
    return (sum(failures) / len(failures) + sum(clean) / len(clean)) / 2


def test_the_sample_s_failures_are_found_behind_flags_that_say_success() -> None:
    source = sample_path()
    records = [json.loads(line) for line in gzip.decompress(source.read_bytes()).decode().splitlines()]
    labels = [bool(record["metadata"]["expected_failure"]) for record in records]
    assert balanced_accuracy(labels, [told_failed(record) for record in records]) >= 0.97


@pytest.mark.parametrize(
    ("dataset", "least"),
    [("tau_bench", 0.99), ("tau2_airline", 0.99), ("toolbench", 0.9), ("intercode", 0.97), ("openhands", 0.9)],
)
def test_recorded_failures_are_found_with_the_flag_withheld(dataset: str, least: float) -> None:
    path = DATA / f"{dataset}.calls.jsonl.gz"
    if not path.exists():
        pytest.skip("the public recordings are not beside the project (../shared/data)")
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        records = [json.loads(line) for line in lines]
    labels = [not record["success"] for record in records]
    ours = balanced_accuracy(labels, [told_failed(record) for record in records])
    simple = [any(word in record["output"][:1_000].lower() for word in WORDS) for record in records]
    assert ours >= least
    assert ours >= balanced_accuracy(labels, simple)
