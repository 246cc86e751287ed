"""Calls, ids, windows and the log."""

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import msgspec
import pytest

from toolmem.errors import RequestError
from toolmem.models.calls import IMPORT_ID, CallFigures
from toolmem.models.tools import CallSums
from toolmem.store import changes
from toolmem.store.elasticsearch import store as elasticsearch


def test_an_id_sent_twice_counts_once_also_when_its_call_has_left_window_and_log(
    store, call, monkeypatch
):
    monkeypatch.setattr(changes, "LOG_CALLS", 6)
    monkeypatch.setattr(changes, "EMPTIED_AT_ONCE", 1)
    for number in range(20):
        store.append_calls("w", [call(id=str(number))], 3)
    again = store.append_calls("w", [call(id="0"), call(id="20"), call(id="20")], 3)["search"]
    assert (again.stored, again.duplicates) == (1, (0, 2))
    assert again.record.counters.calls == 21
    assert len(store.call_log("w", tool_names="search")) == len(store.call_log("w")) == 6
    assert store.known_ids("w", "search", ["0", "7", "no"]) == {"0", "7"}


def test_the_same_id_in_two_tools_names_two_calls(store, call):
    done = store.append_calls("w", [call("a", id="1"), call("b", id="1")], 5)
    assert [each.stored for each in done.values()] == [1, 1]


def test_a_batch_larger_than_the_window_is_counted_whole(store, call):
    done = store.append_calls("w", [call(id=str(n)) for n in range(50)], 5)["search"]
    assert (done.stored, done.trimmed, done.record.kept) == (50, 45, 5)
    assert [each.id for each in store.windows("w")[0].calls] == ["45", "46", "47", "48", "49"]
    assert store.known_ids("w", "search", map(str, range(50))) == set(map(str, range(50)))


@pytest.mark.parametrize("levels", [201, 600, 20_000])
def test_a_call_that_is_nested_too_deeply_is_named_and_the_others_are_stored(store, call, levels):
    inner = "x"
    for number in range(levels):
        inner = [inner] if number % 2 else {"a": inner}
    done = store.append_calls("w", [call(), call(input={"a": inner}), call()], 9)["search"]
    assert done.stored == 2
    assert [each.index for each in done.failures] == [1]
    assert done.failures[0].error == "nested deeper than 200 levels"


@pytest.mark.parametrize(
    "bad",
    [
        {"input": {"a": float("nan")}},
        {"input": {"a": b"x"}},
        {"input": {"a": {1}}},
        {"input": {1: "a"}},
        {"metadata": {"a": Decimal("1.5")}},
        {"output": "\ud800"},
        {"time_cost": float("inf")},
        {"time_cost": -1.0},
        {"output": None},
        {"id": ""},
        {"create_time": datetime(2026, 1, 1)},
    ],
)
def test_of_ten_calls_a_bad_one_is_named_and_nine_are_stored(store, call, bad):
    calls = [call(id=str(n)) for n in range(10)]
    calls[4] = call(**bad)
    done = store.append_calls("w", calls, 20)["search"]
    assert done.stored == 9
    assert [each.index for each in done.failures] == [4]
    assert done.failures[0].error
    assert [each.id for each in store.windows("w")[0].calls] == list("012356789")


def test_a_tool_that_cannot_be_named_is_told_beside_calls_that_are_stored(store, call):
    done = store.append_calls("w", [call("\ud800"), call(), call("x" * 9_000)], 9)
    assert done["search"].stored == 1
    told = [failure.index for each in done.values() for failure in each.failures]
    assert sorted(told) == [0, 2]
    assert store.tool_names("w") == ["search"]


def test_what_json_can_hold_reads_back_as_it_was(store, call):
    when = datetime(2026, 1, 1, 8, 0, 0, 123456, timezone(timedelta(hours=8)))
    given = call(input={"a": (1, 2**70, [None, 0.5]), "é": "\0"}, create_time=when)
    store.append_calls("w", [given], 10)
    (kept,) = store.windows("w")[0].calls
    assert kept.input == {"a": [1, 2**70, [None, 0.5]], "é": "\0"}
    assert (kept.create_time, kept.create_time.tzinfo) == (when, UTC)
    assert kept.create_time.microsecond == 123456


