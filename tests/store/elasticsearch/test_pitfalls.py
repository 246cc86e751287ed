"""Sequences that taught something, one by one, on a fake server."""

import logging

import pytest
from elasticsearch_fake.interleave import (
    Killed,
    Network,
    Task,
    direct_store,
    open_store,
    stopping_store,
)
from elasticsearch_fake.making import calls_of, guidance_of, judged
from elasticsearch_fake.server import Bulk, Refresh, Server

from toolmem import ToolMem
from toolmem.errors import Conflict, StoreUnavailable
from toolmem.guard import Guard
from toolmem.models.calls import SystemClock
from toolmem.rules.store import RuleInput, ToolMemoryStore
from toolmem.store import changes


@pytest.fixture
def server():
    return Server()


@pytest.fixture
def network(server):
    return Network(server)


@pytest.fixture
def other(server):
    """The store of a process on whose way nothing goes wrong."""
    return direct_store(server)


def append(store, ids, keep=9):
    return store.append_calls("w", calls_of(ids), keep)["t"]


def guide(store, text, covered, version):
    guidance, document = guidance_of(text, covered)
    options = {"document": document, "expected_version": version}
    return store.put_guidance("w", "t", guidance, **options)


def begun(work):
    store = stopping_store()
    return Task("task", lambda: work(store))


def until(network, task, wanted):
    while not task.done and not wanted(task.request):
        network.step(task)


def is_swap(request):
    return isinstance(request, Bulk) and request.is_swap


def is_flush(request):
    return isinstance(request, Bulk) and not request.is_swap


def ids_shown(store):
    return [call.id for call in store.windows("w", ["t"])[0].calls]


def ids_logged(store):
    return [each.call.id for each in store.call_log("w")]


def test_a_writer_killed_between_commit_and_documents_has_lost_nothing(network, other):
    task = begun(lambda store: append(store, "ab", 1))
    until(network, task, is_flush)
    task.fail(Killed())
    assert ids_shown(other) == ["b"]
    assert ids_logged(other) == ["a", "b"]
    assert other.known_ids("w", "t", ["a", "x"]) == {"a"}
    assert append(other, "a").duplicates == (0,)


def test_a_commit_whose_documents_cannot_be_written_is_acknowledged_and_shown(network, other):
    task = begun(lambda store: append(store, "a"))
    until(network, task, is_flush)
    while not task.done:
        network.step(task, "drop")
    assert task.result.stored == 1
    assert ids_shown(other) == ids_logged(other) == ["a"]


def test_a_delayed_first_commit_does_not_bring_a_deleted_tool_back(network, other):
    task = begun(lambda store: append(store, "a"))
    until(network, task, is_swap)
    network.step(task, "delay")
    network.finish(task)
    assert other.delete_tools("w") == ["t"]
    network.deliver()
    assert other.windows("w", ["t"]) == []
    assert other.call_log("w") == []


def test_ids_of_a_deleted_tool_are_new_to_the_process_that_knew_it(server, other):
    append(other, "a")
    direct_store(server).delete_tools("w")
    assert append(other, "a").stored == 1


def test_guidance_after_a_deletion_is_read_whatever_was_written_before_it(other):
    append(other, "a")
    guide(other, "old", [1], 0)
    guide(other, "newer", [1], 1)
    other.delete_tools("w")
    append(other, "b")
    guide(other, "young", [1], 0)
    assert other.windows("w")[0].record.guidance.text == "young"


def test_ids_are_read_after_the_tool(network, server, other):
    append(other, "a", 1)
    task = begun(lambda store: append(store, "b", 1))
    network.step(task)  # the tool is read
    for each in "bcd":  # b is a document now, and in no window
        append(other, each, 1)
    assert network.finish(task).duplicates == (0,)


def test_a_lost_answer_and_then_a_copy_older_than_the_tool(network, other):
    append(other, "a")
    task = begun(lambda store: store.update_verdicts("w", "t", judged({1: 1.0})))
    until(network, task, is_swap)
    network.step(task, "twice")  # the answer is that of the second time: a conflict
    network.step(task, "stale", 99)
    assert network.finish(task).counters.judged == 1


def test_an_old_copy_makes_no_conflict_and_no_missing_call(server, network, other):
    append(other, "a")
    before = len(server.history)
    guide(other, "g", [1], 0)
    append(other, "b")
    task = begun(lambda store: guide(store, "h", [1], 1))
    network.step(task, "stale", len(server.history) - before)
    assert network.finish(task).guidance_version == 2
    task = begun(lambda store: store.update_verdicts("w", "t", judged({2: 1.0})))
    network.step(task, "stale", len(server.history) - before)
    assert network.finish(task).counters.judged == 1


