"""The main job in Python: what is added when, what the judge is shown, what is left for the report."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolmem.errors import RequestError, ToolMemError
from toolmem.formats.call_records import read_records
from toolmem.research.evaluation import Evaluator, hold_back
from toolmem.research.evaluation import evaluate as run_evaluation
from toolmem.research.recordings import read_recording
from toolmem.testing.clock import ManualClock

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "recorded_calls"
DATASETS = ("tau_bench", "tau2_airline", "toolbench", "intercode", "openhands")
LONGER = ("tau_bench", "toolbench", "intercode")


def write(path: Path, records: list[dict]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def call(number: int, **more) -> dict:
    return {
        "tool_name": f"tool_{number % 2}",
        "input": {"n": number},
        "output": f"[{number}, 1, 2]",
        "success": number % 5 != 0,
        "create_time": f"2026-03-01T00:{number:02}:00+00:00",
        **more,
    }


async def evaluate(make_app, paths, store: str = "memory.db", **options):
    async with make_app(store=store) as app:
        app.services.count_prompts = True
        return await Evaluator(app, read_recording(app, paths), **options).run()


async def test_summaries_run_over_all_new_nothing_new_and_the_newest_calls(make_app, tmp_path):
    evaluation = await evaluate(make_app, [write(tmp_path / "calls.jsonl", [call(n) for n in range(40)])])
    assert [run.label for run in evaluation.summaries] == ["all new", "nothing new", "newest 5 %"]
    first, second, third = (run.response.metadata for run in evaluation.summaries)
    assert first["summarized"] == third["summarized"] == second["skipped"] == ["tool_0", "tool_1"]
    assert [row.new_calls for row in map(_Row, third["tools"])] == [1, 1]
    avoided = [sum(tool.saved_prompt_tokens for tool in run.tools) for run in evaluation.summaries]
    assert avoided[0] == avoided[2] == 0 < avoided[1]


class _Row:
    def __init__(self, row: dict) -> None:
        self.new_calls = row["new_calls"]


async def test_every_recorded_call_has_a_row_in_input_order_and_its_verdict(make_app, tmp_path):
    records = [call(n) for n in range(30)]
    evaluation = await evaluate(make_app, [write(tmp_path / "calls.jsonl", list(reversed(records)))])
    assert [c.input["n"] for c in evaluation.calls] == list(reversed(range(30)))
    assert all(c.evaluation_status == "ok" for c in evaluation.calls)
    assert [c.score == 0.0 for c in evaluation.calls] == [n % 5 == 0 for n in reversed(range(30))]


async def test_a_bad_record_is_named_and_the_others_are_evaluated(make_app, tmp_path):
    records = [call(0), {"output": "no name"}, call(2)]
    evaluation = await evaluate(make_app, [write(tmp_path / "calls.jsonl", records)])
    assert len(evaluation.calls) == 2
    assert "tool_name" in evaluation.failures[0].error


async def test_ignore_success_withholds_the_flag_and_the_report_still_knows_it(make_app, tmp_path):
    path = write(tmp_path / "calls.jsonl", [call(n, success=False) for n in range(4)])
    told = await evaluate(make_app, [path])
    assert {c.execution_failed for c in told.calls} == {True}
    withheld = await evaluate(make_app, [path], store="second.db", ignore_success=True)
    assert {c.execution_failed for c in withheld.calls} == {False}
    assert {c.success for c in withheld.calls} == {False}
    assert withheld.ignore_success


async def test_the_same_recording_twice_into_one_store_adds_nothing_and_has_verdicts(make_app, tmp_path):
    path = write(tmp_path / "calls.jsonl", [call(n, id=f"id-{n}") for n in range(20)])
    await evaluate(make_app, [path])
    again = await evaluate(make_app, [path])
    assert all(c.evaluation_status == "ok" for c in again.calls)
    assert sum(m.metadata["lifetime"]["calls"] for m in again.memories) == 20


async def test_claims_point_to_calls_of_the_recording(make_app):
    evaluation = await evaluate(make_app, [])
    assert len(evaluation.calls) >= 600
    assert len({c.tool_name for c in evaluation.calls}) >= 8
    known = defaultdict(set)
    for c in evaluation.calls:
        known[c.tool_name].add(c.id)
    claims = 0
    for memory in evaluation.memories:
        for claim in memory.metadata["claims"]:
            claims += 1
            assert set(claim["call_ids"]) <= known[memory.when_to_use]
    assert claims > len(evaluation.memories)


async def test_a_seeded_sample_is_the_same_each_time(make_app, tmp_path):
    path = write(tmp_path / "calls.jsonl", [call(n) for n in range(40)])
    rows = []
    for _ in range(2):
        recording = read_recording(make_app(), [path])
        recording.sample(10)
        rows.append([row for row, _ in recording.calls])
    assert rows[0] == rows[1] == sorted(rows[0])
    assert len(rows[0]) == 10


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 50)), min_size=1, max_size=120))
def test_the_newest_five_percent_of_each_tool_are_held_back_at_least_one(items):
    records = [
        {"tool_name": tool, "create_time": f"2026-03-01T00:{minute:02}:00+00:00", "output": str(n)}
        for n, (tool, minute) in enumerate(items)
    ]
    calls = read_records(records, clock=ManualClock()).calls
    held = hold_back(calls)
    for tool in {tool for tool, _ in items}:
        mine = [(c.create_time, row) for row, c in calls if c.tool_name == tool]
        late = sorted(item for item in mine if item[1] in held)
        assert len(late) == max(1, round(0.05 * len(mine)))
        assert late == sorted(mine)[-len(late) :]


@pytest.mark.parametrize(
    "dataset", [pytest.param(name, marks=[pytest.mark.slow] * (name in LONGER)) for name in DATASETS]
)
async def test_both_files_of_a_recording_give_the_same_verdicts_without_the_flag(make_app, dataset):
    if not DATA.is_dir():
        pytest.skip("the recorded calls (../shared/data) are not beside the project")
    verdicts = {}
    for kind in ("calls", "conversations"):
        evaluation = await evaluate(
            make_app, [DATA / f"{dataset}.{kind}.jsonl.gz"], store=f"{kind}.db", ignore_success=True
        )
        verdicts[kind] = {
            (c.metadata.get("conversation_id"), c.metadata.get("tool_call_id"), c.output): (
                c.tool_name,
                c.score,
                c.execution_failed,
                c.error_class,
            )
            for c in evaluation.calls
        }
    both = verdicts["calls"].keys() & verdicts["conversations"].keys()
    assert len(both) >= 30
    assert all(verdicts["calls"][key] == verdicts["conversations"][key] for key in both)


async def test_a_recording_of_one_call_is_evaluated(make_app, tmp_path):
    evaluation = await evaluate(make_app, [write(tmp_path / "calls.jsonl", [{"tool_name": "t", "output": "x"}])])
    assert [len(run.tools) for run in evaluation.summaries] == [0, 0, 1]
    assert evaluation.calls[0].evaluation_status == "ok"


async def test_calls_of_one_id_are_said_to_count_once(make_app, tmp_path):
    records = [call(0, id="a"), call(2, id="a"), call(4, id="b"), call(6, id="c")]
    evaluation = await evaluate(make_app, [write(tmp_path / "calls.jsonl", records)])
    assert any("each id counts once" in note for note in evaluation.notes)


def test_an_evaluation_never_goes_into_a_memory_that_no_evaluation_made(make_app, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = write(tmp_path / "calls.jsonl", [call(0)])
    with make_app(store=".toolmem/memory.db") as app:
        app.run("add_tool_call_result", workspace_id="team", tool_call_results=[call(1)])
    with pytest.raises(RequestError, match="holds a memory"):
        run_evaluation(path, tmp_path / ".toolmem")
    with make_app(store=".toolmem/memory.db") as app:
        assert app.run("retrieve_tool_memory", workspace_id="team", tool_names="tool_1").success


@pytest.mark.parametrize("name", ["calls.csv", "summary.json", "report.html", "memory.db", ".writable"])
@pytest.mark.parametrize("there", [True, False])
def test_a_link_in_the_folder_of_the_report_is_not_written_through(tmp_path, name, there):
    precious = tmp_path / "precious"
    if there:
        precious.write_text("mine")
    (tmp_path / "report").mkdir()
    (tmp_path / "report" / name).symlink_to(precious)
    with pytest.raises(ToolMemError, match="symbolic link"):
        run_evaluation(out=tmp_path / "report", limit=2)
    assert precious.exists() == there
    assert not there or precious.read_text() == "mine"