def test_names_are_exact_whatever_they_hold(store, call):
    names = ["Search", "search", "sea\0rch", "sea", "x" * 500, "邮件", "a'b\"c", "%", "_"]
    store.append_calls("w", [call(name, id=name) for name in names], 5)
    assert store.tool_names("w") == sorted(names)
    assert [record.tool_name for record in store.records("w", names)] == names
    for name in names:
        assert [each.id for each in store.windows("w", [name])[0].calls] == [name]
        assert [each.call.id for each in store.call_log("w", tool_names=name)] == [name]
    assert store.records("w", ["SEARCH", "se", "\ud800"]) == []


def test_a_stopped_call_counts_nowhere(store, call):
    stopped = call(output="toolmem: not run. The user said: no.")
    wrapped = call(output='{"error": "toolmem: not run. No."}')
    marked = call(output="no", evaluation_status="denied")
    assert store.append_calls("w", [stopped, wrapped, marked], 9)["search"].stored == 0
    assert store.records("w") == []
    assert store.call_log("w") == []
    quoting = call(output="The page says: toolmem: not run.")
    assert store.append_calls("w", [quoting], 9)["search"].stored == 1


def test_secrets_are_masked_before_they_are_kept(store, call):
    secrets = {"input": {"password": "Sunshine7"}, "metadata": {"api_key": "abcdef123456"}}
    given = call(output="token=Sunshine7", **secrets)
    store.append_calls("w", [given, given], 9)
    calls = [*store.windows("w")[0].calls, *(each.call for each in store.call_log("w"))]
    assert {str(each.input) for each in calls} == {str(calls[0].input)}
    told = msgspec.json.encode(calls).decode()
    assert "Sunshine7" not in told
    assert "abcdef123456" not in told


def test_the_key_of_marks_over_secrets_outlives_the_process(store, open_store):
    key = store.secret_key()
    assert len(key) >= 16
    assert open_store().secret_key() == key


def test_positions_follow_the_order_in_which_calls_were_handed_over(store, call):
    given = [call("ab"[n % 2], id=str(n), metadata={"run_id": "r"}) for n in range(6)]
    store.append_calls("w", given, 10)
    assert [each.call.id for each in store.call_log("w", conversation_id="r")] == list("012345")
    assert len(store.call_log("w", conversation_id=["r", "none"])) == 6
    newest = store.call_log("w", conversation_id="r", tool_names="a", newest=True, limit=2)
    assert [each.call.id for each in newest] == ["2", "4"]
    last = store.call_log("w", newest=True, limit=1)[0].position
    assert store.call_log("w", after=last) == []


def test_the_log_is_read_backwards_from_a_position(store, call):
    store.append_calls("w", [call("ab"[n % 2], id=str(n)) for n in range(6)], 10)
    third = store.call_log("w")[3].position
    assert [each.call.id for each in store.call_log("w", before=third)] == list("012")
    found = store.call_log("w", before=third, tool_names="a", newest=True, limit=1)
    assert [each.call.id for each in found] == ["2"]
    assert store.call_log("w", before=0) == []


def test_the_log_of_several_tools_is_read_in_one_order(store, call):
    given = [call("abc"[n % 3], id=str(n), metadata={"run_id": "r"}) for n in range(9)]
    store.append_calls("w", given, 10)
    found = store.call_log("w", tool_names=["c", "a", "none"], newest=True, limit=4)
    assert [each.call.id for each in found] == ["3", "5", "6", "8"]
    found = store.call_log(
        "w", tool_names=["a", "b"], conversation_id="r", before=found[0].position
    )
    assert [each.call.id for each in found] == ["0", "1"]
    assert store.call_log("w", tool_names=[]) == []


@pytest.mark.parametrize(
    "text",
    ['say "hi"', "two\nlines", "50%", "under_score", "C:\\x", "Zürich", "bang!", "MiXeD", "\0"],
)
def test_the_log_is_searched_for_a_text_and_for_ids(store, call, text):
    store.append_calls("w", [call(id="1", output=f"it is {text} here"), call(id="2")], 10)
    assert [each.call.id for each in store.call_log("w", contains=text)] == ["1"]
    assert [each.call.id for each in store.call_log("w", contains="IT IS")] == ["1"]
    with pytest.raises(RequestError, match="contains: over"):
        store.call_log("w", contains="x" * 60_000)
    assert [each.call.id for each in store.call_log("w", ids=["2", "3"])] == ["2"]
    assert store.call_log("w", ids=[]) == []


