"""No secret of a call is stored, shown or written into guidance, whatever road the call takes."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import apsw
import pytest

from toolmem.cli import main
from toolmem.formats import read_file
from toolmem.readers.masking import MASK, SecretMask, masks_in
from toolmem.research.evaluation import Evaluator
from toolmem.research.evaluation import evaluate as run_evaluation
from toolmem.research.recordings import read_recording
from toolmem.rules.effectiveness import ToolEffectivenessTracker
from toolmem.session import AgentSession
from toolmem.store.copying import Copy
from toolmem.store.sqlite import SqliteStore
from toolmem.testing.clock import ManualClock
from toolmem.testing.scripted_llm import ScriptedLLM

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "recorded_calls"
LONGER = ("tau_bench", "toolbench", "openhands", "intercode")
PASSWORD, KEY = "hunter2!x", "sk-live-4242abcd4242"


def record(number: int, **more: Any) -> dict[str, Any]:
    return {
        "tool_name": "login",
        "input": {"user": f"user {number}", "api_key": KEY, "password": PASSWORD},
        "output": json.dumps({"ok": True, "as": f"user {number}", "session_token": "a1b2c3d4e5f6a1b2"}),
        "success": True,
        "create_time": f"2026-03-01T00:{number:02}:00+00:00",
        **more,
    }


async def add(app, records, **more):
    return await app.run_flow("add_tool_call_result", workspace_id="team", tool_call_results=records, **more)


def run(*arguments: str) -> None:
    with pytest.raises(SystemExit) as end:
        main(list(arguments))
    assert not end.value.code


def everything_in(path: Path) -> str:
    """All that a store's file holds, in its tables and beside them."""
    db = apsw.Connection(str(path))
    tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    rows = [str(row) for table in tables for row in db.execute(f'SELECT * FROM "{table}"')]
    db.close()
    files = [each.read_bytes().decode("latin-1") for each in path.parent.glob(f"{path.name}*")]
    return "\n".join(rows + files)


async def test_secrets_reach_neither_the_file_nor_guidance_nor_answers(make_app, tmp_path):
    async with make_app() as app:
        responses = [
            await add(app, [record(n) for n in range(6)]),
            await app.run_flow("summary_tool_memory", workspace_id="team", tool_names="login"),
            await app.run_flow("retrieve_tool_memory", workspace_id="team", tool_names="login", include_calls=True),
            await app.run_flow("vector_store", workspace_id="team", action="list"),
        ]
    shown = "".join(response.model_dump_json() for response in responses) + everything_in(tmp_path / "memory.db")
    assert PASSWORD not in shown
    assert KEY not in shown
    assert "a1b2c3d4e5f6a1b2" not in shown
    memory = responses[2].metadata["memory_list"][0]
    assert memory["content"]
    marks = {call["input"]["password"] for call in memory["tool_call_results"]}
    assert len(marks) == 1
    assert MASK.fullmatch(marks.pop())


async def test_the_judge_sees_the_call_as_it_is_and_its_words_are_masked(make_app):
    def reply(prompt: str) -> str:
        assert PASSWORD in prompt
        said = {
            "summary": f"Logged in with {PASSWORD}.",
            "evaluation": f"The password {PASSWORD} worked.",
            "score": 1.0,
        }
        return f"```json\n{json.dumps(said)}\n```"

    llm = ScriptedLLM(reply)
    async with make_app(llms={"default": llm}) as app:
        await add(app, [record(1)])
        await add(app, [record(1)])
        assert len(llm.requests) == 1  # the second one is the same call
        again = await app.run_flow("rejudge", workspace_id="team")  # of the masked call: the same verdict
        assert again.metadata["evaluation"]["requested"] == 2
        assert len(llm.requests) == 1
        got = await app.run_flow("retrieve_tool_memory", workspace_id="team", tool_names="login", include_calls=True)
        for call in got.metadata["memory_list"][0]["tool_call_results"]:
            assert MASK.search(call["summary"])
            assert PASSWORD not in json.dumps(call)


