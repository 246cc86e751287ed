"""A workspace as lines, and back."""

import pytest

from toolmem.errors import RequestError
from toolmem.models.records import Document
from toolmem.store.copying import dump, load
from toolmem.store.sqlite import SqliteStore


def test_a_dump_loaded_twice_adds_nothing_twice(store, call, tmp_path, summarize):
    store.append_calls("w", [call(id=str(n)) for n in range(20)], 5)
    summarize([16, 17, 18], 0)
    store.put("w", "notes", "a", {"b": 1}, document=Document("a note"))
    lines = list(dump(store, "w"))
    with SqliteStore(tmp_path / "copy.db") as copy:
        first, second = load(copy, "v", lines, 5), load(copy, "v", lines, 5)
        assert (first.calls, first.records) == (20, 1)
        assert (second.calls, second.duplicates, second.kept) == (0, 20, 1)
        (there,), (here,) = copy.windows("v"), store.windows("w")
        assert there.calls == here.calls
        assert there.record.new == here.record.new == [19, 20]
        assert there.record.guidance.text == "ask for one thing"
        assert [hit.key for hit in copy.search("v", "notes", "note", None, 5)] == ["a"]
        assert [hit.key for hit in copy.search("v", None, "thing", None, 5)] == ["search"]


def test_a_line_that_is_no_record_is_named(store):
    with SqliteStore(":memory:") as other:
        other.put("w", "n", "k", {})
        lines = [*dump(other, "w"), b'{"type": "nothing"}']
    with pytest.raises(RequestError, match="line 2"):
        load(store, "w", lines, 5)