def test_windows_are_read_whole_or_the_newest_or_by_seq(store, call):
    store.append_calls("w", [call(id=str(n)) for n in range(1, 8)], 5)

    def read(**asked):
        return [each.id for each in store.windows("w", ["search"], **asked)[0].calls]

    assert read() == list("34567")
    assert read(recent=2) == list("67")
    assert read(recent=9) == list("34567")
    assert read(seqs={"search": [1, 6, 4, 6, 9]}) == list("46")


def test_figures_are_read_without_texts(store, call):
    store.append_calls("w", [call(output="long" * 100, time_cost=1.5, success=False)], 10)
    (figures,) = store.windows("w", type=CallFigures)[0].calls
    assert (figures.time_cost, figures.failed, figures.seq) == (1.5, True, 1)


def test_sums_of_the_window_follow_the_calls_that_enter_and_leave_it(store, call):
    for number in range(7):
        given = call(success=number % 2 == 0, time_cost=number / 4, token_cost=number)
        given.execution_failed = number > 5
        store.append_calls("w", [given], 3)
    window = store.records("w")[0].window
    assert (window.calls, window.successes, window.failures) == (3, 2, 1)
    assert (window.silent, window.worked, window.failed) == (1, 1, 2)
    assert (window.time_calls, window.time_sum) == (3, (4 + 5 + 6) / 4)
    assert (window.token_calls, window.token_sum) == (3, 15)


def test_a_deleted_tool_starts_anew(store, call, summarize):
    store.append_calls("w", [call(id="a")], 10)
    summarize([1], 0)
    assert store.delete_tools("w", ["search", "unknown"]) == ["search"]
    assert store.call_log("w") == []
    done = store.append_calls("w", [call(id="a")], 10)["search"]
    assert (done.stored, done.record.counters.calls) == (1, 1)
    assert store.records("w")[0].guidance is None
    assert store.search("w", None, "thing", None, 5) == []


def test_workspaces_know_nothing_of_each_other(store, call):
    store.append_calls("w", [call(id="a")], 10)
    store.append_calls("v", [call(id="a")], 10)
    assert store.workspaces() == ["v", "w"]
    assert store.delete_workspace("w") == 1
    assert store.workspaces() == ["v"]
    assert store.records("w") == []
    assert len(store.windows("v")[0].calls) == 1


def test_looking_at_what_is_not_there_makes_nothing(store):
    assert store.records("w") == []
    assert store.windows("w", ["search"]) == []
    assert store.delete_workspace("w") == 0
    assert store.delete_tools("w") == []
    assert store.update_verdicts("w", "search", {}) is None
    assert store.workspaces() == []


def test_more_than_ten_thousand_tools_are_all_listed(store, call):
    names = [f"tool_{number:05}" for number in range(10_001)]
    store.append_calls("w", [call(name) for name in names], 1)
    assert store.tool_names("w") == names


def test_requests_that_make_no_sense_are_refused_by_name(store, call):
    with pytest.raises(RequestError, match="keep"):
        store.append_calls("w", [call()], 0)
    with pytest.raises(RequestError, match="workspace"):
        store.append_calls("", [call()], 1)


def test_forgotten_calls_leave_windows_log_ids_and_sums_and_older_ones_come_back(
    store, call, summarize, monkeypatch
):
    monkeypatch.setattr(changes, "LOG_CALLS", 8)
    monkeypatch.setattr(changes, "EMPTIED_AT_ONCE", 1)
    for number in range(12):
        store.append_calls("w", [call(id=str(number), success=number % 2 == 0)], 3)
    summarize([10, 11, 12], 0, text="prefer short queries")
    sums = CallSums(calls=3, failures=2, successes=1)  # of 1 only the id is known
    ids = ["1", "7", "10", "no"]
    assert store.delete_calls("w", "search", ids, back=list("6789"), sums=sums) == 3
    (window,) = store.windows("w")
    assert [each.id for each in window.calls] == ["8", "9", "11"]
    record, counters = window.record, window.record.counters
    assert (counters.calls, counters.failures, counters.successes) == (9, 4, 5)
    assert (record.window.calls, record.window.failures) == (3, 2)
    assert record.new == [each.seq for each in window.calls] and record.new[0] > 12
    assert record.guidance.text == f"- {changes.OUT_OF_DATE}"
    assert store.search("w", None, "short", None, 5) == []
    assert [each.call.id for each in store.call_log("w")][-3:] == ["8", "9", "11"]
    assert store.known_ids("w", "search", map(str, range(12))) == set("02345689") | {"11"}
    assert store.delete_calls("w", "search", ids, sums=sums) == 0
    late = store.update_verdicts("w", "search", {11: call(score=1.0)})  # of a seq from before
    assert late.counters.judged == 0
    assert store.append_calls("w", [call(id="10")], 3)["search"].stored == 1


