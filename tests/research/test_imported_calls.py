"""Imported calls teach, and say that they were imported; they never bind."""

import json
from functools import partial

import pytest

from toolmem import ToolMem
from toolmem.research.importing import import_recordings
from toolmem.rules.failures import REPEATED_FAILURE
from toolmem.rules.turn import tools_called_here
from toolmem.session import AgentSession

SQL = {"sql": "SELECT total FROM orders"}
QUIET = {
    "quote": "my wife sleeps there",
    "effect": "deny",
    "tools": ["ring"],
    "when": [{"arg": {"name": "floor", "matches": "^7"}}],
    "stops": [{"tool": "ring", "arguments": {"floor": "7a"}}],
    "passes": [{"tool": "ring", "arguments": {"floor": "8"}}],
    "user_message": "my wife sleeps there",
    "tools_available": ["ring"],
}
CALLS = [  # tool, arguments, answer, whether it failed
    ("Bash", {"command": "pytest"}, "3 passed", False),
    ("mail", {"to": "amy"}, "sent", False),
    *(("ring", {"floor": f"7{each}"}, "rung", False) for each in "abcdef"),
    ("Bash", {"command": "cat a.txt"}, "cat: a.txt: No such file or directory", True),
    ("Bash", {"command": "cat b.txt"}, "cat: b.txt: No such file or directory", True),
    ("query", SQL, "no such table: orders", True),
]


def transcript(folder, calls, session="s"):
    """A file as Claude Code writes it."""
    about, lines = {"sessionId": session, "uuid": "u", "timestamp": "2026-11-20T10:00:00Z"}, []
    for number, (tool, given, output, failed) in enumerate(calls):
        key = f"toolu_{session}_{number}"
        use = {"type": "tool_use", "id": key, "name": tool, "input": given}
        answer = {"type": "tool_result", "tool_use_id": key, "content": output, "is_error": failed}
        for role, block in (("assistant", use), ("user", answer)):
            lines.append({**about, "type": role, "message": {"role": role, "content": [block]}})
    path = folder / f"{session}.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return path


def decisions(make_calls=lambda memory: None):
    """What becomes of calls and demands in a conversation, after it made some calls."""
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
            "repeat": check("Bash", {"command": "cat b.txt"}).action,
            "only after": check("Bash", {"command": "git commit -m x"}).action,
            "more than": check("mail", {"to": "amy"}).action,
            "missing table": check("query", {"sql": "SELECT id FROM orders"}).action,
            "failure rule": any(REPEATED_FAILURE in rule.tags for rule in rules),
            "width of a demand": memory.note_demand(**QUIET).outcome,
            "tools of a demand": tools_called_here(memory.services.store(), "default"),
        }


def make_live(memory):
    with AgentSession.start(memory, session_id="s") as session:
        session.messages("go on")
        records = []
        for tool, given, output, failed in CALLS:
            session.ended(session.check(tool, given), output, not failed)
            records.append({"tool_name": tool, "input": given, "output": output})
            records[-1]["success"] = not failed
        session.after_turn(calls=records)


def test_imported_calls_of_the_same_conversation_bind_nothing(tmp_path):
    path = transcript(tmp_path, CALLS)
    empty, live = decisions(), decisions(make_live)
    assert [kind for kind in empty if live[kind] == empty[kind]] == []  # each could differ
    assert decisions(lambda memory: import_recordings(memory, [path])) == empty
