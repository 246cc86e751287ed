from __future__ import annotations

import random
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from toolmem.guidance.counted.analysis import analyze
from toolmem.guidance.counted.conditions import Condition, holds
from toolmem.guidance.counted.patterns import Pattern, positions_of
from toolmem.models import ToolCallResult

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def call(given: dict[str, object] | str, success: bool | None, conversation: object = None) -> ToolCallResult:
    return ToolCallResult(
        tool_name="t",
        input=given,
        output="fine" if success else "Error: refused",
        success=success,
        create_time=NOW,
        metadata={} if conversation is None else {"conversation_id": conversation},
    )


def patterns(calls: list[ToolCallResult]) -> list[Pattern]:
    return list(analyze("t", calls).failures.patterns)


def named(calls: list[ToolCallResult]) -> dict[Condition, Pattern]:
    return {pattern.condition: pattern for pattern in patterns(calls)}


def test_a_value_that_never_works_is_found_with_its_counts() -> None:
    calls = [call({"language": "unknown", "text": f"a{i}"}, False) for i in range(8)]
    calls += [call({"language": "en", "text": f"b{i}"}, i != 3) for i in range(22)]
    found = named(calls)[Condition("value", "language", "'unknown'")]
    assert (found.k, found.n, found.other_k, found.other_n) == (0, 8, 21, 22)
    assert not found.good


def test_a_missing_parameter_is_named_by_its_absence() -> None:
    calls = [call({"q": f"a{i}"}, False) for i in range(9)]
    calls += [call({"q": f"b{i}", "genre": str(i)}, True) for i in range(12)]
    found = patterns(calls)[0]
    assert found.condition.kind in {"absent", "present"}
    assert found.condition.path == "genre"
    assert {(found.k, found.n), (found.other_k, found.other_n)} == {(0, 9), (12, 12)}


def test_the_shape_of_an_optional_parameter_is_compared_among_the_calls_that_give_it() -> None:
    calls = [call({"q": f"a{i}", "genre": word}, False) for i, word in enumerate(["comedy", "drama", "war"] * 3)]
    calls += [call({"q": f"b{i}", "genre": str(20 + i)}, True) for i in range(10)]
    calls += [call({"q": f"c{i}"}, i % 2 == 0) for i in range(10)]
    shapes = [p for p in patterns(calls) if p.condition.path == "genre" and p.condition.kind != "present"]
    assert shapes
    assert shapes[0].within == Condition("present", "genre")
    assert shapes[0].n + shapes[0].other_n == 19


def test_too_many_values_are_found_as_a_bound() -> None:
    calls = [
        call({"services": ",".join(["s"] * count), "n": i}, count <= 4)
        for i, count in enumerate([1, 2, 3, 4, 5, 6] * 6)
    ]
    found = patterns(calls)[0]
    assert found.condition == Condition("at_least", "services", "items", 5.0) or found.condition == Condition(
        "below", "services", "items", 5.0
    )
    assert {(found.k, found.n), (found.other_k, found.other_n)} == {(0, 12), (24, 24)}


def test_what_has_to_come_first_is_found_across_conversations() -> None:
    calls = []
    for c in range(20):
        if c % 2:
            calls.append(call({"sql": "SHOW TABLES"}, True, c))
        calls.append(call({"sql": f"SELECT a FROM t{c}"}, c % 2 == 1, c))
    found = named(calls)[Condition("earlier", "sql", "SHOW")]
    assert found.within == Condition("statement", "sql", "SELECT")
    assert (found.k, found.n, found.other_k, found.other_n) == (10, 10, 0, 10)


def test_one_conversation_is_no_evidence_for_what_comes_first() -> None:
    calls = [call({"sql": f"SELECT a FROM t{i}"}, False, "only") for i in range(8)]
    calls.append(call({"sql": "SHOW TABLES"}, True, "only"))
    calls += [call({"sql": f"SELECT a FROM u{i}"}, True, "only") for i in range(8)]
    assert not any(pattern.condition.kind == "earlier" for pattern in patterns(calls))


def test_the_same_call_sent_again_and_again_is_one_observation() -> None:
    stubborn = [call({"city": "atlantis"}, False, "a")] * 12
    others = [call({"city": f"town {i}"}, True, "b") for i in range(12)]
    assert named([*stubborn, *others]) == {}


def test_what_only_one_of_many_conversations_shows_is_not_claimed() -> None:
    odd = [call({"mode": "fast", "x": i}, False, 0) for i in range(8)]
    rest = [call({"mode": "slow", "x": i}, True, c) for c in range(1, 5) for i in range(5)]
    assert Condition("value", "mode", "'fast'") not in named([*odd, *rest])


def test_a_second_name_for_the_same_calls_is_not_a_second_claim() -> None:
    calls = [call({"language": "unknown", "code": "XX", "text": f"a{i}"}, False) for i in range(8)]
    calls += [call({"language": "en", "code": "EN", "text": f"b{i}"}, True) for i in range(22)]
    assert len(patterns(calls)) == 1


