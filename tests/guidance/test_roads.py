"""Wherever guidance is read, it agrees with the rules that bind now."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from click.testing import CliRunner
from guidance.conftest import call
from starlette.testclient import TestClient

from toolmem import ToolMem
from toolmem.cli.main import commands
from toolmem.guard.stores import open_stores
from toolmem.hooks.__main__ import answer_event
from toolmem.research import tables
from toolmem.research.evaluation import evaluate
from toolmem.research.importing import import_recordings
from toolmem.research.report import page
from toolmem.rules.changes import Actor
from toolmem.rules.store import RuleInput
from toolmem.server.access import Access
from toolmem.server.http import application
from toolmem.server.mcp.reading import McpReading
from toolmem.server.proxy.call import CallOutcome, ToolCall
from toolmem.server.proxy.memory import ProxyMemory
from toolmem.session import AgentSession

SIZE, MAIL = "size: expected a number, got text", "urgent: expected true or false"
FAILED = {"resize": ({"size": "9000.0"}, SIZE), "mail": ({"to": "amy", "urgent": "yes"}, MAIL)}
DENIED = ("npm publish --tag next", '{"size": 9000}')
RULES = [
    ("shell", "Never publish", "deny", {"command": "^npm publish"}),
    ("resize", "Nothing that large", "deny", {"arg": {"name": "size", "over": 5000}}),
    ("mail", "Ask before urgent mail", "ask", {"arg": {"name": "urgent", "matches": "true"}}),
]
TOOLS = [rule[0] for rule in RULES]


CALLS = [
    call("shell", {"command": "npm publish --tag next"}),
    call("shell", {"command": "ls -la"}),
    *(call(tool, *FAILED[tool]) for tool in FAILED),
    call("resize", {"size": 9000}),
    call("mail", {"to": "amy", "urgent": True}),
]


@pytest.fixture
def ruled(path):
    """Tools with lines of each kind, and rules that mean some of the calls in them."""
    with ToolMem(path) as memory:
        memory.add(CALLS)
        memory.summarize()
        for tool, text, effect, when in RULES:
            memory.tool_rule_put(tool, text, effect=effect, when=[when], priority="high")
        yield SimpleNamespace(memory=memory, path=path)


def lift(memory):
    for tool in TOOLS:
        for rule in memory.tool_rule_list(tool):
            memory.rules.delete_rule(tool, rule.id, Actor("user", evidence="terminal"))


def client(ruled):
    return TestClient(application(ruled.memory, Access("")), base_url="http://127.0.0.1:8002")


def web(ruled, *pages):
    found = [client(ruled).get(f"/w/default/{each}").text for each in pages]
    cards = (each.partition("Newest calls")[0] for each in found)
    return "\n".join(cards).replace("&#34;", '"')


def posted(ruled, where, body):
    return json.dumps(client(ruled).post(where, json=body).json()).replace('\\"', '"')


def shown_by_cli(ruled):
    asked = (["tools", "show", tool, "--store", ruled.path] for tool in TOOLS)
    return "".join(CliRunner().invoke(commands, each).output for each in asked)


def hook(ruled):
    event = {"hook_event_name": "SessionStart", "session_id": "s", "cwd": ".", "source": "startup"}
    said = answer_event(["claude-code", "--store", ruled.path], json.dumps(event).encode(), {})
    return json.loads(said)["hookSpecificOutput"]["additionalContext"]


def proxy(ruled, *, told):
    memory = ProxyMemory(lambda: open_stores("", ruled.path))
    found = memory.describe([{"name": tool, "inputSchema": {}} for tool in TOOLS])
    for tool, (given, error) in FAILED.items() if told == "advice" else ():
        message = {"message": {}, "params": {}, "meta": {}, "record_id": f"r-{tool}"}
        ended = CallOutcome("tool_error", False, error)
        found[tool] = memory.keep(ToolCall(**message, tool=tool, arguments=given), ended)
    memory.close()
    return "\n".join(found[tool] for tool in (FAILED if told == "advice" else found))


def report(ruled, tmp_path):
    file = tmp_path / "calls.jsonl"
    file.write_text("\n".join(map(json.dumps, CALLS)))
    found = evaluate(file, memory=ruled.memory)
    rows = "\n".join(row.text for row in tables.line_rows(found))
    cards = page(found).partition("as an agent gets it")[2]
    return f"{rows}\n{cards}".replace("&#34;", '"')


def imported(ruled, tmp_path):
    name = f"{len(ruled.memory.calls())} calls"
    file = tmp_path / f"{name}.jsonl"
    file.write_text("\n".join(json.dumps(each | {"context": name}) for each in CALLS))
    return "\n".join(sum(import_recordings(ruled.memory, [file]).cards.values(), []))


def advised(ruled):
    found = (ruled.memory.advise(t, given, error=error) for t, (given, error) in FAILED.items())
    return "\n".join(each.text for each in found)


ROADS = {
    "prompt": lambda it, _: it.memory.prompt(TOOLS),
    "guidance": lambda it, _: it.memory.guidance(TOOLS).text,
    "retrieve": lambda it, _: it.memory.retrieve("resize or mail or shell").text,
    "advise": lambda it, _: advised(it),
    "tools": lambda it, _: "\n".join(each.guidance for each in it.memory.tools()),
    "tools show": lambda it, _: shown_by_cli(it),
    "session": lambda it, _: AgentSession.start(it.memory, tools=TOOLS).system_prompt,
    "hook": lambda it, _: hook(it),
    "proxy": lambda it, _: proxy(it, told="descriptions"),
    "proxy advice": lambda it, _: proxy(it, told="advice"),
    "mcp resource": lambda it, _: "\n".join(
        McpReading(it.memory, "default").read(f"toolmem://default/tools/{tool}").contents[0].text
        for tool in TOOLS
    ),
    "rpc": lambda it, _: posted(
        it,
        "/rpc",
        {"jsonrpc": "2.0", "id": 1, "method": "memory.guidance", "params": {"tool_names": TOOLS}},
    ),
    "flow": lambda it, _: posted(it, "/summary_tool_memory", {"workspace_id": "default"}),
    "console": lambda it, _: web(it, *(f"tool?name={tool}" for tool in TOOLS)),
    "console, home": lambda it, _: web(it, ""),
    "report": report,
    "import": imported,
}


@pytest.mark.parametrize("road", ROADS)
def test_every_road_shows_what_the_rules_allow_and_all_once_they_are_lifted(ruled, road, tmp_path):
    text = ROADS[road](ruled, tmp_path)
    assert [each for each in DENIED if each in text] == [], text
    assert "withheld: a rule stops it" in text
    assert '"urgent": true} (asks first)' in text
    assert MAIL in text
    lift(ruled.memory)
    text = ROADS[road](ruled, tmp_path)
    assert [each for each in DENIED if each in text] != [], text
    assert "withheld" not in text
    assert "asks first" not in text


LONG = "x" * 130


@pytest.mark.parametrize(
    ("given", "when", "is_shown"),
    [
        ({"command": f"make {LONG} && npm publish"}, {"command": "^npm publish"}, False),
        ({"command": f"make {LONG}"}, {"arg": {"name": "host", "matches": "prod"}}, True),
        ({"command": "make a", "why": LONG}, {"command": "^npm publish"}, True),
        ({"command": "make a", "why": LONG}, {"text": "secret"}, False),
        ({"name": f"{LONG}.exe"}, {"arg": {"name": "name", "matches": r"\.exe$"}}, False),
        ({"amount": 20, "note": LONG}, {"arg": {"name": "amount", "over": 50}}, True),
        ({"path": "/srv/a", "old": LONG, "new": LONG}, {"path": "^/etc/"}, True),
        ({f"p{n}": "v" * 40 for n in range(9)}, {"arg": {"name": "p8", "matches": "w"}}, False),
    ],
)
def test_what_is_cut_off_a_shown_call_may_be_what_a_rule_denies(memory, given, when, is_shown):
    memory.add([call("make", given)])
    memory.summarize()
    memory.tool_rule_put("make", "Never that", effect="deny", when=[when])
    assert ("withheld" not in memory.guidance("make").text) is is_shown


@pytest.mark.parametrize(("session", "is_shown"), [("s1", False), ("s2", True), ("", True)])
def test_a_rule_of_one_session_withholds_in_it_alone(memory, session, is_shown):
    memory.add(CALLS)
    memory.summarize()
    given = {"effect": "deny", "when": [RULES[0][3]], "session": "s1"}
    memory.rules.put_rule(RuleInput(tool_name="shell", rule="Never publish", **given))
    prompt = AgentSession.start(memory, tools=["shell"], conversation_id=session).system_prompt
    assert (DENIED[0] in prompt) is is_shown


def test_a_prompt_with_little_room_still_says_that_an_example_is_withheld(ruled):
    prompt = ruled.memory.prompt(["shell"], guidance_tokens=50)
    assert "(example withheld: a rule stops it)" in prompt
    assert "ls -la" not in prompt
