"""The office trial, played by a script over real HTTP."""

import json
import subprocess
import sys
from pathlib import Path

from toolmem.testing.model_server import ModelServer

ROOT = Path(__file__).parents[2]
SHELVES = {  # by words of the task: what is right, drug and cabinet
    "carpofen tablets (for dogs)": [("DX131:T", "NORTH"), ("DX118:S", "COLD")],
    "melovet syrup for dogs": [("DX137:S", "COLD"), ("DX124:S", "VAN")],
}


def agent(messages):
    """Counts packs. It tries a drug's name first, unless its prompt tells of a form."""
    system, task = messages[0]["content"], messages[1]["content"]
    plan = next((plan for words, plan in SHELVES.items() if words in task), None)
    if plan is None:
        return {"content": "Answer: done"}
    told = [each["content"] for each in messages if each["role"] == "tool"]
    packs = [str(json.loads(each)["packs"]) for each in told if each.startswith("{")]
    if len(packs) == len(plan):
        return {"content": f"Answer: {'; '.join(packs)}"}
    drug, cabinet = plan[len(packs)]
    if not told and ":T" not in system:
        drug = "carpofen"
    function = {"name": "drug_stock", "arguments": json.dumps({"drug": drug, "cabinet": cabinet})}
    call = {"id": f"call_{len(told)}", "type": "function", "function": function}
    return {"content": None, "tool_calls": [call]}


def run(folder, *arguments):
    out = ["--out", str(folder / "calls.jsonl")]
    command = [sys.executable, "-m", "examples.office", *out, *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)


def test_an_agent_with_tool_memory_does_not_make_the_failing_call_again(tmp_path):
    with ModelServer(agent=agent) as server:
        asked = ["--model", "scripted", "--base-url", server.openai_url]
        done = run(tmp_path, *asked, "--json")
        assert done.returncode == 0, done.stderr
        learning, without, with_memory = json.loads(done.stdout)
        assert (learning["failed"], without["failed"], with_memory["failed"]) == (1, 1, 0)
        assert without["solved"] == with_memory["solved"] == 1
        assert with_memory["tokens"] > 0
        assert run(tmp_path, *asked).returncode == 2  # what was paid for is not replaced
    calls = [json.loads(line) for line in (tmp_path / "calls.jsonl").open()]
    assert [call["success"] for call in calls] == [False, True, True]


def test_a_service_that_is_not_there_is_named(tmp_path):
    done = run(tmp_path, "--model", "m", "--base-url", "http://127.0.0.1:9/v1")
    assert done.returncode == 1
    assert "stopped: m at http://127.0.0.1:9/v1/" in done.stderr