def test_a_window_read_while_a_call_is_judged_is_of_one_moment(network, other):
    append(other, "abc")
    task = begun(lambda store: store.windows("w", ["t"])[0])
    network.step(task)  # the tool is read
    other.update_verdicts("w", "t", judged({1: 1.0}))
    window = network.finish(task)
    shown = sum(call.score is not None for call in window.calls)
    assert window.record.counters.judged == shown == 1


def test_the_log_has_a_call_that_becomes_a_document_meanwhile(network, other):
    task = begun(lambda store: append(store, "a"))
    until(network, task, is_flush)
    task.fail(Killed())
    reader = begun(lambda store: store.call_log("w"))
    until(network, reader, lambda request: request == Refresh("p-calls"))
    append(other, "b")
    assert "a" in [each.call.id for each in network.finish(reader)]


def test_guidance_conflicts_with_a_verdict_and_not_with_a_new_call(other):
    append(other, "ab")
    append(other, "c")
    assert guide(other, "g", [1, 2], 0).new == [3]
    other.update_verdicts("w", "t", judged({1: 0.0}))
    with pytest.raises(Conflict):
        guide(other, "h", [1, 2, 3], 1)


def test_a_commit_on_an_isolated_node_is_neither_told_nor_written(server, network, other):
    append(other, "a")
    lost = begun(lambda store: append(store, "x"))
    until(network, lost, is_swap)
    network.step(lost, "doom")
    lost.fail(Killed())
    asked = begun(lambda store: store.known_ids("w", "t", ["a", "x"]))
    network.step(asked, "dirty")
    assert network.finish(asked) == {"a"}
    again = begun(lambda store: append(store, "x"))
    network.step(again, "dirty")
    assert network.finish(again).stored == 1
    assert ids_shown(direct_store(server)) == ["a", "x"]


def test_an_own_commit_seen_on_an_isolated_node_is_not_told_done(server, network, other):
    append(other, "a")
    task = begun(lambda store: append(store, "x"))
    until(network, task, is_swap)
    network.step(task, "doom")
    append(direct_store(server), "b")
    network.step(task)  # sent again: a conflict
    network.step(task, "dirty")
    assert network.finish(task).stored == 1
    assert ids_shown(other) == ["a", "b", "x"]


def test_calls_that_the_log_drops_are_known_and_stay_in_a_longer_window(other, monkeypatch):
    monkeypatch.setattr(changes, "LOG_CALLS", 2)
    monkeypatch.setattr(changes, "EMPTIED_AT_ONCE", 1)
    for each in "abcdefgh":
        append(other, each, 6)
    assert ids_shown(other) == ids_logged(other) == list("cdefgh")
    assert append(other, "a", 6).duplicates == (0,)


def test_a_server_that_never_answers_the_commit_leaves_it_open(network):
    task = begun(lambda store: append(store, "a"))
    until(network, task, is_swap)
    while not task.done:
        network.step(task, "drop")
    assert isinstance(task.error, StoreUnavailable)


@pytest.mark.xfail(strict=True, reason="a limit: an id older than the window, in an old copy")
def test_an_old_id_looked_up_in_an_old_copy_counts_once(network, other):
    for each in "abc":
        append(other, each, 1)
    task = begun(lambda store: append(store, "a", 1))
    network.step(task)
    network.step(task, "stale", 99)
    assert network.finish(task).duplicates == (0,)


def test_a_record_whose_answer_was_lost_is_written_once(network, other):
    task = begun(lambda store: store.put("w", "n", "k", {"a": 1}, expected_version=0))
    until(network, task, is_swap)
    network.step(task, "twice")  # a conflict with itself
    assert network.finish(task).version == 1
    assert other.get("w", "n", "k").version == 1


def test_a_delayed_record_does_not_come_back_after_it_was_deleted(network, other):
    task = begun(lambda store: store.put("w", "n", "k", {"a": 1}))
    until(network, task, is_swap)
    network.step(task, "delay")
    network.finish(task)
    assert other.delete("w", "n", "k")
    network.deliver()
    assert other.get("w", "n", "k") is None


def test_whoever_reads_the_new_stamp_reads_the_new_rule(network, other):
    before = other.get_many("w", []).rules_stamp
    task = begun(lambda store: store.put("w", "tool-t", "rule/1", {}))
    until(network, task, is_swap)
    assert other.get_many("w", []).rules_stamp == before
    network.step(task, "kill after")
    snapshot = other.get_many("w", [("tool-t", "rule/1")])
    assert snapshot.rules_stamp != before
    assert snapshot.records[0] is not None


