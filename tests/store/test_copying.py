"""A workspace is copied from one store to another."""

from toolmem.models.calls import JudgeIdentity, Verdict
from toolmem.models.records import Document
from toolmem.store.copying import copy_workspace
from toolmem.store.sqlite import SqliteStore

VERDICT = Verdict("s", "e", 1, False, JudgeIdentity("offline", "x", "1"))


def test_a_copy_that_is_repeated_adds_nothing_twice(store, call, tmp_path, summarize):
    store.append_calls("w", [call(id=str(n)) for n in range(20)], 5)
    summarize([16, 17, 18], 0)
    store.put("w", "notes", "a", {"b": 1}, document=Document("a note"))
    store.put("w", "tool-send", "rule/1", {"rule": "never"})
    store.put_verdicts("w", {"k": VERDICT})
    with SqliteStore(tmp_path / "copy.db") as copy:
        first = copy_workspace(store, copy, "w")
        second = copy_workspace(store, copy, "w")
        assert (first.tools, first.calls, first.records) == (1, 20, 3)
        assert (second.calls, second.duplicates, second.kept) == (0, 20, 3)
        assert first.lacking == second.lacking == []
        (there,), (here,) = copy.windows("w"), store.windows("w")
        assert there.calls == here.calls
        assert there.record.new == here.record.new == [19, 20]
        assert there.record.guidance.text == "ask for one thing"
        assert [hit.key for hit in copy.search("w", "notes", "note", None, 5)] == ["a"]
        assert [hit.key for hit in copy.search("w", None, "thing", None, 5)] == ["search"]


def test_a_copy_to_and_fro_is_the_same_memory(store, call, summarize):
    store.append_calls("w", [call(id=str(n), time_cost=n / 4) for n in range(9)], 4)
    summarize([6, 7], 0)
    store.put("w", "notes", "a", {"b": 1})
    with SqliteStore(":memory:") as other:
        copy_workspace(store, other, "w")
        store.delete_workspace("w")
        assert copy_workspace(other, store, "w").lacking == []
        (there,), (back,) = other.windows("w"), store.windows("w")
        assert back.calls == there.calls
        assert back.record.counters == there.record.counters
        assert back.record.guidance == there.record.guidance
        assert [each.call.id for each in store.call_log("w")] == list("012345678")
    assert store.get("w", "notes", "a").read(dict) == {"b": 1}
