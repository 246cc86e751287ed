"""Guidance is swapped only where nothing changed; a new verdict makes a call new again."""

import pytest

from toolmem.errors import Conflict
from toolmem.models.calls import JudgeIdentity, Verdict
from toolmem.models.guidance import Guidance
from toolmem.models.records import Document

JUDGE = JudgeIdentity("offline", "rule_based_check", "1")
GOOD, BAD = Verdict("s", "e", 1, False, JUDGE), Verdict("s", "e", 0, True, JUDGE)


@pytest.fixture
def five(store, call):
    store.append_calls("w", [call(id=str(n)) for n in range(5)], 10)


def test_a_call_that_arrives_during_a_summary_stays_new_and_is_no_conflict(
    store, call, five, summarize
):
    store.append_calls("w", [call(id="late")], 10)
    record = summarize([1, 2, 3, 4, 5], 0)
    assert (record.new, record.guidance_version) == ([6], 1)
    marks = [each.is_summarized for each in store.windows("w")[0].calls]
    assert marks == [True] * 5 + [False]


def test_a_second_summary_of_the_same_state_conflicts(store, five, summarize):
    summarize([1, 2], 0)
    with pytest.raises(Conflict):
        summarize([1, 2, 3], 0, text="another")
    (record,) = store.records("w")
    assert record.new == [3, 4, 5]
    assert record.guidance.text == "ask for one thing"


def test_a_new_verdict_conflicts_with_a_summary_and_makes_its_call_new_again(
    store, call, five, summarize
):
    summarize([1, 2, 3, 4, 5], 0)
    store.update_verdicts("w", "search", {2: call().judged(GOOD)})
    with pytest.raises(Conflict):
        summarize([1, 2, 3, 4, 5], 1)
    (record,) = store.records("w")
    assert record.new == [2]
    assert record.guidance.text == "ask for one thing"
    assert summarize([1, 2, 3, 4, 5], record.guidance_version).new == []


def test_counters_of_a_rejudged_call_change_by_the_difference(store, call, five):
    store.update_verdicts("w", "search", {2: call().judged(GOOD), 3: call().judged(BAD)})
    store.update_verdicts("w", "search", {2: call().judged(BAD)})
    counters = store.records("w")[0].counters
    assert (counters.calls, counters.judged, counters.score_sum) == (5, 2, 0.0)
    assert (counters.failures, counters.successes) == (2, 0)


def test_a_verdict_of_a_call_that_left_the_window_is_passed_over(store, call, five):
    store.append_calls("w", [call(id="next")], 5)
    before = store.records("w")
    assert store.update_verdicts("w", "search", {1: call().judged(GOOD)}).counters.judged == 0
    assert store.records("w") == before
    after = store.update_verdicts("w", "search", {1: call().judged(GOOD), 2: call().judged(GOOD)})
    assert after.counters.judged == 1


def test_a_verdict_changes_the_judgement_and_nothing_else(store, call, five):
    before = store.windows("w")[0].calls[0]
    other = call(output="not what was stored", input={"x": 1}).judged(BAD)
    store.update_verdicts("w", "search", {1: other})
    after = store.windows("w")[0].calls[0]
    assert (after.score, after.execution_failed, after.judge) == (0.0, True, JUDGE)
    assert (after.output, after.input, after.id) == (before.output, before.input, before.id)


def test_guidance_for_a_tool_that_is_gone_conflicts(store, summarize):
    with pytest.raises(Conflict):
        summarize([1], 0)


def test_records_are_read_with_guidance_or_without(store, five, summarize):
    summarize([1], 0)
    assert store.records("w")[0].guidance.text == "ask for one thing"
    assert store.records("w", guidance=False)[0].guidance is None


def test_verdicts_are_kept_by_key(store):
    store.put_verdicts("w", {"a": GOOD, "b": BAD})
    assert store.verdicts("w", ["b", "c", "a"]) == {"a": GOOD, "b": BAD}
    assert store.verdicts("v", ["a"]) == {}
    assert store.namespaces("w") == []


def test_guidance_is_found_by_its_words_and_replaced_words_are_not(store, five, summarize):
    summarize([1], 0, text="prefer short queries")
    assert [hit.key for hit in store.search("w", None, "short", None, 5)] == ["search"]
    store.put_guidance(
        "w",
        "search",
        Guidance(text="long", author="x", covered=[1]),
        document=Document("long ones"),
        expected_version=1,
    )
    assert store.search("w", None, "short", None, 5) == []