async def test_other_secrets_are_other_calls(make_app):
    async with make_app() as app:
        records = [record(1, input={"password": f"hunter{n}!"}) for n in (1, 2, 1)]
        response = await add(app, records)
        assert response.metadata["evaluation"]["evaluated"] == 2


async def test_a_switch_keeps_calls_as_they_are(make_app, tmp_path):
    async with make_app("secrets.mask=false") as app:
        await add(app, [record(1)])
        got = await app.run_flow("retrieve_tool_memory", workspace_id="team", tool_names="login", include_calls=True)
        assert got.metadata["memory_list"][0]["tool_call_results"][0]["input"] == record(1)["input"]
    async with make_app() as app:  # what is stored stays; what comes is masked
        await add(app, [record(2)])
        got = await app.run_flow("retrieve_tool_memory", workspace_id="team", tool_names="login", include_calls=True)
        old, new = got.metadata["memory_list"][0]["tool_call_results"]
        assert old["input"]["password"] == PASSWORD
        assert MASK.fullmatch(new["input"]["password"])


async def test_guidance_made_of_older_calls_is_masked(make_app):
    async with make_app("secrets.mask=false") as app:
        await add(app, [record(n) for n in range(6)])
    async with make_app() as app:
        await app.run_flow("summary_tool_memory", workspace_id="team", tool_names="login")
        got = await app.run_flow("retrieve_tool_memory", workspace_id="team", tool_names="login")
        shown = json.dumps(got.metadata["memory_list"])
        (held,) = await (await app.services.store_named()).records("team", ["login"])
        assert held.guidance is not None
        stored = held.guidance.model_dump_json()  # what its next edit is made of, too
        assert [one for one in held.guidance.claims if one.subject is not None]
        for text in (shown, stored):
            assert KEY not in text
            assert PASSWORD not in text


SCHEMA = {
    "name": "login",
    "parameters": {
        "type": "object",
        "properties": {"user": {"type": "string"}, "pin": {"type": "integer"}, "password": {"type": "integer"}},
        "required": ["user"],
    },
}


async def test_a_masked_value_is_not_held_against_the_tools_schema(make_app):
    """A number's mark is text: judged again, the call has the verdict that it had."""
    async with make_app() as app:
        await add(app, [record(1, input={"user": "bob", "password": 123456})], tools=[SCHEMA])
        first = await app.run_flow("retrieve_tool_memory", workspace_id="team", tool_names="login", include_calls=True)
        await app.run_flow("rejudge", workspace_id="team", tools=[SCHEMA], force=True)
        again = await app.run_flow("retrieve_tool_memory", workspace_id="team", tool_names="login", include_calls=True)
    (before,), (after,) = (each.metadata["memory_list"][0]["tool_call_results"] for each in (first, again))
    assert MASK.fullmatch(before["input"]["password"])
    assert before["score"] == after["score"] == 1.0
    assert all(each["evaluation"].endswith("The input fits the tool's schema.") for each in (before, after))


async def test_a_session_stores_masked_calls_and_has_them_judged_as_they_were(make_app, tmp_path):
    seen: list[str] = []

    def reply(prompt: str) -> str:
        seen.append(prompt)
        said = {"summary": "x", "evaluation": f"refused {PASSWORD}", "score": 0.0}
        return f"```json\n{json.dumps(said)}\n```"

    async with make_app(llms={"default": ScriptedLLM(reply)}) as app:
        session = await AgentSession.start(app, workspace_id="team", tools=["login"], count_tokens=len)
        calls = [record(n, output=f"Error: bob:{PASSWORD} is locked", success=False) for n in range(3)]
        captured = await session.after_turn(calls=calls, user_message="log in")
        await session.close()
        (counted,) = await ToolEffectivenessTracker(await app.services.store_named(), "team").all()
        assert all(PASSWORD in prompt for prompt in seen)
        assert MASK.search(counted.common_error_patterns[0])
        assert PASSWORD not in counted.model_dump_json()
        assert PASSWORD not in "".join(rule.rule for rule in captured.rules)
    assert PASSWORD not in everything_in(tmp_path / "memory.db")


