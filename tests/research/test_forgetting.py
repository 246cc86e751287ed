"""What an import brought can be taken back, and nothing else goes with it."""

import json
from contextlib import closing

import apsw
import pytest

from toolmem import ToolMem
from toolmem.errors import RequestError
from toolmem.research import importing
from toolmem.research.import_runs import forget_import, imports
from toolmem.research.importing import import_recordings
from toolmem.rules.turn import tools_called_here
from toolmem.store import changes
from toolmem.store.changes import OUT_OF_DATE
from toolmem.store.storable import VERDICTS
from toolmem.testing.scripted import ScriptedModel, plausible_reply

CODES = (b"zebrafish", b"quokka", b"xylophone")


def recording(path, number=150):
    """Calls of two tools whose arguments, errors and answers hold words that no other call has."""
    lines = []
    for n in range(number):
        output = ("quokka: no such file " if n % 3 else "xylophone ") + "x" * 900
        call = {"input": {"a": f"zebrafish{n}"}, "output": output, "success": n % 3 == 0}
        lines += [json.dumps({"tool_name": t, "id": str(n), **call}) for t in ("look", "own")]
    path.write_text("\n".join(lines))
    return path


def own_calls(memory):
    memory.add([{"tool_name": "own", "output": f"ok {n}", "success": True} for n in range(5)])


def test_a_forgotten_import_leaves_nothing_in_the_file_and_can_be_repeated(tmp_path):
    path = tmp_path / "m.db"
    with ToolMem(str(path)) as memory:
        own_calls(memory)
        memory.summarize()
        first = import_recordings(memory, [recording(tmp_path / "a.jsonl")])
        memory.add([{"tool_name": "own", "output": "last", "success": True}])
    assert all(code in path.read_bytes() for code in CODES)
    with ToolMem(str(path)) as memory:
        assert imports(memory)[first.id].tools["look"].failures == 100
        done = forget_import(memory, first.id)
        assert (done.calls, done.gone, done.out_of_date) == (300, ["look"], [])
        (window,) = memory.services.store().windows("default")
        assert [c.output for c in window.calls] == [*(f"ok {n}" for n in range(5)), "last"]
        assert (window.record.counters.calls, window.record.counters.failures) == (6, 0)
        assert imports(memory) == {}
    assert not any(code in path.read_bytes() for code in CODES)
    with ToolMem(str(path)) as memory:
        assert import_recordings(memory, [tmp_path / "a.jsonl"]).calls == 300
        with pytest.raises(RequestError, match=f"no import is called '{first.id}': there are 2"):
            forget_import(memory, first.id)


def test_where_another_process_reads_the_file_forgetting_says_so_and_can_be_repeated(tmp_path):
    path = tmp_path / "m.db"
    with ToolMem(f"{path}") as memory:
        first = import_recordings(memory, [recording(tmp_path / "a.jsonl", 3)])
        with closing(apsw.Connection(f"{path}")) as reader:
            reader.execute("BEGIN; SELECT count(*) FROM calls").fetchall()
            done = forget_import(memory, first.id)
        assert (done.calls, "is read by another process" in done.left) == (6, True)
        assert forget_import(memory, first.id).left == ""
        assert imports(memory) == {}
    assert not any(code in path.read_bytes() for code in CODES)


def test_calls_of_which_only_ids_were_left_are_forgotten_too(tmp_path, monkeypatch):
    monkeypatch.setattr(changes, "LOG_CALLS", 1)
    monkeypatch.setattr(importing, "BATCH", 20)  # as many are kept whole until they are noted
    with ToolMem(str(tmp_path / "m.db")) as memory:
        first = import_recordings(memory, [recording(tmp_path / "a.jsonl")])
        own_calls(memory)
        assert len(memory.services.store().call_log("default", tool_names="own")) < 155
        assert forget_import(memory, first.id).calls == 300
        (record,) = memory.services.store().records("default")
        assert (record.counters.calls, record.counters.failures) == (5, 0)
        assert import_recordings(memory, [tmp_path / "a.jsonl"]).calls == 300


class Killed(BaseException):
    pass


def test_calls_of_a_killed_import_are_imported_calls_and_are_forgotten_whole(tmp_path, monkeypatch):
    def kill(*_):
        raise Killed

    monkeypatch.setattr(importing, "BATCH", 20)
    with ToolMem(str(tmp_path / "m.db")) as memory:
        own_calls(memory)
        store = memory.services.store()
        with monkeypatch.context() as patch, pytest.raises(Killed):
            patch.setattr(importing, "keep_run", kill)
            import_recordings(memory, [recording(tmp_path / "a.jsonl")])
        assert tools_called_here(store, "default") == ["own"]
        second = import_recordings(memory, [tmp_path / "a.jsonl"])
        assert (second.calls, second.duplicates) == (280, 20)
        assert tools_called_here(store, "default") == ["own"]
        first = next(iter(imports(memory)))
        assert [forget_import(memory, each).calls for each in (first, second.id)] == [20, 280]
        assert [(r.tool_name, r.counters.calls) for r in store.records("default")] == [("own", 5)]


@pytest.mark.parametrize("which", ["running", "earlier"])
def test_what_is_forgotten_while_an_import_runs_is_imported_by_the_next(
    tmp_path, monkeypatch, which
):
    monkeypatch.setattr(importing, "BATCH", 20)
    with ToolMem(str(tmp_path / "m.db")) as memory:
        if which == "earlier":
            import_recordings(memory, [recording(tmp_path / "b.jsonl", 100)])
        path, add = recording(tmp_path / "a.jsonl"), memory.add

        def forget_meanwhile(calls, **options):
            monkeypatch.setattr(memory, "add", add)
            added = add(calls, **options)
            with ToolMem(str(tmp_path / "m.db")) as other:
                forget_import(other, next(iter(imports(other))))
            return added

        monkeypatch.setattr(memory, "add", forget_meanwhile)
        stopped = import_recordings(memory, [path]).stopped
        assert ("was forgotten while it ran" in stopped) == (which == "running")
        import_recordings(memory, [path])
        assert sum(each.calls_ever for each in memory.tools()) == 300
        for each in imports(memory):
            forget_import(memory, each)
        assert memory.tools() == []


def test_a_card_that_a_model_writes_says_that_it_is_out_of_date_until_it_is_written_anew(tmp_path):
    def reply(prompt):
        return "```txt\nzebrafish works\n```" if "```txt" in prompt else plausible_reply(prompt)

    model, path = ScriptedModel(reply), tmp_path / "m.db"
    with ToolMem(str(path), llms={"default": model}) as memory:
        own_calls(memory)
        first = import_recordings(memory, [recording(tmp_path / "a.jsonl", 4)])
        assert "zebrafish works" in memory.guidance("own").text
        asked = len(model.prompts)
        assert forget_import(memory, first.id).out_of_date == ["own"]
        assert len(model.prompts) == asked
        assert OUT_OF_DATE in memory.guidance("own").text
        assert "zebrafish" not in memory.guidance("own").text
        assert memory.services.store().list_records("default", VERDICTS) == []
        memory.summarize()
        assert OUT_OF_DATE not in memory.guidance("own").text
