"""Imported calls teach, and say that they were imported; they never bind."""

import json
from functools import partial

import pytest

from toolmem import ToolMem
from toolmem.research.importing import import_recordings
from toolmem.rules.failures import REPEATED_FAILURE
from toolmem.rules.turn import tools_called_here
from toolmem.session import AgentSession

GONE = "No such file or directory"
QUIET = {"quote": "my wife sleeps there", "effect": "deny", "tools": ["ring"]}
QUIET |= {"when": [{"arg": {"name": "floor", "matches": "^7"}}], "tools_available": ["ring"]}
QUIET |= {"passes": [{"tool": "ring", "arguments": {"floor": "8"}}]}
QUIET |= {"stops": [{"tool": "ring", "arguments": {"floor": "7a"}}], "user_message": QUIET["quote"]}


def call(tool, given, output="ok", success=True, talk="s"):
    about = {"tool_name": tool, "input": given, "output": output, "success": success}
    return {**about, "conversation_id": talk, "metadata": {"format": "claude_code"}}


CALLS = [
    call("Bash", {"command": "pytest"}, "3 passed"),
    call("mail", {"to": "amy"}),
    *(call("ring", {"floor": f"7{each}"}) for each in "abcdef"),
    *(call("Bash", {"command": f"cat {each}"}, f"cat: {each}: {GONE}", False) for each in "ab"),
    call("query", {"sql": "SELECT total FROM orders"}, "no such table: orders", False),
]


def made_live(memory):
    with AgentSession.start(memory, conversation_id="s") as session:
        session.messages("go on")
        for each in CALLS:
            decision = session.check(each["tool_name"], each["input"])
            session.ended(decision, each["output"], each["success"])
        session.after_turn(calls=CALLS)


def decisions(make_calls):
    """What becomes of calls and demands in a conversation after these calls."""
    with ToolMem(":memory:", overrides=["guard.repeats=enforce"]) as memory:
        put = partial(memory.tool_rule_put, effect="deny")
        tested = [{"earlier": {"command": "^pytest", "worked": True}}]
        put("Bash", "Test first", when=[{"command": "^git commit"}], unless=tested)
        limit = {"calls": 1, "per": "conversation"}
        put("mail", "One mail", when=[{"target": ".", "more_than": limit}])
        make_calls(memory)
        check = partial(memory.check_tool_call, conversation_id="s")
        rules = memory.tool_rule_list("Bash")
        return {
            "repeat": check("Bash", {"command": "cat b"}).action,
            "only after": check("Bash", {"command": "git commit -m x"}).action,
            "more than": check("mail", {"to": "amy"}).action,
            "missing table": check("query", {"sql": "SELECT id FROM orders"}).action,
            "failure rule": any(REPEATED_FAILURE in rule.tags for rule in rules),
            "width of a demand": memory.note_demand(**QUIET).outcome,
            "tools of a demand": tools_called_here(memory.services.store(), "default"),
        }


def test_imported_calls_of_the_same_conversation_bind_nothing(tmp_path):
    empty, live = decisions(lambda memory: None), decisions(made_live)
    assert [kind for kind in empty if live[kind] == empty[kind]] == []  # each could differ
    path = tmp_path / "calls.jsonl"
    path.write_text("".join(f"{json.dumps(each)}\n" for each in CALLS))
    assert decisions(lambda memory: import_recordings(memory, [path])) == empty


CLAUDE = {"format": "claude_code", "import_id": "20261120-3fa2"}
LATER = {"format": "claude_code", "import_id": "20261121-77aa"}


def lesson(memory, metadata, talk):
    """A failure and its repair, summarized. Returns what is told of it on each road."""
    error, given = "Error: limit must be at most 10", {"q": talk, "limit": 50}
    failed, repair = call("find", given, error, False, talk), {**given, "limit": 10}
    calls = [failed, call("find", repair, talk=talk)]
    memory.add([{**each, "metadata": metadata} for each in calls])
    memory.summarize()
    texts = (memory.guidance(["find"]), memory.advise("find", given, error))
    return [*(each.text for each in texts), memory.prompt(), memory.tools()[0].guidance]


@pytest.mark.parametrize(
    ("second", "mark"),
    [
        (CLAUDE, " (imported: claude-code, 20 Nov)"),
        (LATER, " (imported: claude-code)"),
        ({**CLAUDE, "format": "codex"}, " (imported: 20 Nov)"),
        ({**LATER, "format": "a\nforged (line)"}, " (imported)"),
        ({}, ""),
    ],
)
def test_a_line_says_what_the_imported_calls_behind_it_share(memory, second, mark):
    lesson(memory, CLAUDE, "a")
    for text in lesson(memory, second, "b"):
        [line] = [each for each in text.splitlines() if "limit must be" in each]
        assert line.endswith(f'then worked: {{"limit": 10}}{mark}')


def test_a_line_that_was_taken_away_stays_away_after_another_import(memory):
    assert "limit must be" in lesson(memory, CLAUDE, "a")[0]
    memory.forget_guidance_line("find", 1)
    assert "limit must be" not in "".join(lesson(memory, LATER, "b"))