async def test_a_loaded_dump_is_masked(make_app, tmp_path):
    dumps = f"dump_dir='{tmp_path / 'dumps'}'"
    async with make_app("secrets.mask=false", dumps, store="open.db") as app:
        await add(app, [record(n) for n in range(6)])
        await app.run_flow("summary_tool_memory", workspace_id="team", tool_names="login")
        await app.run_flow("vector_store", workspace_id="team", action="dump")
    assert PASSWORD in (tmp_path / "dumps" / "team.jsonl").read_text()
    async with make_app(dumps) as app:
        for _ in range(2):
            loaded = await app.run_flow("vector_store", workspace_id="team", action="load")
        assert (loaded.metadata["calls_added"], loaded.metadata["duplicates"]) == (0, 6)
    assert PASSWORD not in everything_in(tmp_path / "memory.db")


def test_imported_memories_are_masked_and_info_counts_what_is_not(make_app, tmp_path, capsys):
    dumps = f"dump_dir='{tmp_path / 'dumps'}'"
    with make_app("secrets.mask=false", dumps, store="open.db") as app:
        app.run("add_tool_call_result", workspace_id="team", tool_call_results=[record(n) for n in range(3)])
        app.run("vector_store", workspace_id="team", action="dump")
    target = tmp_path / "target.db"
    run("store", "import", str(tmp_path / "dumps"), "--store", f"sqlite:{target}")
    assert PASSWORD not in everything_in(target)
    for path, secrets in ((tmp_path / "open.db", 9), (target, 0)):
        capsys.readouterr()
        run("store", "info", "--store", f"sqlite:{path}", "--json")
        assert json.loads(capsys.readouterr().out)["workspaces"]["team"]["secrets"] == secrets


async def test_a_copied_store_goes_on_with_the_same_marks(make_app, tmp_path):
    async with make_app() as app:
        await add(app, [record(1)])
    given = SqliteStore(tmp_path / "memory.db", clock=ManualClock(), embedder=None)
    async with given as source, SqliteStore(tmp_path / "copy.db", clock=ManualClock(), embedder=None) as target:
        done = await Copy(source, target, embedder=None).run()
        assert not done.different
    async with make_app(store="copy.db") as app:
        await add(app, [record(2)])
        got = await app.run_flow("retrieve_tool_memory", workspace_id="team", tool_names="login", include_calls=True)
        calls = got.metadata["memory_list"][0]["tool_call_results"]
        assert len({call["input"]["password"] for call in calls}) == 1


def test_the_report_shows_masked_values_and_counts_them(tmp_path):
    file = tmp_path / "calls.jsonl"
    refused = record(6, output=f"Error: no session for api_key={KEY}", success=False)
    file.write_text("".join(json.dumps(record(n)) + "\n" for n in range(5)) + json.dumps({**refused, "input": {}}))
    run_evaluation(file, tmp_path / "report")
    written = {path.name: path.read_bytes().decode("latin-1") for path in (tmp_path / "report").iterdir()}
    assert [name for name, text in written.items() if PASSWORD in text or KEY in text] == []
    assert "16 values in 6 of 6 calls look like secrets" in written["report.html"]
    assert MASK.search(written["claims.csv"])


async def test_calls_that_were_never_judged_are_masked_in_the_report_too(make_app, tmp_path):
    file = tmp_path / "calls.jsonl"
    file.write_text("".join(json.dumps(record(n)) + "\n" for n in range(4)))
    llm = ScriptedLLM.plausible(fail_every=1)
    async with make_app(llms={"default": llm}) as app:
        evaluation = await Evaluator(app, read_recording(app, [file])).run()
    assert len(evaluation.calls) == 4
    assert not any(PASSWORD in call.model_dump_json() for call in evaluation.calls)


