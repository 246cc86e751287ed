"""`toolmem guard replay`: what the guard would have flagged, with its evidence, on a recording of one's own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from toolmem import ToolMem
from toolmem.cli import main

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def command(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as left:
            main(["guard", "replay", *arguments])
        shown = capsys.readouterr()
        return int(left.value.code or 0), shown.out, shown.err

    return command


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    mails = [("sarah@example.com", True), ("bob@acme.com", True), ("nobody", False), ("nobody", False)]
    calls = [
        {
            "tool_name": "send_email",
            "input": {"to": to, "body": "hello sarah@example.com"},
            "output": "sent" if worked else "Error: no such address",
            "success": worked,
            "conversation_id": "c1",
            "create_time": f"2026-11-22T10:00:0{second}Z",
        }
        for second, (to, worked) in enumerate(mails)
    ]
    path = tmp_path / "calls.jsonl"
    path.write_text("".join(json.dumps(call) + "\n" for call in calls), encoding="utf-8")
    return path


def rules(folder: Path, *given: object) -> str:
    path = folder / "rules.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in given), encoding="utf-8")
    return str(path)


def test_flags_name_the_call_its_evidence_and_how_it_ended(run: Run, recording: Path, tmp_path: Path) -> None:
    given = rules(tmp_path, {"rule": "Never email sarah@example.com"}, {"rule": "Never email Sarah on weekends"})
    code, out, err = run("--input", str(recording), "--rules", given, "--json")
    told = json.loads(out)
    assert (code, told["calls"], told["failures"]) == (0, 4, 2)
    assert [(flag["index"], flag["source"], flag["action"]) for flag in told["flags"]] == [
        (0, "rule", "deny"),
        (3, "repeat", "deny"),
    ]
    assert told["sources"]["repeat"]["flagged"] == 1
    assert (told["sources"]["repeat"]["recall"], told["sources"]["repeat"]["precision"]) == (0.5, 1.0)
    assert told["flags"][1]["call_ids"] == ["2"]
    code, out, err = run("--input", str(recording), "--rules", given)
    assert code == 0
    assert 'call 1, rules: send_email {"to": "sarah@example.com"' in out
    assert "deny; as recorded, it worked" in out
    assert "deny (advise, as configured); as recorded, it failed again" in out
    assert "A rule says: Never email sarah@example.com." in out or "The user said: Never email sarah" in out
    assert "only a reminder: Never email Sarah on weekends: “weekends” may limit it" in err


def test_a_rule_may_bring_its_own_condition(run: Run, recording: Path, tmp_path: Path) -> None:
    when = {
        "type": "object",
        "required": ["targets"],
        "properties": {"targets": {"type": "array", "contains": {"const": "bob@acme.com"}}},
    }
    given = rules(tmp_path, {"rule": "not Bob", "tool_name": "send_email", "effect": "ask", "when": when})
    told = json.loads(run("--input", str(recording), "--rules", given, "--json")[1])
    assert [(flag["index"], flag["action"]) for flag in told["flags"] if flag["source"] == "rule"] == [(1, "ask")]


@pytest.mark.parametrize(
    ("rule", "complaint"),
    [
        ([], "expected a rule as an object with `rule`"),
        ({"tool_name": "x"}, "`rule`: write the sentence"),
        ({"rule": "never", "effect": "maybe"}, "`effect`: expected deny, ask or remind"),
        ({"rule": "never", "wenn": True}, "`wenn` is no field of a rule"),
        ({"rule": "never", "when": {"$ref": "#"}}, "line 1: when.$ref`: not allowed"),
    ],
)
def test_a_bad_rule_is_refused_with_its_line(
    run: Run, recording: Path, tmp_path: Path, rule: object, complaint: str
) -> None:
    code, out, err = run("--input", str(recording), "--rules", rules(tmp_path, rule))
    assert (code, out) == (2, "")
    assert complaint in err
    assert "line 1" in err


def test_a_report_says_what_was_replayed_in_which_modes_and_what_its_words_mean(run: Run, recording: Path) -> None:
    code, out, _ = run("--input", str(recording), "guard.repeats=shadow", "guard.rules=off")
    assert code == 0
    assert f"The recording {recording}: 4 calls in 1 conversation, 2 of which failed" in out
    assert "nothing was stopped and nothing stored" in out
    assert "Modes: rules off, repeats shadow, names advise, schema advise." in out
    assert "wrong: of these, the calls that worked" in out
    assert "precision: the failed among the flagged" in out
    assert "deny (shadow, as configured)" in out
    assert "Rules were not asked" in out
    assert "Known names were not asked" in out
    told = json.loads(run("--input", str(recording), "--json", "guard=off")[1])
    assert told["modes"] == dict.fromkeys(("rules", "repeats", "names", "schema"), "off")
    assert told["sources"]["repeat"]["flagged"] == 1, "counted whatever the mode"


def test_a_recording_without_flags_says_so(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "one.jsonl"
    path.write_text('{"tool_name": "search", "input": {"q": "rain"}, "output": "[]", "success": true}\n')
    code, out, _ = run("--input", str(path))
    assert code == 0
    assert "1 call in 0 conversations, 0 of which failed" in out
    assert "No call was flagged." in out


def test_the_sample_is_replayed_without_any_argument(run: Run) -> None:
    code, out, err = run()
    assert (code, err) == (0, "")
    assert "The project's own sample: 1,176 calls in 466 conversations" in out
    assert "repeats: the same call failed" in out
    assert "as recorded, it failed again" in out


@pytest.fixture
def logged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recording: Path) -> None:
    """A store in the working directory whose log has the recording's calls, and one rule."""
    monkeypatch.chdir(tmp_path)
    with ToolMem() as mem:
        mem.rules.put("send_email", "never email sarah@example.com")
        mem.add([json.loads(line) for line in recording.read_text(encoding="utf-8").splitlines()])