def ban(store, word):
    when = [{"command": f"{word}*"}]
    rules = ToolMemoryStore(store, "default", SystemClock())
    rules.put_rule(RuleInput(tool_name="Bash", rule=f"no {word}", effect="deny", when=when))


def verdicts(guard, *words):
    return [guard.before("Bash", {"command": word}).action for word in words]


def guard_of(store):
    return Guard(store, "default", SystemClock())


def records_of(server):
    return {key: doc for key, doc in server.docs.items() if key[0] == "p-records"}


def emptied(server, _):
    for key in records_of(server):
        del server.docs[key]


def put_back(server, older):
    emptied(server, None)
    server.docs |= older


def damaged(server, _):
    for key, doc in records_of(server).items():
        if doc.source["key"].startswith("rule/"):
            server.docs[key] = type(doc)(doc.source | {"body": "{"}, doc.position, doc.version)


@pytest.mark.parametrize("lose", [emptied, put_back, damaged])
@pytest.mark.parametrize("writes_back", [True, False])
def test_rules_that_an_index_lost_bind_from_their_copy_until_the_operator_decides(
    server, other, lose, writes_back, caplog, monkeypatch
):
    ban(other, "push")
    older = records_of(server)
    ban(other, "drop")
    lose(server, older)
    store = direct_store(server)
    guard = guard_of(store)
    # The linter of imports disables loggers.
    monkeypatch.setattr(logging.getLogger("toolmem.operator"), "disabled", False)
    with caplog.at_level(logging.ERROR, "toolmem.operator"):
        assert verdicts(guard, "push", "drop", "list") == ["deny", "deny", "allow"]
    assert "toolmem store restore --store http://localhost:9200/p" in caplog.text
    ban(store, "curl")  # whoever writes a rule meanwhile hides nothing
    assert verdicts(guard, "drop", "curl") == ["deny", "deny"]
    assert list(store.rule_losses()) == ["default"]
    assert not guard.before("Bash", {"command": "drop"}).notice
    for record in store.lost_rules("default") if writes_back else ():
        store.put("default", record.namespace, record.key, record.value)
    store.accept_rules("default")
    expected = "deny" if writes_back else "allow"
    assert verdicts(guard, "drop", "curl") == [expected, "deny"]
    assert store.rule_losses() == direct_store(server).rule_losses() == {}


def test_a_rule_whose_writer_was_killed_before_the_copy_is_copied_by_the_next_guard(
    server, network, other
):
    ban(other, "push")
    task = begun(lambda store: ban(store, "drop"))
    until(network, task, is_swap)
    network.step(task)
    task.fail(Killed())
    assert verdicts(guard_of(other), "drop") == ["deny"]
    emptied(server, None)
    assert verdicts(guard_of(direct_store(server)), "push", "drop") == ["deny", "deny"]


def test_a_rule_that_was_lifted_is_not_brought_back_by_its_copy(server, other):
    ban(other, "push")
    rules = ToolMemoryStore(other, "default", SystemClock())
    (rule,) = rules.all_rules().rules
    rules.delete_rule("Bash", rule.id)
    assert verdicts(guard_of(direct_store(server)), "push") == ["allow"]
    emptied(server, None)
    assert verdicts(guard_of(direct_store(server)), "push") == ["allow"]


def test_an_allowed_call_takes_one_request_however_many_rules_there_are(server, other):
    for word in ("push", "drop", "curl"):
        ban(other, word)
    asked = []
    store = open_store(lambda request: [asked.append(request), server.act(request)][1])
    guard = guard_of(store)
    verdicts(guard, "list")
    asked.clear()
    assert verdicts(guard, "list", "list -l") == ["allow", "allow"]
    assert len(asked) == 2


def test_health_answers_503_with_the_reason_while_a_copy_binds(server, other):
    from starlette.testclient import TestClient

    from toolmem.server.access import Access
    from toolmem.server.http import application

    ban(other, "push")
    with ToolMem(stores={"default": direct_store(server)}) as memory:
        client = TestClient(application(memory, Access("t")), base_url="http://127.0.0.1")
        headers = {"Authorization": "Bearer t"}
        assert client.get("/health", headers=headers).status_code == 200
        emptied(server, None)
        answer = client.get("/health", headers=headers)
        assert answer.status_code == 503
        assert "were deleted or emptied; their copy binds" in answer.json()["reason"]