def test_the_key_is_in_no_dump_report_or_answer(make_app, tmp_path):
    with make_app(f"dump_dir='{tmp_path / 'dumps'}'") as app:
        app.run("add_tool_call_result", workspace_id="team", tool_call_results=[record(1)])
        app.run("vector_store", workspace_id="team", action="dump")
        store = app.call(app.services.store_named())
        kept = app.call(store.get(".store", "secrets", "key"))
        assert kept is not None
        assert kept.value["key"] not in (tmp_path / "dumps" / "team.jsonl").read_text()
        assert app.call(store.workspaces()) == ["team"]


async def test_what_the_user_says_stays_as_it_was_said(make_app):
    """A rule, a note: somebody asked for these words to be kept."""
    said = f"never send the password={PASSWORD} to anyone"
    async with make_app() as app:
        rules = await app.rule_store("team")
        await rules.put_rule("send_email", said, priority="critical")
        captured = await app.run_flow(
            "capture_tool_rules",
            workspace_id="team",
            user_message=f"{said}.",
            tool_calls=[{"name": "send_email", "arguments": {}}],
            tools=["send_email"],
        )
        assert captured.success
        listed = await rules.list_rules("send_email")
        assert [rule.rule.rstrip(".") for rule in listed] == [said]


@pytest.mark.skipif(not DATA.is_dir(), reason=f"the recorded calls are not there: {DATA.name}")
@pytest.mark.parametrize(
    "dataset",
    ["tau2_airline", *(pytest.param(name, marks=pytest.mark.slow) for name in LONGER)],
)
def test_verdicts_and_guidance_of_recordings_are_the_same_with_and_without_masking(make_app, dataset):
    calls = [call for _, call in read_file(DATA / f"{dataset}.calls.jsonl.gz", clock=ManualClock()).calls]
    tools = sorted({call.tool_name for call in calls})
    figures = []
    for mask in ("true", "false"):
        overrides = [f"secrets.mask={mask}", "op.parse_tool_call_result_op.params.max_history_tool_call_cnt=100000"]
        with make_app(*overrides, store=f"{mask}.db") as app:
            run = app.call(app.run_detailed("add_tool_call_result", workspace_id="w", tool_call_results=calls))
            judged = [call for _, call in run.context["judged_calls"]]
            summed = app.run("summary_tool_memory", workspace_id="w", tool_names=tools, force=True)
            figures.append(
                (
                    [(call.score, call.execution_failed, call.error_class, call.evaluation) for call in judged],
                    {memory["when_to_use"]: memory["content"] for memory in summed.metadata["memory_list"]},
                    [call.id for call in judged if masks_in(call)],
                )
            )
    assert figures[0][:2] == figures[1][:2]
    assert figures[1][2] == []
    assert len(figures[0][2]) == (3 if dataset == "intercode" else 0)  # programs that compare with a password


@pytest.mark.parametrize("value", ["yes", 1, "null"])
def test_the_switch_takes_true_or_false(make_app, value):
    from toolmem.errors import ConfigError

    with pytest.raises(ConfigError, match=r"secrets\.mask"):
        make_app(f"secrets.mask={value}")


async def test_what_a_judge_says_may_be_the_first_secret_of_a_store(make_app, tmp_path):
    said = json.dumps({"summary": "x", "evaluation": f"it used password: '{PASSWORD}'", "score": 1.0})
    async with make_app(llms={"default": ScriptedLLM([f"```json\n{said}\n```"])}) as app:
        response = await add(app, [record(1, input={"q": 1}, output="[1]")])
    assert response.metadata["evaluation"]["evaluated"] == 1
    assert PASSWORD not in everything_in(tmp_path / "memory.db")


async def test_long_inputs_and_metadata_are_masked_beside_the_event_loop(make_app, monkeypatch):
    threads = []
    value = SecretMask.value
    monkeypatch.setattr(SecretMask, "value", lambda *given: (threads.append(threading.get_ident()), value(*given))[1])
    long = {"text": "password=" * 60_000}
    async with make_app() as app:
        for place in ("input", "metadata"):
            await add(app, [record(1, **{"input": {}, "output": "x", place: long})])
    assert threads
    assert threading.get_ident() not in threads