def test_a_tool_whose_calls_are_all_forgotten_is_gone(store, call, summarize):
    store.append_calls("w", [call(id="a"), call("other")], 10)
    summarize([1], 0)
    assert store.delete_calls("w", "search", ["a"]) == 1
    assert store.tool_names("w") == ["other"]
    assert store.search("w", None, "thing", None, 5) == []
    assert [each.call.tool_name for each in store.call_log("w")] == ["other"]
    assert store.append_calls("w", [call(id="a")], 10)["search"].record.counters.calls == 1


def test_imported_calls_enter_the_window_by_their_time_and_empty_no_recorded_call(
    store, call, monkeypatch
):
    monkeypatch.setattr(changes, "LOG_CALLS", 4)
    monkeypatch.setattr(changes, "EMPTIED_AT_ONCE", 1)

    def append(*days, **fields):
        times = [datetime(2026, 1, day, tzinfo=UTC) for day in days]
        made = [call(id=f"{each.day}", create_time=each, **fields) for each in times]
        return store.append_calls("w", made, 4)["search"]

    append(10, 20, success=True, score=1.0)
    append(30, success=True)
    done = append(25, 1, 2, 3, 4, 5, 6, 7, 15, success=False, metadata={IMPORT_ID: "x"})
    (window,) = store.windows("w")
    assert [each.id for each in window.calls] == ["15", "20", "25", "30"]
    record, seqs = window.record, [each.seq for each in window.calls]
    assert (record.window.failures, record.window.judged) == (2, 1)
    assert (record.counters.calls, done.stored, done.trimmed) == (12, 9, 8)
    assert record.new == seqs and record.unjudged == [seqs[0], *seqs[2:]] and seqs[0] > 3
    late = store.update_verdicts("w", "search", {3: call(score=0.0)})  # of a seq from before
    assert late.counters.judged == 2
    assert {"10", "20", "30"} <= {each.call.id for each in store.call_log("w")}
    append(8, success=True)  # recorded calls stand in the order in which they came
    (window,) = store.windows("w")
    assert [each.id for each in window.calls] == ["20", "25", "30", "8"]
    gone = [str(day) for day in (25, 1, 2, 3, 4, 5, 6, 7, 15)]
    assert store.delete_calls("w", "search", gone, back=["10"]) == 9
    (window,) = store.windows("w")
    assert [each.id for each in window.calls] == ["10", "20", "30", "8"]


@pytest.mark.parametrize("newest", [False, True])
@pytest.mark.parametrize("wanted", [{"contains": "needle"}, {"ids": ["0", "5"]}])
def test_the_whole_log_is_searched_however_far_away_a_call_is(
    store, call, monkeypatch, newest, wanted
):
    monkeypatch.setattr(elasticsearch, "MAX_SEARCHED", 2)
    outputs = ["needle", *["hay"] * 4, "needle"]
    calls = [call(id=str(n), output=each) for n, each in enumerate(outputs)]
    store.append_calls("w", calls, 10)
    assert [each.call.id for each in store.call_log("w", newest=newest, **wanted)] == ["0", "5"]
    (one,) = store.call_log("w", newest=newest, limit=1, **wanted)
    assert one.call.id == ("5" if newest else "0")
    beside = {"before": one.position} if newest else {"after": one.position}
    (other,) = store.call_log("w", newest=newest, limit=1, **beside, **wanted)
    assert other.call.id == ("0" if newest else "5")
