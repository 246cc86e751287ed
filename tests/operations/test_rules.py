"""Rules, notes, checks and memories through ToolMem, in one process and in several."""

import json
import subprocess
import sys

import pytest

from toolmem import ToolMem
from toolmem.errors import RequestError

SARAH = "never email Sarah at sarah@example.com"
MAIL = {
    "name": "send_email",
    "description": "Send an e-mail",
    "parameters": {"properties": {"to": {"type": "string"}, "body": {"type": "string"}}},
}


@pytest.mark.parametrize("said", [SARAH, "永远不要给 sarah@example.com 的 Sarah 发邮件"])
def test_the_safety_case_end_to_end(path, said):
    call = {"name": "send_email", "arguments": {"to": "bob@example.com"}, "success": True}
    with ToolMem(path) as memory:
        captured = memory.capture_rules(said, tool_calls=[call], conversation_id="s1", tools=[MAIL])
        assert [rule.tool_name for rule in captured.kept] == ["send_email"]
    with ToolMem(path) as memory:
        prompt = memory.prompt([MAIL], base_prompt="You are an assistant.")
        assert prompt.startswith("You are an assistant.\n\n## Tool-scoped rules\n\n")
        assert f"### `send_email`\n- **[critical]** {said}" in prompt
        denied = memory.check_tool_call("send_email", {"to": "Sarah <sarah@example.com>"})
        assert denied.action == "deny"
        assert said in denied.reason
        assert memory.check_tool_call("send_email", {"to": "bob@example.com"}).action == "allow"
        assert [each.action for each in memory.decisions()] == ["deny"]


def test_a_note_over_the_memory_counts_the_calls_that_worked(memory):
    calls = [
        {"tool_name": "Bash", "input": {"command": c}, "output": "ok", "success": True}
        for c in ("git push --force", "ls", "pwd")
    ]
    memory.add(calls)
    said = "no force pushes please, ever"
    noted = memory.note_demand(
        said,
        "deny",
        tools=["Bash"],
        when=[{"command": "^git push", "word": "--force|-f"}],
        stops=[{"tool": "Bash", "arguments": {"command": "git push --force origin dev"}}],
        passes=[{"tool": "Bash", "arguments": {"command": "git push origin dev"}}],
        user_message=said,
        tools_available=["Bash"],
        conversation_id="c1",
    )
    assert noted.outcome == "kept"
    assert "stopped 1 of your last 3 calls" in noted.told
    assert memory.check_tool_call("exec_command", {"command": "git push -f"}).action == "deny"


def test_failures_are_held_between_processes(path):
    given = {"command": "cat x"}
    with ToolMem(path, overrides=["guard.repeats=enforce"]) as memory:
        decision = memory.check_tool_call("Bash", given, conversation_id="c")
        memory.tool_call_ended(decision, given, output="cat: x: No such file", success=False)
    with ToolMem(path, overrides=["guard.repeats=enforce"]) as memory:
        assert memory.check_tool_call("Bash", given, conversation_id="c").action == "deny"


def test_the_figures_on_a_tool_are_made_from_the_calls_that_were_added(memory):
    failed = {"tool_name": "Fetch", "output": "Error: timed out", "success": False}
    worked = {"tool_name": "fetch", "output": "rain", "success": True}
    memory.add([{**failed, "time_cost": 0.5}, {**failed, "time_cost": 1.5}, worked])
    memory.add([{"tool_name": "search", "output": "rain"}])
    memory.capture_rules("", tool_calls=[{"name": "fetch", "success": False}])  # adds no call
    entries = memory.recall("fetch", namespace="tool_effectiveness")
    assert [(entry.id, entry.kind) for entry in entries] == [
        ("fetch", "statistics"),
        ("search", "statistics"),
    ]
    assert json.loads(entries[0].content) == {
        "total_calls": 3,
        "successes": 1,
        "failures": 2,
        "avg_duration_ms": 1000.0,
        "common_error_patterns": ["timed out"],
    }
    assert memory.services.store().namespaces("default") == []
    with pytest.raises(RequestError, match="namespace"):
        memory.remember("x", namespace="tool_effectiveness")


def test_figures_that_an_older_toolmem_stored_are_given_and_count_no_call_twice(memory):
    store, stored = memory.services.store(), {"total_calls": 7, "failures": 2}
    for name in ("fetch", "search"):
        store.put("default", "tool_effectiveness", f"tool/{name}", stored)
    memory.add([{"tool_name": "fetch", "output": "rain", "success": True}])
    figures = {e.id: json.loads(e.content) for e in memory.recall(namespace="tool_effectiveness")}
    assert figures["search"] == stored
    assert (figures["fetch"]["total_calls"], figures["fetch"]["failures"]) == (1, 0)