def test_a_missing_flag_of_the_action_is_found_within_the_action() -> None:
    calls = [call({"command": "view", "path": f"/a{i}"}, True) for i in range(10)]
    calls += [call({"command": "replace", "path": f"/b{i}", "old": f"o{i}"}, True) for i in range(8)]
    calls += [call({"command": "replace", "path": f"/c{i}"}, False) for i in range(8)]
    found = [p for p in patterns(calls) if p.condition.path == "old" and p.within is not None]
    assert [(p.condition.kind, p.within) for p in found] == [
        ("present", Condition("value", "command", "'replace'"))
    ] or [(p.condition.kind, p.within) for p in found] == [("absent", Condition("value", "command", "'replace'"))]


def test_no_failures_or_no_successes_give_no_patterns() -> None:
    assert patterns([call({"a": i}, True) for i in range(30)]) == []
    assert patterns([call({"a": i}, False) for i in range(30)]) == []
    assert patterns([call({"a": i}, None) for i in range(30)]) == []
    assert patterns([]) == []


def test_chance_alone_leads_to_a_claim_in_at_most_one_window_of_twenty() -> None:
    rng = random.Random(7)
    windows, claimed = 300, 0
    for _ in range(windows):
        rate = rng.choice([0.3, 0.5, 0.8])
        calls = [
            call(
                {
                    "kind": rng.choice(["a", "b", "c"]),
                    "size": rng.randrange(20),
                    "tags": ["x"] * rng.randrange(4),
                    "name": f"n{rng.randrange(12)}",
                    **({"extra": True} if rng.random() < 0.5 else {}),
                },
                rng.random() < rate,
                rng.randrange(6),
            )
            for _ in range(30)
        ]
        claimed += bool(patterns(calls))
    # 5 % of 300 windows are 15; three standard deviations more are 26.
    assert claimed <= 26


def test_a_text_is_not_below_a_number() -> None:
    calls = [call({"year": 2018 + i % 5, "n": i}, True) for i in range(20)]
    calls += [call({"year": f"since {2018 + i}", "n": i}, False) for i in range(6)]
    (pattern,) = [one for one in patterns(calls) if one.condition.path == "year"]
    assert (pattern.condition.kind, pattern.condition.detail, pattern.n) == ("type", "string", 6)


def test_a_bound_is_compared_among_numbers_only() -> None:
    calls = [call({"wait": wait, "n": i}, wait > 5) for i, wait in enumerate([1, 2, 3, 4, 5, 10, 20, 30, 40, 50] * 2)]
    calls += [call({"wait": f"{i} s", "n": i}, False) for i in range(4)]
    bounds = [one for one in patterns(calls) if one.condition.kind in {"at_least", "below"}]
    assert bounds
    assert all(one.n + one.other_n == 20 for one in bounds if one.condition.path == "wait")


def test_failures_of_the_service_itself_do_not_hide_what_an_input_does() -> None:
    calls = [call({"query": {"page": i}}, False) for i in range(6)]
    calls += [call({"query": {"page": i, "size": 5}}, True) for i in range(12)]
    down = [call({"query": {"page": i, "size": 5}}, False) for i in range(12)]
    down = [one.model_copy(update={"error_class": "server_error"}) for one in down]
    (pattern,) = patterns([*calls, *down])
    assert (pattern.condition.kind, pattern.condition.path) == ("absent", "query.size")
    assert (pattern.k, pattern.n, pattern.other_k, pattern.other_n) == (0, 6, 12, 24)
    assert patterns([*calls, *(one.model_copy(update={"error_class": ""}) for one in down)]) == []


def test_a_field_is_missing_only_where_its_object_is_given() -> None:
    calls = [call({"path": f"/{i}"}, True) for i in range(30)]
    calls += [call({"path": f"/{i}", "query": {"page": i}}, False) for i in range(8)]
    calls += [call({"path": f"/{i}", "query": {"page": i, "size": 5}}, True) for i in range(8)]
    assert any(
        one.condition.kind in {"absent", "present"} and one.condition.path == "query.size" and one.n + one.other_n == 16
        for one in patterns(calls)
    )


@given(st.integers(0, 10**6))
def test_a_pattern_counts_exactly_the_calls_of_which_its_condition_holds(seed: int) -> None:
    rng = random.Random(seed)
    calls = []
    for _ in range(60):
        note = "x" * rng.choice([3, 70, 300])
        given_: dict[str, object] = {"size": rng.choice([1, 5, 50, 500, "many"]), "note": note}
        if rng.random() < 0.6:
            given_["query"] = {"page": 1, **({"sort": "up"} if rng.random() < 0.5 else {})}
        broken = given_["size"] in (500, "many") or given_.get("query") == {"page": 1} or len(note) > 200
        calls.append(call(given_, rng.random() > (0.95 if broken else 0.05)))
    found = analyze("t", calls)
    for pattern in found.failures.patterns:
        base = [i for i, one in enumerate(found.seen) if pattern.within is None or holds(one, pattern.within)]
        held = [i for i in base if holds(found.seen[i], pattern.condition)]
        assert positions_of(pattern.calls) == held
        assert set(positions_of(pattern.base)) <= set(base)
