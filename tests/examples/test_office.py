"""The trial of `examples/office`, run as its command over HTTP: a scripted model in place of a large one."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from examples.office.__main__ import main
from examples.office.clinic import PATIENTS, TOOLS, Clinic, day_code
from examples.office.tasks import LEARNING, TRIAL, Task
from toolmem import ToolMem
from toolmem.cli import main as toolmem
from toolmem.testing.agent_server import AgentRequest, AgentServer, AskedCall
from toolmem.testing.model_script import Script
from toolmem.testing.model_server import ModelServer
from toolmem.testing.scripted_llm import plausible_reply

ROOT = Path(__file__).resolve().parents[2]
TASKS = {task.text: task for task in (*LEARNING, *TRIAL)}
EMBEDDER = "embedding_model.default.backend=hashing"  # nothing here is searched by meaning
Turn = AskedCall | str
MORE = {"patient": "V204", "room": "EXAM", "day": "26362", "start": "1700", "minutes": 20}  # that nobody asked for


def steps(task: Task, known: str) -> list[Turn]:
    """A model that does the task, and makes a mistake wherever its prompt (`known`) does not show how it is done."""
    visits = {each[1]: f"N{501 + number}" for number, each in enumerate(e for e in task.end if e[0] == "visit")}
    turns: list[Turn] = []
    for kind, patient, *rest in task.end:
        if kind == "visit":
            room, day, start, minutes = rest
            call = {"patient": patient, "room": room, "start": start, "minutes": int(minutes)}
            if '"day": "26' not in known:
                turns.append(AskedCall("book_visit", {**call, "day": day}))
            turns.append(AskedCall("book_visit", {**call, "day": day_code(date.fromisoformat(day))}))
        elif kind == "weight":
            if "(grams)" not in known:
                turns.append(AskedCall("record_weight", {"patient": patient, "weight": int(rest[0]) / 1000}))
            turns.append(AskedCall("record_weight", {"patient": patient, "weight": int(rest[0])}))
        elif kind == "dose":
            turns.append(AskedCall("dispense", {"visit": visits[patient], "drug": rest[0], "dose": int(rest[1])}))
        else:
            turns.append(AskedCall("bill", {"visit": visits[patient], "lines": rest[0], "payer": rest[1]}))
    return [*turns, f"All done.\nAnswer: {'; '.join(task.answers) or 'done'}"]


def play(request: AgentRequest, plan: Callable[[Task, str], list[Turn]] = steps) -> Turn:
    system, user, *_ = request.body["messages"]
    return plan(TASKS[user["content"]], system["content"])[len(request.answers)]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "FLOW_LLM_API_KEY", "FLOW_LLM_BASE_URL", "DASHSCOPE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(server: AgentServer, *arguments: str) -> int:
    """The command, against the server; nothing is paced and nothing tried again."""
    overrides = [f"llm.default.params.base_url={server.url}/v1", "llm.default.params.max_retries=0"]
    overrides.append("op.summary_tool_memory_op.params.summary_sleep_interval=0")
    return main([*arguments, "--model", "scripted", *overrides])


def rows_of(printed: str) -> dict[str, list[str]]:
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in printed.splitlines() if line[:1] == "|"]
    return {row[0]: row[1:] for row in cells[2:]}


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_each_kind_of_memory_is_tried_on_the_same_tasks_and_has_its_row(here, capsys):
    with AgentServer(*[play] * 300, aside=lambda request: plausible_reply(request.text)) as server:
        assert run(server, "--memory", "all", "--tasks", "2", "--seed", "3") == 0
    rows = rows_of(capsys.readouterr().out)
    assert list(rows) == ["nothing", "the raw recording", "the card, counted without a model", "a model's text"]
    assert {row[2] for row in rows.values()} == {"2 of 2"}
    none, recording, card, model = rows.values()
    assert int(card[1]) < int(none[1])  # the mistakes that the card keeps the scripted model from
    assert none[3] == "0"
    assert int(recording[3].replace(",", "")) > int(card[3].replace(",", "")) > 0
    for row in rows.values():  # the server says 100 and 10 tokens of each request
        assert row[5:] == [
            f"{100 * int(row[4]):,}",
            f"{int(row[4]) * int(row[3].replace(',', '')):,}",
            f"{10 * int(row[4]):,}",
        ]
    assert int(model[0]) == len(records(here / "office-trial/model.jsonl"))
    assert "Scripted guidance" in (here / "office-trial/model.md").read_text(encoding="utf-8")
    asked = {arm: [each["context"] for each in records(here / f"office-trial/{arm}.jsonl")] for arm in ("none", "card")}
    assert list(dict.fromkeys(asked["none"])) == list(dict.fromkeys(asked["card"]))
    assert set(asked["none"]) <= {task.text for task in TRIAL}


def test_the_calls_are_a_recording_that_toolmem_reads(here):
    with AgentServer(*[play] * 300) as server:
        assert run(server, "--memory", "card", "--tasks", "2") == 0
    calls = records(here / "office-trial/learning.jsonl")
    assert {call["context"] for call in calls} <= {task.text for task in LEARNING}
    with ToolMem(":memory:") as mem:
        assert mem.add(calls).stored == len(calls) > 0
    with pytest.raises(SystemExit) as left:
        toolmem(["evaluate", "--input", "office-trial/learning.jsonl", "--out", "report", EMBEDDER])
    assert not left.value.code
    summary = json.loads((here / "report/summary.json").read_text(encoding="utf-8"))
    assert summary["calls"]["calls"] == len(calls)


def test_a_task_is_solved_only_by_the_end_that_it_has_to_come_to_and_by_the_right_answers():
    for task in TASKS.values():
        for spoilt in ("", "once more", "left out", "said wrong"):
            *calls, last = steps(task, "")
            if spoilt == "once more":
                calls.append(AskedCall("book_visit", MORE))
            if spoilt == "left out":
                calls = calls[:-1]
            clinic = Clinic()
            for call in calls:
                assert isinstance(call, AskedCall)
                clinic.call(call.tool, call.arguments)
            said = str(last) + (" 1" if spoilt == "said wrong" else "")
            expected = (
                spoilt == "" or (spoilt == "left out" and not task.end) or (spoilt == "said wrong" and not task.answers)
            )
            assert task.solved(clinic, said) is expected, (task.name, spoilt)


def test_a_wrong_end_is_not_called_solved_whatever_the_agent_says(here, capsys):
    def billed_twice(task: Task, known: str) -> list[Turn]:
        turns = steps(task, known)
        bill = next((each for each in turns if isinstance(each, AskedCall) and each.tool == "bill"), None)
        return turns if bill is None else [*turns[:-1], bill, turns[-1]]

    with AgentServer(*[lambda request: play(request, billed_twice)] * 300) as server:
        assert run(server, "--memory", "none") == 0
    billed = {task.name for task in TRIAL if any(each[0] == "bill" for each in task.end)}
    results = json.loads((here / "office-trial/results.json").read_text(encoding="utf-8"))
    solved = results["arms"]["none"]["solved"]
    assert {name for name, was in solved.items() if not was} == billed != set()
    assert f"{len(TRIAL) - len(billed)} of {len(TRIAL)}" in capsys.readouterr().out


def test_the_seed_draws_the_order_and_every_task_has_a_fresh_agent(here):
    orders = []
    with AgentServer(*[play] * 500) as server:
        for out, seed in (("a", "1"), ("b", "1"), ("c", "2")):
            begun = len(server.requests)
            assert run(server, "--memory", "none", "--seed", seed, "--out", out) == 0
            first = [each for each in server.requests[begun:] if not each.answers]
            assert all(len(each.body["messages"]) == 2 for each in first)
            orders.append([each.body["messages"][1]["content"] for each in first])
    assert orders[0] == orders[1] != orders[2]
    assert sorted(orders[0]) == sorted(orders[2]) == sorted(task.text for task in TRIAL)


def test_an_earlier_learning_phase_serves_again(here):
    with AgentServer(*[play] * 300) as server:
        assert run(server, "--memory", "card", "--tasks", "1") == 0
        first = (here / "office-trial/card.md").read_text(encoding="utf-8")
        begun = len(server.requests)
        again = ("--learned", "office-trial/learning.jsonl", "--out", "again", "--tasks", "1")
        assert run(server, "--memory", "card", *again) == 0
        asked = {each.body["messages"][1]["content"] for each in server.requests[begun:]}
    assert asked <= {task.text for task in TRIAL}
    assert (here / "again/card.md").read_text(encoding="utf-8") == first != ""


def test_without_model_or_key_or_over_an_earlier_recording_nothing_is_asked(here, capsys, monkeypatch):
    assert main(["--memory", "none"]) == 2
    said = capsys.readouterr().err
    assert "model_name" in said
    assert "OPENAI_API_KEY" in said
    monkeypatch.setenv("OPENAI_API_KEY", "any-text")
    (here / "office-trial").mkdir()
    (here / "office-trial/none.jsonl").write_text("paid for\n", encoding="utf-8")
    with AgentServer() as server:
        assert run(server, "--memory", "none") == 2
        assert server.requests == []
    assert "already there" in capsys.readouterr().err
    assert (here / "office-trial/none.jsonl").read_text(encoding="utf-8") == "paid for\n"
    assert main(["--memory", "card", "--learned", "none.jsonl", "--model", "m", "--out", "b"]) == 2


def test_a_model_that_denies_ends_the_trial_with_its_reason(here, capsys):
    with ModelServer(Script.failing("unauthorized")) as server:
        url = f"llm.default.params.base_url={server.openai_url}"
        assert main(["--memory", "none", "--model", "m", "--tasks", "2", url, "llm.default.params.api_key=k"]) == 1
    said = capsys.readouterr()
    assert "InvalidApiKey" in said.err or "Invalid API-key" in said.err
    assert rows_of(said.out)["nothing"][2] == "0 of 2 (2 not tried)"


def test_a_model_that_fails_in_the_middle_leaves_what_was_done(here, capsys):
    def broken(request: AgentRequest) -> Turn:
        raise RuntimeError("out of order")

    with AgentServer(*[play] * 6, broken) as server:
        assert run(server, "--memory", "none", "--seed", "1") == 1
    kept = records(here / "office-trial/none.jsonl")
    assert int(rows_of(capsys.readouterr().out)["nothing"][0]) == len(kept) > 0


def test_an_agent_that_never_ends_is_ended(here, capsys):
    def on_and_on(request: AgentRequest) -> list[AskedCall]:
        return [AskedCall("find_patient", {"query": "owner=ROSSI"}), AskedCall("nothing like it", "no JSON")]

    with AgentServer(*[on_and_on] * 50) as server:
        assert run(server, "--memory", "none", "--tasks", "1", "--most-calls", "5") == 0
    row = rows_of(capsys.readouterr().out)["nothing"]
    assert row[:3] == ["5", "2", "0 of 1"]


@pytest.mark.parametrize("tool", [each["name"] for each in TOOLS])
@pytest.mark.parametrize(
    "value", ["", "\x00", "٢٦٣٤٣", 10**400, -1, 1.5, float("nan"), float("inf"), True, None, [], {"a": 1}]
)
def test_a_tool_answers_whatever_is_sent(tool: str, value: object):
    names = next(each for each in TOOLS if each["name"] == tool)["parameters"]["properties"]
    for sent in (value, dict.fromkeys(names, value), {**dict.fromkeys(names, value), "patient": next(iter(PATIENTS))}):
        output, _ = Clinic().call(tool, sent)
        assert isinstance(output, str)
    assert re.search(r"argument|missing|[C]\d\d", Clinic().call(tool, {})[0])


def test_the_help_shows_how_to_run_it():
    asked = [sys.executable, "-m", "examples.office", "--help"]
    shown = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "python -m examples.office --memory none --memory card --model NAME" in shown


def test_answers_count_by_their_values_not_by_how_they_are_written():
    shelves, lists = (next(task for task in TRIAL if task.name == name) for name in ("shelves", "lists"))
    first, second = shelves.answers
    assert shelves.solved(Clinic(), f"Both were there.\n**Answer: {first}; {second}.**")
    assert not shelves.solved(Clinic(), f"Answer: {second}; {first}")
    assert not shelves.solved(Clinic(), f"I found {first}; {second}")
    dogs, packs = lists.answers
    assert lists.solved(Clinic(), f"answer: {', '.join(reversed(dogs.split(',')))}; {packs}")
