"""Calls whose evaluation failed are judged again from the first page."""

import threading

import pytest

from toolmem import ToolMem
from toolmem.errors import ModelError
from toolmem.server.console.changes import Retries
from toolmem.testing.scripted import ScriptedJudge

NO_WAIT = [
    f"op.{name}_op.params.evaluation_sleep_interval=0"
    for name in ("parse_tool_call_result", "retry_evaluations")
]


class Judge(ScriptedJudge):
    """Fails as `fails` says; else it waits until it may answer."""

    def __init__(self):
        super().__init__(self.answer)
        self.fails, self.may_answer = ModelError("busy"), threading.Event()

    def answer(self, call):
        if isinstance(self.fails, ModelError):
            return self.fails
        assert self.may_answer.wait(10)
        return self.good(call)


@pytest.fixture
def judge():
    return Judge()


@pytest.fixture
def memory(tmp_path, judge):
    path = tmp_path / "memory.db"
    with ToolMem(path, judges={"default": judge}, overrides=NO_WAIT) as made:
        for workspace in ("default", "other"):
            made.workspace(workspace).add([{"tool_name": "t", "output": "x"}])
        yield made


@pytest.fixture
def begin(monkeypatch):
    """Begins a run; the thread of it can be waited for."""
    begun = []
    start = threading.Thread.start
    monkeypatch.setattr(threading.Thread, "start", lambda t: (begun.append(t), start(t)))

    def made(retries, memory):
        begun.clear()
        retries.start(memory)
        return [each for each in begun if each.daemon][:1]

    return made


def ended(retries, memory, threads):
    for thread in threads:
        thread.join(10)
    return retries.newest(memory.workspace_name)


def test_what_a_judge_that_fails_says_is_told(memory, begin, caplog):
    retries, asked = Retries(), memory.workspace("default")
    assert retries.newest("default") is None
    run = ended(retries, asked, begin(retries, asked))
    assert run.answer == "Judged 0 of 1 kept calls again, 1 failed. busy"
    assert "Traceback" not in caplog.text


def test_calls_are_judged_in_one_run_at_a_time_for_each_workspace(memory, judge, begin):
    retries, judge.fails = Retries(), None
    asked, other = memory.workspace("default"), memory.workspace("other")
    judge.asked.clear()
    threads = begin(retries, asked)
    assert begin(retries, asked) == []  # a second click
    threads += begin(retries, other)
    assert not any(retries.newest(name).ended for name in ("default", "other"))
    judge.may_answer.set()
    assert ended(retries, asked, threads).answer == "Judged 1 of 1 kept calls again."
    assert retries.newest("other").answer == "Judged 1 of 1 kept calls again."
    assert len(judge.asked) == 2


def test_a_run_that_could_not_be_made_keeps_no_later_one_away(memory, judge, begin, monkeypatch):
    retries, asked = Retries(), memory.workspace("default")
    with monkeypatch.context() as patch:
        patch.setattr(type(asked), "run", lambda *_: 1 / 0)
        run = ended(retries, asked, begin(retries, asked))
        assert run.ended and not run.answer and not run.problem  # the judge failed
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", lambda _: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            retries.start(asked)
    memory.services.store().close()
    assert "is closed" in ended(retries, asked, begin(retries, asked)).problem
