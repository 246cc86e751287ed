"""Guidance on the recorded calls of the shared data folder; skipped where that is absent."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path

import pytest

from toolmem.guidance.counted.analysis import Analysis, analyze
from toolmem.guidance.counted.data_driven import DataDrivenWriter
from toolmem.guidance.counted.repairs import tally
from toolmem.guidance.outcomes import went_wrong
from toolmem.judge.rule_based import RuleBasedCheck
from toolmem.models import Claim, Guidance, ToolCallResult

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


@cache
def analysis(dataset: str, tool: str) -> Analysis:
    return analyze(tool, recorded(dataset)[tool])


@cache
def guidance(dataset: str, tool: str) -> Guidance:
    return DataDrivenWriter().compose(tool, recorded(dataset)[tool])


def claims(dataset: str, tool: str, kind: str) -> list[Claim]:
    return [claim for claim in guidance(dataset, tool).claims if claim.kind == kind]


def test_after_a_missing_table_show_came_next_in_754_of_856_recoveries() -> None:
    found = analysis("intercode", "sql_execute")
    (missing,) = (group for group in found.errors if group.label.startswith("Table '"))
    assert len(missing.positions) == 1301
    recovered = [one for one in found.recoveries if one.failure in set(missing.positions)]
    assert len(recovered) == 856
    repair, some = tally(recovered)[0]
    assert (repair.kind, repair.before, repair.after, len(some)) == ("statement", "SELECT", "SHOW", 754)
    forms = [found.seen[one.success].texts["query"] for one in some]
    assert sum(form.form == "SHOW TABLES" for form in forms) == 747  # type: ignore[union-attr]


def test_that_repair_stands_in_the_text_once_for_each_success() -> None:
    found = analysis("intercode", "sql_execute")
    (missing,) = (group for group in found.errors if group.label.startswith("Table '"))
    recovered = {one.success: one.failure for one in sorted(found.recoveries, key=lambda one: one.failure)}
    assert len(set(recovered.values()) & set(missing.positions)) == 742  # the last failure before it was of this kind
    texts = [claim.text for claim in claims("intercode", "sql_execute", "repair")]
    repair = "use SHOW (mostly SHOW TABLES) next, not another SELECT (665 of 742 recoveries)."
    assert f"After “Table '…' doesn't exist”: {repair}" in texts


def test_repeats_of_failed_calls_agree_with_a_recount_over_all_recordings() -> None:
    repeats = failed = 0
    for dataset in DATASETS:
        for tool in recorded(dataset):
            found = analysis(dataset, tool).repeats
            repeats, failed = repeats + found.count, failed + len(found.failed)
    expected = [0, 0]
    for dataset in DATASETS:
        for calls in recorded(dataset).values():
            seen: set[tuple[str, str]] = set()
            for one in calls:
                key = (str(one.metadata["conversation_id"]), json.dumps(one.input, sort_keys=True))
                expected[0] += key in seen
                expected[1] += key in seen and one.success is False
                if one.success is False:
                    seen.add(key)
    assert [repeats, failed] == expected
    assert repeats > 1000


def test_a_look_at_the_schema_before_a_query_is_found() -> None:
    sequences = {claim.text.split(":")[0]: claim for claim in claims("intercode", "sql_execute", "sequence")}
    first = sequences["Before a SELECT, run SHOW in the same conversation"]
    assert first.k / first.n > 0.7


@pytest.mark.parametrize(
    ("dataset", "tool", "kind", "said"),
    [
        ("tau_bench", "update_reservation_flights", "repair", "change `flights` (2 of 2 recoveries)"),
        ("tau_bench", "book_reservation", "repair", "change `payment_methods` (6 of 6 recoveries)"),
        ("tau_bench", "find_user_id_by_email", "error_class", "“user not found” (not_found): 18 of 18 failures"),
        ("toolbench", "search_basic_free_for_streaming_availability", "repair", "add `keyword` and leave out `genre`"),
        ("toolbench", "search_basic_free_for_streaming_availability", "repeat", "28 of 28 repeats failed again"),
        ("toolbench", "search_shows_q_query_for_tvmaze", "unrecovered", "“Endpoint '/search/shows' does not exist”"),
        ("openhands", "str_replace_editor", "error_class", "`old_str` is required for command: str_replace.”"),
        ("openhands", "str_replace_editor", "repair", "use command='view' next, not another 'str_replace'"),
        ("openhands", "execute_bash", "parameter", "&& in `command`"),
    ],
)
def test_what_the_recordings_teach_is_said(dataset: str, tool: str, kind: str, said: str) -> None:
    assert any(said in claim.text for claim in claims(dataset, tool, kind))


@pytest.mark.parametrize("dataset", ["tau_bench", "tau2_airline", "toolbench", "openhands"])
@pytest.mark.parametrize("language", ["", "zh"])
def test_every_claim_on_every_tool_can_be_checked(dataset: str, language: str) -> None:
    writer = DataDrivenWriter("zh" if language else "")
    for tool, calls in recorded(dataset).items():
        by_id = {one.id: one for one in calls}
        for claim in writer.compose(tool, calls).claims:
            assert 0 <= claim.k <= claim.n
            named = [by_id[i] for i in claim.call_ids]
            assert len(named) in {claim.k, claim.n}
            if claim.kind in {"parameter", "advice", "sequence"}:
                assert claim.k == sum(went_wrong(one) is False for one in named)
            if claim.kind in {"error_class", "refused", "repair", "unrecovered", "rule_out", "target"}:
                assert all(went_wrong(one) for one in named)