def test_memories_are_recalled_with_the_rules_of_their_tool(memory):
    memory.remember("The staging database is called blue", tags=["db"])
    memory.remember("Invoices go out on Mondays")
    memory.tool_rule_put("send_email", "Tool failed 2 times in one turn (timeout).")
    found = memory.recall("which database do we use for staging?", limit=1)
    assert [entry.content for entry in found] == ["The staging database is called blue"]
    assert [e.kind for e in memory.recall("timeout", namespace="tool-Send_Email")] == ["rule"]
    [newest, _] = memory.recall()
    assert memory.forget(newest.id) and not memory.forget(newest.id)
    with pytest.raises(RequestError, match="namespace"):
        memory.remember("x", namespace="elsewhere")


def test_eight_processes_that_put_rules_at_once_lose_none(path):
    script = (
        "import sys; from toolmem import ToolMem\n"
        "with ToolMem(sys.argv[1]) as memory:\n"
        "    for n in range(10):\n"
        "        memory.tool_rule_put('t', f'rule {sys.argv[2]} {n}')\n"
        "        memory.tool_rule_put('t', 'the same', tags=[f'{sys.argv[2]}-{n}'])\n"
    )
    command = [sys.executable, "-c", script, path]
    running = [subprocess.Popen([*command, str(number)]) for number in range(8)]
    assert [each.wait(timeout=120) for each in running] == [0] * 8
    with ToolMem(path) as memory:
        texts = [rule.rule for rule in memory.tool_rule_list("t")]
    assert len(texts) == 81 and texts.count("the same") == 1


def test_a_killed_writer_loses_no_rule_that_was_acknowledged(path):
    script = (
        "import sys; from toolmem import ToolMem\n"
        "memory = ToolMem(sys.argv[1])\n"
        "n = 0\n"
        "while True:\n"
        "    n += 1\n"
        "    print(memory.tool_rule_put('t', f'rule {n}').id, flush=True)\n"
    )
    writer = subprocess.Popen([sys.executable, "-c", script, path], stdout=subprocess.PIPE)
    told = [writer.stdout.readline().decode().strip() for _ in range(20)]
    writer.kill()
    told += [line for line in writer.stdout.read().decode().splitlines() if len(line) == 36]
    writer.wait()
    with ToolMem(path) as memory:
        assert {rule.id for rule in memory.tool_rule_list("t")} >= set(told)


SECRETS = ("ghp_16C7e42F292c6912E7710c838347Ae178B4a", "curl -u bob:sunshine7x https://a.example")


@pytest.mark.parametrize("secret", SECRETS)
def test_secrets_reach_neither_store_nor_prompt(path, secret):
    with ToolMem(path) as memory:
        said = f"Never send {secret} to anybody by email"
        memory.capture_rules(said, tools=[MAIL], conversation_id="s")
        memory.tool_rule_put("shell", f"never run it with {secret}", priority="critical")
        memory.note_demand(said, "remind", tools=["send_email"], rule=said, user_message=said)
        memory.remember(f"the {secret}")
        failed = {"name": "sql", "success": False, "output_summary": f"Error: bad {secret}"}
        memory.capture_rules(tool_calls=[failed, failed])
        given = {"command": "deploy"}
        decision = memory.check_tool_call("Bash", given, conversation_id="c")
        memory.tool_call_ended(decision, given, output=f"error: {secret} refused", success=False)
        memory.check_tool_call("Bash", given, conversation_id="c")
        told = memory.prompt() + str(memory.decisions()) + str(memory.recall())
    with open(path, "rb") as opened:
        stored = opened.read()
    for bare in ("ghp_16C7", "sunshine7x"):
        assert bare not in told
        assert bare.encode() not in stored


def test_neither_adding_nor_checking_loads_what_reads_sentences(path):
    script = (
        "import sys; from toolmem import ToolMem\n"
        "with ToolMem(sys.argv[1]) as memory:\n"
        "    memory.add([{'tool_name': 't', 'output': 'x'}])\n"
        "    memory.check_tool_call('t', {'a': 1})\n"
        "print([m for m in sys.modules if m.startswith(('toolmem.rules.reader', 'tree_sitter'))])\n"
    )
    done = subprocess.run([sys.executable, "-c", script, path], capture_output=True, check=True)
    assert done.stdout.strip() == b"[]"
