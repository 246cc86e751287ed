"""Several writes can be one commit; the distributed store cannot do that."""

import threading

import pytest

from toolmem import ToolMem


def test_a_transaction_is_all_or_nothing_and_parts_of_it_can_fail_alone(store, call):
    with pytest.raises(RuntimeError), store.transaction():
        store.append_calls("w", [call()], 10)
        store.put("w", "n", "k", {})
        raise RuntimeError
    assert store.records("w") == []
    assert store.get("w", "n", "k") is None
    with store.transaction():
        store.append_calls("w", [call("kept")], 5)
        with pytest.raises(RuntimeError), store.transaction():
            store.append_calls("w", [call("lost")], 5)
            raise RuntimeError
    assert store.tool_names("w") == ["kept"]


def test_the_transaction_of_one_thread_is_not_seen_by_another_before_its_commit(store, call):
    seen = []
    store.append_calls("w", [call("first")], 5)
    with store.transaction():
        store.append_calls("w", [call("second")], 5)
        reader = threading.Thread(target=lambda: seen.append(store.tool_names("w")))
        reader.start()
        reader.join()
        assert store.tool_names("w") == ["first", "second"]
    assert seen == [["first"]]


def test_adding_calls_reads_their_tools_once_and_commits_once(path):
    def calls(number):
        return [{"tool_name": f"t{n}", "input": {"q": number}, "output": "ok"} for n in range(5)]

    begun = []
    with ToolMem(path) as memory:
        memory.add(calls(1))
        memory.summarize()
        [db] = memory.services.store()._database._idle
        db.exec_trace = lambda cursor, sql, values: begun.append(sql) or True
        added = memory.add(calls(2))
    assert [each for each in begun if each.startswith("BEGIN")] == ["BEGIN", "BEGIN IMMEDIATE"]
    assert all(tool.content for tool in added.memory_list)
