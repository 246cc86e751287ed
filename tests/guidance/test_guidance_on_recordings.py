"""Guidance on the recorded calls of the shared data folder; skipped where that is absent."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path

import pytest

from toolmem.guidance.counted.data_driven import DataDrivenWriter
from toolmem.guidance.counted.repair_history import KEPT_IDS
from toolmem.guidance.outcomes import went_wrong
from toolmem.judge.rule_based import RuleBasedCheck
from toolmem.models import ToolCallResult
from toolmem.research.backtest.baselines import counting_pairs
from toolmem.research.backtest.coverage import coverage
from toolmem.research.backtest.replay import kept_up
from toolmem.research.backtest.splitting import split_tools

RECORDED = Path(__file__).parents[2] / ".." / "shared" / "data" / "recorded_calls"
DATASETS = ("tau_bench", "tau2_airline", "toolbench", "intercode", "openhands")

pytestmark = pytest.mark.skipif(not RECORDED.is_dir(), reason=f"no recorded calls at {RECORDED}")


@cache
def recorded(dataset: str) -> dict[str, list[ToolCallResult]]:
    """Calls by tool, judged by the rule-based check but for the largest recording, whose flags will do."""
    judge = RuleBasedCheck()
    tools: dict[str, list[ToolCallResult]] = {}
    with gzip.open(RECORDED / f"{dataset}.calls.jsonl.gz", "rt", encoding="utf-8") as lines:
        for i, line in enumerate(lines):
            one = ToolCallResult(**json.loads(line), id=f"{dataset}-{i}")
            tools.setdefault(one.tool_name, []).append(one if dataset == "intercode" else one.judged(judge.check(one)))
    return tools


@pytest.mark.parametrize("dataset", ["tau_bench", "tau2_airline", "toolbench", "openhands"])
@pytest.mark.parametrize("language", ["", "zh"])
def test_every_claim_on_every_tool_can_be_checked(dataset: str, language: str) -> None:
    writer = DataDrivenWriter("zh" if language else "")
    for tool, calls in recorded(dataset).items():
        by_id = {one.id: one for one in calls}
        for claim in writer.compose(tool, calls).claims:
            assert 0 <= claim.k <= claim.n
            named = [by_id[i] for i in claim.call_ids]
            assert len(named) == min(claim.k, KEPT_IDS) if claim.kind in {"failure", "silent"} else named
            assert claim.kind != "failure" or all(went_wrong(one) for one in named)
            assert claim.kind not in {"silent", "example"} or not any(went_wrong(one) for one in named)


@pytest.mark.parametrize("dataset", ["tau_bench", "tau2_airline", "toolbench", "openhands"])
def test_a_card_names_no_fewer_later_repairs_than_pairs_of_errors_and_repairs_do(dataset: str) -> None:
    writer = DataDrivenWriter(max_tokens=500)
    for fold in (0, 1):
        splits = split_tools(recorded(dataset), fold=fold) or {}
        later = [call for split in splits.values() for call in split.later]
        cards = {tool: kept_up(writer, split.earlier) for tool, split in splits.items()}
        pairs = {tool: counting_pairs(split.earlier) for tool, split in splits.items()}
        ours, theirs = (coverage(each, later, 500, strict=True) for each in (cards, pairs))
        assert sum(ours.hits) >= sum(theirs.hits)