def test_without_a_recording_the_log_of_the_workspace_is_replayed_with_its_rules(run: Run, logged: None) -> None:
    told = json.loads(run("--json")[1])
    assert (told["calls"], told["failures"]) == (4, 2)
    assert [(flag["index"], flag["source"]) for flag in told["flags"]] == [(0, "rule"), (3, "repeat")]
    assert told["flags"][0]["rule_id"]
    code, out, _ = run("--workspace", "default")
    assert code == 0
    assert "The log of workspace default: 4 calls in 1 conversation, 2 of which failed" in out
    assert "Rules were not asked" not in out


def test_rules_of_a_file_are_asked_instead_of_those_of_the_store(run: Run, logged: None, tmp_path: Path) -> None:
    given = rules(tmp_path, {"rule": "Never email bob@acme.com"})
    told = json.loads(run("--json", "--rules", given)[1])
    assert [(flag["index"], flag["source"]) for flag in told["flags"]] == [(1, "rule"), (3, "repeat")]


def test_a_workspace_of_which_nothing_was_logged_is_refused(run: Run, logged: None, recording: Path) -> None:
    code, out, err = run("--workspace", "nobody")
    assert (code, out) == (2, "")
    assert "no call of workspace 'nobody' was logged" in err
    code, out, err = run("--workspace", "default", "--input", str(recording))
    assert (code, out) == (2, "")
    assert "no --input" in err


def test_a_workspace_is_asked_for_where_there_is_no_store(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("--workspace", "default")[0] == 2
    assert run()[0] == 0, "the sample"
    assert list(tmp_path.iterdir()) == [], "nothing is made"


def test_a_call_that_was_denied_is_no_call_of_the_replay(run: Run, recording: Path) -> None:
    lines = [json.loads(line) for line in recording.read_text(encoding="utf-8").splitlines()]
    lines[2]["output"] = "PreToolUse:mcp__mail__send hook error: toolmem: not run. The user said: no."
    recording.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    told = json.loads(run("--input", str(recording), "--json")[1])
    assert (told["calls"], told["failures"], told["flags"]) == (3, 1, [])
